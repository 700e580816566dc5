//! Metrics of webhooks, under controller-runtime's names (v0.25).

use http::StatusCode;
use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry,
    exponential_buckets,
};
use tokio::time::Instant;

use super::Kind;
use crate::metrics::{Families, FamilyError};

/// Counters of webhooks. Cheap to clone.
#[derive(Clone, Debug)]
pub struct WebhookMetrics {
    requests: IntCounterVec,
    latency: HistogramVec,
    in_flight: GaugeVec,
    panics: IntCounter,
    conversion_panics: IntCounter,
}

/// A request that is being answered.
pub(super) struct InFlight {
    gauge: Gauge,
    latency: Histogram,
    since: Instant,
}

// === impl WebhookMetrics ===

impl WebhookMetrics {
    /// Registers the metrics.
    ///
    /// # Errors
    /// The registry has metrics of these names already.
    pub fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        Self::of(&Families::of(Some(registry))).map_err(|error| match error {
            FamilyError::Prometheus(error) => error,
            clash @ FamilyError::Clash(_) => prometheus::Error::Msg(clash.to_string()),
        })
    }

    /// Returns the metrics that the servers of one manager share.
    pub(super) fn of(families: &Families) -> Result<Self, FamilyError> {
        let requests = Opts::new(
            "controller_runtime_webhook_requests_total",
            "Total number of admission requests by HTTP status code.",
        );
        let latency = HistogramOpts::new(
            "controller_runtime_webhook_latency_seconds",
            "Histogram of the latency of processing admission requests",
        );
        let in_flight = Opts::new(
            "controller_runtime_webhook_requests_in_flight",
            "Current number of admission requests being served.",
        );
        let panics = Opts::new("controller_runtime_webhook_panics_total", "Total number of webhook panics");
        let conversion_panics = Opts::new(
            "controller_runtime_conversion_webhook_panics_total",
            "Total number of conversion webhook panics",
        );
        Ok(Self {
            requests: families.counters(requests, &["webhook", "code"])?,
            latency: families.histograms(latency.buckets(exponential_buckets(10e-9, 10.0, 12)?), &["webhook"])?,
            in_flight: families.float_gauges(in_flight, &["webhook"])?,
            panics: families.counter(panics)?,
            conversion_panics: families.counter(conversion_panics)?,
        })
    }

    /// Shows the likely codes from the start, so that rates can be computed.
    pub(super) fn announce(&self, path: &str) {
        for code in ["200", "500"] {
            self.requests.with_label_values(&[path, code]);
        }
    }

    pub(super) fn begin(&self, path: &str) -> InFlight {
        let gauge = self.in_flight.with_label_values(&[path]);
        gauge.inc();
        InFlight { gauge, latency: self.latency.with_label_values(&[path]), since: Instant::now() }
    }

    pub(super) fn answered(&self, path: &str, status: StatusCode) {
        self.requests.with_label_values(&[path, status.as_str()]).inc();
    }

    pub(super) fn panicked(&self, kind: Kind) {
        match kind {
            Kind::Admission => self.panics.inc(),
            Kind::Conversion => self.conversion_panics.inc(),
        }
    }
}

// === impl InFlight ===

impl Drop for InFlight {
    fn drop(&mut self) {
        self.gauge.dec();
        self.latency.observe(self.since.elapsed().as_secs_f64());
    }
}
