//! Pure: which pods a change concerns.

use std::sync::Arc;

use steersman_base::ObjectKey;
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::pod::VolumeSource;
use steersman_model::core::{PersistentVolumeClaimView, PodView};

/// Returns a new pod, if it needs claims. The volumes of a pod do not change.
pub(super) fn new_pod(change: &Change<PodView>) -> Option<ObjectKey> {
    let Change::Added { new: pod, .. } = change else { return None };
    needs_claims(pod).then(|| pod.meta().key())
}

/// Returns the pods of a deleted claim that need it again.
pub(super) fn pods_without(
    change: &Change<PersistentVolumeClaimView>,
    pods_of: impl Fn(&ObjectKey) -> Vec<Arc<PodView>>,
) -> Vec<ObjectKey> {
    let Change::Deleted { last: claim, .. } = change else { return Vec::new() };
    let pods = pods_of(&claim.meta().key()).into_iter();
    pods.filter(|pod| needs_claims(pod)).map(|pod| pod.meta().key()).collect()
}

/// Whether claims are made for the pod: it has ephemeral volumes, and is not terminating.
pub(super) fn needs_claims(pod: &PodView) -> bool {
    let mut volumes = pod.spec.volumes.iter();
    !pod.meta().is_terminating() && volumes.any(|volume| matches!(volume.source, VolumeSource::Ephemeral(_)))
}
