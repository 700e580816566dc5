//! Zones, evictions, and the time that checks take, under upstream's names.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus::{GaugeVec, Histogram, HistogramOpts, IntCounterVec, Opts, exponential_buckets};
use steersman_base::Istr;
use steersman_runtime::metrics::{Families, FamilyError};

use super::zones::Count;

/// The metrics of zones and checks.
pub(super) struct Metrics {
    health: GaugeVec,
    size: GaugeVec,
    unhealthy: GaugeVec,
    evictions: IntCounterVec,
    node: Histogram,
    all_nodes: Histogram,
    /// The zones that were counted last.
    zones: Mutex<BTreeSet<Istr>>,
}

// === impl Metrics ===

impl Metrics {
    pub(super) fn new(families: &Families) -> Result<Self, FamilyError> {
        let options = |name: &str, help: &str| Opts::new(format!("node_collector_{name}"), help);
        let gauge =
            |name: &str, help: &str| families.float_gauges(options(name, &format!("[ALPHA] {help}")), &["zone"]);
        let histogram = |name: &str, help: &str, first: f64| {
            let options = HistogramOpts::new(format!("node_collector_{name}"), format!("[ALPHA] {help}"));
            families.histogram(options.buckets(exponential_buckets(first, 4.0, 8)?))
        };
        Ok(Self {
            health: gauge("zone_health", "Gauge measuring percentage of healthy nodes per zone.")?,
            size: gauge("zone_size", "Gauge measuring number of registered Nodes per zones.")?,
            unhealthy: gauge("unhealthy_nodes_in_zone", "Gauge measuring number of not Ready Nodes per zones.")?,
            evictions: families.counters(
                options(
                    "evictions_total",
                    "[STABLE] Number of Node evictions that happened since current instance of NodeController started.",
                ),
                &["zone"],
            )?,
            node: histogram(
                "update_node_health_duration_seconds",
                "Duration in seconds for NodeController to update the health of a single node.",
                0.001,
            )?,
            all_nodes: histogram(
                "update_all_nodes_health_duration_seconds",
                "Duration in seconds for NodeController to update the health of all nodes.",
                0.01,
            )?,
            zones: Mutex::default(),
        })
    }

    /// Records the count of all zones.
    pub(super) fn count(&self, counts: &BTreeMap<Istr, Count>) {
        let mut zones = self.zones.lock();
        for zone in zones.iter().filter(|zone| !counts.contains_key(*zone)) {
            self.set(zone, Count::default(), 100.0);
        }
        for (zone, count) in counts {
            self.set(zone, *count, count.percentage());
            // So that a zone without evictions is there, too.
            self.evictions.with_label_values(&[zone.as_str()]).inc_by(0);
        }
        *zones = counts.keys().cloned().collect();
    }

    fn set(&self, zone: &Istr, count: Count, health: f64) {
        let labels = [zone.as_str()];
        self.health.with_label_values(&labels).set(health);
        self.size.with_label_values(&labels).set(count.size() as f64);
        self.unhealthy.with_label_values(&labels).set(count.unready as f64);
    }

    /// Records a node that got its taint.
    pub(super) fn evicted(&self, zone: &Istr) {
        self.evictions.with_label_values(&[zone.as_str()]).inc();
    }

    /// Records the time that a check of one node took.
    pub(super) fn checked(&self, time: Duration) {
        self.node.observe(time.as_secs_f64());
    }

    /// Records the time that a check of all nodes took.
    pub(super) fn checked_all(&self, time: Duration) {
        self.all_nodes.observe(time.as_secs_f64());
    }
}
