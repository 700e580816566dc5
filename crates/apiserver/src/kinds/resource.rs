//! The group `resource.k8s.io`: claims, classes and slices of devices.

mod capacity;
mod claim_spec;
mod claim_status;
mod device;
mod device_class;
mod device_taint_rule;
mod resource_claim;
mod resource_claim_template;
mod resource_slice;
mod slice_spec;

use crate::kinds::Kinds;

/// The kinds of the group `resource.k8s.io`.
pub(super) const KINDS: Kinds = &[
    ("DeviceClass", &device_class::RULES),
    ("DeviceTaintRule", &device_taint_rule::RULES),
    ("ResourceClaim", &resource_claim::RULES),
    ("ResourceClaimTemplate", &resource_claim_template::RULES),
    ("ResourceSlice", &resource_slice::RULES),
];
