//! Pure: which classes a change concerns; index functions.

use steersman_base::{Istr, ObjectKey};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};

/// Returns the classes that an object named before the change, and does not name any more.
pub(super) fn classes_left<V: View>(change: &Change<V>, classes_of: fn(&V) -> Vec<Istr>) -> Vec<ObjectKey> {
    let mut left = match change {
        Change::Added { .. } => Vec::new(),
        Change::Updated { old, new } => {
            let kept = classes_of(new);
            classes_of(old).into_iter().filter(|class| !kept.contains(class)).collect()
        }
        Change::Deleted { last, .. } => classes_of(last),
    };
    left.sort();
    left.dedup();
    left.into_iter().map(|class| ObjectKey::cluster(&class)).collect()
}

/// Index function: the classes that a claim names, in its spec, in its status, and as the target of a change.
pub(super) fn classes_of_claim(claim: &PersistentVolumeClaimView) -> Vec<Istr> {
    let status = &claim.status;
    let names = [
        claim.spec.volume_attributes_class_name.as_ref(),
        status.current_volume_attributes_class_name.as_ref(),
        Some(&status.modify_volume_status.target_volume_attributes_class_name),
    ];
    let mut names: Vec<Istr> = names.into_iter().flatten().filter(|name| !name.is_empty()).cloned().collect();
    names.sort();
    names.dedup();
    names
}

/// Index function: the class that a volume names.
pub(super) fn classes_of_volume(volume: &PersistentVolumeView) -> Vec<Istr> {
    let name = volume.spec.volume_attributes_class_name.as_ref();
    name.filter(|name| !name.is_empty()).cloned().into_iter().collect()
}
