//! Pure: which claims are to grow, and who makes them grow.

use serde_json::{Value, json};
use steersman_base::names::annotations;
use steersman_base::{ObjectKey, Quantity};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};

use crate::csi_migration;

/// The component that expands a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resizer {
    /// Somebody outside, who finds the claim by itself.
    External,
    /// The CSI driver that has taken over the volume's in-tree plug-in; the claim has to name it.
    Migrated {
        /// The plug-in.
        plugin: &'static str,
        /// The driver.
        driver: &'static str,
    },
}

/// Returns the claim, if it is bound and asks for more than it has; of an update, if the size has changed.
pub(super) fn to_expand(change: &Change<PersistentVolumeClaimView>) -> Option<ObjectKey> {
    let claim = match change {
        Change::Added { new, .. } => new,
        Change::Updated { old, new } if requested(new) > requested(old) || capacity(new) > capacity(old) => new,
        _ => return None,
    };
    is_to_grow(claim).then(|| change.key())
}

/// Whether a bound claim asks for more than it has.
pub(super) fn is_to_grow(claim: &PersistentVolumeClaimView) -> bool {
    claim.status.phase == "Bound" && requested(claim) > capacity(claim)
}

/// Whether a volume is bound to a claim.
pub(super) fn is_its(volume: &PersistentVolumeView, claim: &PersistentVolumeClaimView) -> bool {
    let meta = claim.meta();
    volume.spec.claim_ref.as_ref().is_some_and(|held| held.namespace == meta.namespace && held.uid == meta.uid)
}

/// Returns who makes a volume grow.
pub(super) fn resizer(volume: &PersistentVolumeView) -> Resizer {
    let plugin = csi_migration::plugin_of(&volume.spec.source);
    match plugin.and_then(|plugin| Some((plugin, csi_migration::driver_of(plugin)?))) {
        Some((plugin, driver)) => Resizer::Migrated { plugin, driver },
        None => Resizer::External,
    }
}

/// Returns the event that says who is waited for.
pub(super) fn note(resizer: Resizer) -> String {
    match resizer {
        Resizer::External => "waiting for an external controller to expand this PVC".to_owned(),
        Resizer::Migrated { plugin, .. } => {
            format!("CSI migration enabled for {plugin}; waiting for external resizer to expand the pvc")
        }
    }
}

/// Returns the patch that names the driver in a claim, unless it does.
pub(super) fn naming(claim: &PersistentVolumeClaimView, driver: &str) -> Option<Value> {
    let meta = claim.meta();
    let is_named = meta.annotations.get(annotations::STORAGE_RESIZER).is_some_and(|held| held == driver);
    let patch = json!({ "metadata": { "uid": meta.uid, "annotations": { annotations::STORAGE_RESIZER: driver } } });
    (!is_named).then_some(patch)
}

fn requested(claim: &PersistentVolumeClaimView) -> Quantity {
    claim.spec.resources.requests.get("storage").copied().unwrap_or_default()
}

fn capacity(claim: &PersistentVolumeClaimView) -> Quantity {
    claim.status.capacity.get("storage").copied().unwrap_or_default()
}
