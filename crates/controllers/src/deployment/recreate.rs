//! Pure: when a Deployment that is recreated may have its new pods.

use std::sync::Arc;

use steersman_model::apps::ReplicaSetView;
use steersman_model::core::PodView;

use super::sets::{Sets, is_observed};
use crate::pod;

/// Whether pods of an older template may still run. `pods` are those that old ReplicaSets control, whatever has become of
/// them: one that was asked to end may still do something.
///
/// What is seen of pods can be late, so the ReplicaSets are asked too. One that has not seen yet that it should have no pods
/// may be about to make some: it is waited for, and its status wakes the Deployment.
pub(super) fn old_pods_run(sets: &Sets, pods: &[Arc<PodView>]) -> bool {
    sets.old.iter().any(|set| may_have_pods(set)) || pods.iter().any(|pod| !pod::has_ended(pod))
}

fn may_have_pods(set: &ReplicaSetView) -> bool {
    // Where nobody counts those that terminate (a feature gate), only the cache of pods tells.
    !is_observed(set) || set.status.replicas > 0 || set.status.terminating_replicas.is_some_and(|count| count > 0)
}
