//! Kubernetes events: what `kubectl describe` shows below an object.
//!
//! 1. Recording never waits: an event is put into a queue of [`QUEUED_MAX`], and beyond that it is dropped and counted.
//! 2. What is alike is joined as client-go's `tools/record` does: equal events are counted in one object; from the tenth on
//!    that differ only in their text within ten minutes, they become one "(combined from similar events)"; a source may tell
//!    25 events about an object at once, and then one every five minutes.
//!    Changes of an event that waits to be sent are sent with it, and while many wait, alike ones are joined at once.
//! 3. While the server cannot be reached, an event is tried [`TRIES_MAX`] times, ten seconds apart; what the server refuses
//!    is given up at once. Events of cluster-wide objects go to the namespace `default`.
//! 4. On the signal to stop, what is queued is tried once each, all within [`DRAIN_WITHIN`].
//! 5. The state is bounded: [`correlate::ENTRIES_MAX`] entries of each kind, the longest unused going first.
//!
//! Follows `tools/record` of client-go 0.37.1; what is recorded, is a `v1` Event, as kube-controller-manager does, or an
//! `events.k8s.io/v1` Event with a series ([`EventSink`]).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use steersman_base::{Clock, Istr, Meta, Resource};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

mod backlog;
pub mod correlate;
mod event;
mod lru;
mod series;
mod sink;
#[cfg(test)]
mod tests;

pub use event::{Event, EventType, ObjectReference};

use backlog::Backlog;
use correlate::{Correlator, Verdict};
use series::Series;
use sink::{Attempt, Sink};

/// Records events. Cheap to clone; never waits.
#[derive(Clone)]
pub struct Recorder {
    /// Nothing, where nobody listens.
    queue: Option<Arc<Queue>>,
    component: Istr,
    /// Where the component is, if that is not where the manager is.
    host: Option<Istr>,
}

struct Queue {
    sender: mpsc::Sender<Event>,
    clock: Clock,
    instance: Istr,
    dropped: AtomicU64,
    /// The time in the name of the newest event, in nanoseconds: names are unique, however coarse or virtual the clock is.
    newest: AtomicI64,
}

/// What an event is about.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// Its resource: kind and API version come from there.
    pub resource: &'a Resource,
    /// Its metadata.
    pub meta: &'a Meta,
    /// Which part of it, such as `spec.containers{nginx}`; empty for the whole.
    pub field_path: &'a str,
}

/// Takes the events of its recorders to the server.
pub struct Broadcaster {
    recorder: Recorder,
    received: mpsc::Receiver<Event>,
    clock: Clock,
    joined: Joined,
    sink: Sink,
}

/// How events are joined, which follows from where they go.
enum Joined {
    Counted(Correlator),
    InSeries(Series),
}

/// How events are sent.
#[derive(Clone, Debug, Default)]
pub struct EventOptions {
    /// As what.
    pub sink: EventSink,
    /// Which of several equal components this is, such as a host or pod; kube-controller-manager leaves it empty.
    pub instance: Istr,
}

/// As what events are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventSink {
    /// `v1`, counted, as kube-controller-manager does.
    #[default]
    CoreV1,
    /// `events.k8s.io/v1`, in series, as newer components do.
    EventsV1,
}

/// How many events wait to be sent at most: client-go's figure. A queue this long means that the server is down, and then
/// old events are as good as new ones.
pub const QUEUED_MAX: usize = 1_000;
/// How often an event is tried while the server cannot be reached: client-go's figure, two minutes in all.
pub const TRIES_MAX: u32 = 12;
/// Between two tries; the first wait is a random part of it, so that components do not come back all at once.
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// How long the end of a process may wait for its last events.
pub const DRAIN_WITHIN: Duration = Duration::from_secs(2);

// === impl Recorder ===

impl Recorder {
    /// A recorder whose events nobody hears: for tests, and for shadow mode.
    #[must_use]
    pub fn nowhere() -> Self {
        Self { queue: None, component: Istr::default(), host: None }
    }

    /// The same, speaking for this component, such as `replicaset-controller`: the source of its events.
    #[must_use]
    pub fn for_component(&self, name: impl Into<Istr>) -> Self {
        Self { component: name.into(), ..self.clone() }
    }

    /// The same, speaking for this component unless it speaks for another one already.
    pub(crate) fn or_for_component(self, name: &'static str) -> Self {
        if self.component.is_empty() { self.for_component(name) } else { self }
    }

    /// The same, speaking for a component on this host, such as one of many kubelets.
    #[must_use]
    pub fn on_host(&self, host: impl Into<Istr>) -> Self {
        Self { host: Some(host.into()), ..self.clone() }
    }

    /// For which component it speaks; empty if nobody said.
    #[must_use]
    pub fn component(&self) -> &str {
        &self.component
    }

    /// Tells that something happened as it should.
    pub fn normal(&self, about: &About<'_>, reason: &str, note: impl Into<String>) {
        self.record(about, EventType::Normal, reason, note);
    }

    /// Tells that something went wrong.
    pub fn warning(&self, about: &About<'_>, reason: &str, note: impl Into<String>) {
        self.record(about, EventType::Warning, reason, note);
    }

    /// Tells that something happened.
    pub fn record(&self, about: &About<'_>, type_: EventType, reason: &str, note: impl Into<String>) {
        let Some(queue) = &self.queue else { return };
        let event = self.event(queue, about, type_, reason, note.into());
        tracing::debug!(object = %about.meta.key(), kind = %about.resource.kind, type_ = ?event.type_, reason,
            message = event.message, "event");
        if queue.sender.try_send(event).is_err() {
            let dropped = queue.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            // A flood of events must not become a flood of messages.
            if dropped.is_power_of_two() {
                tracing::warn!(dropped, "events are dropped: more wait than can be sent, or the manager has stopped");
            }
        }
    }

    /// How many events were dropped because too many were waiting.
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
    /// This time, or the next one that no event has.
    fn unique_nanos(&self, now: i64) -> i64 {
        let next = |newest: i64| Some(now.max(newest.saturating_add(1)));
        match self.newest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            Ok(before) | Err(before) => now.max(before.saturating_add(1)),
        }
    }
}

// === impl About ===

impl<'a> About<'a> {
    /// About an object as a whole.
    #[must_use]
    pub fn new(resource: &'a Resource, meta: &'a Meta) -> Self {
        Self { resource, meta, field_path: "" }
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
    /// Sends events through `client`, when it [runs](Self::run).
    #[must_use]
    pub fn new(client: kube::Client, clock: Clock, options: EventOptions) -> Self {
        let (sender, received) = mpsc::channel(QUEUED_MAX);
        let (instance, dropped, newest) = (options.instance, AtomicU64::new(0), AtomicI64::new(0));
        let queue = Queue { sender, clock: clock.clone(), instance, dropped, newest };
        let joined = match options.sink {
            EventSink::CoreV1 => Joined::Counted(Correlator::default()),
            EventSink::EventsV1 => Joined::InSeries(Series::default()),
        };
        let recorder = Recorder { queue: Some(Arc::new(queue)), component: Istr::default(), host: None };
        Self { recorder, received, clock, joined, sink: Sink::new(client) }
    }

    /// A recorder of its events. Say [for whom](Recorder::for_component) it speaks.
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
        // Without this, the queue would never be seen to be without recorders.
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

    /// Ends when a series has to be told of or forgotten.
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

/// Sends what is to be sent: until it is there or refused, or often enough; once, if the end has come.
async fn send(sink: &Sink, verdict: Verdict, stop: &CancellationToken) {
    let mut tries = 0;
    while let Attempt::Failed(problem) = sink.attempt(&verdict).await {
        tries += 1;
        if tries == TRIES_MAX || stop.is_cancelled() {
            tracing::error!(problem, tries, "an event could not be sent");
            return;
        }
        let wait = if tries == 1 { RETRY_AFTER.mul_f64(fastrand::f64()) } else { RETRY_AFTER };
        tracing::warn!(problem, ?wait, "an event could not be sent yet");
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}
