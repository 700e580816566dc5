//! The quality of the choice of pods to delete, under upstream's name.

use std::sync::Arc;

use prometheus::{Histogram, HistogramOpts, exponential_buckets};
use steersman_base::Time;
use steersman_model::View;
use steersman_model::core::PodView;
use steersman_runtime::metrics::{Families, FamilyError};

use crate::pod;

/// ReplicaSets and ReplicationControllers share one histogram, as upstream.
pub(super) struct Metrics(Histogram);

// === impl Metrics ===

impl Metrics {
    pub(super) fn new(families: &Families) -> Result<Self, FamilyError> {
        let help = "[ALPHA] The ratio of chosen deleted pod's ages to the current youngest pod's age (at the time). Should \
            be <2. The intent of this metric is to measure the rough efficacy of the sorting (and deletion) of pods when a \
            replicaset scales down. This only considers Ready pods when calculating and reporting.";
        let options = HistogramOpts::new("replicaset_controller_sorting_deletion_age_ratio", help);
        families.histogram(options.buckets(exponential_buckets(0.25, 2.0, 6)?)).map(Self)
    }

    /// Records the pods that were chosen to be deleted.
    pub(super) fn count(&self, active: &[Arc<PodView>], chosen: &[Arc<PodView>], now: Time) {
        age_ratios(active, chosen, now).for_each(|ratio| self.0.observe(ratio));
    }
}

/// Returns the age of each chosen ready pod relative to the youngest ready pod. If all pods are deleted, none was
/// chosen.
pub(super) fn age_ratios(active: &[Arc<PodView>], chosen: &[Arc<PodView>], now: Time) -> impl Iterator<Item = f64> {
    let age = move |pod: &Arc<PodView>| Some(now.since(pod.meta().creation_timestamp?).as_secs());
    let ready =
        |pods: &[Arc<PodView>]| pods.iter().filter(|pod| pod::is_ready(pod)).filter_map(age).collect::<Vec<_>>();
    let youngest = ready(active).into_iter().min().unwrap_or_default();
    let chosen = if chosen.len() < active.len() { ready(chosen) } else { Vec::new() };
    // Whole numbers, as upstream; ages below a second count as one second.
    chosen.into_iter().map(move |age| (age.max(1) / youngest.max(1)) as f64)
}
