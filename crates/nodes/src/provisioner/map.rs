//! Pure: which claims a change concerns.

use steersman_base::{Istr, ObjectKey};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::pod::VolumeSource;
use steersman_model::core::{PersistentVolumeClaimView, PodView};
use steersman_runtime::handler::Keys;

use super::view::{ClassView, VolumeView};

/// The annotation of volumes that names their provisioner.
pub(super) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// Whether the provisioner made a volume.
pub(super) fn is_ours(volume: &VolumeView) -> bool {
    volume.metadata.annotations.get(PROVISIONED_BY).is_some_and(|by| by == super::NAME)
}

/// Index function: the claim of a volume that the provisioner made.
pub(super) fn claim_of(volume: &VolumeView) -> Option<ObjectKey> {
    let claim = volume.spec.claim_ref.as_ref().filter(|_| is_ours(volume))?;
    Some(ObjectKey { namespace: claim.namespace.clone(), name: claim.name.clone() })
}

/// Index function: the claims of a pod that has a node.
pub(super) fn placed_claims(pod: &PodView) -> Vec<ObjectKey> {
    let meta = pod.meta();
    if pod.spec.node_name.is_empty() || matches!(pod.status.phase.as_str(), "Succeeded" | "Failed") {
        return Vec::new();
    }
    let name = |source: &VolumeSource, volume: &Istr| match source {
        VolumeSource::PersistentVolumeClaim(claim) => Some(claim.claim_name.clone()),
        VolumeSource::Ephemeral(_) => Some(Istr::new(&format!("{}-{volume}", meta.name))),
        _ => None,
    };
    let names = pod.spec.volumes.iter().filter_map(|volume| name(&volume.source, &volume.name));
    names.map(|name| ObjectKey { namespace: meta.namespace.clone(), name }).collect()
}

/// Returns the claims of a pod that has got its node.
pub(super) fn newly_placed(change: &Change<PodView>) -> Keys {
    let claims = match change {
        Change::Added { new, .. } => placed_claims(new),
        Change::Updated { old, new } if old.spec.node_name != new.spec.node_name => placed_claims(new),
        _ => Vec::new(),
    };
    let mut keys = Keys::default();
    claims.into_iter().for_each(|claim| keys.add(claim));
    keys
}

/// Whether a claim has no volume, and this class.
pub(super) fn waits_for(claim: &PersistentVolumeClaimView, class: &ClassView) -> bool {
    let spec = &claim.spec;
    spec.volume_name.is_empty() && spec.storage_class_name.as_ref().is_some_and(|name| *name == class.metadata.name)
}
