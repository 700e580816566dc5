//! Attached volumes and what it took to attach them, under upstream's names.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts};
use steersman_base::Istr;
use steersman_runtime::metrics::{Families, FamilyError};

use super::plan::Forced;
use super::state::Doing;
use crate::volume_spec::VolumeSpec;

/// The numbers of volumes, of forced detaches, and the durations of operations.
pub(super) struct Metrics {
    forced: IntCounterVec,
    total: IntGaugeVec,
    in_use: IntGaugeVec,
    operations: HistogramVec,
    /// The contribution of each volume to the gauges.
    counted: Mutex<HashMap<Istr, Counted>>,
}

/// The contribution of a volume to the gauges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) plugin: String,
    /// The number of nodes that it shall be attached to.
    pub(super) desired: i64,
    /// The number of nodes that it is attached to, or may be.
    pub(super) actual: i64,
    /// The number of pods that use it, by node.
    pub(super) pods: BTreeMap<Istr, i64>,
}

/// The bounds of the durations, in seconds: upstream's.
const BUCKETS: [f64; 13] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0];

// === impl Metrics ===

impl Metrics {
    pub(super) fn new(families: &Families) -> Result<Self, FamilyError> {
        let operations = HistogramOpts::new("storage_operation_duration_seconds", "[BETA] Storage operation duration");
        Ok(Self {
            // Upstream's name has the name of the subsystem twice.
            forced: families.counters(
                Opts::new(
                    "attach_detach_controller_attachdetach_controller_forced_detaches",
                    "[ALPHA] Number of times the A/D Controller performed a forced detach",
                ),
                &["reason"],
            )?,
            total: families.gauges(
                Opts::new("attachdetach_controller_total_volumes", "[ALPHA] Number of volumes in A/D Controller"),
                &["plugin_name", "state"],
            )?,
            in_use: families.gauges(
                Opts::new("storage_count_attachable_volumes_in_use", "[ALPHA] Measure number of volumes in use"),
                &["node", "volume_plugin"],
            )?,
            operations: families.histograms(
                operations.buckets(BUCKETS.to_vec()),
                &["volume_plugin", "operation_name", "status", "migrated"],
            )?,
            counted: Mutex::default(),
        })
    }

    /// Counts a forced detach.
    pub(super) fn forced(&self, why: Forced) {
        let reason = match why {
            Forced::Timeout => "timeout",
            Forced::OutOfService => "out-of-service",
        };
        self.forced.with_label_values(&[reason]).inc();
    }

    /// Records an operation that has ended.
    pub(super) fn ended(&self, spec: &VolumeSpec, what: Doing, took: Duration, is_failed: bool) {
        let name = match what {
            Doing::Attach => "volume_attach",
            Doing::Detach => "volume_detach",
        };
        let status = if is_failed { "fail-unknown" } else { "success" };
        let migrated = if spec.is_migrated { "true" } else { "false" };
        let plugin = spec.plugin_label();
        let labels = [plugin.as_str(), name, status, migrated];
        self.operations.with_label_values(&labels).observe(took.as_secs_f64());
    }

    /// Sets what a volume adds to the gauges.
    pub(super) fn count(&self, volume: &Istr, now: Counted) {
        let mut counted = self.counted.lock();
        let before = counted.get(volume).cloned().unwrap_or_default();
        if before == now {
            return;
        }
        self.add(&before, -1);
        self.add(&now, 1);
        if now.desired == 0 && now.actual == 0 && now.pods.is_empty() {
            counted.remove(volume);
        } else {
            counted.insert(volume.clone(), now);
        }
    }

    fn add(&self, counted: &Counted, sign: i64) {
        let Counted { plugin, desired, actual, pods } = counted;
        add(&self.total, &[plugin, "desired_state_of_world"], sign * desired);
        add(&self.total, &[plugin, "actual_state_of_world"], sign * actual);
        for (node, count) in pods {
            add(&self.in_use, &[node, plugin], sign * count);
        }
    }
}

/// Adds to a gauge; one that is zero is removed, as upstream has none.
fn add(gauges: &IntGaugeVec, labels: &[&str; 2], count: i64) {
    if count == 0 {
        return;
    }
    let gauge = gauges.with_label_values(labels);
    gauge.add(count);
    if gauge.get() == 0 {
        // It was there a moment ago.
        let _ = gauges.remove_label_values(labels);
    }
}
