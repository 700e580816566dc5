//! Passes by HTTP status code, under upstream's names.

use std::time::Duration;

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, exponential_buckets};
use steersman_runtime::WriteError;
use steersman_runtime::metrics::{Families, FamilyError};

/// The result and duration of passes, by HTTP status code.
pub(super) struct Metrics {
    total: IntCounterVec,
    seconds: HistogramVec,
}

/// Upstream's code for errors that are not a response of the server.
pub(super) const NO_ANSWER: u16 = 500;

/// Returns the code for the result of a pass.
pub(crate) fn code(outcome: Result<(), &WriteError>) -> u16 {
    match outcome {
        Ok(()) => 200,
        Err(WriteError::Rejected(rejection)) => rejection.code,
        Err(WriteError::Unknown(rejection)) if rejection.code > 0 => rejection.code,
        Err(WriteError::Conflict | WriteError::AlreadyExists) => 409,
        Err(WriteError::NotFound) => 404,
        Err(WriteError::NamespaceTerminating) => 403,
        Err(WriteError::Throttled(_)) => 429,
        Err(_) => NO_ANSWER,
    }
}

// === impl Metrics ===

impl Metrics {
    pub(super) fn new(families: &Families) -> Result<Self, FamilyError> {
        // Upstream has the same help text for both.
        let help = "[ALPHA] Number of namespace syncs happened in root ca cert publisher.";
        let seconds = HistogramOpts::new("root_ca_cert_publisher_sync_duration_seconds", help)
            .buckets(exponential_buckets(0.001, 2.0, 15)?);
        Ok(Self {
            total: families.counters(Opts::new("root_ca_cert_publisher_sync_total", help), &["code"])?,
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
