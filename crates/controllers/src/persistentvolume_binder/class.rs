//! Pure: the storage classes of claims and volumes.

use std::sync::Arc;

use steersman_base::names::annotations;
use steersman_base::{Istr, Meta};
use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};
use steersman_model::storage::StorageClassView;

/// Returns the class that a claim names; `None` if it names none, and empty if it asks for volumes without a class.
pub(super) fn named(claim: &PersistentVolumeClaimView) -> Option<&Istr> {
    let beta = claim.meta().annotations.get(annotations::STORAGE_CLASS_BETA);
    beta.or(claim.spec.storage_class_name.as_ref())
}

/// Returns the class of a claim; empty if it has none.
pub(super) fn of_claim(claim: &PersistentVolumeClaimView) -> &str {
    named(claim).map_or("", |class| class.as_str())
}

/// Returns the class of a volume; empty if it has none.
pub(super) fn of_volume(volume: &PersistentVolumeView) -> &Istr {
    let beta = volume.meta().annotations.get(annotations::STORAGE_CLASS_BETA);
    beta.unwrap_or(&volume.spec.storage_class_name)
}

/// Returns the class for claims that name none: of several the newest, and of those the first by name.
pub(super) fn default_of(classes: &[Arc<StorageClassView>]) -> Option<&Arc<StorageClassView>> {
    let defaults = classes.iter().filter(|class| is_default(class.meta()));
    defaults.min_by_key(|class| {
        let meta = class.meta();
        (std::cmp::Reverse(meta.creation_timestamp), meta.name.clone())
    })
}

/// Whether a class is marked as the default.
pub(super) fn is_default(class: &Meta) -> bool {
    let marks = [annotations::DEFAULT_STORAGE_CLASS, annotations::DEFAULT_STORAGE_CLASS_BETA];
    marks.iter().any(|mark| class.annotations.get(mark).is_some_and(|value| value == "true"))
}

/// Whether claims of a class wait for their first pod.
pub(super) fn is_delayed(class: &StorageClassView) -> bool {
    class.volume_binding_mode == "WaitForFirstConsumer"
}

/// Whether the scheduler has chosen the node for which a volume is to be provisioned.
pub(super) fn has_selected_node(claim: &PersistentVolumeClaimView) -> bool {
    claim.meta().annotations.contains_key(annotations::SELECTED_NODE)
}
