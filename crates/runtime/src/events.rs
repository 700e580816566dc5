//! Kubernetes events, which `kubectl describe` shows below an object.
//!
//! 1. Recording never waits: an event is put into a queue of 1,000, and beyond that it is dropped and counted.
//! 2. Similar events are joined as by client-go's `tools/record`: equal events are counted in one object; from the
//!    tenth within ten minutes on, events that differ only in their text become one "(combined from similar events)"; a
//!    source may send 25 events about an object at once, and then one every five minutes. Changes of an event that
//!    waits to be sent are sent with it, and while many wait, similar ones are joined at once.
//! 3. While the server cannot be reached, an event is tried twelve times, ten seconds apart; while it asks to be asked later, as
//!    often as it asks for, for two minutes as well; events that the server refuses are dropped at once. Events of
//!    cluster-scoped objects go to the namespace `default`.
//! 4. On shutdown, queued events are tried once each, all within two seconds.
//! 5. The state is bounded: a fixed number of entries of each kind, the least recently used dropped first.
//!
//! Follows `tools/record` of client-go 0.37.1; events are `v1` Events, as those of kube-controller-manager, or
//! `events.k8s.io/v1` Events with a series ([`EventSink`]).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use steersman_base::{Clock, Istr, Meta, Resource};
use steersman_informer::{Typed, resource_of};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::connection::exchange::THROTTLED_MIN;

mod backlog;
mod correlate;
mod event;
mod lru;
mod series;
mod sink;
#[cfg(test)]
mod tests;

pub use event::EventType;
pub(crate) use event::{Event, ObjectReference};

use backlog::Backlog;
use correlate::{Correlator, Verdict};
use series::Series;
use sink::{Attempt, Failed, Sink};

/// Records events. Cheap to clone; never waits.
#[derive(Clone)]
pub struct Recorder {
    /// `None` if events are discarded.
    queue: Option<Arc<Queue>>,
    component: Istr,
    /// The host of the component, if it is not the manager's.
    host: Option<Istr>,
}

struct Queue {
    sender: mpsc::Sender<Event>,
    clock: Clock,
    instance: Istr,
    dropped: AtomicU64,
    /// The time in the name of the newest event, in nanoseconds: names are unique, however coarse or virtual the clock
    /// is.
    newest: AtomicI64,
}

/// The object of an event.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct About<'a> {
    /// The resource of the object, for kind and API version.
    pub resource: Cow<'a, Resource>,
    /// The metadata of the object.
    pub meta: &'a Meta,
    /// The part of the object, such as `spec.containers{nginx}`; empty for the whole.
    pub field_path: &'a str,
    /// The action, in one word; if empty, the reason of the event.
    pub action: &'a str,
    related: Option<Box<ObjectReference>>,
}

/// Sends the events of its recorders to the server.
#[doc(hidden)]
pub struct Broadcaster {
    recorder: Recorder,
    received: mpsc::Receiver<Event>,
    clock: Clock,
    joined: Joined,
    sink: Sink,
}

/// The correlation of events, which depends on their API.
enum Joined {
    Counted(Correlator),
    InSeries(Series),
}

/// The options of events.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct EventOptions {
    /// The API of events.
    pub sink: EventSink,
    /// The instance of the component, such as a host or pod; kube-controller-manager leaves it empty.
    pub instance: Istr,
}

/// The API of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventSink {
    /// `v1`, counted, as in kube-controller-manager.
    #[default]
    CoreV1,
    /// `events.k8s.io/v1`, in series, as in newer components.
    EventsV1,
}

/// The maximum number of events that wait to be sent: client-go's value. A queue this long means that the server is
/// down, and then old events are as good as new ones.
const QUEUED_MAX: usize = 1_000;
/// The number of tries while the server cannot be reached: client-go's value, two minutes in all.
const TRIES_MAX: u32 = 12;
/// The time after which an event is given up.
const GIVE_UP_AFTER: Duration = RETRY_AFTER.saturating_mul(TRIES_MAX);
/// The time between two tries; the first wait is a random part of it, so that components do not retry all at once.
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// The time that a shutdown may wait for the last events.
#[doc(hidden)]
pub const DRAIN_WITHIN: Duration = Duration::from_secs(2);

// === impl Recorder ===

impl Recorder {
    /// Returns a recorder that discards events: for tests, and for shadow mode.
    #[must_use]
    pub fn nowhere() -> Self {
        Self { queue: None, component: Istr::default(), host: None }
    }

    /// Returns the same recorder for this component, such as `replicaset-controller`: the source of its events.
    #[must_use]
    pub fn for_component(&self, name: impl Into<Istr>) -> Self {
        Self { component: name.into(), ..self.clone() }
    }

    /// Returns the same recorder for this component, unless it has one already.
    pub(crate) fn or_for_component(self, name: &'static str) -> Self {
        if self.component.is_empty() { self.for_component(name) } else { self }
    }

    /// Returns the same recorder for a component on this host, such as one of many kubelets.
    #[must_use]
    pub fn on_host(&self, host: impl Into<Istr>) -> Self {
        Self { host: Some(host.into()), ..self.clone() }
    }

    /// Returns the component; empty if none is set.
    #[must_use]
    pub fn component(&self) -> &str {
        &self.component
    }

    /// Records an event of type `Normal`.
    pub fn normal(&self, about: &About<'_>, reason: &str, note: impl Into<String>) {
        self.record(about, EventType::Normal, reason, note);
    }

    /// Records an event of type `Warning`.
    pub fn warning(&self, about: &About<'_>, reason: &str, note: impl Into<String>) {
        self.record(about, EventType::Warning, reason, note);
    }

    /// Records an event.
    pub fn record(&self, about: &About<'_>, type_: EventType, reason: &str, note: impl Into<String>) {
        let Some(queue) = &self.queue else { return };
        let event = self.event(queue, about, type_, reason, note.into());
        tracing::debug!(object = %about.meta.key(), kind = %about.resource.kind, type_ = ?event.type_, reason,
            message = event.message, "event");
        if queue.sender.try_send(event).is_err() {
            let dropped = queue.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            // A flood of events must not become a flood of log lines.
            if dropped.is_power_of_two() {
                tracing::warn!(dropped, "events are dropped: more wait than can be sent, or the manager has stopped");
            }
        }
    }

    /// Returns how many events were dropped because too many were waiting.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.queue.as_ref().map_or(0, |queue| queue.dropped.load(Ordering::Relaxed))
    }

    fn event(&self, queue: &Queue, about: &About<'_>, type_: EventType, reason: &str, message: String) -> Event {
        let now = queue.clock.now_micros();
        let nanos = queue.unique_nanos(now.unix_micros().saturating_mul(1_000));
        let involved_object = about.reference();
        let host = self.host.as_ref().unwrap_or(&queue.instance);
        Event {
            name: event::name(&involved_object.name, nanos),
            namespace: event::namespace(&involved_object.namespace),
            nanos,
            involved_object,
            related: about.related.clone(),
            action: about.action.into(),
            reason: reason.into(),
            message,
            component: self.component.clone(),
            host: host.clone(),
            reporting_component: self.component.clone(),
            reporting_instance: host.clone(),
            first_time: now,
            last_time: now,
            count: 1,
            type_,
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("component", &self.component).field("heard", &self.queue.is_some()).finish()
    }
}

// === impl Queue ===

impl Queue {
    /// Returns this time, or the next one that no event has.
    fn unique_nanos(&self, now: i64) -> i64 {
        let next = |newest: i64| Some(now.max(newest.saturating_add(1)));
        match self.newest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            Ok(before) | Err(before) => now.max(before.saturating_add(1)),
        }
    }
}

// === impl About ===

impl<'a> About<'a> {
    /// Creates a reference to an object as a whole.
    #[must_use]
    pub fn new(resource: &'a Resource, meta: &'a Meta) -> Self {
        Self { resource: Cow::Borrowed(resource), meta, field_path: "", action: "", related: None }
    }

    /// Creates a reference to a typed object, such as a lister returns: `About::of(&*cake)`.
    #[must_use]
    pub fn of<K>(object: &'a Typed<K>) -> Self
    where
        K: kube::Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        Self {
            resource: Cow::Owned(resource_of::<K>()),
            meta: object.meta(),
            field_path: "",
            action: "",
            related: None,
        }
    }

    /// Limits the event to a part of the object, such as `spec.containers{nginx}`.
    #[must_use]
    pub fn field_path(mut self, path: &'a str) -> Self {
        self.field_path = path;
        self
    }

    /// Says what was done, in one word such as `Baking`; without it, the reason of the event is the action, too.
    #[must_use]
    pub fn action(mut self, action: &'a str) -> Self {
        self.action = action;
        self
    }

    /// Names another object that the event concerns: `About::of(&*cake).related_to(&About::of(&*oven))`.
    #[must_use]
    pub fn related_to(mut self, other: &About<'_>) -> Self {
        self.related = Some(Box::new(other.reference()));
        self
    }

    fn reference(&self) -> ObjectReference {
        ObjectReference {
            api_version: Istr::interned(&self.resource.api_version()),
            kind: Istr::interned(&self.resource.kind),
            namespace: self.meta.namespace.clone(),
            name: self.meta.name.clone(),
            uid: self.meta.uid.clone(),
            resource_version: self.meta.resource_version.clone(),
            field_path: self.field_path.into(),
        }
    }
}

// === impl Broadcaster ===

impl Broadcaster {
    /// Creates a broadcaster that sends events through `client` while it [runs](Self::run).
    #[must_use]
    pub fn new(client: kube::Client, clock: Clock, options: EventOptions) -> Self {
        let (sender, received) = mpsc::channel(QUEUED_MAX);
        let instance = options.instance;
        let dropped = AtomicU64::new(0);
        let newest = AtomicI64::new(0);
        let queue = Queue { sender, clock: clock.clone(), instance, dropped, newest };
        let joined = match options.sink {
            EventSink::CoreV1 => Joined::Counted(Correlator::default()),
            EventSink::EventsV1 => Joined::InSeries(Series::default()),
        };
        let recorder = Recorder { queue: Some(Arc::new(queue)), component: Istr::default(), host: None };
        Self { recorder, received, clock, joined, sink: Sink::new(client) }
    }

    /// Returns a recorder. Set its [component](Recorder::for_component).
    #[must_use]
    pub fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// Sends events until `stop`, one after the other.
    pub async fn run(self, stop: CancellationToken) {
        let end = async {
            stop.cancelled().await;
            tokio::time::sleep(DRAIN_WITHIN).await;
        };
        tokio::select! {
            biased;
            () = self.send_all(&stop) => {}
            () = end => tracing::warn!("the last events could not be sent in time"),
        }
    }

    async fn send_all(self, stop: &CancellationToken) {
        let Self { recorder, mut received, clock, mut joined, sink } = self;
        // Otherwise the queue would never be without recorders.
        drop(recorder);
        let mut backlog = Backlog::default();
        while !stop.is_cancelled() {
            while !backlog.is_full()
                && let Ok(event) = received.try_recv()
            {
                backlog.push(joined.correlate(event, &clock, backlog.is_long()));
            }
            if let Some(verdict) = backlog.pop() {
                send(&sink, verdict, stop).await;
                continue;
            }
            let look = joined.next_look(&clock);
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                event = received.recv() => match event {
                    Some(event) => backlog.push(joined.correlate(event, &clock, false)),
                    None => break,
                },
                () = look => joined.look(&clock).into_iter().for_each(|verdict| backlog.push(verdict)),
            }
        }
        received.close();
        while let Ok(event) = received.try_recv() {
            backlog.push(joined.correlate(event, &clock, backlog.is_long()));
        }
        while let Some(verdict) = backlog.pop() {
            send(&sink, verdict, stop).await;
        }
    }
}

impl fmt::Debug for Broadcaster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broadcaster").field("queued", &self.received.len()).finish_non_exhaustive()
    }
}

// === impl Joined ===

impl Joined {
    fn correlate(&mut self, event: Event, clock: &Clock, is_behind: bool) -> Verdict {
        match self {
            Self::Counted(correlator) => correlator.correlate(event, clock.now_micros(), is_behind),
            Self::InSeries(series) => series.correlate(&event, clock.now_micros()),
        }
    }

    /// Returns a future that ends when a series has to be sent or forgotten.
    fn next_look(&self, clock: &Clock) -> impl Future<Output = ()> + use<> {
        let wait = match self {
            Self::Counted(_) => None,
            Self::InSeries(series) => series.next_look(clock.now_micros()),
        };
        async move {
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        }
    }

    fn look(&mut self, clock: &Clock) -> Vec<Verdict> {
        match self {
            Self::Counted(_) => Vec::new(),
            Self::InSeries(series) => series.look(clock.now_micros()),
        }
    }
}

/// Sends an event: until it is accepted or refused, or the time for it is over; once, during shutdown.
async fn send(sink: &Sink, verdict: Verdict, stop: &CancellationToken) {
    let mut patience = Patience::default();
    while let Attempt::Failed(Failed { problem, wait }) = sink.attempt(&verdict).await {
        let Some(wait) = patience.next(wait, fastrand::f64()).filter(|_| !stop.is_cancelled()) else {
            tracing::error!(problem, "an event could not be sent");
            return;
        };
        tracing::warn!(problem, ?wait, "an event could not be sent yet");
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// The time that was spent on one event. All other events wait for it, so it is tried again as soon as the server asks
/// for that.
#[derive(Debug, Default)]
struct Patience {
    spent: Duration,
}

// === impl Patience ===

impl Patience {
    /// Returns how long to wait after a failed try, for a `random` number from 0 to 1; `None` to give up. `asked` is the
    /// time for which the server asks to wait.
    fn next(&mut self, asked: Option<Duration>, random: f64) -> Option<Duration> {
        let asked = asked.map(|asked| asked.clamp(THROTTLED_MIN, RETRY_AFTER));
        let is_first = self.spent.is_zero();
        self.spent += asked.unwrap_or(RETRY_AFTER);
        let wait = asked.unwrap_or_else(|| if is_first { RETRY_AFTER.mul_f64(random) } else { RETRY_AFTER });
        (self.spent < GIVE_UP_AFTER).then_some(wait)
    }
}
