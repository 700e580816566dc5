//! Pure: whether a volume suits a claim.

use steersman_base::{Istr, Quantity, Selector};
use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};

use super::class;

/// The volume mode of claims and volumes that name none.
const FILESYSTEM: &str = "Filesystem";
/// The phase of a volume that may be bound to any claim.
pub(super) const AVAILABLE: &str = "Available";

/// The requirements of a claim.
pub(super) struct Wanted {
    /// The size.
    pub(super) size: Quantity,
    /// The class; empty is none.
    pub(super) class: Istr,
    /// The class of attributes; empty is none.
    pub(super) attributes: Istr,
    /// `Filesystem` or `Block`.
    pub(super) mode: Istr,
    /// The access modes, all of which a volume must have.
    pub(super) access: Box<[Istr]>,
    /// The labels of volumes.
    pub(super) selector: Option<Selector>,
}

// === impl Wanted ===

impl Wanted {
    /// Returns what a claim asks for.
    ///
    /// # Errors
    /// The selector of the claim is invalid.
    pub(super) fn by(claim: &PersistentVolumeClaimView) -> Result<Self, String> {
        let selector = claim.spec.selector.as_ref().map(|declared| Selector::from_declared(Some(declared)));
        let selector = selector.transpose().map_err(|error| {
            format!("error creating internal label selector for claim: {}: {error}", claim.meta().key())
        })?;
        Ok(Self {
            size: size_of_claim(claim),
            class: Istr::new(class::of_claim(claim)),
            attributes: claim.spec.volume_attributes_class_name.clone().unwrap_or_default(),
            mode: mode(claim.spec.volume_mode.as_ref()),
            access: claim.spec.access_modes.clone(),
            selector,
        })
    }

    /// Whether a free volume suits; class, attributes, mode and access modes are those of its place in the index.
    pub(super) fn accepts(&self, volume: &PersistentVolumeView) -> bool {
        is_free(volume)
            && self.size <= size_of_volume(volume)
            && self.selector.as_ref().is_none_or(|selector| selector.matches(&volume.meta().labels))
    }
}

/// Returns the size that a claim asks for.
pub(super) fn size_of_claim(claim: &PersistentVolumeClaimView) -> Quantity {
    claim.spec.resources.requests.get("storage").copied().unwrap_or_default()
}

/// Returns the size of a volume.
pub(super) fn size_of_volume(volume: &PersistentVolumeView) -> Quantity {
    volume.spec.capacity.get("storage").copied().unwrap_or_default()
}

/// Returns a volume mode, with its default.
pub(super) fn mode(mode: Option<&Istr>) -> Istr {
    mode.cloned().unwrap_or_else(|| Istr::interned(FILESYSTEM))
}

/// Returns the class of the attributes of a volume; empty is none.
pub(super) fn attributes_of_volume(volume: &PersistentVolumeView) -> Istr {
    volume.spec.volume_attributes_class_name.clone().unwrap_or_default()
}

/// Whether a volume may be given to any claim: it was never one's, or was made available again.
pub(super) fn is_free(volume: &PersistentVolumeView) -> bool {
    volume.spec.claim_ref.is_none() && volume.status.phase == AVAILABLE && !volume.meta().is_terminating()
}

/// Whether a volume is bound to a claim, or reserved for it.
pub(super) fn is_bound_to(volume: &PersistentVolumeView, claim: &PersistentVolumeClaimView) -> bool {
    let meta = claim.meta();
    volume.spec.claim_ref.as_ref().is_some_and(|claim| {
        let is_its = claim.name == meta.name && claim.namespace == meta.namespace;
        is_its && (claim.uid.is_empty() || claim.uid == meta.uid)
    })
}

/// Whether volume modes differ.
pub(super) fn modes_differ(volume: &PersistentVolumeView, claim: &PersistentVolumeClaimView) -> bool {
    mode(volume.spec.volume_mode.as_ref()) != mode(claim.spec.volume_mode.as_ref())
}

/// Whether a volume has all access modes that a claim asks for.
pub(super) fn has_access(volume: &[Istr], claim: &[Istr]) -> bool {
    claim.iter().all(|mode| volume.contains(mode))
}

/// Whether a volume that is reserved for a claim suits it. Class and labels are the business of who reserved it.
pub(super) fn suits_reserved(volume: &PersistentVolumeView, claim: &PersistentVolumeClaimView) -> bool {
    size_of_claim(claim) <= size_of_volume(volume)
        && !modes_differ(volume, claim)
        && attributes_of_volume(volume) == claim.spec.volume_attributes_class_name.clone().unwrap_or_default()
        && !volume.meta().is_terminating()
        && has_access(&volume.spec.access_modes, &claim.spec.access_modes)
}

/// Checks whether a volume that a claim names suits it.
///
/// # Errors
/// Why it does not, in upstream's words.
pub(super) fn suits_named(volume: &PersistentVolumeView, claim: &PersistentVolumeClaimView) -> Result<(), String> {
    let problem = if volume.meta().is_terminating() {
        return Err(format!("the volume is marked for deletion {:?}", volume.meta().name.as_str()));
    } else if size_of_volume(volume).value() < size_of_claim(claim).value() {
        "requested PV is too small"
    } else if class::of_volume(volume) != class::of_claim(claim) {
        "storageClassName does not match"
    } else if attributes_of_volume(volume) != claim.spec.volume_attributes_class_name.clone().unwrap_or_default() {
        "volumeAttributesClassName does not match"
    } else if modes_differ(volume, claim) {
        "incompatible volumeMode"
    } else if !has_access(&volume.spec.access_modes, &claim.spec.access_modes) {
        "incompatible accessMode"
    } else {
        return Ok(());
    };
    Err(problem.to_owned())
}
