//! Pure: which StatefulSet the deletion of a claim concerns. `claim` does the same for pods.

use steersman_base::ObjectKey;
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::PersistentVolumeClaimView;

use super::identity;

/// Returns the StatefulSet whose pod waited for the deletion of this claim: the claim of an earlier pod of its name.
/// Other events of a claim concern nobody.
pub(super) fn set_of_claim(
    change: &Change<PersistentVolumeClaimView>,
    exists: impl Fn(&ObjectKey) -> bool,
) -> Option<ObjectKey> {
    let Change::Deleted { last, .. } = change else { return None };
    let meta = last.meta();
    let pod = meta.owner_references.iter().find(|owner| owner.kind == "Pod")?;
    let key = ObjectKey::new(&meta.namespace, identity::set_name(&pod.name)?);
    exists(&key).then_some(key)
}
