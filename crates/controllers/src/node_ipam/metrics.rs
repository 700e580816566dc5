//! Ranges in use, under upstream's names.

use prometheus::{GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, exponential_buckets};
use steersman_runtime::metrics::{Families, FamilyError};

use super::allocator::Effect;
use super::cidr_set::CidrSet;

/// The number of ranges that are used, allocated and released, by the range of the cluster.
pub(super) struct Metrics {
    allocations: IntCounterVec,
    releases: IntCounterVec,
    max: GaugeVec,
    usage: GaugeVec,
    tries: HistogramVec,
}

const LABELS: &[&str] = &["clusterCIDR"];

/// Returns upstream's gauge of where this controller runs, which is 1 while it does: there must be one such process in a cluster,
/// whatever the program.
pub(super) fn running(families: &Families) -> Result<IntGauge, FamilyError> {
    let help = "[BETA] Indicates where instances of a controller are currently running";
    let gauges = families.gauges(Opts::new("running_managed_controllers", help), &["name", "manager"])?;
    Ok(gauges.with_label_values(&["nodeipam", "kube-controller-manager"]))
}

// === impl Metrics ===

impl Metrics {
    pub(super) fn new(families: &Families) -> Result<Self, FamilyError> {
        let options =
            |name: &str, help: &str| Opts::new(format!("node_ipam_controller_{name}"), format!("[ALPHA] {help}"));
        let tries = HistogramOpts::new(
            "node_ipam_controller_cidrset_allocation_tries_per_request",
            "[ALPHA] Number of endpoints added on each Service sync",
        );
        Ok(Self {
            allocations: families.counters(
                options("cidrset_cidrs_allocations_total", "Counter measuring total number of CIDR allocations."),
                LABELS,
            )?,
            releases: families.counters(
                options("cidrset_cidrs_releases_total", "Counter measuring total number of CIDR releases."),
                LABELS,
            )?,
            // Upstream's spelling.
            max: families
                .float_gauges(options("cirdset_max_cidrs", "Maximum number of CIDRs that can be allocated."), LABELS)?,
            usage: families.float_gauges(
                options("cidrset_usage_cidrs", "Gauge measuring percentage of allocated CIDRs."),
                LABELS,
            )?,
            tries: families.histograms(tries.buckets(exponential_buckets(1.0, 5.0, 5)?), LABELS)?,
        })
    }

    /// Records the sets at the start.
    pub(super) fn begin(&self, sets: &[CidrSet]) {
        for set in sets {
            let label = set.cluster().to_string();
            self.max.with_label_values(&[&label]).set(set.max() as f64);
            self.set_usage(set, &label);
        }
    }

    /// Records what has changed in the sets.
    pub(super) fn record(&self, sets: &[CidrSet], effects: &[Effect]) {
        for effect in effects {
            let (Effect::Allocated { set, .. } | Effect::Occupied { set, .. } | Effect::Released { set, .. }) = effect;
            let Some(set) = sets.get(*set) else { continue };
            let label = set.cluster().to_string();
            match effect {
                Effect::Allocated { tries, .. } => {
                    self.allocations.with_label_values(&[&label]).inc();
                    self.tries.with_label_values(&[&label]).observe(*tries as f64);
                }
                Effect::Occupied { count, .. } => self.allocations.with_label_values(&[&label]).inc_by(*count),
                Effect::Released { count, .. } => self.releases.with_label_values(&[&label]).inc_by(*count),
            }
            self.set_usage(set, &label);
        }
    }

    fn set_usage(&self, set: &CidrSet, label: &str) {
        self.usage.with_label_values(&[label]).set(set.allocated() as f64 / set.max() as f64);
    }
}
