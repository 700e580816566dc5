//! CSI drivers.

use steersman_base::Meta;

use crate::view;

view! {
    /// The fields of a CSI driver that controllers read.
    pub struct CsiDriverView for cluster("storage.k8s.io", "v1", "csidrivers", "CSIDriver") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: CsiDriverSpec = 2,
    }
}

view! {
    /// The spec of a CSI driver.
    pub struct CsiDriverSpec {
        /// Whether its volumes are attached to nodes; absent means that they are.
        attach_required: Option<bool> = 1,
        /// Whether it mounts volumes with an SELinux label.
        se_linux_mount "seLinuxMount": Option<bool> = 8,
    }
}
