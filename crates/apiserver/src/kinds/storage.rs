//! The group `storage.k8s.io`: classes, drivers and attachments of storage.

mod csi_driver;
mod csi_node;
mod csi_storage_capacity;
mod storage_class;
mod volume_attachment;
mod volume_attributes_class;

use crate::kinds::Kinds;

pub(crate) use csi_driver::driver_name;

/// The kinds of the group `storage.k8s.io`.
pub(super) const KINDS: Kinds = &[
    ("CSIDriver", &csi_driver::RULES),
    ("CSINode", &csi_node::RULES),
    ("CSIStorageCapacity", &csi_storage_capacity::RULES),
    ("StorageClass", &storage_class::RULES),
    ("VolumeAttachment", &volume_attachment::RULES),
    ("VolumeAttributesClass", &volume_attributes_class::RULES),
];
