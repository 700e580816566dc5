//! Where a controller's events come from.
//!
//! | source | events | controller-runtime |
//! |---|---|---|
//! | [`Watch`] | what an informer sees | `source.Kind` |
//! | [`channel`] | generic events of one's own, from anywhere in the process | `source.Channel` |
//! | [`ticker`] | keys at regular times | |
//! | [`task`] | a future that adds keys as it likes | `source.Func` |
//!
//! ```no_run
//! # use steersman_runtime::source::{self, Watch};
//! # use steersman_runtime::handler;
//! # use steersman_base::Meta;
//! # fn example(secrets: &steersman_informer::SharedInformer<Meta>, users: fn(&Meta) -> Vec<steersman_base::ObjectKey>) {
//! let of_secrets = Watch::new(secrets, handler::mapped(users)).when(|event| !event.object().namespace.is_empty());
//! let (sender, from_web) = source::channel::<Meta>(handler::object());
//! # drop((of_secrets, sender, from_web));
//! # }
//! ```

mod standby;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use steersman_base::time::FOR_EVER;
use steersman_base::{ObjectKey, Resource, ResourceVersion};
use steersman_informer::{Change, SharedInformer, SubscribeOptions, Subscription, Target};
use steersman_model::View;
use steersman_workqueue::{Priority, Queue};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use self::standby::Standby;
use crate::event::{Event, Trigger};
use crate::handler::{Handler, Keys};
use crate::predicate::Predicate;

/// Something that puts keys into a controller's queue.
pub struct Source(Inner);

/// What an informer sees, as a source.
pub struct Watch<V: View> {
    informer: SharedInformer<V>,
    handler: Box<dyn Handler<V>>,
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

/// The end of a [`channel`] into which events are put. Cheap to clone.
pub struct Sender<V>(mpsc::Sender<Arc<V>>);

/// The controller has ended, or did not keep up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// There are as many events waiting as the channel holds.
    #[error("the controller does not keep up: {CHANNEL_MAX} events wait already")]
    Full,
    /// Nobody listens any more.
    #[error("the controller has ended")]
    Ended,
}

/// Puts keys into a controller's queue: what sources write to.
#[derive(Clone)]
pub struct Feed {
    queue: Queue<ObjectKey>,
    filters: Arc<[Box<dyn Predicate>]>,
    triggers: Arc<Triggers>,
    standby: Arc<Standby>,
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
    /// Tells the state that its cache shows, as at a start.
    pub(crate) state: Box<dyn Fn() -> Telling + Send + Sync>,
}

/// Tells a part of a state each time it is called, until it says that there is no more.
pub(crate) type Telling = Box<dyn FnMut() -> bool + Send>;

/// What happens to an event of one source.
struct Taking<V: View> {
    feed: Feed,
    resource: Resource,
    handler: Box<dyn Handler<V>>,
    conditions: Vec<Condition<V>>,
    priority: Priority,
}

/// What a new leader asks of a cache, whatever its view.
pub(crate) trait Cache: Send + Sync {
    /// When the last list that it shows was begun.
    fn listed_since(&self) -> Option<Instant>;
    /// Waits until it shows at least a version.
    fn reaches(&self, version: ResourceVersion) -> BoxFuture;
    /// Whether it does not show yet what a list of version `of` showed.
    fn lags_behind(&self, listed: &BTreeMap<ObjectKey, ResourceVersion>, of: &ResourceVersion) -> bool;
}

/// What happened last to the keys that wait in a queue.
#[derive(Default)]
pub(crate) struct Triggers(Mutex<HashMap<ObjectKey, Trigger>>);

enum Inner {
    Watch(Box<dyn FnOnce(&Feed) -> Watching + Send>),
    Task(TaskSource),
}

type Condition<V> = Box<dyn Fn(Event<'_, V>) -> bool + Send + Sync>;
pub(crate) type BoxFuture = Pin<Box<dyn Future<Output = ()> + Send>>;
pub(crate) type TaskSource = Box<dyn FnOnce(Feed, CancellationToken) -> BoxFuture + Send>;

/// So many events wait in a [`channel`] at most, as in controller-runtime.
pub const CHANNEL_MAX: usize = 1024;
/// The least period of a [`ticker`]: what a timer can tell apart.
const PERIOD_MIN: Duration = Duration::from_millis(1);
/// Triggers of so many waiting keys are remembered; they explain decisions and are not needed to make them.
const TRIGGERS_MAX: usize = 4096;
/// So many objects of a state are told at once; then others get their turn.
const TOLD_AT_ONCE: usize = 256;

/// A source of generic events, and the end into which they are put.
#[must_use]
pub fn channel<V: View>(handler: impl Handler<V>) -> (Sender<V>, Source) {
    let (sender, mut receiver) = mpsc::channel::<Arc<V>>(CHANNEL_MAX);
    let source = task(move |feed: Feed, stop: CancellationToken| async move {
        let outside = Resource::namespaced("", "", "", "event");
        while let Some(Some(object)) = stop.run_until_cancelled(receiver.recv()).await {
            feed.take(&outside, Event::Generic { object: &object }, &handler, Priority::Live);
        }
    });
    (Sender(sender), source)
}

/// A source that asks `keys` which keys to enqueue, once per `period`. The first time is one period after the controller
/// starts to work, or [at once](Ticker::immediately). The period is a millisecond at least, so that other keys have their turn.
#[must_use]
pub fn ticker(period: Duration, keys: impl Fn() -> Vec<ObjectKey> + Send + 'static) -> Ticker {
    Ticker { period: period.clamp(PERIOD_MIN, FOR_EVER), first_after: None, keys: Box::new(keys) }
}

/// A future that adds keys as it likes, until it is told to stop. It begins when the controller starts to work: if that needs
/// a lease, when it is won.
#[must_use]
pub fn task<F>(run: impl FnOnce(Feed, CancellationToken) -> F + Send + 'static) -> Source
where
    F: Future<Output = ()> + Send + 'static,
{
    Source(Inner::Task(Box::new(move |feed, stop| Box::pin(run(feed, stop)))))
}

// === impl Watch ===

impl<V: View> Watch<V> {
    /// The changes that an informer sees, each turned into keys by `handler`.
    #[must_use]
    pub fn new(informer: &SharedInformer<V>, handler: impl Handler<V>) -> Self {
        let (informer, handler, priority) = (informer.clone(), Box::new(handler), Priority::Live);
        Self { informer, handler, conditions: Vec::new(), resync: None, priority }
    }

    /// The changes that an informer sees, each turned into keys by a function.
    #[must_use]
    pub fn changes(
        informer: &SharedInformer<V>,
        keys: impl Fn(&Change<V>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        Self::new(informer, move |event: Event<'_, V>, found: &mut Keys| {
            if let Some(change) = event.change() {
                found.extend(keys(&change));
            }
        })
    }

    /// Only changes of which this is true.
    #[must_use]
    pub fn when(mut self, condition: impl Fn(Event<'_, V>) -> bool + Send + Sync + 'static) -> Self {
        self.conditions.push(Box::new(condition));
        self
    }

    /// Looks at everything again, this often; never, if it is zero.
    #[must_use]
    pub fn resync(mut self, every: Duration) -> Self {
        self.resync = Some(every);
        self
    }

    /// How urgent its changes are. Without this, what happens now runs before what a cache is filled with and what is only
    /// looked at again; in the [background](Priority::Background), all of it waits behind what other sources tell.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    fn connect(self, feed: &Feed) -> Watching {
        let Self { informer, handler, conditions, resync, priority } = self;
        let target = informer.target().clone();
        let options = SubscribeOptions { name: feed.queue.name().to_owned(), resync };
        let (feed, resource) = (feed.clone(), target.resource.clone());
        let taking = Arc::new(Taking { feed, resource, handler, conditions, priority });
        let (shown, of_state) = (informer.lister(), Arc::clone(&taking));
        let subscription = informer.subscribe_with(options, move |change: &Change<V>| taking.take(Event::from(change)));
        let state = Box::new(move || {
            let (mut objects, taking) = (shown.list().into_iter(), Arc::clone(&of_state));
            let tell = move || {
                let mut told = 0;
                for object in objects.by_ref().take(TOLD_AT_ONCE) {
                    taking.take(Event::Created { new: &object, initial: true });
                    told += 1;
                }
                told == TOLD_AT_ONCE
            };
            Box::new(tell) as Telling
        });
        Watching { subscription, target, store: Arc::new(informer), state }
    }
}

impl<V: View> Taking<V> {
    fn take(&self, event: Event<'_, V>) {
        if self.conditions.iter().all(|condition| condition(event)) {
            self.feed.take(&self.resource, event, &*self.handler, self.priority);
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
    /// The first time is when the controller starts to work.
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
    fn listed_since(&self) -> Option<Instant> {
        self.store().listed_since()
    }

    fn reaches(&self, version: ResourceVersion) -> BoxFuture {
        let store = Arc::clone(self.store());
        Box::pin(async move {
            // A server that was restored to an older state will never show the version; its list has told all there is.
            let _ = store.reached_at_least(&version).await;
        })
    }

    fn lags_behind(&self, listed: &BTreeMap<ObjectKey, ResourceVersion>, of: &ResourceVersion) -> bool {
        let lister = self.lister();
        let reached = self.reached();
        // An object that cannot be read is not shown, or not in that version; but the cache has seen its event.
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
    /// Tells the controller that something concerns an object. Waits if too many wait already.
    ///
    /// # Errors
    /// The controller has ended.
    pub async fn send(&self, object: Arc<V>) -> Result<(), SendError> {
        self.0.send(object).await.map_err(|_| SendError::Ended)
    }

    /// As [`send`](Self::send), without waiting.
    ///
    /// # Errors
    /// The controller has ended, or does not keep up.
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

// === impl Feed ===

impl Feed {
    pub(crate) fn new(queue: Queue<ObjectKey>, filters: Vec<Box<dyn Predicate>>, is_closed: bool) -> Self {
        let standby = Arc::new(Standby::new(is_closed));
        Self { queue, filters: filters.into(), triggers: Arc::default(), standby }
    }

    /// Takes the keys of events from now on, and first those that were named last. The answer is whether it did not before,
    /// so that the state must be told.
    pub(crate) fn open(&self) -> bool {
        let was_closed = self.standby.is_closed();
        self.queue.add_all(&self.standby.open(), Priority::Live);
        was_closed
    }

    /// These keys are to be looked at.
    pub fn add_all(&self, keys: &[ObjectKey], priority: Priority) {
        self.queue.add_all(keys, priority);
    }

    /// This key is to be looked at, in a while.
    pub fn add_after(&self, key: ObjectKey, wait: Duration) {
        self.queue.add_after(key, wait);
    }

    /// Somebody asks for this key to be looked at.
    pub fn trigger(&self, key: ObjectKey) {
        self.triggers.note(&key, || Trigger::Manual);
        self.queue.add(key, Priority::Live);
    }

    /// The queue itself.
    #[must_use]
    pub fn queue(&self) -> &Queue<ObjectKey> {
        &self.queue
    }

    /// What happened last to a key that is about to be looked at.
    pub(crate) fn triggered_by(&self, key: &ObjectKey) -> Trigger {
        self.triggers.0.lock().remove(key).unwrap_or_default()
    }

    fn take<V: View>(
        &self,
        resource: &Resource,
        event: Event<'_, V>,
        handler: &(impl Handler<V> + ?Sized),
        urgency: Priority,
    ) {
        if !self.filters.is_empty() {
            let seen = event.meta();
            if !self.filters.iter().all(|filter| filter.admits(&seen)) {
                return;
            }
        }
        let mut keys = Keys::default();
        handler.handle(event, &mut keys);
        if keys.is_empty() {
            return;
        }
        // The state is told again when the controller starts to work.
        let named = keys.now.iter().chain(keys.later.iter().map(|(key, _)| key)).filter(|_| !event.is_background());
        if self.standby.keeps(named) {
            return;
        }
        // What a cache is filled with at the start, and what is only looked at again, waits behind what happens now.
        let priority = if event.is_background() { Priority::Background } else { urgency };
        if !event.is_background() {
            let gathered = keys.later.iter().map(|(key, _)| key);
            for key in keys.now.iter().chain(gathered) {
                self.triggers.note(key, || event.trigger(resource));
            }
        }
        self.queue.add_all(&keys.now, priority);
        for (key, wait) in keys.later {
            self.queue.add_after(key, wait);
        }
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("queue", &self.queue.name()).finish_non_exhaustive()
    }
}

// === impl Triggers ===

impl Triggers {
    fn note(&self, key: &ObjectKey, trigger: impl FnOnce() -> Trigger) {
        let mut last = self.0.lock();
        if let Some(known) = last.get_mut(key) {
            *known = trigger();
        } else if last.len() < TRIGGERS_MAX {
            last.insert(key.clone(), trigger());
        }
    }
}
