//! The group `storage.k8s.io`.

use steersman_base::{Istr, Meta};

use crate::view;

mod csi_driver;
mod volume_attachment;

pub use csi_driver::{CsiDriverSpec, CsiDriverView};
pub use volume_attachment::{
    AttachmentSource, InlineSource, InlineVolume, VolumeAttachmentSpec, VolumeAttachmentStatus, VolumeAttachmentView,
    VolumeError,
};

view! {
    /// The fields of a class of volume attributes that controllers read.
    pub struct VolumeAttributesClassView
        for cluster("storage.k8s.io", "v1", "volumeattributesclasses", "VolumeAttributesClass")
    {
        /// The metadata.
        metadata: Meta = 1,
    }
}

view! {
    /// The fields of a storage class that controllers read.
    pub struct StorageClassView for cluster("storage.k8s.io", "v1", "storageclasses", "StorageClass") {
        /// The metadata.
        metadata: Meta = 1,
        /// The provisioner.
        provisioner: Istr = 2,
        /// The reclaim policy of its volumes; empty means `Delete`.
        reclaim_policy: Istr = 4,
        /// The mount options of its volumes.
        mount_options: Box<[Istr]> = 5,
        /// Whether its claims may grow.
        allow_volume_expansion: Option<bool> = 6,
        /// `Immediate` or `WaitForFirstConsumer`; empty means the first.
        volume_binding_mode: Istr = 7,
    }
}
