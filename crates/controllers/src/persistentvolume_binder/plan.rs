//! Pure: the next step for a claim, and for a volume.

use std::sync::Arc;

use steersman_base::Istr;
use steersman_base::names::{annotations, finalizers};
use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};
use steersman_model::storage::StorageClassView;

use super::plugin::{self, Deleter};
use super::{class, map, matching};
use crate::csi_migration;

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) is_warning: bool,
    pub(super) reason: &'static str,
    pub(super) text: String,
}

/// The next step for a claim.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ClaimStep {
    /// Bind it to this volume, or complete that.
    Bind(Arc<PersistentVolumeView>),
    /// It waits: its status is `Pending`.
    Wait(Option<Note>),
    /// It has lost its volume: its status is `Lost`.
    Lost(Note),
    /// It names no class, and gets the default one.
    Assign(Istr),
    /// It needs a new volume.
    Provision,
    /// It names a volume of another claim, and somebody else's controller bound it.
    Refuse(Note, String),
}

/// The state of a claim that names no volume.
pub(super) struct Unnamed<'a> {
    pub(super) claim: &'a PersistentVolumeClaimView,
    /// The volume that suits.
    pub(super) found: Option<Arc<PersistentVolumeView>>,
    /// Its class, if that exists.
    pub(super) class: Option<&'a StorageClassView>,
    /// The class for claims that name none.
    pub(super) default: Option<&'a StorageClassView>,
    /// The names of its pods that have no node.
    pub(super) unscheduled: &'a [Istr],
}

/// The next step for a volume.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum VolumeStep {
    /// Nothing: the claim's own pass does the rest.
    Nothing,
    /// It has this phase.
    Phase(&'static str),
    /// Its claim is gone: it is released, and reclaimed.
    Release,
    /// Its claim has another volume: it is free again.
    Unbind,
    /// Its claim asks for another volume mode: events about the volume, and about the claim.
    Mismatch(Note, Note),
}

/// The action on a released volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reclaim {
    /// It is kept, or somebody else reclaims it.
    Nothing,
    /// Its content is deleted, and it is free again.
    Recycle,
    /// The host path plug-in deletes it.
    DeleteHostPath,
    /// It cannot be reclaimed.
    Fail(Note),
}

/// Returns the next step for a claim whose binding is complete; `named` is its volume.
pub(super) fn bound_claim(claim: &PersistentVolumeClaimView, named: Option<&Arc<PersistentVolumeView>>) -> ClaimStep {
    if claim.spec.volume_name.is_empty() {
        let text = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!";
        return ClaimStep::Lost(Note::warning("ClaimLost", text));
    }
    let Some(volume) = named else {
        let text = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
        return ClaimStep::Lost(Note::warning("ClaimLost", text));
    };
    match &volume.spec.claim_ref {
        Some(other) if other.uid != claim.meta().uid => {
            let text = "Two claims are bound to the same volume, this one is bound incorrectly";
            ClaimStep::Lost(Note::warning("ClaimMisbound", text))
        }
        _ => ClaimStep::Bind(Arc::clone(volume)),
    }
}

/// Returns the next step for a claim that names a volume, and is not bound to it yet; `is_of_another`: whether another claim is
/// bound to the volume, even if that does not refer to it any more.
pub(super) fn named_claim(
    claim: &PersistentVolumeClaimView,
    named: Option<&Arc<PersistentVolumeView>>,
    is_of_another: bool,
) -> ClaimStep {
    let Some(volume) = named else { return ClaimStep::Wait(None) };
    let name = &volume.meta().name;
    let taken = || {
        let text = format!("volume {:?} already bound to a different claim.", name.as_str());
        Note::warning("FailedBinding", text)
    };
    let Some(other) = &volume.spec.claim_ref else {
        if is_of_another {
            return ClaimStep::Wait(Some(taken()));
        }
        return match matching::suits_named(volume, claim) {
            Ok(()) => ClaimStep::Bind(Arc::clone(volume)),
            Err(why) => {
                let text = format!("Cannot bind to requested volume {:?}: {why}", name.as_str());
                ClaimStep::Wait(Some(Note::warning("VolumeMismatch", text)))
            }
        };
    };
    if matching::is_bound_to(volume, claim) {
        return ClaimStep::Bind(Arc::clone(volume));
    }
    let note = taken();
    if !claim.meta().annotations.contains_key(annotations::PV_BOUND_BY_CONTROLLER) {
        return ClaimStep::Wait(Some(note));
    }
    let error = format!(
        "invalid binding of claim \"{}\" to volume {:?}: volume already claimed by \"{}/{}\"",
        claim.meta().key(),
        name.as_str(),
        other.namespace,
        other.name
    );
    ClaimStep::Refuse(note, error)
}

/// Returns the next step for a claim that names no volume.
pub(super) fn unnamed_claim(observed: Unnamed<'_>) -> ClaimStep {
    let Unnamed { claim, found, class, default, unscheduled } = observed;
    if let Some(volume) = found {
        return ClaimStep::Bind(volume);
    }
    if let (None, Some(default)) = (class::named(claim), default) {
        return ClaimStep::Assign(default.meta().name.clone());
    }
    if class.is_some_and(class::is_delayed) && !class::has_selected_node(claim) {
        return ClaimStep::Wait(Some(waits_for_pod(unscheduled)));
    }
    if !class::of_claim(claim).is_empty() {
        return ClaimStep::Provision;
    }
    let text = "no persistent volumes available for this claim and no storage class is set";
    ClaimStep::Wait(Some(Note::normal("FailedBinding", text)))
}

fn waits_for_pod(unscheduled: &[Istr]) -> Note {
    match unscheduled {
        [] => Note::normal("WaitForFirstConsumer", "waiting for first consumer to be created before binding"),
        [pod] => Note::normal("WaitForPodScheduled", format!("waiting for pod {pod} to be scheduled")),
        pods => {
            let pods: Vec<&str> = pods.iter().map(Istr::as_str).collect();
            Note::normal("WaitForPodScheduled", format!("waiting for pods {} to be scheduled", pods.join(",")))
        }
    }
}

/// Whether a volume belongs to a claim, by uid, so that the claim decides what happens to it.
pub(super) fn needs_claim(volume: &PersistentVolumeView) -> bool {
    volume.spec.claim_ref.as_ref().is_some_and(|claim| !claim.uid.is_empty())
}

/// Returns the next step for a volume; `claim` is the one with the uid that it refers to.
pub(super) fn volume(volume: &PersistentVolumeView, claim: Option<&PersistentVolumeClaimView>) -> VolumeStep {
    if !needs_claim(volume) {
        return VolumeStep::Phase(matching::AVAILABLE);
    }
    let Some(claim) = claim else { return VolumeStep::Release };
    let meta = volume.meta();
    if claim.spec.volume_name == meta.name {
        return VolumeStep::Phase("Bound");
    }
    if !claim.spec.volume_name.is_empty() {
        let is_dynamic = meta.annotations.contains_key(annotations::PV_PROVISIONED_BY);
        let is_deleted = volume.spec.persistent_volume_reclaim_policy == "Delete";
        return if is_dynamic && is_deleted { VolumeStep::Release } else { VolumeStep::Unbind };
    }
    if !matching::modes_differ(volume, claim) {
        return VolumeStep::Nothing;
    }
    let of_volume = format!(
        "Cannot bind PersistentVolume to requested PersistentVolumeClaim {:?} due to incompatible volumeMode.",
        claim.meta().name.as_str()
    );
    let of_claim = format!(
        "Cannot bind PersistentVolume {:?} to requested PersistentVolumeClaim due to incompatible volumeMode.",
        meta.name.as_str()
    );
    VolumeStep::Mismatch(Note::warning("VolumeMismatch", of_volume), Note::warning("VolumeMismatch", of_claim))
}

/// Whether a volume has been released already.
pub(super) fn is_released(volume: &PersistentVolumeView) -> bool {
    matches!(volume.status.phase.as_str(), "Released" | "Failed")
}

/// Returns what happens to a released volume.
pub(super) fn reclaim(volume: &PersistentVolumeView) -> Reclaim {
    let migrated_to = volume.meta().annotations.get(annotations::PV_MIGRATED_TO);
    if migrated_to.is_some_and(|driver| !driver.is_empty()) {
        return Reclaim::Nothing;
    }
    match volume.spec.persistent_volume_reclaim_policy.as_str() {
        "Retain" => Reclaim::Nothing,
        "Recycle" => match plugin::of_source(&volume.spec.source) {
            Some(_) => Reclaim::Recycle,
            None => Reclaim::Fail(Note::warning("VolumeFailedRecycle", "No recycler plugin found for the volume!")),
        },
        "Delete" => match plugin::deleter(volume) {
            Ok(Deleter::External) => Reclaim::Nothing,
            Ok(Deleter::HostPath) => Reclaim::DeleteHostPath,
            Err(why) => Reclaim::Fail(Note::warning("VolumeFailedDelete", why)),
        },
        _ => {
            let text = "Volume has unrecognized PersistentVolumeReclaimPolicy";
            Reclaim::Fail(Note::warning("VolumeUnknownReclaimPolicy", text))
        }
    }
}

/// Whether a volume that the cache shows as released is so on the server, too, and still to be recycled: what is deleted from
/// one that somebody has given to another claim meanwhile is lost.
pub(super) fn is_still_to_recycle(cached: &PersistentVolumeView, live: &PersistentVolumeView) -> bool {
    let uid = |volume: &PersistentVolumeView| volume.spec.claim_ref.as_ref().map(|claim| claim.uid.clone());
    needs_claim(live) && uid(live) == uid(cached) && is_released(live) && reclaim(live) == Reclaim::Recycle
}

/// Returns the finalizers that a volume should have, if they are others than it has. Only volumes that were provisioned
/// dynamically have finalizers against the loss of what is behind them.
pub(super) fn finalizers(volume: &PersistentVolumeView) -> Option<Vec<Istr>> {
    let meta = volume.meta();
    let provisioner = meta.annotations.get(annotations::PV_PROVISIONED_BY)?;
    let mut wanted: Vec<Istr> = meta.finalizers().to_vec();
    if csi_migration::driver_of(provisioner).is_some() {
        wanted.retain(|held| held != finalizers::PV_DELETION_IN_TREE);
    } else if provisioner.starts_with("kubernetes.io/") {
        let is_held = meta.has_finalizer(finalizers::PV_DELETION_IN_TREE);
        match volume.spec.persistent_volume_reclaim_policy.as_str() {
            "Delete" if !is_held => wanted.push(Istr::interned(finalizers::PV_DELETION_IN_TREE)),
            "Retain" | "Recycle" => wanted.retain(|held| held != finalizers::PV_DELETION_IN_TREE),
            _ => {}
        }
        wanted.retain(|held| held != finalizers::PV_DELETION_EXTERNAL);
    }
    (wanted != meta.finalizers()).then_some(wanted)
}

/// Whether nothing of a binding is left to do, as far as the caches show.
pub(super) fn is_complete(volume: &PersistentVolumeView, claim: &PersistentVolumeClaimView) -> bool {
    let meta = claim.meta();
    let is_its = volume
        .spec
        .claim_ref
        .as_ref()
        .is_some_and(|held| held.namespace == meta.namespace && held.name == meta.name && held.uid == meta.uid);
    is_its
        && volume.status.phase == "Bound"
        && claim.spec.volume_name == volume.meta().name
        && map::is_completed(claim)
        && claim.status.phase == "Bound"
        && claim.status.access_modes == volume.spec.access_modes
}

/// Whether a volume may be bound to a claim, both as the server has them.
pub(super) fn may_bind(volume: &PersistentVolumeView, claim: &PersistentVolumeClaimView) -> bool {
    let named = &claim.spec.volume_name;
    let is_completed = map::is_completed(claim);
    let is_named = *named == volume.meta().name;
    match &volume.spec.claim_ref {
        Some(held) if is_completed => is_named && held.uid == claim.meta().uid,
        Some(_) => (is_named || named.is_empty()) && matching::is_bound_to(volume, claim),
        None if is_completed => is_named,
        None if is_named => matching::suits_named(volume, claim).is_ok(),
        None => {
            let wanted = matching::Wanted::by(claim);
            named.is_empty()
                && matching::suits_named(volume, claim).is_ok()
                && wanted.is_ok_and(|wanted| wanted.accepts(volume))
        }
    }
}

// === impl Note ===

impl Note {
    pub(super) fn normal(reason: &'static str, text: impl Into<String>) -> Self {
        Self { is_warning: false, reason, text: text.into() }
    }

    pub(super) fn warning(reason: &'static str, text: impl Into<String>) -> Self {
        Self { is_warning: true, reason, text: text.into() }
    }
}
