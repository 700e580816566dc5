//! The metrics, under upstream's names.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus::{Histogram, HistogramOpts, IntCounterVec, IntGauge, Opts, exponential_buckets};
use steersman_base::ObjectKey;
use steersman_runtime::metrics::{Families, FamilyError};

use super::plan::{Group, Plan};

/// The metric families, and the contribution of each Endpoints object to the gauges.
pub(super) struct Metrics {
    added: Histogram,
    updated: Histogram,
    removed: Histogram,
    skipped: Histogram,
    seconds: Histogram,
    endpoints_desired: IntGauge,
    slices: IntGauge,
    slices_desired: IntGauge,
    changes: IntCounterVec,
    endpoints_per_slice_max: usize,
    known: Mutex<BTreeMap<ObjectKey, Totals>>,
}

#[derive(Clone, Copy, Default)]
struct Totals {
    endpoints: i64,
    slices: i64,
    slices_desired: i64,
}

// === impl Metrics ===

impl Metrics {
    /// # Errors
    /// Another metric of the same name is registered.
    pub(super) fn new(families: &Families, endpoints_per_slice_max: usize) -> Result<Self, FamilyError> {
        let options = |name: &str, help: &str| {
            Opts::new(name, format!("[ALPHA] {help}")).subsystem("endpoint_slice_mirroring_controller")
        };
        let per_sync = |name: &str, help: &str, first: f64| {
            let options = HistogramOpts::from(options(name, help)).buckets(exponential_buckets(first, 2.0, 15)?);
            families.histogram(options)
        };
        let gauge = |name: &str, help: &str| families.gauge(options(name, help));
        let skipped = "Number of addresses skipped on each Endpoints sync due to being invalid or exceeding \
                       MaxEndpointsPerSubset";
        let desired = "Number of EndpointSlices that would exist with perfect endpoint allocation";
        Ok(Self {
            added: per_sync("endpoints_added_per_sync", "Number of endpoints added on each Endpoints sync", 2.0)?,
            updated: per_sync("endpoints_updated_per_sync", "Number of endpoints updated on each Endpoints sync", 2.0)?,
            removed: per_sync("endpoints_removed_per_sync", "Number of endpoints removed on each Endpoints sync", 2.0)?,
            skipped: per_sync("addresses_skipped_per_sync", skipped, 2.0)?,
            seconds: per_sync("endpoints_sync_duration", "Duration of syncEndpoints() in seconds", 0.001)?,
            endpoints_desired: gauge("endpoints_desired", "Number of endpoints desired")?,
            slices: gauge("num_endpoint_slices", "Number of EndpointSlices")?,
            slices_desired: gauge("desired_endpoint_slices", desired)?,
            changes: families.counters(options("changes", "Number of EndpointSlice changes"), &["operation"])?,
            endpoints_per_slice_max: endpoints_per_slice_max.max(1),
            known: Mutex::default(),
        })
    }

    /// Records a plan.
    pub(super) fn planned(&self, key: &ObjectKey, plan: &Plan) {
        self.skipped.observe(plan.skipped.all as f64);
        self.added.observe(plan.changes.added as f64);
        self.updated.observe(plan.changes.updated as f64);
        self.removed.observe(plan.changes.removed as f64);
        let totals = Totals::of(&plan.groups, self.endpoints_per_slice_max);
        let before = self.known.lock().insert(key.clone(), totals);
        self.shift(before.unwrap_or_default(), totals);
    }

    /// Forgets Endpoints that are not mirrored any more.
    pub(super) fn forget(&self, key: &ObjectKey) {
        let before = self.known.lock().remove(key);
        self.shift(before.unwrap_or_default(), Totals::default());
    }

    /// Counts a written slice: `create`, `update` or `delete`.
    pub(super) fn changed(&self, operation: &str) {
        self.changes.with_label_values(&[operation]).inc();
    }

    /// Records the duration of a pass.
    pub(super) fn took(&self, time: Duration) {
        self.seconds.observe(time.as_secs_f64());
    }

    fn shift(&self, before: Totals, now: Totals) {
        self.endpoints_desired.add(now.endpoints - before.endpoints);
        self.slices.add(now.slices - before.slices);
        self.slices_desired.add(now.slices_desired - before.slices_desired);
    }
}

// === impl Totals ===

impl Totals {
    fn of(groups: &[Group], max: usize) -> Self {
        let count = |sum: usize| i64::try_from(sum).unwrap_or(i64::MAX);
        Self {
            endpoints: count(groups.iter().map(|group| group.endpoints).sum()),
            slices: count(groups.iter().map(|group| group.slices).sum()),
            slices_desired: count(groups.iter().map(|group| group.endpoints.div_ceil(max)).sum()),
        }
    }
}
