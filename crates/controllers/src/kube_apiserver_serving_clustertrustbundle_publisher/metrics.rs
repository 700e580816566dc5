//! Passes by HTTP status code, under upstream's names.

use std::time::Duration;

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, exponential_buckets};
use steersman_runtime::metrics::{Families, FamilyError};

/// The result and duration of passes, by HTTP status code.
pub(super) struct Metrics {
    total: IntCounterVec,
    seconds: HistogramVec,
}

// === impl Metrics ===

impl Metrics {
    pub(super) fn new(families: &Families) -> Result<Self, FamilyError> {
        let total = "[ALPHA] Number of syncs that occurred in cluster trust bundle publisher.";
        let seconds = "[ALPHA] The time it took to sync a cluster trust bundle.";
        let seconds = HistogramOpts::new("clustertrustbundle_publisher_sync_duration_seconds", seconds)
            .buckets(exponential_buckets(0.001, 2.0, 15)?);
        Ok(Self {
            total: families.counters(Opts::new("clustertrustbundle_publisher_sync_total", total), &["code"])?,
            seconds: families.histograms(seconds, &["code"])?,
        })
    }

    /// Records the result and duration of a pass.
    pub(super) fn note(&self, code: u16, took: Duration) {
        let code = code.to_string();
        self.total.with_label_values(&[&code]).inc();
        self.seconds.with_label_values(&[&code]).observe(took.as_secs_f64());
    }
}
