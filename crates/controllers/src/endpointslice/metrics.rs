//! The metrics, under upstream's names.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, exponential_buckets,
};
use steersman_base::{Istr, ObjectKey};
use steersman_runtime::metrics::{Families, FamilyError};

use super::plan::Group;
use crate::service_pods::address::Family;

/// The metric families, and each service's contribution to the gauges.
pub(super) struct Metrics {
    endpoints_added: Histogram,
    endpoints_removed: Histogram,
    endpoints_desired: IntGauge,
    slices: IntGauge,
    slices_desired: IntGauge,
    changes: IntCounterVec,
    changed_per_sync: HistogramVec,
    syncs: IntCounterVec,
    services_by_distribution: IntGaugeVec,
    endpoints_per_slice_max: usize,
    known: Mutex<BTreeMap<ObjectKey, Known>>,
}

/// The contribution of one service to the gauges.
#[derive(Default)]
struct Known {
    families: BTreeMap<Family, Totals>,
    distribution: Option<Istr>,
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
        let options = |name: &str, help: &str| Opts::new(name, help).subsystem("endpoint_slice_controller");
        let per_sync = |name: &str, help: &str| {
            let options = HistogramOpts::from(options(name, help)).buckets(exponential_buckets(2.0, 2.0, 15)?);
            families.histogram(options)
        };
        let gauge = |name: &str, help: &str| families.gauge(options(name, help));
        let counter = |name: &str, help: &str, label: &str| families.counters(options(name, help), &[label]);
        let per_slice = HistogramOpts::from(options(
            "endpointslices_changed_per_sync",
            "Number of EndpointSlices changed on each Service sync",
        ))
        // Upstream registers these without help text, except one.
        .buckets(vec![f64::INFINITY]);
        let by_distribution = options(
            "services_count_by_traffic_distribution",
            "Number of Services using some specific trafficDistribution",
        );
        Ok(Self {
            endpoints_added: per_sync("endpoints_added_per_sync", "Number of endpoints added on each Service sync")?,
            endpoints_removed: per_sync(
                "endpoints_removed_per_sync",
                "Number of endpoints removed on each Service sync",
            )?,
            endpoints_desired: gauge("endpoints_desired", "Number of endpoints desired")?,
            slices: gauge("num_endpoint_slices", "Number of EndpointSlices")?,
            slices_desired: gauge(
                "desired_endpoint_slices",
                "Number of EndpointSlices that would exist with perfect endpoint allocation",
            )?,
            changes: counter("changes", "Number of EndpointSlice changes", "operation")?,
            changed_per_sync: families.histograms(per_slice, &["topology", "traffic_distribution"])?,
            syncs: counter("syncs", "Number of EndpointSlice syncs", "result")?,
            services_by_distribution: families.gauges(by_distribution, &["traffic_distribution"])?,
            endpoints_per_slice_max: endpoints_per_slice_max.max(1),
            known: Mutex::default(),
        })
    }

    /// Records the plan of one address family.
    pub(super) fn planned(&self, key: &ObjectKey, family: Family, groups: &[Group], added: usize, removed: usize) {
        self.endpoints_added.observe(added as f64);
        self.endpoints_removed.observe(removed as f64);
        let totals = Totals::of(groups, self.endpoints_per_slice_max);
        let before = self.known.lock().entry(key.clone()).or_default().families.insert(family, totals);
        self.shift(before.unwrap_or_default(), totals);
    }

    /// Records that the service has no slices of a family any more.
    pub(super) fn dropped(&self, key: &ObjectKey, family: Family) {
        let before = self.known.lock().get_mut(key).and_then(|known| known.families.remove(&family));
        self.shift(before.unwrap_or_default(), Totals::default());
    }

    /// Records the traffic distribution of a service.
    pub(super) fn distributed(&self, key: &ObjectKey, distribution: Option<&Istr>) {
        let mut known = self.known.lock();
        let held = &mut known.entry(key.clone()).or_default().distribution;
        if held.as_ref() == distribution {
            return;
        }
        let before = std::mem::replace(held, distribution.cloned());
        self.count_distribution(before.as_ref(), distribution);
    }

    /// Forgets a deleted service.
    pub(super) fn forget(&self, key: &ObjectKey) {
        let Some(known) = self.known.lock().remove(key) else { return };
        for totals in known.families.into_values() {
            self.shift(totals, Totals::default());
        }
        self.count_distribution(known.distribution.as_ref(), None);
    }

    /// Counts a written slice: `create`, `update` or `delete`.
    pub(super) fn changed(&self, operation: &str) {
        self.changes.with_label_values(&[operation]).inc();
    }

    /// Records how many slices of one family a pass wrote.
    pub(super) fn wrote(&self, topology: &str, distribution: &str, slices: usize) {
        self.changed_per_sync.with_label_values(&[topology, distribution]).observe(slices as f64);
    }

    /// Counts a pass: `success` or `error`.
    pub(super) fn synced(&self, result: &str) {
        self.syncs.with_label_values(&[result]).inc();
    }

    fn shift(&self, before: Totals, now: Totals) {
        self.endpoints_desired.add(now.endpoints - before.endpoints);
        self.slices.add(now.slices - before.slices);
        self.slices_desired.add(now.slices_desired - before.slices_desired);
    }

    fn count_distribution(&self, before: Option<&Istr>, now: Option<&Istr>) {
        for (distribution, change) in [(before, -1), (now, 1)] {
            if let Some(distribution) = distribution {
                self.services_by_distribution.with_label_values(&[distribution.as_str()]).add(change);
            }
        }
    }
}

// === impl Totals ===

impl Totals {
    fn of(groups: &[Group], max: usize) -> Self {
        let count = |sum: usize| i64::try_from(sum).unwrap_or(i64::MAX);
        let desired: usize = groups.iter().map(|group| group.endpoints.div_ceil(max)).sum();
        Self {
            endpoints: count(groups.iter().map(|group| group.endpoints).sum()),
            slices: count(groups.iter().map(|group| group.slices).sum()),
            // There is always one slice, an empty one if there are no endpoints.
            slices_desired: count(desired.max(1)),
        }
    }
}
