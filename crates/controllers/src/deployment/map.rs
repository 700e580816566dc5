//! Pure: which Deployment a pod's end concerns. That of ReplicaSets is told by `claim`.

use std::sync::Arc;

use steersman_base::ObjectKey;
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::apps::{DeploymentView, ReplicaSetView};
use steersman_model::core::PodView;

use super::rolling::is_rolling;
use crate::claim::map::controller_of;

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
