//! The metric, under upstream's name.

use std::time::Duration;

use prometheus::{Histogram, HistogramOpts, exponential_buckets};
use steersman_runtime::metrics::{Families, FamilyError};

/// The delays with which Jobs are created.
pub(super) struct Metrics(Histogram);

// === impl Metrics ===

impl Metrics {
    /// # Errors
    /// Another metric of the same name is registered.
    pub(super) fn new(families: &Families) -> Result<Self, FamilyError> {
        let help = "Time between when a cronjob is scheduled to be run, and when the corresponding job is created";
        let options = HistogramOpts::new("job_creation_skew_duration_seconds", help).subsystem("cronjob_controller");
        families.histogram(options.buckets(exponential_buckets(1.0, 2.0, 10)?)).map(Self)
    }

    /// Records a created Job.
    pub(super) fn created(&self, late: Duration) {
        self.0.observe(late.as_secs_f64());
    }
}
