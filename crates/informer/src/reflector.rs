//! The reflector: keeps a [`Sink`] equal to the server's state of one resource.
//!
//! 1. **List, then watch, for ever.** The first list and every relist are consistent: one streaming request
//!    (`sendInitialEvents`), or pages of 500 with `resourceVersion` unset; never `resourceVersion=0`, which a lagging
//!    server may answer from the past. A list reaches the sink as one `replace`, when it is complete.
//! 2. **Resume.** A watch that ends or breaks continues from the last version that was handed to the sink, be it an
//!    event's or a bookmark's. A list follows only when history is lost: 410, in a status or as an ERROR event.
//! 3. **Never back in time.** A server that does not know our version yet (*too large resource version*) is given time,
//!    and then asked for a consistent list. A list older than what was shown is refused for a minute, after which the
//!    server counts as restored from a backup. An event older than the known state of its object is dropped.
//! 4. **Whole or not at all.** A truncated, malformed, wrong or too large event restarts the watch from the last
//!    version; if it comes again, a list follows. The sink never sees a part of it.
//! 5. **Patience.** Failures back off: 0.8 s doubling to 30 s, with jitter, and no less than `Retry-After`. A watch
//!    that ends at its timeout (drawn from 5 to 10 minutes) starts again at once; one that ends within a second and
//!    without an event counts as a failure.
//! 6. **Silence is detected.** Dead connections are detected in under a minute by HTTP/2 pings (30 s, and 15 s for the
//!    answer), or TCP keep-alive and `TCP_USER_TIMEOUT` (see the connector in the runtime crate). Stalled ones are
//!    detected here: a request without an answer, or a page without progress, is given up after 55 s, a streaming list
//!    after 10 s (its server may not support such lists; pages follow); a watch half a minute after the timeout that it
//!    was given. Sooner would be wrong: a watch of an idle resource *is* silent, and bookmarks, though usual every
//!    minute, are not guaranteed (kube-apiserver 1.37 sends none without changes). A caller that knows better sets
//!    [`ReflectorOptions::watch_patience`]. And a caller that knows of a write which the watch does not show restarts
//!    it ([`Restarts`]).
//! 7. **Independent.** A resource that is forbidden or does not exist is requested again with the same back-off, and
//!    reported through [`Reflector::state`]; nothing else waits for it.
//! 8. **A relist is cheap.** Objects with a known uid and version keep their allocation, and are not even decoded.
//! 9. **One object never holds back the others.** If an object cannot be decoded from protobuf, the resource is read as
//!    JSON. One that cannot be decoded from JSON either is skipped, counted ([`ReflectorMetrics::unreadable_object`])
//!    and logged once: the sink keeps its last known state, or does not know it, and everything else continues. If the
//!    object is deleted, the sink is notified, whether its last state can be decoded or not. (An object without a
//!    readable name is a case of 4.) A decision by what does *not* exist must consider that such an object is missing.
//!
//! Behaviour follows client-go's `tools/cache/reflector.go` (0.37) where not said otherwise.

mod backoff;
mod failure;
mod feed;
mod metrics;
mod run;
mod staging;
mod state;
mod unreadable;

use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use steersman_base::watch;
use steersman_model::View;
use tokio_util::sync::CancellationToken;

pub use failure::ProblemKind;
pub use metrics::{ListKind, NoMetrics, ReflectorMetrics, WatchEnd};

use crate::reachability::Reachability;
use crate::sink::Sink;
use crate::target::Target;
use crate::wire::{Accept, Expected};
use feed::{Feed, SinkFeed};

/// Lists and watches one resource into a [`Sink`].
#[must_use = "a reflector does nothing until it runs"]
pub struct Reflector<V> {
    core: Core,
    view: PhantomData<fn() -> V>,
}

/// A reflector without the type of its objects.
struct Core {
    client: Client,
    target: Target,
    options: ReflectorOptions,
    state: watch::Sender<ReflectorState>,
    restarts: Restarts,
}

/// The options of a reflector. The defaults are right for Kubernetes.
#[derive(Clone)]
#[non_exhaustive]
pub struct ReflectorOptions {
    /// Whether lists are streamed if the server supports it.
    pub lists: Lists,
    /// The time after which the server ends a watch is drawn from this range, so that watches do not end together.
    pub watch_timeout: RangeInclusive<Duration>,
    /// The maximum time an answer, or a list in progress, may stall.
    pub list_patience: Duration,
    /// The maximum time a watch may be without a byte, for servers that are known to send bookmarks in time; `None`
    /// waits for its timeout.
    pub watch_patience: Option<Duration>,
    /// For how long the changes of a watch may wait, so that many are processed at once; zero by default. It is worth it where
    /// changes come all the time and nobody needs them soon: one by one, each meets cold caches and wakes a thread.
    pub gather: Duration,
    /// The seed of all random numbers, so that a run can be repeated; `None` takes a random one.
    pub seed: Option<u64>,
    /// The notification of a server that is back; without it, back-offs are not cut short.
    pub reachability: Option<Reachability>,
    /// The metrics.
    pub metrics: Arc<dyn ReflectorMetrics>,
}

/// The first way of listing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lists {
    /// As a stream, and in pages if the server refuses.
    #[default]
    Streamed,
    /// In pages.
    Paged,
}

/// Restarts the watch of a reflector from outside. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Restarts(Arc<watch::Sender<Restart>>);

/// The way in which a stale watch is restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Restart {
    /// From the version that it has reached.
    Watch,
    /// With a consistent list, in pages: not by another watch, which may be as stale.
    List,
}

/// The state of a reflector, for health checks and for display.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReflectorState {
    /// The current phase.
    pub phase: Phase,
    /// The last problem; `None` after a success.
    pub problem: Option<Problem>,
}

/// The phase of a reflector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Not yet running.
    New,
    /// Listing.
    Listing,
    /// Watching.
    Watching,
    /// Backing off.
    Waiting,
    /// Stopped, for good.
    Stopped,
}

/// The problem of a reflector.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The kind of problem.
    pub kind: ProblemKind,
    /// The error, for display.
    pub message: Arc<str>,
    /// The number of failures since the last success.
    pub failures: u32,
}

/// client-go's range: long enough to cost the server nothing, short enough to even out load among servers.
const WATCH_TIMEOUT: RangeInclusive<Duration> = Duration::from_secs(300)..=Duration::from_secs(600);
/// A page takes a second; a server that is silent for this long will not answer. Under a minute, as people wait for it.
const LIST_PATIENCE: Duration = Duration::from_secs(55);

// === impl Reflector ===

impl<V: View> Reflector<V> {
    /// Creates a reflector of `target` through `client`.
    pub fn new(client: Client, target: Target, options: ReflectorOptions) -> Self {
        let (state, _) = watch::channel(ReflectorState { phase: Phase::New, problem: None });
        let restarts = Restarts(Arc::new(watch::Sender::new(Restart::Watch)));
        Self { core: Core { client, target, options, state, restarts }, view: PhantomData }
    }

    /// Returns the current state and all later ones.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<ReflectorState> {
        self.core.state.subscribe()
    }

    /// Returns a handle that restarts the watch, while the reflector runs.
    #[must_use]
    pub fn restarts(&self) -> Restarts {
        self.core.restarts.clone()
    }

    /// Fills the sink and keeps it filled, until `stop` is cancelled.
    pub async fn run<S: Sink<V> + 'static>(self, sink: S, stop: CancellationToken) {
        let expected = Expected::new(&self.core.target.resource, V::PROJECTION);
        let feed = Box::new(SinkFeed::new(sink, expected.clone()));
        self.core.run(feed, expected, Accept::of::<V>(), stop).await;
    }
}

impl Core {
    /// Boxed, so that it is compiled here and not once per view.
    fn run(
        self,
        feed: Box<dyn Feed>,
        expected: Expected,
        accept: Accept,
        stop: CancellationToken,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let mut run = run::Run::new(&self, feed, expected, accept);
            stop.run_until_cancelled(run.drive()).await;
            self.state.send_modify(|state| state.phase = Phase::Stopped);
        })
    }
}

impl<V> std::fmt::Debug for Reflector<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reflector")
            .field("target", &self.core.target)
            .field("state", &self.core.state.borrow())
            .finish()
    }
}

// === impl Restarts ===

impl Restarts {
    /// Ends the open watch, and continues in this way. Does nothing while none is open.
    pub fn restart(&self, how: Restart) {
        self.0.send_replace(how);
    }
}

// === impl ReflectorOptions ===

impl Default for ReflectorOptions {
    fn default() -> Self {
        Self {
            lists: Lists::default(),
            watch_timeout: WATCH_TIMEOUT,
            list_patience: LIST_PATIENCE,
            watch_patience: None,
            gather: Duration::ZERO,
            seed: None,
            reachability: None,
            metrics: Arc::new(NoMetrics),
        }
    }
}
