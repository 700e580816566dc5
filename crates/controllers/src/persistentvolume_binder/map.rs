//! Pure: which claims and volumes a change concerns.

use std::sync::Arc;

use steersman_base::names::annotations;
use steersman_base::{Istr, ObjectKey};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView, PodView};
use steersman_model::storage::StorageClassView;

use super::{class, recycle};

/// Index function: the claim that a volume is bound to, or reserved for.
pub(super) fn claim_of(volume: &PersistentVolumeView) -> Option<ObjectKey> {
    let claim = volume.spec.claim_ref.as_ref()?;
    Some(ObjectKey { namespace: claim.namespace.clone(), name: claim.name.clone() })
}

/// Index function: the volume of a claim whose binding is complete.
pub(super) fn volume_of_bound(claim: &PersistentVolumeClaimView) -> Option<Istr> {
    let is_bound = is_completed(claim) && !claim.spec.volume_name.is_empty();
    is_bound.then(|| claim.spec.volume_name.clone())
}

/// Whether the binding of a claim is complete.
pub(super) fn is_completed(claim: &PersistentVolumeClaimView) -> bool {
    claim.meta().annotations.contains_key(annotations::PV_BIND_COMPLETED)
}

/// Returns the claims that a volume is for, before and after a change, and those that are bound to a volume that is gone:
/// its last state may not refer to them any more.
pub(super) fn claims_of_volume(
    change: &Change<PersistentVolumeView>,
    bound_to: impl Fn(&Istr) -> Vec<Arc<PersistentVolumeClaimView>>,
) -> Vec<ObjectKey> {
    let before = change.before().and_then(|volume| claim_of(volume));
    let after = claim_of(change.object());
    let bound = if matches!(change, Change::Deleted { .. }) { bound_to(&change.key().name) } else { Vec::new() };
    before.into_iter().chain(after).chain(keys(&bound)).collect()
}

/// Returns the volume that a claim names.
pub(super) fn volume_of_claim(claim: &PersistentVolumeClaimView) -> Option<ObjectKey> {
    let name = &claim.spec.volume_name;
    (!name.is_empty()).then(|| ObjectKey { namespace: Istr::default(), name: name.clone() })
}

/// Whether a claim without a volume may be concerned by a change of a class.
pub(super) fn waits_for(claim: &PersistentVolumeClaimView, class: &StorageClassView) -> bool {
    let is_its =
        class::named(claim).map_or_else(|| class::is_default(class.meta()), |named| *named == class.meta().name);
    claim.spec.volume_name.is_empty() && is_its
}

/// Returns the volume that a pod recycles, if the pod has ended or is gone.
pub(super) fn recycled_volume(change: &Change<PodView>) -> Option<ObjectKey> {
    let pod = change.object();
    let volume = recycle::volume_of(&pod.meta().name)?;
    let is_news = matches!(change, Change::Deleted { .. }) || crate::pod::has_ended(pod);
    is_news.then(|| ObjectKey::cluster(volume))
}

/// Whether a claim is looked at again at regular times: it has no volume, or lost it.
pub(super) fn is_unsettled_claim(claim: &PersistentVolumeClaimView) -> bool {
    claim.status.phase != "Bound" || !is_completed(claim)
}

/// Whether a volume is looked at again at regular times: it is being reclaimed, or has no phase yet.
pub(super) fn is_unsettled_volume(volume: &PersistentVolumeView) -> bool {
    !matches!(volume.status.phase.as_str(), "Available" | "Bound")
}

/// Returns the keys of objects.
pub(super) fn keys<V: View>(objects: &[Arc<V>]) -> Vec<ObjectKey> {
    objects.iter().map(|object| object.meta().key()).collect()
}
