//! The metrics of a queue.
//!
//! 1. The queue always counts, in plain numbers under the lock it holds anyway. The figures are read when metrics are
//!    gathered: no ticker, no global registry, no cost in between.
//! 2. All figures of a [`QueueStats`] are taken under one lock, hence at one moment.
//! 3. Counters do not go back when a queue ends: its last figures are kept.

mod exporter;
mod histogram;

#[cfg(test)]
mod tests;

use std::{sync::Weak, time::Duration};

pub use self::{exporter::PrometheusMetrics, histogram::Histogram};

/// The figures of a queue at one moment.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct QueueStats {
    /// Keys that wait, and keys that are held and will wait again when released.
    pub depth: usize,
    /// The number of times a key began to wait. Repeated adds of a waiting key are not counted.
    pub adds: u64,
    /// Adds with a delay, rate-limited ones included: what client-go calls retries.
    pub retries: u64,
    /// Keys that were given up.
    pub given_up: u64,
    /// The times keys waited, from becoming ready to being handed out.
    pub waited: Histogram,
    /// The times keys were held.
    pub worked: Histogram,
    /// The sum of the times for which the currently held keys have been held.
    pub unfinished: Duration,
    /// The time for which the longest held key has been held.
    pub longest_running: Duration,
}

/// A queue that returns its metrics.
pub trait Observe: Send + Sync {
    /// Returns the current figures.
    fn stats(&self) -> QueueStats;
}

/// A receiver of queue metrics.
pub trait Metrics: Send + Sync {
    /// Called when a queue is created, which can be observed while it lives. Names need not be unique.
    fn attach(&self, name: &str, queue: Weak<dyn Observe>);

    /// Called when a queue ended, with its last figures.
    fn detach(&self, name: &str, last: &QueueStats);
}

/// A receiver that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMetrics;

// === impl QueueStats ===

impl QueueStats {
    /// Adds the figures of another queue of the same name.
    pub fn merge(&mut self, other: &Self) {
        self.depth += other.depth;
        self.adds += other.adds;
        self.retries += other.retries;
        self.given_up += other.given_up;
        self.waited.merge(&other.waited);
        self.worked.merge(&other.worked);
        self.unfinished += other.unfinished;
        self.longest_running = self.longest_running.max(other.longest_running);
    }

    /// Returns the counters without the current state: what remains of a queue that ended.
    fn retired(&self) -> Self {
        Self { depth: 0, unfinished: Duration::ZERO, longest_running: Duration::ZERO, ..self.clone() }
    }
}

// === impl NoMetrics ===

impl Metrics for NoMetrics {
    fn attach(&self, _name: &str, _queue: Weak<dyn Observe>) {}

    fn detach(&self, _name: &str, _last: &QueueStats) {}
}
