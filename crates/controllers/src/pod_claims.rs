//! Pure: the claims that pods use.

use steersman_base::{Istr, Meta, ObjectKey};
use steersman_model::View;
use steersman_model::core::PodView;
use steersman_model::core::pod::{ContainerState, ContainerStatus, Volume, VolumeSource};

use crate::pod;

/// Index function: the claims of a pod's volumes, those of its ephemeral volumes included.
pub(crate) fn claims_of(pod: &PodView) -> Vec<ObjectKey> {
    let meta = pod.meta();
    let names = pod.spec.volumes.iter().filter_map(|volume| claim_name(meta, volume));
    names.map(|name| ObjectKey { namespace: meta.namespace.clone(), name }).collect()
}

/// Returns the name of a volume's claim, if it has one.
pub(crate) fn claim_name(pod: &Meta, volume: &Volume) -> Option<Istr> {
    match &volume.source {
        VolumeSource::PersistentVolumeClaim(source) => Some(source.claim_name.clone()),
        VolumeSource::Ephemeral(_) => Some(ephemeral_name(pod, volume)),
        _ => None,
    }
}

/// Returns the name of the claim that is made for an ephemeral volume.
pub(crate) fn ephemeral_name(pod: &Meta, volume: &Volume) -> Istr {
    Istr::new(&format!("{}-{}", pod.name, volume.name))
}

/// Whether a claim was made for a pod, and not for another of its name.
pub(crate) fn is_made_for(claim: &Meta, pod: &Meta) -> bool {
    claim.namespace == pod.namespace && claim.is_controlled_by(pod)
}

/// Whether a volume of the pod is this claim; `is_ephemeral_used` says whether those count that were made for the pod.
pub(crate) fn uses(pod: &PodView, claim: &Meta, is_ephemeral_used: bool) -> bool {
    pod.spec.volumes.iter().any(|volume| match &volume.source {
        VolumeSource::PersistentVolumeClaim(source) => source.claim_name == claim.name,
        VolumeSource::Ephemeral(_) => {
            is_ephemeral_used && ephemeral_name(pod.meta(), volume) == claim.name && is_made_for(claim, pod.meta())
        }
        _ => false,
    })
}

/// Whether the pod has ended, or is terminating and none of its containers runs: it does not need its volumes.
pub(crate) fn is_terminated(pod: &PodView) -> bool {
    let status = &pod.status;
    let statuses = status.init_container_statuses.iter().chain(status.container_statuses.iter());
    let mut statuses = statuses.chain(status.ephemeral_container_statuses());
    pod::has_ended(pod) || pod.meta().is_terminating() && statuses.all(is_stopped)
}

fn is_stopped(status: &ContainerStatus) -> bool {
    matches!(status.state, ContainerState::Waiting | ContainerState::Terminated { .. })
}

/// Whether the kubelet is done with the pod, or it was force-deleted: only finalizers keep it.
pub(crate) fn is_shut_down(pod: &PodView) -> bool {
    let meta = pod.meta();
    meta.is_terminating() && meta.deletion_grace_period_seconds() == Some(0)
}
