//! Sources: what puts keys into a controller's queue.
//!
//! | source | keys | controller-runtime |
//! |---|---|---|
//! | [`Builder::watch`](crate::controller::Builder::watch) | what a [handler](crate::handler) returns for a change that an informer sees | `source.Kind` |
//! | [`Watch`] | the same, with a condition, a resync period or a priority | … with predicates |
//! | [`channel`] | those of objects that are sent from anywhere in the process | `source.Channel` |
//! | [`ticker`] | those that a function returns at regular times | |
//! | [`task`] | any, from a future | `source.Func` |
//!
//! ```no_run
//! # use steersman_runtime::source::{self, Watch};
//! # use steersman_runtime::handler;
//! # use steersman_base::Meta;
//! # fn example(secrets: &steersman_informer::SharedInformer<Meta>, users: fn(&Meta) -> Vec<steersman_base::ObjectKey>) {
//! let of_secrets = Watch::new(secrets, handler::mapped(users)).when(|change| !change.object().namespace.is_empty());
//! let (sender, from_web) = source::channel(|sent: &Meta| sent.key());
//! # drop((of_secrets, sender, from_web));
//! # }
//! ```

mod feed;
mod standby;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use steersman_base::time::FOR_EVER;
use steersman_base::{ObjectKey, Resource, ResourceVersion};
use steersman_informer::{Change, InformerFactory, SharedInformer, SubscribeOptions, Subscription, Target};
use steersman_model::View;
use steersman_workqueue::Priority;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

pub use self::feed::Feed;
use crate::controller::panic_text;
use crate::handler::{Handler, Keys};
use crate::predicate::Predicate;
use crate::trigger::Trigger;

/// Something that puts keys into a controller's queue.
pub struct Source(Inner);

/// The changes that an informer sees, as a source.
pub struct Watch<V: View> {
    informer: SharedInformer<V>,
    handler: KeysOf<V>,
    conditions: Vec<Condition<V>>,
    resync: Option<Duration>,
    priority: Priority,
}

/// Enqueues keys at regular times: see [`ticker`].
#[must_use]
pub struct Ticker {
    period: Duration,
    /// The period, unless something else is said.
    first_after: Option<Duration>,
    keys: Box<dyn Fn() -> Vec<ObjectKey> + Send>,
}

/// The sending end of a [`channel`]. Cheap to clone.
pub struct Sender<V>(mpsc::Sender<Arc<V>>);

/// An object could not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The channel is full: [`CHANNEL_MAX`] objects wait.
    #[error("the controller does not keep up: {CHANNEL_MAX} events wait already")]
    Full,
    /// The controller has stopped.
    #[error("the controller has ended")]
    Ended,
}

/// A source that is connected to a queue.
pub(crate) enum Connected {
    Watching(Box<Watching>),
    Task(TaskSource),
}

/// An informer that feeds a queue.
pub(crate) struct Watching {
    pub(crate) subscription: Subscription,
    pub(crate) target: Target,
    pub(crate) store: Arc<dyn Cache>,
    /// Delivers the contents of its cache, as at a start.
    pub(crate) state: Box<dyn Fn() -> Delivery + Send + Sync>,
}

/// Delivers a part of a state at each call; returns whether there is more.
pub(crate) type Delivery = Box<dyn FnMut() -> bool + Send>;

/// A watch that is connected to a queue: every change goes through [`Intake::take`].
struct Intake<V: View> {
    feed: Feed,
    resource: Resource,
    handler: KeysOf<V>,
    conditions: Vec<Condition<V>>,
    priority: Priority,
}

/// The interface of a cache for a new leader's barrier, whatever its view.
pub(crate) trait Cache: Send + Sync {
    /// Whether it is a cache of this factory; another factory may watch another cluster.
    fn is_of(&self, factory: &InformerFactory) -> bool;
    /// Returns when the last list that it shows was begun.
    fn listed_since(&self) -> Option<Instant>;
    /// Waits until it shows at least a version.
    fn reaches(&self, version: ResourceVersion) -> BoxFuture;
    /// Whether it does not show yet what a list of version `of` showed.
    fn lags_behind(&self, listed: &BTreeMap<ObjectKey, ResourceVersion>, of: &ResourceVersion) -> bool;
}

enum Inner {
    Watch(Box<dyn FnOnce(&Feed) -> Watching + Send>),
    Task(TaskSource),
}

type KeysOf<V> = Box<dyn Fn(&Change<V>) -> Keys + Send + Sync>;
type Condition<V> = Box<dyn Fn(&Change<V>) -> bool + Send + Sync>;
pub(crate) type BoxFuture = Pin<Box<dyn Future<Output = ()> + Send>>;
pub(crate) type TaskSource = Box<dyn FnOnce(Feed, CancellationToken) -> BoxFuture + Send>;

/// The capacity of a [`channel`], as in controller-runtime.
pub const CHANNEL_MAX: usize = 1024;
/// The least period of a [`ticker`]: the resolution of timers.
const PERIOD_MIN: Duration = Duration::from_millis(1);
/// The number of objects of a state that are delivered at once, before other tasks run.
const DELIVERED_AT_ONCE: usize = 256;

/// Returns a source for objects that something outside of the cluster concerns (a webhook of another system, a timer, a
/// person), and the sender for them. `keys` returns the keys to enqueue for an object.
#[must_use]
pub fn channel<V, K>(keys: impl Fn(&V) -> K + Send + 'static) -> (Sender<V>, Source)
where
    V: View,
    K: Into<Keys>,
{
    let (sender, mut receiver) = mpsc::channel::<Arc<V>>(CHANNEL_MAX);
    let source = task(move |feed: Feed, stop: CancellationToken| async move {
        while let Some(Some(object)) = stop.run_until_cancelled(receiver.recv()).await {
            feed.add_sent(&*object, keys(&object).into());
        }
    });
    (Sender(sender), source)
}

/// Returns a source that enqueues what `keys` returns, once per `period`, for the first time one period after the
/// controller starts to work, or [at once](Ticker::immediately). The minimum period is a millisecond.
pub fn ticker(period: Duration, keys: impl Fn() -> Vec<ObjectKey> + Send + 'static) -> Ticker {
    Ticker { period: period.clamp(PERIOD_MIN, FOR_EVER), first_after: None, keys: Box::new(keys) }
}

/// Returns a source that is a future, which may enqueue any keys until the token is cancelled. It begins when the controller
/// starts to work: if that needs a lease, when the lease is won.
#[must_use]
pub fn task<F>(run: impl FnOnce(Feed, CancellationToken) -> F + Send + 'static) -> Source
where
    F: Future<Output = ()> + Send + 'static,
{
    Source(Inner::Task(Box::new(move |feed, stop| Box::pin(run(feed, stop)))))
}

// === impl Watch ===

impl<V: View> Watch<V> {
    /// Returns a source for the changes that an informer sees; `handler` turns each into keys.
    #[must_use]
    pub fn new(informer: &SharedInformer<V>, handler: impl Handler<V>) -> Self {
        Self {
            informer: informer.clone(),
            handler: Box::new(move |change| handler(change).into()),
            conditions: Vec::new(),
            resync: None,
            priority: Priority::Live,
        }
    }

    /// Ignores changes for which the condition is false.
    #[must_use]
    pub fn when(mut self, condition: impl Fn(&Change<V>) -> bool + Send + Sync + 'static) -> Self {
        self.conditions.push(Box::new(condition));
        self
    }

    /// Ignores changes that a predicate does not admit.
    #[must_use]
    pub fn filter(self, predicate: impl Predicate) -> Self {
        self.when(move |change| predicate.admits(&change.metadata()))
    }

    /// Delivers all objects again at this interval; never, if it is zero.
    #[must_use]
    pub fn resync(mut self, every: Duration) -> Self {
        self.resync = Some(every);
        self
    }

    /// Sets the priority of the keys of live changes; by default they are [live](Priority::Live). Keys of the initial state
    /// and of a resync are always in the [background](Priority::Background).
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Replaces the handler.
    #[must_use]
    pub(crate) fn handled_by(mut self, handler: impl Handler<V>) -> Self {
        self.handler = Box::new(move |change| handler(change).into());
        self
    }

    fn connect(self, feed: &Feed) -> Watching {
        let Self { informer, handler, conditions, resync, priority } = self;
        let target = informer.target().clone();
        let mut options = SubscribeOptions::default();
        options.name = feed.queue().name().to_owned();
        options.resync = resync;
        options.quick = true;
        let resource = target.resource.clone();
        let intake = Arc::new(Intake { feed: feed.clone(), resource, handler, conditions, priority });
        let of_state = Arc::clone(&intake);
        let lister = informer.lister();
        let subscription = informer.subscribe_with(options, move |change: &Change<V>| intake.take(change));
        let state = Box::new(move || {
            let mut objects = lister.list().into_iter();
            let intake = Arc::clone(&of_state);
            let deliver = move || {
                let mut delivered = 0;
                for new in objects.by_ref().take(DELIVERED_AT_ONCE) {
                    intake.take_or_log(&Change::Added { new, initial: true });
                    delivered += 1;
                }
                delivered == DELIVERED_AT_ONCE
            };
            Box::new(deliver) as Delivery
        });
        Watching { subscription, target, store: Arc::new(informer), state }
    }
}

impl<V: View> Intake<V> {
    /// As [`take`](Self::take); a panic of the handler or of a condition is logged, as an informer does for its
    /// subscribers, and costs this change alone.
    fn take_or_log(&self, change: &Change<V>) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.take(change))) {
            let panic = panic_text(&*panic);
            tracing::error!(queue = self.feed.queue().name(), ?change, panic, "a handler panicked");
        }
    }

    fn take(&self, change: &Change<V>) {
        let Self { feed, resource, handler, conditions, priority } = self;
        if !conditions.iter().all(|condition| condition(change)) || !feed.admits(change) {
            return;
        }
        let keys = handler(change);
        if change.is_background() {
            feed.enqueue(keys, Priority::Background, None);
        } else {
            feed.enqueue(keys, *priority, Some(&|| Trigger::change(resource, change)));
        }
    }
}

impl<V: View> From<Watch<V>> for Source {
    fn from(watch: Watch<V>) -> Self {
        Self(Inner::Watch(Box::new(move |feed| watch.connect(feed))))
    }
}

impl<V: View> fmt::Debug for Watch<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("target", self.informer.target()).finish_non_exhaustive()
    }
}

// === impl Ticker ===

impl Ticker {
    /// Enqueues for the first time when the controller starts to work.
    pub fn immediately(self) -> Self {
        Self { first_after: Some(Duration::ZERO), ..self }
    }
}

impl From<Ticker> for Source {
    fn from(ticker: Ticker) -> Self {
        let Ticker { period, first_after, keys } = ticker;
        task(move |feed: Feed, stop: CancellationToken| async move {
            let first = Instant::now() + first_after.unwrap_or(period);
            let mut ticks = tokio::time::interval_at(first, period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while stop.run_until_cancelled(ticks.tick()).await.is_some() {
                feed.add_all(&keys(), Priority::Background);
            }
        })
    }
}

impl fmt::Debug for Ticker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticker").field("period", &self.period).finish_non_exhaustive()
    }
}

// === impl Source ===

impl Source {
    pub(crate) fn connect(self, feed: &Feed) -> Connected {
        match self.0 {
            Inner::Watch(connect) => Connected::Watching(Box::new(connect(feed))),
            Inner::Task(run) => Connected::Task(run),
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

// === impl Cache ===

impl<V: View> Cache for SharedInformer<V> {
    fn is_of(&self, factory: &InformerFactory) -> bool {
        let target = self.target();
        let own = factory.existing::<V>(&target.resource, target.selection.clone());
        own.is_some_and(|own| Arc::ptr_eq(own.store(), self.store()))
    }

    fn listed_since(&self) -> Option<Instant> {
        self.store().listed_since()
    }

    fn reaches(&self, version: ResourceVersion) -> BoxFuture {
        let store = Arc::clone(self.store());
        Box::pin(async move {
            // A server that was restored to an older state will never show the version; its list has delivered
            // everything.
            let _ = store.reached_at_least(&version).await;
        })
    }

    fn lags_behind(&self, listed: &BTreeMap<ObjectKey, ResourceVersion>, of: &ResourceVersion) -> bool {
        let lister = self.lister();
        let reached = self.reached();
        // An object that cannot be decoded is not shown, or not in that version; but the cache has seen its event.
        let shown = |key: &ObjectKey, version: &ResourceVersion| {
            reached.as_ref().is_some_and(|reached| reached.has_reached(version))
                || lister.get(key).is_some_and(|object| object.meta().resource_version.has_reached(version))
        };
        let stale = |object: &Arc<V>| {
            let meta = object.meta();
            !listed.contains_key(&meta.key()) && of.has_reached(&meta.resource_version)
        };
        listed.iter().any(|(key, version)| !shown(key, version)) || lister.list().iter().any(stale)
    }
}

// === impl Sender ===

impl<V> Sender<V> {
    /// Sends an object to the controller. Waits while the channel is full.
    ///
    /// # Errors
    /// The controller has stopped.
    pub async fn send(&self, object: Arc<V>) -> Result<(), SendError> {
        self.0.send(object).await.map_err(|_| SendError::Ended)
    }

    /// As [`send`](Self::send), without waiting.
    ///
    /// # Errors
    /// The controller has stopped, or the channel is full.
    pub fn try_send(&self, object: Arc<V>) -> Result<(), SendError> {
        self.0.try_send(object).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SendError::Full,
            mpsc::error::TrySendError::Closed(_) => SendError::Ended,
        })
    }
}

impl<V> Clone for Sender<V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<V> fmt::Debug for Sender<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}
