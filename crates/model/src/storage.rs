//! The group `storage.k8s.io`.

use steersman_base::Meta;

use crate::view;

view! {
    /// The fields of a class of volume attributes that controllers read.
    pub struct VolumeAttributesClassView
        for cluster("storage.k8s.io", "v1", "volumeattributesclasses", "VolumeAttributesClass")
    {
        /// The metadata.
        metadata: Meta = 1,
    }
}
