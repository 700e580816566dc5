//! Pure: which pod groups a change concerns; index functions.

use steersman_base::ObjectKey;
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::PodView;
use steersman_model::scheduling::PodGroupView;

use crate::pod;
use crate::protection::{self, Step};
use crate::resource_claims::group_of;

/// On a PodGroup: pods of it have not ended. The server's strategy adds it.
pub(super) const FINALIZER: &str = "scheduling.k8s.io/podgroup-protection";

/// Returns the group, if it is terminating and protected.
pub(super) fn group(change: &Change<PodGroupView>) -> Option<ObjectKey> {
    let is_there = !matches!(change, Change::Deleted { .. });
    (is_there && is_leaving(change.object())).then(|| change.key())
}

/// Whether a group is terminating and protected.
pub(super) fn is_leaving(group: &PodGroupView) -> bool {
    protection::step(group.meta(), FINALIZER) == Step::Release
}

/// Returns the group of a pod that has ended, is gone, or is in another group.
pub(super) fn group_of_pod(change: &Change<PodView>) -> Option<ObjectKey> {
    match change {
        Change::Deleted { last, .. } => group_of(last),
        Change::Added { new, .. } => group_of(new).filter(|_| pod::has_ended(new)),
        Change::Updated { old, new } => group_of(old).filter(|_| active_member(new) != active_member(old)),
    }
}

/// Index function: the group of a pod that has not ended.
pub(super) fn active_member(pod: &PodView) -> Option<ObjectKey> {
    group_of(pod).filter(|_| !pod::has_ended(pod))
}
