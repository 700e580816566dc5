//! A controller: what it watches, how it decides, and the one worker loop that runs it.
//!
//! 1. Nothing runs before [`Controller::run`]: building a controller declares informers, indexes and handlers.
//! 2. One key is reconciled by one worker at a time; different keys in any order.
//! 3. Workers start when the caches are filled *and* the handlers have seen all of what filled them.
//! 4. A key whose owner's writes the caches do not show yet is parked, and woken by the store.
//! 5. A reconcile that fails or panics costs its own key a back-off, and no other key anything.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::join_all;
use steersman_base::{Clock, ObjectKey, Uid};
use steersman_informer::consistency::{Book, Verdict};
use steersman_informer::{Change, InformerFactory, SharedInformer, Subscription};
use steersman_model::{Kind, View};
use steersman_workqueue::{Held, Priority, PrometheusMetrics, Queue, QueueOptions, Shutdown};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::reconcile::DynReconciler;
use crate::{Action, Context, Error, Freshness, Reconciler, Writer};

/// What controllers are built with.
#[derive(Clone)]
pub struct BuildContext {
    /// For live reads.
    pub client: kube::Client,
    /// Where informers are declared.
    pub informers: InformerFactory,
    /// The only way to write.
    pub writer: Writer,
    /// What was written and is not seen yet.
    pub book: Book,
    /// The only way to know the time.
    pub clock: Clock,
    /// Where queues count.
    pub(crate) queue_metrics: Option<PrometheusMetrics>,
}

/// A controller under construction: its main kind, and what else it watches.
pub struct Builder<V: View> {
    cx: BuildContext,
    primary: SharedInformer<V>,
    queue: Queue<ObjectKey>,
    subscriptions: Vec<Subscription>,
}

/// Tells the uid of the main object with a key, if there is one.
type OwnerOf = Box<dyn Fn(&ObjectKey) -> Option<Uid> + Send + Sync>;

/// A controller that is ready to run.
pub struct Controller {
    name: &'static str,
    workers: usize,
    retries_max: Option<u32>,
    queue: Queue<ObjectKey>,
    subscriptions: Vec<Subscription>,
    context: Context,
    book: Book,
    owner: OwnerOf,
    reconciler: Box<dyn DynReconciler>,
}

// === impl Builder ===

impl BuildContext {
    /// Begins a controller of objects of kind `V`: each change of such an object puts its key into the queue.
    #[must_use]
    pub fn controller<V: Kind>(&self, queue_name: &'static str) -> Builder<V> {
        let primary = self.informers.informer::<V>();
        let mut options = QueueOptions::default();
        if let Some(metrics) = &self.queue_metrics {
            options.metrics = Arc::new(metrics.clone());
        }
        let queue = Queue::new(queue_name, options);
        let mut builder = Builder { cx: self.clone(), primary: primary.clone(), queue, subscriptions: Vec::new() };
        builder.watch(&primary, |change| vec![change.key()]);
        builder
    }
}

impl<V: View> Builder<V> {
    /// Lets changes of other objects put keys of main objects into the queue.
    pub fn watch<W: View>(
        &mut self,
        informer: &SharedInformer<W>,
        keys: impl Fn(&Change<W>) -> Vec<ObjectKey> + Send + 'static,
    ) {
        let queue = self.queue.clone();
        self.subscriptions.push(informer.subscribe(move |change| queue.add_all(&keys(change), priority(change))));
    }

    /// The informer of the main kind.
    #[must_use]
    pub fn primary(&self) -> &SharedInformer<V> {
        &self.primary
    }

    /// The controller's queue, for handlers of one's own.
    #[must_use]
    pub fn queue(&self) -> &Queue<ObjectKey> {
        &self.queue
    }

    /// The controller, ready to run.
    #[must_use]
    pub fn reconcile_with(self, name: &'static str, workers: usize, reconciler: impl Reconciler) -> Controller {
        let objects = self.primary.lister();
        Controller {
            name,
            workers,
            retries_max: None,
            queue: self.queue,
            subscriptions: self.subscriptions,
            context: Context { writer: self.cx.writer, clock: self.cx.clock, freshness: Freshness::CaughtUp },
            book: self.cx.book,
            owner: Box::new(move |key| objects.get(key).map(|object| object.meta().uid.clone())),
            reconciler: Box::new(reconciler),
        }
    }
}

/// What a cache is filled with at the start, and what is only looked at again, waits behind what happens now.
fn priority<W: View>(change: &Change<W>) -> Priority {
    if change.is_initial() || change.is_resync() { Priority::Background } else { Priority::Live }
}

// === impl Controller ===

impl Controller {
    /// The controller's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The controller's queue.
    #[must_use]
    pub fn queue(&self) -> &Queue<ObjectKey> {
        &self.queue
    }

    /// Gives a key up after this many failures in a row, until it changes; without this, retries go on.
    #[must_use]
    pub fn give_up_after(mut self, retries: u32) -> Self {
        self.retries_max = Some(retries);
        self
    }

    /// Runs the controller's workers until `stop`; reconciles in flight then finish, what waits is left.
    pub async fn run(self, stop: CancellationToken) {
        let controller = Arc::new(self);
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            _ = join_all(controller.subscriptions.iter().map(Subscription::synced)) => {}
        }
        tracing::info!(controller = controller.name, workers = controller.workers, "starting workers");
        let mut workers = JoinSet::new();
        for _ in 0..controller.workers {
            workers.spawn(Arc::clone(&controller).work());
        }
        stop.cancelled().await;
        controller.queue.shutdown(Shutdown::Drop).await;
        while workers.join_next().await.is_some() {}
        tracing::info!(controller = controller.name, "stopped");
    }

    async fn work(self: Arc<Self>) {
        while let Some(item) = self.queue.next().await {
            self.process(item).await;
        }
    }

    async fn process(&self, item: Held<ObjectKey>) {
        let mut context = self.context.clone();
        if let Some(owner) = (self.owner)(item.key()) {
            let (queue, key) = (self.queue.clone(), item.key().clone());
            match self.book.check(&owner, move || queue.add(key.clone(), Priority::Live)) {
                Verdict::Clear => {}
                Verdict::Parked => return item.park(),
                Verdict::LiveRead => context.freshness = Freshness::ReadLive,
            }
        }
        let span = tracing::info_span!("reconcile", controller = self.name, key = %item.key());
        let outcome = AssertUnwindSafe(self.reconciler.reconcile(&context, item.key()))
            .catch_unwind()
            .instrument(span.clone())
            .await
            .unwrap_or_else(|panic| Err(Error::message(format!("panicked: {}", panic_text(&*panic)))));
        let _entered = span.enter();
        match outcome {
            Ok(Action::Done) => item.done(),
            Ok(Action::Again) => item.again(),
            Ok(Action::After(wait)) => item.again_after(wait),
            Err(error) if error.is_terminal() => {
                tracing::error!(%error, "giving up until the object changes");
                item.give_up();
            }
            Err(error) if self.retries_max.is_some_and(|max| item.failures() >= max) => {
                tracing::error!(%error, retries = item.failures(), "giving up until the object changes");
                item.give_up();
            }
            Err(error) => {
                tracing::warn!(%error, failures = item.failures() + 1, "retrying");
                item.retry();
            }
        }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
