//! The progress of a controller's workers.
//!
//! A controller is stuck if keys wait, every worker holds one, and for [`STUCK_AFTER`] no worker took or released any.
//! One slow key does not make it stuck, nor do errors, nor an unreachable API server: passes end with errors then.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The progress, recorded by the workers and read by health checks. Cheap to clone; clones are the same.
#[derive(Clone)]
pub(crate) struct Progress(Arc<State>);

struct State {
    workers: usize,
    busy: AtomicUsize,
    passes: AtomicU64,
    since: Instant,
    /// The time a worker last took or released a key, in milliseconds after `since`.
    moved_ms: AtomicU64,
}

/// A snapshot of a controller's progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Keys that are ready and wait for a worker.
    pub waiting: usize,
    /// The number of workers.
    pub workers: usize,
    /// The number of workers that hold a key.
    pub busy: usize,
    /// The time for which no worker took or released a key.
    pub still_for: Duration,
}

/// A controller without progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{waiting} keys wait, and no reconcile has ended for {} s: all {workers} workers are held; \
     see /debug/queues and /debug/decisions",
    still_for.as_secs()
)]
pub(crate) struct Stuck {
    /// The number of waiting keys.
    pub waiting: usize,
    /// The number of workers, all of which hold a key.
    pub workers: usize,
    /// The time without progress.
    pub still_for: Duration,
}

/// Far more than any request may take (a minute) and than a pass waits for caches (30 s): after ten minutes it hangs,
/// and only a restart helps.
pub(crate) const STUCK_AFTER: Duration = Duration::from_secs(600);

// === impl Progress ===

impl Progress {
    /// Creates the progress of idle workers.
    #[must_use]
    pub(crate) fn new(workers: usize) -> Self {
        let busy = AtomicUsize::new(0);
        let passes = AtomicU64::new(0);
        let moved_ms = AtomicU64::new(0);
        Self(Arc::new(State { workers, busy, passes, since: Instant::now(), moved_ms }))
    }

    /// Records that a worker took a key.
    pub(crate) fn began(&self) {
        self.0.busy.fetch_add(1, Ordering::Relaxed);
        self.moved();
    }

    /// Records that a worker released a key.
    pub(crate) fn ended(&self) {
        // Never below zero, even after an end without a beginning.
        let fewer = |busy: usize| busy.checked_sub(1);
        let _ = self.0.busy.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
        self.0.passes.fetch_add(1, Ordering::Relaxed);
        self.moved();
    }

    /// Returns the number of finished passes.
    #[must_use]
    pub(crate) fn passes(&self) -> u64 {
        self.0.passes.load(Ordering::Relaxed)
    }

    /// Returns a snapshot, with this many keys waiting in the queue.
    #[must_use]
    pub(crate) fn seen(&self, waiting: usize) -> Seen {
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
    /// Checks whether the controller makes progress.
    ///
    /// # Errors
    /// It has made none for `patience` or longer.
    pub(crate) fn judge(self, patience: Duration) -> Result<(), Stuck> {
        let Self { waiting, workers, busy, still_for } = self;
        if waiting > 0 && busy >= workers && still_for >= patience {
            return Err(Stuck { waiting, workers, still_for });
        }
        Ok(())
    }
}
