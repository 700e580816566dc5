//! Pure: which Deployment the deletion of a pod concerns. `claim` does the same for ReplicaSets.

use std::sync::Arc;

use steersman_base::ObjectKey;
use steersman_informer::{Change, Lister};
use steersman_model::View;
use steersman_model::apps::{DeploymentView, ReplicaSetView};
use steersman_model::core::PodView;

use super::rolling::is_rolling;
use crate::claim::map::controller_of;

/// The Deployments and ReplicaSets, for the handlers of pod events.
pub(super) struct Recreated {
    pub(super) deployments: Lister<DeploymentView>,
    pub(super) sets: Lister<ReplicaSetView>,
}

// === impl Recreated ===

impl Recreated {
    /// Returns the Deployment that a change of a pod concerns.
    pub(super) fn by(&self, change: &Change<PodView>) -> Option<ObjectKey> {
        recreated_by(change, |key| self.sets.get(key), |key| self.deployments.get(key))
    }
}

/// Returns the Deployment with strategy `Recreate` that waited for this pod to be deleted. Other events of a pod
/// concern only its ReplicaSet, whose status then concerns the Deployment.
pub(super) fn recreated_by(
    change: &Change<PodView>,
    set_at: impl Fn(&ObjectKey) -> Option<Arc<ReplicaSetView>>,
    deployment_at: impl Fn(&ObjectKey) -> Option<Arc<DeploymentView>>,
) -> Option<ObjectKey> {
    let Change::Deleted { last, .. } = change else { return None };
    let set = controller_of::<ReplicaSetView>(last.meta(), |key| Some(set_at(key)?.meta().uid.clone()))?;
    let set = set_at(&set)?;
    let key = controller_of::<DeploymentView>(set.meta(), |key| Some(deployment_at(key)?.meta().uid.clone()))?;
    (!is_rolling(&deployment_at(&key)?.spec)).then_some(key)
}
