//! The metric, under upstream's name.

use std::time::Duration;

use prometheus::{Histogram, HistogramOpts, exponential_buckets};
use steersman_runtime::metrics::{Families, FamilyError};

/// The delays with which Jobs are deleted.
pub(super) struct Metrics(Histogram);

// === impl Metrics ===

impl Metrics {
    /// # Errors
    /// Another metric of the same name is registered.
    pub(super) fn new(families: &Families) -> Result<Self, FamilyError> {
        let help = "[ALPHA] The time it took to delete the job since it became eligible for deletion";
        let options =
            HistogramOpts::new("job_deletion_duration_seconds", help).subsystem("ttl_after_finished_controller");
        families.histogram(options.buckets(exponential_buckets(0.1, 2.0, 14)?)).map(Self)
    }

    /// Records a deleted Job.
    pub(super) fn deleted(&self, late: Duration) {
        self.0.observe(late.as_secs_f64());
    }
}
