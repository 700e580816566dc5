//! Evictions, under upstream's names.

use std::time::Duration;

use prometheus::{Histogram, HistogramOpts, IntCounter, Opts};
use steersman_runtime::metrics::{Families, FamilyError};

/// The buckets of the histogram of latencies: 5 ms to 4 minutes.
const LATENCY_BUCKETS: [f64; 12] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 180.0, 240.0];

/// The number of evicted pods, and how late they were evicted.
pub(crate) struct Metrics {
    deleted: IntCounter,
    latency: Histogram,
}

/// The names and texts in which the metrics of the two controllers differ.
pub(crate) struct Texts {
    /// The prefix of the names.
    pub(crate) prefix: &'static str,
    /// The help of the number of evictions.
    pub(crate) deleted: &'static str,
    /// The help of the latency.
    pub(crate) latency: &'static str,
}

// === impl Metrics ===

impl Metrics {
    pub(crate) fn new(families: &Families, texts: &Texts) -> Result<Self, FamilyError> {
        let name = |name: &str| format!("{}_{name}", texts.prefix);
        let deleted = Opts::new(name("pod_deletions_total"), texts.deleted);
        let latency = HistogramOpts::new(name("pod_deletion_duration_seconds"), texts.latency);
        Ok(Self {
            deleted: families.counter(deleted)?,
            latency: families.histogram(latency.buckets(LATENCY_BUCKETS.to_vec()))?,
        })
    }

    /// Records an eviction, and how late it was.
    pub(crate) fn evicted(&self, late: Duration) {
        self.deleted.inc();
        self.latency.observe(late.as_secs_f64());
    }
}
