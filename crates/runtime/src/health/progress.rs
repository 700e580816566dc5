//! Whether a controller's workers come forward.
//!
//! A controller is stuck if keys wait, every worker holds one, and for [`STUCK_AFTER`] no worker took or released any.
//! One slow key does not make it so, nor do errors, nor an API server that is away: then passes end with errors.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Told by the workers, asked by health checks. Cheap to clone; clones are the same.
#[derive(Clone)]
pub struct Progress(Arc<State>);

struct State {
    workers: usize,
    busy: AtomicUsize,
    passes: AtomicU64,
    since: Instant,
    /// When a worker took or released a key last, in milliseconds after `since`.
    moved_ms: AtomicU64,
}

/// What can be seen of a controller's progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Keys that are ready and wait for a worker.
    pub waiting: usize,
    /// Workers there are.
    pub workers: usize,
    /// Workers that hold a key.
    pub busy: usize,
    /// For how long no worker took or released a key.
    pub still_for: Duration,
}

/// A controller that does not come forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{waiting} keys wait, and no reconcile has ended for {} s: all {workers} workers are held; \
     see /debug/queues and /debug/decisions",
    still_for.as_secs()
)]
pub struct Stuck {
    /// Keys that wait.
    pub waiting: usize,
    /// Workers, all of them held.
    pub workers: usize,
    /// For how long.
    pub still_for: Duration,
}

/// Far more than any request may take (a minute) and than a pass waits for caches (30 s): what is still there after ten
/// minutes hangs, and a restart is the only thing that helps.
pub const STUCK_AFTER: Duration = Duration::from_secs(600);

// === impl Progress ===

impl Progress {
    /// Of so many workers, none of which holds a key.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        let (busy, passes, moved_ms) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
        Self(Arc::new(State { workers, busy, passes, since: Instant::now(), moved_ms }))
    }

    /// A worker took a key.
    pub fn began(&self) {
        self.0.busy.fetch_add(1, Ordering::Relaxed);
        self.moved();
    }

    /// A worker released a key.
    pub fn ended(&self) {
        // Never below zero, even if somebody tells an end without a beginning.
        let fewer = |busy: usize| busy.checked_sub(1);
        let _ = self.0.busy.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
        self.0.passes.fetch_add(1, Ordering::Relaxed);
        self.moved();
    }

    /// How many passes have ended.
    #[must_use]
    pub fn passes(&self) -> u64 {
        self.0.passes.load(Ordering::Relaxed)
    }

    /// What can be seen now, with this many keys waiting in the queue.
    #[must_use]
    pub fn seen(&self, waiting: usize) -> Seen {
        let moved = Duration::from_millis(self.0.moved_ms.load(Ordering::Relaxed));
        let still_for = self.0.since.elapsed().saturating_sub(moved);
        Seen { waiting, workers: self.0.workers, busy: self.0.busy.load(Ordering::Relaxed), still_for }
    }

    fn moved(&self) {
        let ms = u64::try_from(self.0.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        // Two workers at once may come in either order; time does not go back.
        self.0.moved_ms.fetch_max(ms, Ordering::Relaxed);
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").field("seen", &self.seen(0)).field("passes", &self.passes()).finish()
    }
}

// === impl Seen ===

impl Seen {
    /// Whether the controller comes forward.
    ///
    /// # Errors
    /// It does not, for `patience` and longer.
    pub fn judge(self, patience: Duration) -> Result<(), Stuck> {
        let Self { waiting, workers, busy, still_for } = self;
        if waiting > 0 && busy >= workers && still_for >= patience {
            return Err(Stuck { waiting, workers, still_for });
        }
        Ok(())
    }
}
