//! Pure: when a Deployment that is recreated may have its new pods.

use std::sync::Arc;

use steersman_model::core::PodView;

use super::sets::Sets;
use crate::pod;

/// Whether pods of an older template may still run. `pods` are those that old ReplicaSets control, whatever has become of
/// them: one that was asked to end may still do something.
pub(super) fn old_pods_run(sets: &Sets, pods: &[Arc<PodView>]) -> bool {
    sets.old.iter().any(|set| set.status.replicas > 0) || pods.iter().any(|pod| !pod::has_ended(pod))
}
