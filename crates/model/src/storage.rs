//! The group `storage.k8s.io`.

use steersman_base::Meta;

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
