//! Pure: when a Deployment with strategy `Recreate` may create its new pods.

use std::sync::Arc;

use steersman_model::apps::ReplicaSetView;
use steersman_model::core::PodView;

use super::sets::{Sets, is_observed};
use crate::pod;

/// Whether pods of an older template may still run. `pods` are the pods of old ReplicaSets in any state: a terminating
/// pod may still be running.
///
/// The cache of pods may be stale, so the status of the ReplicaSets counts too. A ReplicaSet that has not yet observed
/// its size of zero may be about to create pods: it is waited for, and its status enqueues the Deployment.
pub(super) fn old_pods_run(sets: &Sets, pods: &[Arc<PodView>]) -> bool {
    sets.old.iter().any(|set| may_have_pods(set)) || pods.iter().any(|pod| !pod::has_ended(pod))
}

fn may_have_pods(set: &ReplicaSetView) -> bool {
    // Where terminating pods are not counted (a feature gate), only the cache of pods shows them.
    !is_observed(set) || set.status.replicas > 0 || set.status.terminating_replicas.is_some_and(|count| count > 0)
}
