//! The names of volumes on nodes.

use steersman_base::Istr;

use super::Csi;

// === impl Csi ===

impl Csi {
    /// Returns the name of the volume in `volumesAttached` and `volumesInUse` of nodes.
    #[must_use]
    pub fn unique_name(&self) -> Istr {
        Istr::new(&format!("kubernetes.io/csi/{}^{}", self.driver, self.volume_handle))
    }
}
