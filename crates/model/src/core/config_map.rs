//! ConfigMaps.

use steersman_base::{Meta, StringMap};

use crate::view;

view! {
    /// The part of a ConfigMap that controllers read: for watches of those that have a certain name. Of all others the
    /// metadata alone is of interest. It is never written from here: `binaryData` would be lost.
    pub struct ConfigMapView for namespaced("", "v1", "configmaps", "ConfigMap") {
        /// The metadata.
        metadata: Meta = 1,
        /// The text data.
        data: StringMap = 2,
    }
}
