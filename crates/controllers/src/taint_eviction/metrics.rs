//! Evictions, under upstream's names.

use std::time::Duration;

use prometheus::{Histogram, HistogramOpts, IntCounter, Opts};
use steersman_runtime::metrics::{Families, FamilyError};

use crate::eviction::LATENCY_BUCKETS;

/// The number of evicted pods, and how late they were evicted.
pub(super) struct Metrics {
    deleted: IntCounter,
    latency: Histogram,
}

// === impl Metrics ===

impl Metrics {
    pub(super) fn new(families: &Families) -> Result<Self, FamilyError> {
        let name = |name: &str| format!("taint_eviction_controller_{name}");
        let deleted = Opts::new(
            name("pod_deletions_total"),
            "[ALPHA] Total number of Pods deleted by TaintEvictionController since its start.",
        );
        let latency = HistogramOpts::new(
            name("pod_deletion_duration_seconds"),
            "[ALPHA] Latency, in seconds, between the time when a taint effect has been activated for the Pod and its \
             deletion via TaintEvictionController.",
        );
        Ok(Self {
            deleted: families.counter(deleted)?,
            latency: families.histogram(latency.buckets(LATENCY_BUCKETS.to_vec()))?,
        })
    }

    /// Records an eviction, and how late it was.
    pub(super) fn evicted(&self, late: Duration) {
        self.deleted.inc();
        self.latency.observe(late.as_secs_f64());
    }
}
