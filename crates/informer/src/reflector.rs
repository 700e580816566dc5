//! The reflector: keeps a [`Sink`] equal to what the server holds of one resource.
//!
//! 1. **List, then watch, for ever.** The first list and every relist are consistent: one streaming request
//!    (`sendInitialEvents`), or pages of 500 with `resourceVersion` unset; never `resourceVersion=0`, which a lagging
//!    server may answer from the past. A list reaches the sink as one `replace`, when all of it is there.
//! 2. **Resume.** A watch that ends or breaks goes on from the last version that was handed to the sink, be it an
//!    event's or a bookmark's. Only what is lost is listed again: 410, in a status or as an ERROR event.
//! 3. **Never back in time.** A server that does not know our version yet (*too large resource version*) is given time,
//!    and then asked for a consistent list. A list older than what was shown is refused for a minute, after which the server
//!    counts as restored from a backup. An event older than what is known of its object is dropped.
//! 4. **Whole or not at all.** Something truncated, malformed, of the wrong kind or too large restarts the watch where it
//!    was; coming again, it leads to a list. The sink never sees a part of it.
//! 5. **Patience.** Failures wait: 0.8 s doubling to 30 s, with jitter, and no less than `Retry-After`. A watch that ends
//!    at its timeout (drawn from 5 to 10 minutes) starts again at once; one that ends within a second and without an event
//!    counts as a failure.
//! 6. **Silence is noticed.** Who is dead is noticed by the connection in under a minute: HTTP/2 pings (30 s, and 15 s for the
//!    answer), or TCP keep-alive and `TCP_USER_TIMEOUT` (see the connector in the runtime crate). Who is alive and stands
//!    still is noticed here: a request without an answer, or a page without progress, is given up after 55 s, a streaming
//!    list after 10 s (its server may not know such lists; pages follow); a watch half a minute after the timeout that it
//!    was given. Sooner would be wrong: a watch on which nothing happens *is* silent, and
//!    bookmarks, though usual every minute, are promised by nobody (kube-apiserver 1.37 sends none while it has nothing new to
//!    say). Who knows better sets [`ReflectorOptions::watch_patience`].
//!    And who knows that the server has made a write which the watch does not show, restarts it ([`Restarts`]).
//! 7. **Never in the way.** A resource that is forbidden or does not exist is asked for again with the same back-off, and
//!    told through [`Reflector::state`]; nobody else waits for it.
//! 8. **A relist is cheap.** Objects whose uid and version are known keep their allocation, and are not even decoded.
//! 9. **One object never holds back the others.** An object that the view cannot read from protobuf makes the resource be read
//!    as JSON. One that cannot be read from JSON either is skipped, counted ([`ReflectorMetrics::unreadable_object`]) and named
//!    in one error of the log: the sink keeps what it knew of the object, or does not know it, and everything else goes on.
//!    If the object is deleted, the sink is told so, whether its last state can be read or not. (What has not even a name is
//!    a case of 4.) Who decides by what is *not* there should know that such an object is not.
//!
//! Behaviour follows client-go's `tools/cache/reflector.go` (0.37) where not said otherwise.

mod backoff;
mod failure;
mod metrics;
mod run;
mod staging;
mod state;
mod unreadable;

use std::marker::PhantomData;
use std::ops::RangeInclusive;
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

/// Lists and watches one resource into a [`Sink`].
#[must_use = "a reflector does nothing until it runs"]
pub struct Reflector<V> {
    client: Client,
    target: Target,
    options: ReflectorOptions,
    state: watch::Sender<ReflectorState>,
    restarts: Restarts,
    view: PhantomData<fn() -> V>,
}

/// How a reflector works. The defaults are right for Kubernetes.
#[derive(Clone)]
pub struct ReflectorOptions {
    /// Whether lists are streamed where the server can.
    pub lists: Lists,
    /// The time after which the server ends a watch is drawn from this range, so that watches do not end together.
    pub watch_timeout: RangeInclusive<Duration>,
    /// How long an answer, or a list in progress, may stand still.
    pub list_patience: Duration,
    /// How long a watch may be without a byte, for servers that are known to send bookmarks in time; `None` waits for its
    /// timeout.
    pub watch_patience: Option<Duration>,
    /// Seed of all chance, so that a run can be repeated; `None` takes a random one.
    pub seed: Option<u64>,
    /// Who knows when a server that was away is back; without, a back-off is sat out.
    pub reachability: Option<Reachability>,
    /// Who counts.
    pub metrics: Arc<dyn ReflectorMetrics>,
}

/// How a state is first asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lists {
    /// As a stream, and in pages from a server that refuses.
    #[default]
    Streamed,
    /// In pages.
    Paged,
}

/// Restarts the watch of a reflector from outside. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Restarts(Arc<watch::Sender<Restart>>);

/// How a watch is restarted that does not show what the server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Restart {
    /// From the version that it has reached.
    Watch,
    /// With a consistent list, in pages: not by another watch, which may be as stale.
    List,
}

/// What a reflector is doing, for health checks and for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReflectorState {
    /// What it is doing.
    pub phase: Phase,
    /// What went wrong last; gone when something works again.
    pub problem: Option<Problem>,
}

/// What a reflector is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Not yet running.
    New,
    /// Asking for the state.
    Listing,
    /// Following the changes.
    Watching,
    /// Waiting before it tries again.
    Waiting,
    /// Stopped, for good.
    Stopped,
}

/// Why a reflector does not come forward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Which kind of trouble.
    pub kind: ProblemKind,
    /// The error, for people.
    pub message: Arc<str>,
    /// How often something failed since something worked.
    pub failures: u32,
}

/// client-go's: long enough to cost the server nothing, short enough to even out load among servers.
const WATCH_TIMEOUT: RangeInclusive<Duration> = Duration::from_secs(300)..=Duration::from_secs(600);
/// A page takes a second; a server that says nothing for this long will not. Under a minute, as people wait for it.
const LIST_PATIENCE: Duration = Duration::from_secs(55);

// === impl Reflector ===

impl<V: View> Reflector<V> {
    /// A reflector that will follow `target` through `client`.
    pub fn new(client: Client, target: Target, options: ReflectorOptions) -> Self {
        let (state, _) = watch::channel(ReflectorState { phase: Phase::New, problem: None });
        let restarts = Restarts(Arc::new(watch::Sender::new(Restart::Watch)));
        Self { client, target, options, state, restarts, view: PhantomData }
    }

    /// What it is doing, now and later.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<ReflectorState> {
        self.state.subscribe()
    }

    /// Restarts its watch, while it runs.
    #[must_use]
    pub fn restarts(&self) -> Restarts {
        self.restarts.clone()
    }

    /// Fills the sink and keeps it filled, until `stop` is cancelled.
    pub async fn run<S: Sink<V>>(self, sink: S, stop: CancellationToken) {
        let mut run = run::Run::new(&self, sink);
        stop.run_until_cancelled(run.drive()).await;
        self.state.send_modify(|state| state.phase = Phase::Stopped);
    }
}

impl<V> std::fmt::Debug for Reflector<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reflector").field("target", &self.target).field("state", &self.state.borrow()).finish()
    }
}

// === impl Restarts ===

impl Restarts {
    /// Ends the watch that is open, and goes on in this way. Does nothing while none is open.
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
            seed: None,
            reachability: None,
            metrics: Arc::new(NoMetrics),
        }
    }
}
