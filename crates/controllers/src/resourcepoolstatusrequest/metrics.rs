//! Requests, under upstream's names.

use std::time::Duration;

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, exponential_buckets};
use steersman_runtime::metrics::{Families, FamilyError};

/// The number of answered requests, by driver, and how long an answer takes.
pub(super) struct Metrics {
    processed: IntCounterVec,
    failed: IntCounterVec,
    duration: HistogramVec,
}

// === impl Metrics ===

impl Metrics {
    pub(super) fn new(families: &Families) -> Result<Self, FamilyError> {
        let options = |name: &str, help: &str| Opts::new(name, help).subsystem("resourcepoolstatusrequest_controller");
        let processed =
            options("requests_processed_total", "[ALPHA] Total number of ResourcePoolStatusRequests processed");
        let failed = options(
            "request_processing_errors_total",
            "[ALPHA] Total number of errors encountered while processing ResourcePoolStatusRequests",
        );
        let duration =
            options("request_processing_duration_seconds", "[ALPHA] Time taken to process a ResourcePoolStatusRequest");
        let duration = HistogramOpts::from(duration).buckets(exponential_buckets(0.001, 2.0, 15)?);
        Ok(Self {
            processed: families.counters(processed, &["driver_name"])?,
            failed: families.counters(failed, &["driver_name"])?,
            duration: families.histograms(duration, &["driver_name"])?,
        })
    }

    /// Counts an answer, and whether it could not be written.
    pub(super) fn answered(&self, driver: &str, took: Duration, failed: bool) {
        self.processed.with_label_values(&[driver]).inc();
        self.duration.with_label_values(&[driver]).observe(took.as_secs_f64());
        if failed {
            self.failed.with_label_values(&[driver]).inc();
        }
    }
}
