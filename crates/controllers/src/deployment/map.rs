//! Pure: which Deployment a pod's end concerns. That of ReplicaSets is told by `claim`.

use std::sync::Arc;

use steersman_base::ObjectKey;
use steersman_informer::{Change, Lister};
use steersman_model::View;
use steersman_model::apps::{DeploymentView, ReplicaSetView};
use steersman_model::core::PodView;

use super::rolling::is_rolling;
use crate::claim::map::controller_of;

/// Deployments and ReplicaSets, as events of pods find them.
pub(super) struct Recreated {
    pub(super) deployments: Lister<DeploymentView>,
    pub(super) sets: Lister<ReplicaSetView>,
}

// === impl Recreated ===

impl Recreated {
    /// The Deployment that a change of a pod concerns.
    pub(super) fn by(&self, change: &Change<PodView>) -> Option<ObjectKey> {
        recreated_by(change, |key| self.sets.get(key), |key| self.deployments.get(key))
    }
}

/// The Deployment that waited for this pod to go: one that is recreated. No other event of a pod concerns a Deployment, its
/// ReplicaSets tell the rest.
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
