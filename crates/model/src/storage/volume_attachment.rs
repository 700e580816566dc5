//! Attachments of volumes to nodes.

use steersman_base::{Istr, Meta};

use crate::core::Csi;
use crate::view;

view! {
    /// The fields of an attachment that controllers read.
    pub struct VolumeAttachmentView for cluster("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: VolumeAttachmentSpec = 2,
        /// The status.
        status: VolumeAttachmentStatus = 3,
    }
}

view! {
    /// The spec of an attachment.
    pub struct VolumeAttachmentSpec {
        /// The CSI driver that attaches.
        attacher: Istr = 1,
        /// The volume.
        source: AttachmentSource = 2,
        /// The node.
        node_name: Istr = 3,
    }
}

view! {
    /// The volume that is attached: one by name, or one that a pod names without a claim.
    pub struct AttachmentSource {
        /// The name of the volume.
        persistent_volume_name: Option<Istr> = 1,
        /// A volume without an object.
        inline_volume_spec: Option<Box<InlineVolume>> = 2,
    }
}

view! {
    /// A volume without an object.
    pub struct InlineVolume {
        ..source: InlineSource = 2,
    }
}

view! {
    /// The source of a volume without an object.
    pub struct InlineSource {
        /// A volume of a CSI driver.
        csi: Option<Box<Csi>> = 22,
    }
}

view! {
    /// The status of an attachment.
    pub struct VolumeAttachmentStatus {
        /// Whether the volume is attached.
        attached: bool = 1,
        /// The last failure to attach.
        attach_error: Option<Box<VolumeError>> = 3,
        /// The last failure to detach.
        detach_error: Option<Box<VolumeError>> = 4,
    }
}

view! {
    /// A failure to attach or detach.
    pub struct VolumeError {
        /// The reason in a sentence.
        message: Istr = 2,
    }
}
