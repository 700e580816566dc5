//! A controller: its sources, its reconciler, and the one worker loop.
//!
//! 1. Nothing runs before the manager does: building a controller declares informers, indexes and handlers.
//! 2. One key is reconciled by one worker at a time; different keys in any order.
//! 3. Workers start when the caches are filled *and* the handlers have seen all of their contents; and, where a lease
//!    is required, when this process leads and its caches show at least the state at the time of the election. Until
//!    then the queue takes only [triggered](Controller::trigger) keys: a standby does not collect the keys of
//!    everything that ever existed. When the controller starts to work, it reconciles the last keys that events named,
//!    and everything in the caches of its sources, as after a restart.
//! 4. A key is parked while the caches do not show the controller's own writes for its owner, and is woken by the
//!    store. After half a minute, a reconciler that can read live ([`Builder::reads_live`]) continues with live reads;
//!    others keep waiting. No pass acts on a cache that is known to lag.
//! 5. A reconcile that fails, exceeds its time limit or panics backs off its own key and affects no other key.
//! 6. A source that panics stops no other source and no worker; from then on the controller is unhealthy, because it
//!    misses events. A handler or predicate that panics costs the one change. A worker that panics outside of a reconcile
//!    (in a rate limiter, say) stops the manager, because its key can never be released.
//! 7. Running reconciles finish before the controller ends. [`Context::stop`](crate::Context::stop) notifies one that waits for
//!    something to return.
//!
//! | a reconcile returns | what happens to its key |
//! |---|---|
//! | [`Action::Done`](crate::Action::Done) | its failures are forgotten |
//! | [`Action::Again`](crate::Action::Again) | it is requeued, rate-limited |
//! | [`Action::After`](crate::Action::After) | its failures are forgotten; it is requeued after the delay |
//! | an error | it is retried, rate-limited; given up after [`Builder::give_up_after`]; built-in controllers try again after 1000 s |
//! | a [terminal](crate::Error::terminal) error | it is not retried until it changes |
//! | a panic, or no result in [time](Builder::timeout) | as an error |

mod builder;
pub(crate) mod built;
mod context;
pub(crate) mod of_row;
mod process;

use std::collections::BTreeSet;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use parking_lot::Mutex;
use steersman_base::{ObjectKey, Resource, ResourceVersion, Uid};
use steersman_informer::__internal::consistency::Book;
use steersman_informer::__internal::reachability::Reachability;
use steersman_workqueue::{Priority, Queue, Shutdown};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use builder::Builder;
pub(crate) use built::Built;
pub use context::BuildContext;
pub(crate) use context::TypeMap;
pub(crate) use of_row::ControllerContext;
pub(crate) use process::panic_text;

use crate::decisions::Log;
use crate::manager::Barriers;
use crate::metrics::Activity;
use crate::reconcile::DynReconciler;
use crate::source::{Connected, Feed, Source, TaskSource, Watching};
use crate::trigger::Trigger;
use crate::{Context, Error, lease::Leadership};

/// A handle to a controller. Cheap to clone.
#[derive(Clone)]
pub struct Controller(Arc<Shared>);

struct Shared {
    name: &'static str,
    workers: usize,
    feed: Feed,
    connected: Mutex<Sources>,
    /// Keys whose last pass could not reach the server: they are enqueued as soon as it is back.
    unreached: Mutex<BTreeSet<ObjectKey>>,
    /// The panic of the first source that panicked.
    source_panic: Mutex<Option<String>>,
    /// The controller's writes that its caches do not show yet.
    book: Book,
    informers: steersman_informer::InformerFactory,
}

#[derive(Default)]
struct Sources {
    watching: Vec<Watching>,
    /// The tasks that wait for the controller to start.
    tasks: Vec<TaskSource>,
    /// Set while the controller runs: the informers of later sources start at once.
    running: Option<CancellationToken>,
    /// Whether the workers run: later tasks start at once.
    works: bool,
}

/// A controller with everything that only the workers need.
pub(crate) struct Engine {
    controller: Controller,
    context: Context,
    policy: Policy,
    activity: Activity,
    leadership: Leadership,
    main: MainObjects,
    reconciler: Box<dyn DynReconciler>,
    book: Book,
    decisions: Log,
    reachability: Reachability,
}

/// The treatment of failed reconciles.
#[derive(Clone, Copy, Debug, Default)]
struct Policy {
    retries_max: Option<u32>,
    /// The time for which a key waits that has no retries left; unless set, it waits until its object changes.
    set_aside: Option<Duration>,
    timeout: Option<Duration>,
}

/// The main object with a key, as the cache shows it.
struct MainObject {
    uid: Uid,
    version: ResourceVersion,
}

/// Finds the main object with a key.
type MainObjects = Box<dyn Fn(&ObjectKey) -> Option<MainObject> + Send + Sync>;

// === impl Controller ===

impl Controller {
    /// Returns the name of the controller.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// Returns the queue of the controller.
    #[must_use]
    pub fn queue(&self) -> &Queue<ObjectKey> {
        self.0.feed.queue()
    }

    /// Returns the number of workers.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.0.workers
    }

    /// Enqueues a key now.
    pub fn trigger(&self, key: ObjectKey) {
        self.0.feed.trigger(key);
    }

    /// Adds a source; also while the controller runs.
    pub fn add_source(&self, source: impl Into<Source>) {
        let connected = source.into().connect(&self.0.feed);
        let mut sources = self.0.connected.lock();
        match (connected, sources.running.clone()) {
            (Connected::Watching(watching), running) => {
                sources.watching.push(*watching);
                if running.is_some() {
                    self.0.informers.start();
                }
            }
            (Connected::Task(task), Some(stop)) if sources.works => self.begin(task, stop),
            (Connected::Task(task), _) => sources.tasks.push(task),
        }
    }

    /// Whether every source has delivered its initial state.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.0.connected.lock().watching.iter().all(|watching| watching.subscription.has_synced())
    }

    /// Whether the caches do not show all writes of the controller yet.
    pub(crate) fn waits_for_caches(&self) -> bool {
        !self.0.book.is_empty()
    }

    /// Returns the watched resources.
    #[must_use]
    pub fn watches(&self) -> Vec<Resource> {
        let sources = self.0.connected.lock();
        sources.watching.iter().map(|watching| watching.target.resource.clone()).collect()
    }

    /// Enqueues the keys that could not reach the server, which is back: they need not wait for a back-off that grew
    /// meanwhile.
    pub(crate) fn retry_unreached(&self) {
        let keys: Vec<_> = std::mem::take(&mut *self.0.unreached.lock()).into_iter().collect();
        self.0.feed.add_all(&keys, Priority::Background);
    }

    fn note_reached(&self, key: &ObjectKey, reached: bool) {
        let mut unreached = self.0.unreached.lock();
        if reached {
            unreached.remove(key);
        } else {
            unreached.insert(key.clone());
        }
    }

    pub(crate) fn triggered_by(&self, key: &ObjectKey) -> Trigger {
        self.0.feed.triggered_by(key)
    }

    fn begin(&self, task: TaskSource, stop: CancellationToken) {
        let controller = self.clone();
        let feed = self.0.feed.clone();
        tokio::spawn(async move {
            // The function itself may panic, before there is a future.
            let run = async move { task(feed, stop).await };
            let Err(panic) = AssertUnwindSafe(run).catch_unwind().await else { return };
            let panic = panic_text(&*panic);
            tracing::error!(controller = controller.name(), panic, "a source panicked and delivers no more events");
            controller.0.source_panic.lock().get_or_insert_with(|| panic.to_owned());
        });
    }

    /// Closes the queue of a controller that has ended or will never start, so that its producers do not wait.
    pub(crate) fn close(&self) {
        let ended = CancellationToken::new();
        ended.cancel();
        let mut sources = self.0.connected.lock();
        sources.running = Some(ended);
        sources.works = true;
        let left = std::mem::take(&mut sources.tasks);
        drop(sources);
        drop(left);
    }

    /// Returns the panic of a source, whose events are missing until a restart.
    pub(crate) fn source_panic(&self) -> Option<String> {
        self.0.source_panic.lock().clone()
    }

    /// Waits until the sources have delivered their initial state.
    async fn sources_synced(&self, stop: &CancellationToken) {
        let progress: Vec<_> = {
            let mut sources = self.0.connected.lock();
            sources.running = Some(stop.clone());
            sources.watching.iter().map(|watching| watching.subscription.synced()).collect()
        };
        join_all(progress).await;
    }

    /// Opens the queue, starts the sources that are tasks, and enqueues the contents of the caches if the queue was
    /// closed so far.
    async fn open(&self, stop: &CancellationToken) {
        let was_closed = self.0.feed.open();
        self.queue().open();
        let states: Vec<_> = {
            let mut sources = self.0.connected.lock();
            sources.works = true;
            for task in std::mem::take(&mut sources.tasks) {
                self.begin(task, stop.clone());
            }
            sources.watching.iter().filter(|_| was_closed).map(|watching| (watching.state)()).collect()
        };
        for mut deliver in states {
            while deliver() {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Waits until every cache shows at least the server's state at the time of the election. Caches of other factories
    /// are left out: they may be of another cluster, whose versions have nothing to do with this one's.
    async fn sources_caught_up(&self, barriers: &Barriers, won: Option<Instant>) {
        let caches: Vec<_> = {
            let sources = self.0.connected.lock();
            let watching = sources.watching.iter().filter(|watching| watching.store.is_of(&self.0.informers));
            watching.map(|watching| (watching.target.clone(), Arc::clone(&watching.store))).collect()
        };
        join_all(caches.iter().map(|(target, cache)| barriers.caught_up(target, &**cache, won))).await;
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller").field("name", &self.0.name).finish_non_exhaustive()
    }
}

// === impl Engine ===

impl Engine {
    pub(crate) fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Whether the controller works only while this process leads.
    pub(crate) fn needs_leadership(&self) -> bool {
        !self.leadership.is_always()
    }

    /// Runs the controller until `stop`; running reconciles then finish, waiting keys are dropped.
    ///
    /// # Errors
    /// A worker panicked, outside of a reconcile: a rate limiter did, say. Its key can never be released.
    pub(crate) async fn run(mut self, barriers: Barriers, stop: CancellationToken) -> Result<(), Error> {
        let controller = self.controller.clone();
        self.context.stop = stop.clone();
        if stop.run_until_cancelled(self.ready(&barriers, &stop)).await.is_none() {
            controller.queue().shutdown(Shutdown::Drop).await;
            // Its sources will never run: whoever sends to them must not wait for room.
            controller.close();
            return Ok(());
        }
        tracing::info!(controller = controller.name(), workers = controller.workers(), "starting workers");
        let engine = Arc::new(self);
        let mut workers = JoinSet::new();
        for _ in 0..controller.workers() {
            workers.spawn(Arc::clone(&engine).work());
        }
        let _ = stop.run_until_cancelled(controller.open(&stop)).await;
        let panic = stop.run_until_cancelled(first_panic(&mut workers)).await;
        controller.queue().shutdown(Shutdown::Drop).await;
        while workers.join_next().await.is_some() {}
        tracing::info!(controller = controller.name(), "stopped");
        panic.map_or(Ok(()), |text| Err(Error::message(format!("a worker panicked: {text}"))))
    }

    async fn ready(&self, barriers: &Barriers, stop: &CancellationToken) {
        self.controller.sources_synced(stop).await;
        if self.needs_leadership() {
            self.leadership.acquired().await;
            self.controller.sources_caught_up(barriers, self.leadership.acquired_at()).await;
        }
    }

    async fn work(self: Arc<Self>) {
        while let Some(item) = self.controller.queue().next().await {
            self.process(item).await;
        }
    }
}

/// Waits for the panic of a worker. Workers end otherwise only with their queue.
async fn first_panic(workers: &mut JoinSet<()>) -> String {
    loop {
        match workers.join_next().await {
            Some(Err(error)) if error.is_panic() => return panic_text(&*error.into_panic()).to_owned(),
            Some(_) => {}
            None => std::future::pending().await,
        }
    }
}
