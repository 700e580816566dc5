//! The metrics, under upstream's names.

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Opts};
use steersman_informer::Lister;
use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};
use steersman_runtime::metrics::{Families, FamilyError};

use super::{class, matching, plugin};

/// The counters of operations.
pub(super) struct Metrics {
    seconds: HistogramVec,
    errors: IntCounterVec,
    errors_deprecated: IntCounterVec,
    assigned: IntCounter,
    not_assigned: IntCounter,
}

/// The numbers of volumes and claims, computed when metrics are read.
#[derive(Clone)]
pub(super) struct Counts {
    volumes: Lister<PersistentVolumeView>,
    claims: Lister<PersistentVolumeClaimView>,
    descriptions: Vec<Desc>,
}

/// The gauges of one reading.
struct Gauges {
    total: IntGaugeVec,
    bound_volumes: IntGaugeVec,
    unbound_volumes: IntGaugeVec,
    bound_claims: IntGaugeVec,
    unbound_claims: IntGaugeVec,
}

const SECONDS: [f64; 13] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0];
const OPERATION: &[&str] = &["plugin_name", "operation_name"];

// === impl Metrics ===

impl Metrics {
    pub(super) fn new(families: &Families) -> Result<Self, FamilyError> {
        let counter = |name: &str, help: &str| families.counter(Opts::new(name, format!("[ALPHA] {help}")));
        let errors = |name: &str, help: &str| families.counters(Opts::new(name, help), OPERATION);
        let seconds = HistogramOpts::new(
            "volume_operation_total_seconds",
            "[BETA] Storage operation end to end duration in seconds",
        );
        Ok(Self {
            seconds: families.histograms(seconds.buckets(SECONDS.to_vec()), OPERATION)?,
            errors: errors("volume_operation_errors_total", "[ALPHA] Total volume operation errors")?,
            errors_deprecated: errors(
                "volume_operation_total_errors",
                "[ALPHA] (Deprecated since 1.36.0) Total volume operation errors",
            )?,
            assigned: counter(
                "retroactive_storageclass_total",
                "Total number of retroactive StorageClass assignments to persistent volume claim",
            )?,
            not_assigned: counter(
                "retroactive_storageclass_errors_total",
                "Total number of failed retroactive StorageClass assignments to persistent volume claim",
            )?,
        })
    }

    /// Records that a claim got the default class, or that it could not be written.
    pub(super) fn assigned(&self, is_written: bool) {
        self.assigned.inc();
        if !is_written {
            self.not_assigned.inc();
        }
    }

    /// Records a failed operation.
    pub(super) fn failed(&self, plugin: &str, operation: &str) {
        self.errors.with_label_values(&[plugin, operation]).inc();
        self.errors_deprecated.with_label_values(&[plugin, operation]).inc();
    }

    /// Records an operation that took this many seconds.
    pub(super) fn done(&self, plugin: &str, operation: &str, seconds: f64) {
        self.seconds.with_label_values(&[plugin, operation]).observe(seconds);
    }
}

// === impl Counts ===

impl Counts {
    pub(super) fn new(
        volumes: Lister<PersistentVolumeView>,
        claims: Lister<PersistentVolumeClaimView>,
    ) -> Result<Self, FamilyError> {
        let descriptions = Gauges::new()?.all().iter().flat_map(|gauge| gauge.desc()).cloned().collect();
        Ok(Self { volumes, claims, descriptions })
    }
}

impl Collector for Counts {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Ok(gauges) = Gauges::new() else { return Vec::new() };
        for volume in self.volumes.list() {
            let plugin = plugin::of_source(&volume.spec.source).unwrap_or("N/A");
            let mode = matching::mode(volume.spec.volume_mode.as_ref());
            gauges.total.with_label_values(&[plugin, &mode]).inc();
            let by_phase = if volume.status.phase == "Bound" { &gauges.bound_volumes } else { &gauges.unbound_volumes };
            by_phase.with_label_values(&[volume.spec.storage_class_name.as_str()]).inc();
        }
        for claim in self.claims.list() {
            let attributes = claim.spec.volume_attributes_class_name.clone().unwrap_or_default();
            let by_phase = if claim.status.phase == "Bound" { &gauges.bound_claims } else { &gauges.unbound_claims };
            by_phase.with_label_values(&[claim.meta().namespace.as_str(), class::of_claim(&claim), &attributes]).inc();
        }
        let all = gauges.all().into_iter().flat_map(Collector::collect);
        all.filter(|family| !family.get_metric().is_empty()).collect()
    }
}

// === impl Gauges ===

impl Gauges {
    fn new() -> Result<Self, prometheus::Error> {
        let gauge = |name: &str, help: &str, labels: &[&str]| {
            IntGaugeVec::new(Opts::new(format!("pv_collector_{name}"), format!("[ALPHA] {help}")), labels)
        };
        let of_claim = &["namespace", "storage_class", "volume_attributes_class"];
        let of_volume = &["storage_class"];
        Ok(Self {
            total: gauge(
                "total_pv_count",
                "Gauge measuring total number of persistent volumes",
                &["plugin_name", "volume_mode"],
            )?,
            bound_volumes: gauge(
                "bound_pv_count",
                "Gauge measuring number of persistent volume currently bound",
                of_volume,
            )?,
            unbound_volumes: gauge(
                "unbound_pv_count",
                "Gauge measuring number of persistent volume currently unbound",
                of_volume,
            )?,
            bound_claims: gauge(
                "bound_pvc_count",
                "Gauge measuring number of persistent volume claim currently bound",
                of_claim,
            )?,
            unbound_claims: gauge(
                "unbound_pvc_count",
                "Gauge measuring number of persistent volume claim currently unbound",
                of_claim,
            )?,
        })
    }

    fn all(&self) -> [&IntGaugeVec; 5] {
        [&self.total, &self.bound_volumes, &self.unbound_volumes, &self.bound_claims, &self.unbound_claims]
    }
}
