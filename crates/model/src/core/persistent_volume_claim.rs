//! Claims of storage.

use steersman_base::{Condition, Istr, Meta};

use super::pod::ClaimSpec;
use crate::conditions::PersistentVolumeClaimCondition;
use crate::view;
use crate::wire::Quantities;

view! {
    /// The fields of a claim that controllers read. It is never written from here: resize states of the status would be lost.
    pub struct PersistentVolumeClaimView
        for namespaced("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
    {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec, whole.
        spec: ClaimSpec = 2,
        /// The status.
        status: PersistentVolumeClaimStatus = 3,
    }
}

view! {
    /// The status of a claim.
    pub struct PersistentVolumeClaimStatus {
        /// `Pending`, `Bound` or `Lost`.
        phase: Istr = 1,
        /// The access modes of the bound volume.
        access_modes: Box<[Istr]> = 2,
        /// The capacity of the bound volume.
        capacity: Quantities = 3,
        /// The conditions.
        conditions: Box<[Condition]> as Vec<PersistentVolumeClaimCondition> = 4,
        /// The size that a resize has allocated.
        allocated_resources: Quantities = 5,
        /// The class of volume attributes that the volume has.
        current_volume_attributes_class_name: Option<Istr> = 8,
        /// The change of its class of volume attributes that is under way.
        modify_volume_status: ModifyVolumeStatus = 9,
    }
}

view! {
    /// A change of a claim's class of volume attributes.
    pub struct ModifyVolumeStatus {
        /// The class that the volume is to have.
        target_volume_attributes_class_name: Istr = 1,
    }
}
