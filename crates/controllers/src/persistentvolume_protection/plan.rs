//! Pure: whether a volume is in use.

use serde_json::Value;
use steersman_base::names::finalizers::PV_PROTECTION;
use steersman_model::View;
use steersman_model::core::PersistentVolumeView;

use crate::protection::{self, Step};

/// The phase of a volume that a claim has.
const BOUND: &str = "Bound";

/// Returns what to do with a volume: one that is bound is not released.
pub(super) fn plan(volume: &PersistentVolumeView) -> Step {
    match protection::step(volume.meta(), PV_PROTECTION) {
        Step::Release if volume.status.phase == BOUND => Step::Nothing,
        step => step,
    }
}

/// Adds the finalizer to a volume as the server has it.
pub(super) fn protect(volume: &mut Value) -> bool {
    protection::add(volume, PV_PROTECTION)
}

/// Removes the finalizer of a volume as the server has it, unless it is bound by now.
pub(super) fn release(volume: &mut Value) -> bool {
    volume["status"]["phase"] != BOUND && protection::remove(volume, PV_PROTECTION)
}
