//! Metrics of informers, under upstream's names and in a registry of the factory's own.
//!
//! | metric | what |
//! |---|---|
//! | `informer_queued_items` | keys in the delta FIFO |
//! | `informer_processing_latency_seconds` | time to apply one batch to the store and deliver it to the subscribers |
//! | `informer_store_resource_version` | the version the store shows, where it is a number |
//! | `steersman_informer_handler_panics_total` | handlers that panicked; upstream's process dies instead |
//!
//! Labels are upstream's: `name` of the factory, `group`, `version`, `resource`.

use std::fmt;

use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry,
};
use steersman_base::{Resource, ResourceVersion};
use tokio::time::Instant;

/// The metrics of informers, registered once; factories that share a registry share these, and differ in name.
#[derive(Clone)]
pub struct Metrics {
    queued: IntGaugeVec,
    latency: HistogramVec,
    reached: GaugeVec,
    panics: IntCounterVec,
}

/// The metrics of one informer.
#[derive(Clone)]
pub(crate) struct InformerMetrics {
    queued: IntGauge,
    latency: Histogram,
    reached: Gauge,
    panics: IntCounter,
}

/// Measures one batch, until dropped.
pub(crate) struct Processing<'a> {
    latency: &'a Histogram,
    started: Instant,
}

const LABELS: [&str; 4] = ["name", "group", "version", "resource"];
/// Upstream's buckets.
const LATENCY_BUCKETS: [f64; 12] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

// === impl Metrics ===

impl Metrics {
    /// Registers the metrics.
    ///
    /// # Errors
    /// The registry has metrics of these names already.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let metrics = Self::unregistered()?;
        registry.register(Box::new(metrics.queued.clone()))?;
        registry.register(Box::new(metrics.latency.clone()))?;
        registry.register(Box::new(metrics.reached.clone()))?;
        registry.register(Box::new(metrics.panics.clone()))?;
        Ok(metrics)
    }

    fn unregistered() -> Result<Self, prometheus::Error> {
        Ok(Self {
            queued: IntGaugeVec::new(
                Opts::new("informer_queued_items", "Number of items currently queued in the FIFO."),
                &LABELS,
            )?,
            latency: HistogramVec::new(
                HistogramOpts::new(
                    "informer_processing_latency_seconds",
                    "Time taken to process events after popping from the queue.",
                )
                .buckets(LATENCY_BUCKETS.to_vec()),
                &LABELS,
            )?,
            reached: GaugeVec::new(
                Opts::new("informer_store_resource_version", "Resource version of the store, where it is a number."),
                &LABELS,
            )?,
            panics: IntCounterVec::new(
                Opts::new("steersman_informer_handler_panics_total", "Event handlers that panicked and went on."),
                &LABELS,
            )?,
        })
    }

    pub(crate) fn of(&self, factory: &str, resource: &Resource) -> InformerMetrics {
        let labels = [factory, &*resource.group, &*resource.version, &*resource.plural];
        InformerMetrics {
            queued: self.queued.with_label_values(&labels),
            latency: self.latency.with_label_values(&labels),
            reached: self.reached.with_label_values(&labels),
            panics: self.panics.with_label_values(&labels),
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

// === impl InformerMetrics ===

impl InformerMetrics {
    pub(crate) fn set_queued(&self, keys: usize) {
        self.queued.set(i64::try_from(keys).unwrap_or(i64::MAX));
    }

    /// Starts a measurement, which ends when dropped.
    pub(crate) fn processing(&self) -> Processing<'_> {
        Processing { latency: &self.latency, started: Instant::now() }
    }

    /// Records that a batch is in the store, which shows this version now, if another than before.
    pub(crate) fn took_in(&self, reached: Option<&ResourceVersion>) {
        self.queued.set(0);
        if let Some(Ok(number)) = reached.map(|version| version.as_str().parse()) {
            self.reached.set(number);
        }
    }

    pub(crate) fn handler_panicked(&self) {
        self.panics.inc();
    }
}

// === impl Processing ===

impl Drop for Processing<'_> {
    fn drop(&mut self) {
        self.latency.observe(self.started.elapsed().as_secs_f64());
    }
}
