//! What is counted, under upstream's names.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use prometheus::core::Collector;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, exponential_buckets,
};
use steersman_base::{Istr, ObjectKey};

use super::plan::Group;
use crate::service_pods::address::Family;

/// The counters; none, where nobody looks.
#[derive(Default)]
pub(super) struct Metrics(Option<Counters>);

struct Counters {
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

/// What the gauges count of one service.
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
    /// Counts in this registry, if there is one.
    ///
    /// # Errors
    /// The registry has such metrics already.
    pub(super) fn of(registry: Option<&Registry>, endpoints_per_slice_max: usize) -> Result<Self, prometheus::Error> {
        registry.map(|registry| Counters::register(registry, endpoints_per_slice_max.max(1))).transpose().map(Self)
    }

    /// What a pass found of one family.
    pub(super) fn planned(&self, key: &ObjectKey, family: Family, groups: &[Group], added: usize, removed: usize) {
        let Some(counters) = &self.0 else { return };
        counters.endpoints_added.observe(added as f64);
        counters.endpoints_removed.observe(removed as f64);
        let totals = Totals::of(groups, counters.endpoints_per_slice_max);
        let before = counters.known.lock().entry(key.clone()).or_default().families.insert(family, totals);
        counters.shift(before.unwrap_or_default(), totals);
    }

    /// The service has no slices of a family any more.
    pub(super) fn dropped(&self, key: &ObjectKey, family: Family) {
        let Some(counters) = &self.0 else { return };
        let before = counters.known.lock().get_mut(key).and_then(|known| known.families.remove(&family));
        counters.shift(before.unwrap_or_default(), Totals::default());
    }

    /// The traffic distribution that the service has.
    pub(super) fn distributed(&self, key: &ObjectKey, distribution: Option<&Istr>) {
        let Some(counters) = &self.0 else { return };
        let mut known = counters.known.lock();
        let held = &mut known.entry(key.clone()).or_default().distribution;
        if held.as_ref() == distribution {
            return;
        }
        let before = std::mem::replace(held, distribution.cloned());
        counters.distributed(before.as_ref(), distribution);
    }

    /// The service is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        let Some(counters) = &self.0 else { return };
        let Some(known) = counters.known.lock().remove(key) else { return };
        for totals in known.families.into_values() {
            counters.shift(totals, Totals::default());
        }
        counters.distributed(known.distribution.as_ref(), None);
    }

    /// A slice was written: `create`, `update` or `delete`.
    pub(super) fn changed(&self, operation: &str) {
        if let Some(counters) = &self.0 {
            counters.changes.with_label_values(&[operation]).inc();
        }
    }

    /// A pass wrote so many slices of one family.
    pub(super) fn wrote(&self, topology: &str, distribution: &str, slices: usize) {
        if let Some(counters) = &self.0 {
            counters.changed_per_sync.with_label_values(&[topology, distribution]).observe(slices as f64);
        }
    }

    /// A pass ended: with `success` or `error`.
    pub(super) fn synced(&self, result: &str) {
        if let Some(counters) = &self.0 {
            counters.syncs.with_label_values(&[result]).inc();
        }
    }
}

// === impl Counters ===

impl Counters {
    fn register(registry: &Registry, endpoints_per_slice_max: usize) -> Result<Self, prometheus::Error> {
        let options = |name: &str, help: &str| Opts::new(name, help).subsystem("endpoint_slice_controller");
        let per_sync = |name: &str, help: &str| {
            let options = HistogramOpts::from(options(name, help)).buckets(exponential_buckets(2.0, 2.0, 15)?);
            made(registry, Histogram::with_opts(options)?)
        };
        let gauge = |name: &str, help: &str| made(registry, IntGauge::with_opts(options(name, help))?);
        let counter =
            |name: &str, help: &str, label: &str| made(registry, IntCounterVec::new(options(name, help), &[label])?);
        let per_slice = HistogramOpts::from(options(
            "endpointslices_changed_per_sync",
            "Number of EndpointSlices changed on each Service sync",
        ))
        // Upstream names none, and shows this one alone.
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
            changed_per_sync: made(registry, HistogramVec::new(per_slice, &["topology", "traffic_distribution"])?)?,
            syncs: counter("syncs", "Number of EndpointSlice syncs", "result")?,
            services_by_distribution: made(registry, IntGaugeVec::new(by_distribution, &["traffic_distribution"])?)?,
            endpoints_per_slice_max,
            known: Mutex::default(),
        })
    }

    fn shift(&self, before: Totals, now: Totals) {
        self.endpoints_desired.add(now.endpoints - before.endpoints);
        self.slices.add(now.slices - before.slices);
        self.slices_desired.add(now.slices_desired - before.slices_desired);
    }

    fn distributed(&self, before: Option<&Istr>, now: Option<&Istr>) {
        for (distribution, change) in [(before, -1), (now, 1)] {
            if let Some(distribution) = distribution {
                self.services_by_distribution.with_label_values(&[distribution.as_str()]).add(change);
            }
        }
    }
}

fn made<M: Collector + Clone + 'static>(registry: &Registry, metric: M) -> Result<M, prometheus::Error> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

// === impl Totals ===

impl Totals {
    fn of(groups: &[Group], max: usize) -> Self {
        let count = |sum: usize| i64::try_from(sum).unwrap_or(i64::MAX);
        let desired: usize = groups.iter().map(|group| group.endpoints.div_ceil(max)).sum();
        Self {
            endpoints: count(groups.iter().map(|group| group.endpoints).sum()),
            slices: count(groups.iter().map(|group| group.slices).sum()),
            // There is always one, if only to say that there are no endpoints.
            slices_desired: count(desired.max(1)),
        }
    }
}
