//! Pure: which claims a change concerns.

use steersman_base::ObjectKey;
use steersman_base::names::annotations;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};
use steersman_model::storage::StorageClassView;

/// Whether the provisioner made a volume.
pub(crate) fn is_ours(volume: &PersistentVolumeView) -> bool {
    volume.metadata.annotations.get(annotations::PV_PROVISIONED_BY).is_some_and(|by| by == super::NAME)
}

/// Index function: the claim of a volume that the provisioner made.
pub(crate) fn claim_of(volume: &PersistentVolumeView) -> Option<ObjectKey> {
    let claim = volume.spec.claim_ref.as_ref().filter(|_| is_ours(volume))?;
    Some(ObjectKey { namespace: claim.namespace.clone(), name: claim.name.clone() })
}

/// Whether a claim has no volume, and this class.
pub(super) fn waits_for(claim: &PersistentVolumeClaimView, class: &StorageClassView) -> bool {
    let spec = &claim.spec;
    spec.volume_name.is_empty() && spec.storage_class_name.as_ref().is_some_and(|name| *name == class.metadata.name)
}
