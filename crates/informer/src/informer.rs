//! Shared informers: one watch, one store, any number of subscribers.
//!
//! Guarantees:
//! 1. **After sync the store equals a list** at some resourceVersion. A list is one atomic batch, and it is in the store
//!    before any subscriber runs.
//! 2. **Per object, a subscriber sees a subsequence of its states, in order, and always the last.** Coalescing never
//!    crosses a uid: the deletion of one object comes before the creation of the next. `old` is what *that* subscriber
//!    saw last, and so is the state before a deletion: an unseen update is delivered before it. A deleted object that it
//!    never saw is not shown to it.
//! 3. **Deleted while disconnected** = [`Change::Deleted`] with the last known state, marked
//!    [`End::Missed`](crate::End::Missed).
//! 4. **A relist never doubles memory**: unchanged objects keep their `Arc`.
//! 5. **Slow subscribers never grow memory**: pending changes are coalesced per object.
//! 6. **The store knows the resourceVersion it has reached**; bookmarks advance it.
//! 7. **Objects are `Arc<V>`**: shared and immutable.
//!
//! Each subscriber runs in a task of its own; a [quick](SubscribeOptions::quick) one for which nothing is pending is called in
//! the task of the informer. A handler that panics is isolated: the panic is caught, logged and counted, and the handler goes
//! on with the next change.

mod delivery;
mod subscriber;
#[cfg(test)]
mod tests;

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use steersman_base::watch;
use steersman_base::{ResourceVersion, Uid};
use steersman_model::View;
use tokio::runtime::Handle;
use tokio::task::coop::consume_budget;
use tokio_util::sync::CancellationToken;

pub(crate) use self::subscriber::PendingSubscription;
use self::subscriber::Subscriber;
pub use self::subscriber::Subscription;
use crate::change::Change;
use crate::delta_fifo::{DeltaFifo, ListInfo, Popped};
use crate::lister::Lister;
use crate::metrics::InformerMetrics;
use crate::sink::InformerSink;
use crate::store::{Index, Ledger, Store, ended};
use crate::target::Target;

/// A shared informer: a watch, a store, and subscribers. Cheap to clone; clones are the same informer.
pub struct SharedInformer<V>(Arc<Shared<V>>);

/// The options of a subscription.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SubscribeOptions {
    /// The subscriber's name in logs and in the list of subscribers.
    pub name: String,
    /// The resync period, after which every object is delivered again as a [`Change::Updated`] with the same object twice.
    /// Never, by default and if it is zero, as in client-go.
    pub resync: Option<Duration>,
    /// Whether the handler is quick: it never waits, and needs microseconds. Such a handler may run in the task of the informer,
    /// which saves a task switch per change; others are not called before it returns. No, by default.
    pub quick: bool,
}

/// The state of an informer, for display.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InformerState {
    /// The resource and selection that it watches.
    pub target: Target,
    /// The number of objects in the store.
    pub objects: usize,
    /// The resourceVersion that the store has reached; `None` before the first list.
    pub reached: Option<ResourceVersion>,
    /// Whether the first list is in the store.
    pub synced: bool,
    /// The number of keys that wait to be applied to the store.
    pub queued: usize,
    /// The subscribers.
    pub subscribers: Vec<SubscriberState>,
}

/// The state of a subscriber, for display.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SubscriberState {
    /// The subscriber's name.
    pub name: String,
    /// The number of objects that were not delivered yet.
    pub pending: usize,
    /// Whether the initial state was delivered.
    pub synced: bool,
    /// The number of panics of the handler.
    pub panics: u64,
}

pub(crate) type Transform<V> = Box<dyn Fn(&mut V) + Send + Sync>;

struct Shared<V> {
    target: Target,
    fifo: DeltaFifo<V>,
    store: Arc<Store<V>>,
    lister: Lister<V>,
    /// Held while a batch goes into the store and to the subscribers, so that a new one misses nothing and sees nothing
    /// twice.
    subscribers: Mutex<Vec<Arc<Subscriber<V>>>>,
    synced: watch::Sender<bool>,
    transform: OnceLock<Transform<V>>,
    gather: OnceLock<Duration>,
    /// None for an informer outside of a factory.
    metrics: Option<InformerMetrics>,
    runtime: Handle,
    stop: CancellationToken,
}

/// The result of a batch, to notify about once no lock is held.
struct BatchResult<V> {
    changes: Vec<Change<V>>,
    /// The subscribers that take the changes at once.
    takers: Vec<Arc<Subscriber<V>>>,
    list: Option<ListInfo>,
    went_back: bool,
    /// `None` if there was no subscriber to it when the batch began.
    ended: Option<Vec<Uid>>,
}

/// A function that is called for every change.
type Handler<V> = Box<dyn FnMut(&Change<V>) + Send>;

// === impl SharedInformer ===

impl<V: View> SharedInformer<V> {
    /// Creates an informer with an empty store. Nothing feeds it: use [`InformerFactory`](crate::InformerFactory) for
    /// one that watches a server, or [`sink`](SharedInformer::sink) and [`run`](SharedInformer::run) to feed it
    /// otherwise.
    ///
    /// # Panics
    /// Outside of a tokio runtime: subscribers are tasks.
    #[doc(hidden)]
    #[must_use]
    pub fn new(target: Target, stop: CancellationToken) -> Self {
        Self::with_metrics(target, stop, None)
    }

    pub(crate) fn with_metrics(target: Target, stop: CancellationToken, metrics: Option<InformerMetrics>) -> Self {
        let store = Arc::new(Store::new());
        Self(Arc::new(Shared {
            target,
            fifo: DeltaFifo::new(),
            lister: Lister::new(Arc::clone(&store)),
            store,
            subscribers: Mutex::new(Vec::new()),
            synced: watch::Sender::new(false),
            transform: OnceLock::new(),
            gather: OnceLock::new(),
            metrics,
            runtime: Handle::current(),
            stop,
        }))
    }

    /// Returns the resource and selection that the informer watches.
    #[doc(hidden)]
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.0.target
    }

    /// Returns a lister of the store.
    #[must_use]
    pub fn lister(&self) -> Lister<V> {
        self.0.lister.clone()
    }

    /// Returns the store.
    #[doc(hidden)]
    #[must_use]
    pub fn store(&self) -> &Arc<Store<V>> {
        &self.0.store
    }

    /// Returns the store as a consistency book sees it.
    #[doc(hidden)]
    #[must_use]
    pub fn ledger(&self) -> Arc<dyn Ledger> {
        Arc::clone(&self.0.store) as Arc<dyn Ledger>
    }

    /// Adds an index by the keys that `keys` returns for an object: none, one or several. Objects that are in the store already
    /// are indexed, too. Every call makes an index of its own: keep the handle, or use a
    /// [shared](SharedInformer::shared_index) one.
    ///
    /// `keys` runs while readers wait, so it must be quick, give few keys and must not read the store itself. If it panics, the object
    /// is not in the index, and the panic is logged.
    pub fn index<K, I>(&self, keys: impl Fn(&V) -> I + Send + Sync + 'static) -> Index<K, V>
    where
        K: std::hash::Hash + Ord + Send + Sync + 'static,
        I: IntoIterator<Item = K>,
    {
        self.0.store.index(keys)
    }

    /// Returns the index of this function, which all callers with the same function share.
    ///
    /// The type of the function is its identity, so it must be a `fn` item or a closure that captures nothing; anything
    /// else does not compile. Two functions never share an index.
    pub fn shared_index<K, I, F>(&self, keys: F) -> Index<K, V>
    where
        K: std::hash::Hash + Ord + Send + Sync + 'static,
        I: IntoIterator<Item = K>,
        F: Fn(&V) -> I + Send + Sync + 'static,
    {
        self.0.store.shared_index(keys)
    }

    /// Returns the resourceVersion that the store has reached, bookmarks included; `None` before the first list.
    #[must_use]
    pub fn reached(&self) -> Option<ResourceVersion> {
        self.0.store.reached()
    }

    /// Whether the first list is in the store.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        *self.0.synced.borrow()
    }

    /// Waits until the first list is in the store.
    pub async fn synced(&self) {
        // The sender lives as long as `self`, so an error cannot come.
        drop(self.0.synced.subscribe().wait_for(|synced| *synced).await);
    }

    /// Calls `handler` for every change, in a task of its own. A late subscriber gets the current state first.
    ///
    /// The subscription ends when it is dropped: keep it, or [`detach`](Subscription::detach) it.
    pub fn subscribe(&self, handler: impl FnMut(&Change<V>) + Send + 'static) -> Subscription {
        self.subscribe_with(SubscribeOptions::default(), handler)
    }

    /// As [`subscribe`](SharedInformer::subscribe), with options.
    pub fn subscribe_with(
        &self,
        options: SubscribeOptions,
        handler: impl FnMut(&Change<V>) + Send + 'static,
    ) -> Subscription {
        self.subscribe_boxed(options, Box::new(handler))
    }

    /// Boxed handlers and tasks: the code is compiled once per view, not once per handler.
    fn subscribe_boxed(&self, options: SubscribeOptions, handler: Handler<V>) -> Subscription {
        let (subscriber, subscription) = Subscriber::new(options, handler, &self.0.stop);
        {
            let mut subscribers = self.0.subscribers.lock();
            let listed = self.has_synced();
            subscriber.backlog().seed(self.0.store.snapshot(), listed);
            subscribers.push(Arc::clone(&subscriber));
        }
        let informer = self.clone();
        let run: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
            subscriber.run(&informer).await;
            informer.0.subscribers.lock().retain(|other| !Arc::ptr_eq(other, &subscriber));
        });
        self.0.runtime.spawn(run);
        subscription
    }

    /// Sets a function that changes every object before it is queued and stored, to drop unused fields. It must not
    /// change name, namespace, uid or resourceVersion. If it panics, the object keeps the changes made so far.
    /// [`strip_managed_fields`](crate::strip_managed_fields) is one.
    ///
    /// A controller that compares cached objects with wanted ones must not set fields that a transform drops: it would write them
    /// with every pass.
    ///
    /// Set it before the informer starts: objects that are in the store by then stay as they are until they change. All users of
    /// the informer see the changed objects.
    ///
    /// # Errors
    /// There is a transform already.
    pub fn transform(&self, transform: impl Fn(&mut V) + Send + Sync + 'static) -> Result<(), TransformSet> {
        self.0.transform.set(Box::new(transform)).map_err(|_| TransformSet)
    }

    /// Lets the changes of the watch wait for up to this time, so that many are processed at once: for objects that change all the
    /// time and are not needed soon, such as the heartbeats of nodes. It holds for all users of the informer.
    ///
    /// Set it before the informer starts; the first time that is set counts.
    pub fn gather(&self, time: Duration) {
        let _ = self.0.gather.set(time);
    }

    /// Returns for how long changes may wait.
    pub(crate) fn gathers_for(&self) -> Duration {
        self.0.gather.get().copied().unwrap_or_default()
    }

    /// Delivers every object to every subscriber again.
    pub fn resync(&self) {
        self.0.fifo.resync(&*self.0.store);
    }

    /// Returns the current state.
    #[must_use]
    pub fn state(&self) -> InformerState {
        let subscribers = self.0.subscribers.lock().iter().map(|subscriber| subscriber.state()).collect();
        InformerState {
            target: self.0.target.clone(),
            objects: self.0.store.len(),
            reached: self.0.store.reached(),
            synced: self.has_synced(),
            queued: self.0.fifo.len(),
            subscribers,
        }
    }

    /// Returns the sink for a reflector, or for a test.
    #[doc(hidden)]
    #[must_use]
    pub fn sink(&self) -> InformerSink<V> {
        InformerSink::new(self.clone())
    }

    /// Applies the input of the sink to the store and delivers it to the subscribers, until `stop`.
    #[doc(hidden)]
    pub async fn run(&self, stop: &CancellationToken) {
        loop {
            let applied = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                applied = self.0.fifo.pop(usize::MAX, |popped| Ok::<_, std::convert::Infallible>(self.take_in(popped))) => applied,
            };
            let Ok(applied) = applied;
            self.0.store.announce(applied.list.as_ref(), applied.went_back, applied.ended.as_deref());
            // Before this task waits: the takers' own tasks are held up until then.
            applied.takers.iter().for_each(|taker| taker.hand_over_now(&applied.changes, self));
            // A source on another thread may keep this running for long; other tasks need the thread too.
            consume_budget().await;
        }
    }

    /// Waits until no subscriber runs any more: after the informer was stopped.
    pub(crate) async fn subscribers_ended(&self) {
        let subscribers = self.0.subscribers.lock().clone();
        for subscriber in subscribers {
            subscriber.ended().await;
        }
    }

    pub(crate) fn fifo(&self) -> &DeltaFifo<V> {
        &self.0.fifo
    }

    pub(crate) fn transform_function(&self) -> Option<&Transform<V>> {
        self.0.transform.get()
    }

    /// Updates the metric of queued keys.
    pub(crate) fn count_queued(&self) {
        if let Some(metrics) = &self.0.metrics {
            metrics.set_queued(self.0.fifo.len());
        }
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.0.runtime
    }

    /// Applies one batch: to the store in one step, then to the subscribers.
    fn take_in(&self, popped: &mut Popped<V>) -> BatchResult<V> {
        let shared = &*self.0;
        let timer = shared.metrics.as_ref().map(InformerMetrics::processing);
        let subscribers = shared.subscribers.lock();
        let is_watched = shared.store.is_watched();
        let (changes, went_back) = shared.store.apply(popped, is_watched || !subscribers.is_empty());
        let mut takers = Vec::new();
        let first_list = popped.first_list.then(|| shared.store.snapshot());
        for subscriber in &*subscribers {
            if subscriber.takes_now(&changes) {
                takers.push(Arc::clone(subscriber));
            } else {
                subscriber.notify(&changes, first_list.as_ref());
            }
        }
        if popped.list.is_some() {
            shared.synced.send_if_modified(|synced| !std::mem::replace(synced, true));
        }
        drop(subscribers);
        drop(timer);
        if let Some(metrics) = &shared.metrics {
            metrics.took_in(popped.reached.as_ref());
        }
        let ended = is_watched.then(|| changes.iter().filter_map(ended).cloned().collect());
        BatchResult { changes, takers, list: popped.list.take(), went_back, ended }
    }

    /// Delivers everything again to one subscriber.
    fn resync_one(&self, subscriber: &Subscriber<V>) {
        let _subscribers = self.0.subscribers.lock();
        subscriber.backlog().again(self.0.store.snapshot().iter());
    }

    fn panicked(&self) {
        if let Some(metrics) = &self.0.metrics {
            metrics.handler_panicked();
        }
    }
}

impl<V> Clone for SharedInformer<V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<V> fmt::Debug for SharedInformer<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedInformer").field("target", &self.0.target).finish_non_exhaustive()
    }
}

/// The error of a second transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this informer has a transform already")]
pub struct TransformSet;
