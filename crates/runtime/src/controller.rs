//! A controller: what it watches, how it decides, and the one worker loop that runs it.
//!
//! 1. Nothing runs before the manager does: building a controller declares informers, indexes and handlers.
//! 2. One key is reconciled by one worker at a time; different keys in any order.
//! 3. Workers start when the caches are filled *and* the handlers have seen all of what filled them; and, where a lease
//!    is asked for, when this process leads and its caches show at least what a list made after the election shows.
//!    Until then its queue takes nothing but what is [asked for](Controller::trigger): a standby does not gather the keys of
//!    all that ever lived. When it starts to work, it looks at the last keys that events named, and at all that its sources
//!    have in their caches, as after a restart.
//! 4. A key whose owner's writes the caches do not show yet is parked, and woken by the store. After half a minute, who can
//!    read live ([`Builder::reads_live`]) goes on so; who cannot, waits on. Nobody acts on a cache that is known to lag.
//! 5. A reconcile that fails, hangs beyond its time or panics costs its own key a back-off, and no other key anything.
//! 6. A source that panics stops no other source and no worker; the controller is not healthy from then on, because it
//!    does not hear of everything any more.
//!
//! | a reconcile answers | what becomes of its key |
//! |---|---|
//! | [`Action::Done`] | its failures are forgotten |
//! | [`Action::Again`] | it is looked at again, rate-limited |
//! | [`Action::After`] | its failures are forgotten; it is looked at again then |
//! | an error | it is retried, rate-limited; given up after [`Builder::give_up_after`] |
//! | a [terminal](Error::terminal) error | it is left until it changes |
//! | a panic, or nothing in [time](Builder::timeout) | as an error |

mod builder;
mod built;
mod context;
mod of_row;
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
use steersman_informer::Reachability;
use steersman_informer::consistency::Book;
use steersman_workqueue::{Priority, Queue, Shutdown};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use builder::Builder;
pub use built::Built;
pub use context::BuildContext;
pub(crate) use context::TypeMap;
pub use of_row::ControllerContext;

use crate::decisions::Log;
use crate::manager::Barriers;
use crate::metrics::Activity;
use crate::reconcile::DynReconciler;
use crate::source::{Connected, Feed, Source, TaskSource, Watching};
use crate::trigger::Trigger;
use crate::{Context, lease::Leadership};

/// A controller that was built: a handle to it. Cheap to clone.
#[derive(Clone)]
pub struct Controller(Arc<Shared>);

struct Shared {
    name: &'static str,
    workers: usize,
    feed: Feed,
    connected: Mutex<Sources>,
    /// Keys whose last pass could not reach the server: they are looked at as soon as it is back.
    unreached: Mutex<BTreeSet<ObjectKey>>,
    /// The first of its sources that panicked, and what it said.
    deaf: Mutex<Option<String>>,
    /// What it wrote and its caches do not show yet.
    book: Book,
    informers: steersman_informer::InformerFactory,
}

#[derive(Default)]
struct Sources {
    watching: Vec<Watching>,
    /// Those that wait for the controller to start.
    tasks: Vec<TaskSource>,
    /// Set while the controller runs: the informers of later sources start at once.
    running: Option<CancellationToken>,
    /// Whether it works: later tasks begin at once.
    works: bool,
}

/// What runs a controller: its handle, and what only the workers need.
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

/// How outcomes are dealt with.
#[derive(Clone, Copy, Debug, Default)]
struct Policy {
    retries_max: Option<u32>,
    timeout: Option<Duration>,
}

/// The main object with a key, as its cache shows it.
struct MainObject {
    uid: Uid,
    version: ResourceVersion,
}

/// Finds the main object with a key, if there is one.
type MainObjects = Box<dyn Fn(&ObjectKey) -> Option<MainObject> + Send + Sync>;

// === impl Controller ===

impl Controller {
    /// The controller's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// The controller's queue.
    #[must_use]
    pub fn queue(&self) -> &Queue<ObjectKey> {
        self.0.feed.queue()
    }

    /// How many keys it works on at once.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.0.workers
    }

    /// Looks at a key now, whatever happened or did not.
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

    /// Whether every source has told the state it began with.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.0.connected.lock().watching.iter().all(|watching| watching.subscription.has_synced())
    }

    /// Whether its caches do not show yet all that it wrote.
    pub(crate) fn waits_for_caches(&self) -> bool {
        !self.0.book.is_empty()
    }

    /// The resources it watches.
    #[must_use]
    pub fn watches(&self) -> Vec<Resource> {
        let sources = self.0.connected.lock();
        sources.watching.iter().map(|watching| watching.target.resource.clone()).collect()
    }

    /// What it watches and has not seen the whole of yet.
    #[must_use]
    pub fn waits_for(&self) -> Vec<String> {
        let sources = self.0.connected.lock();
        let missing = sources.watching.iter().filter(|watching| !watching.subscription.has_synced());
        missing.map(|watching| watching.target.to_string()).collect()
    }

    /// The server is back: who could not reach it need not sit out a back-off that grew while it was away.
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
        let (controller, feed) = (self.clone(), self.0.feed.clone());
        tokio::spawn(async move {
            // The function itself may panic, too, before there is a future.
            let run = async move { task(feed, stop).await };
            let Err(panic) = AssertUnwindSafe(run).catch_unwind().await else { return };
            let panic = process::panic_text(&*panic);
            tracing::error!(controller = controller.name(), panic, "a source panicked, and tells nothing any more");
            controller.0.deaf.lock().get_or_insert_with(|| panic.to_owned());
        });
    }

    /// It has ended, or will never begin: who feeds it is told, and not kept waiting.
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

    /// What a source said when it panicked: it tells nothing any more, and only a restart helps.
    pub(crate) fn deaf(&self) -> Option<String> {
        self.0.deaf.lock().clone()
    }

    /// Waits until the sources have told the state they began with.
    async fn sources_synced(&self, stop: &CancellationToken) {
        let progress: Vec<_> = {
            let mut sources = self.0.connected.lock();
            sources.running = Some(stop.clone());
            sources.watching.iter().map(|watching| watching.subscription.synced()).collect()
        };
        join_all(progress).await;
    }

    /// Lets the queue hand out keys, starts the sources that are tasks, and fills the queue with what the caches show if it
    /// took nothing so far.
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
        for mut tell in states {
            while tell() {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Waits until every cache shows at least what the server had when the election was won.
    async fn sources_caught_up(&self, barriers: &Barriers, won: Option<Instant>) {
        let caches: Vec<_> = {
            let sources = self.0.connected.lock();
            let watching = sources.watching.iter();
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

    /// Whether it works only while this process leads.
    pub(crate) fn needs_leadership(&self) -> bool {
        !self.leadership.is_always()
    }

    /// Runs the controller until `stop`; reconciles in flight then finish, what waits is left.
    pub(crate) async fn run(self, barriers: Barriers, stop: CancellationToken) {
        let controller = self.controller.clone();
        if stop.run_until_cancelled(self.ready(&barriers, &stop)).await.is_none() {
            controller.queue().shutdown(Shutdown::Drop).await;
            return;
        }
        tracing::info!(controller = controller.name(), workers = controller.workers(), "starting workers");
        let engine = Arc::new(self);
        let mut workers = JoinSet::new();
        for _ in 0..controller.workers() {
            workers.spawn(Arc::clone(&engine).work());
        }
        let _ = stop.run_until_cancelled(controller.open(&stop)).await;
        stop.cancelled().await;
        controller.queue().shutdown(Shutdown::Drop).await;
        while workers.join_next().await.is_some() {}
        tracing::info!(controller = controller.name(), "stopped");
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
