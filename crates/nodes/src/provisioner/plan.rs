//! Pure: the next step for a claim.

use std::sync::Arc;

use steersman_base::names::{annotations, finalizers};
use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};
use steersman_model::storage::StorageClassView;

use super::object::volume_name;

/// The state of a claim.
#[derive(Clone, Copy)]
pub(super) struct Observed<'a> {
    /// The claim; absent if it is gone.
    pub(super) claim: Option<&'a PersistentVolumeClaimView>,
    /// Its class, if it is one of the provisioner's.
    pub(super) class: Option<&'a StorageClassView>,
    /// Volumes that were made for a claim of this name.
    pub(super) volumes: &'a [Arc<PersistentVolumeView>],
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step<'a> {
    /// Delete a volume.
    Delete(&'a PersistentVolumeView),
    /// Remove the finalizer of a volume.
    Unprotect(&'a PersistentVolumeView),
    /// Create the volume of the claim.
    Provision(&'a StorageClassView),
}

/// Returns the steps.
pub(super) fn plan<'a>(observed: &Observed<'a>) -> Vec<Step<'a>> {
    let mut steps: Vec<Step<'a>> = observed.volumes.iter().filter_map(|volume| reclaim(volume)).collect();
    let claim = observed.claim.filter(|claim| !claim.meta().is_terminating());
    if let (Some(claim), Some(class)) = (claim, observed.class)
        && is_due(claim, class)
    {
        let name = volume_name(&claim.meta().uid);
        let is_made = observed.volumes.iter().any(|volume| volume.metadata.name == name.as_str());
        steps.extend((!is_made).then_some(Step::Provision(class)));
    }
    steps
}

/// Returns the step for a volume that a binder has released.
fn reclaim(volume: &PersistentVolumeView) -> Option<Step<'_>> {
    let meta = &volume.metadata;
    let is_released = volume.status.phase == "Released";
    let is_deleted = volume.spec.persistent_volume_reclaim_policy == "Delete";
    let is_protected = meta.has_finalizer(finalizers::PV_DELETION_EXTERNAL);
    match (is_deleted, meta.is_terminating()) {
        (true, false) => is_released.then_some(Step::Delete(volume)),
        (true, true) => (is_released && is_protected).then_some(Step::Unprotect(volume)),
        (false, _) => is_protected.then_some(Step::Unprotect(volume)),
    }
}

/// Whether a binder has asked for a volume for a claim, and the node is chosen if the class waits for that.
fn is_due(claim: &PersistentVolumeClaimView, class: &StorageClassView) -> bool {
    let held = &claim.meta().annotations;
    let is_asked = held.get(annotations::STORAGE_PROVISIONER).is_some_and(|by| by == super::NAME);
    let waits = class.volume_binding_mode == "WaitForFirstConsumer";
    claim.spec.volume_name.is_empty() && is_asked && (!waits || held.contains_key(annotations::SELECTED_NODE))
}
