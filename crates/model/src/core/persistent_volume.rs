//! Volumes.

use steersman_base::{Istr, Meta};

use crate::view;

view! {
    /// The fields of a volume that controllers read.
    pub struct PersistentVolumeView for cluster("", "v1", "persistentvolumes", "PersistentVolume") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: PersistentVolumeSpec = 2,
        /// The status.
        status: PersistentVolumeStatus = 3,
    }
}

view! {
    /// The spec of a volume.
    pub struct PersistentVolumeSpec {
        /// The class of its attributes.
        volume_attributes_class_name: Option<Istr> = 10,
    }
}

view! {
    /// The status of a volume.
    pub struct PersistentVolumeStatus {
        /// `Pending`, `Available`, `Bound`, `Released` or `Failed`.
        phase: Istr = 1,
    }
}
