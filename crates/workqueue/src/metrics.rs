//! What a queue tells of itself.
//!
//! 1. The queue counts, whether anybody looks or not, in plain numbers under the lock it holds anyway. Whoever wants
//!    figures asks for them when they are gathered: no ticker, no global registry, nothing to pay in between.
//! 2. One answer is one moment: all figures of a [`QueueStats`] are taken under one lock.
//! 3. Counters do not go back when a queue ends: its last figures are handed over.

mod exporter;
mod histogram;

#[cfg(test)]
mod tests;

use std::{sync::Weak, time::Duration};

pub use self::{exporter::PrometheusMetrics, histogram::Histogram};

/// The figures of a queue at one moment.
#[derive(Clone, Debug, Default)]
pub struct QueueStats {
    /// Keys that wait, and keys that are held and will wait again when released.
    pub depth: usize,
    /// How often a key that did not wait began to. Repeated adds of a waiting key are not counted.
    pub adds: u64,
    /// Adds with a delay, rate-limited ones included: what client-go calls retries.
    pub retries: u64,
    /// Keys that were given up.
    pub given_up: u64,
    /// How long keys waited, from becoming ready to being handed out.
    pub waited: Histogram,
    /// How long keys were held.
    pub worked: Histogram,
    /// For how long the keys held now have been held, summed.
    pub unfinished: Duration,
    /// For how long the key held longest has been held.
    pub longest_running: Duration,
}

/// A queue that can be asked for its figures.
pub trait Observe: Send + Sync {
    /// The figures as of now.
    fn stats(&self) -> QueueStats;
}

/// Where queues report to.
pub trait Metrics: Send + Sync {
    /// A queue was made. It can be asked for its figures as long as it lives. Names need not be unique.
    fn attach(&self, name: &str, queue: Weak<dyn Observe>);

    /// A queue ended; these are its last figures.
    fn detach(&self, name: &str, last: &QueueStats);
}

/// Nobody looks.
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

    /// Only what has happened, without what is going on: what is left of a queue that ended.
    fn retired(&self) -> Self {
        Self { depth: 0, unfinished: Duration::ZERO, longest_running: Duration::ZERO, ..self.clone() }
    }
}

// === impl NoMetrics ===

impl Metrics for NoMetrics {
    fn attach(&self, _name: &str, _queue: Weak<dyn Observe>) {}

    fn detach(&self, _name: &str, _last: &QueueStats) {}
}
