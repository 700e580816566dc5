//! Pure: what is counted.

use std::time::Duration;

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry, exponential_buckets};
use steersman_runtime::WriteError;

/// How passes ended and how long they took, by HTTP code; under upstream's names.
pub(super) struct Metrics(Option<Families>);

struct Families {
    total: IntCounterVec,
    seconds: HistogramVec,
}

/// The code that stands for how a pass ended.
pub(super) fn code(outcome: Result<(), &WriteError>) -> u16 {
    match outcome {
        Ok(()) => 200,
        Err(WriteError::Rejected(rejection)) => rejection.code,
        // As upstream counts what is no answer of the server.
        Err(WriteError::Unknown(rejection)) if rejection.code > 0 => rejection.code,
        Err(WriteError::Conflict | WriteError::AlreadyExists) => 409,
        Err(WriteError::NotFound) => 404,
        Err(WriteError::NamespaceTerminating) => 403,
        Err(WriteError::Throttled(_)) => 429,
        Err(_) => 500,
    }
}

// === impl Metrics ===

impl Metrics {
    /// Counts in a registry, if there is one. What is counted there already by another is counted nowhere.
    pub(super) fn new(registry: Option<&Registry>) -> Self {
        Self(registry.and_then(|registry| Families::register(registry).ok()))
    }

    /// A pass ended so, after so long.
    pub(super) fn note(&self, code: u16, took: Duration) {
        let Some(families) = &self.0 else { return };
        let code = code.to_string();
        families.total.with_label_values(&[&code]).inc();
        families.seconds.with_label_values(&[&code]).observe(took.as_secs_f64());
    }
}

// === impl Families ===

impl Families {
    fn register(registry: &Registry) -> prometheus::Result<Self> {
        // Upstream says the same of both.
        let help = "[ALPHA] Number of namespace syncs happened in root ca cert publisher.";
        let total = IntCounterVec::new(Opts::new("root_ca_cert_publisher_sync_total", help), &["code"])?;
        let seconds = HistogramOpts::new("root_ca_cert_publisher_sync_duration_seconds", help)
            .buckets(exponential_buckets(0.001, 2.0, 15)?);
        let seconds = HistogramVec::new(seconds, &["code"])?;
        registry.register(Box::new(total.clone()))?;
        registry.register(Box::new(seconds.clone()))?;
        Ok(Self { total, seconds })
    }
}
