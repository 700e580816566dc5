//! Pure: the bundle that there should be.

use steersman_base::{Istr, Meta};
use steersman_model::certificates::{ClusterTrustBundleSpec, ClusterTrustBundleView};

use super::SIGNER;
use crate::certificates::sha256;

/// The number of bytes of the hash that are part of the name.
const HASH_BYTES: usize = 12;

/// Returns the name of the bundle of these certificates: other certificates have another name.
pub(super) fn name(root_ca: &str) -> String {
    let hash = sha256(root_ca.as_bytes());
    let hash: String = hash.iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect();
    format!("{}:{hash}", SIGNER.replace('/', ":"))
}

/// Returns the bundle of these certificates. `meta` is its metadata, if there is one with the name.
pub(super) fn bundle(name: &str, root_ca: &str, meta: Option<&Meta>) -> ClusterTrustBundleView {
    let new = || Meta { name: Istr::new(name), ..Meta::default() };
    ClusterTrustBundleView {
        metadata: meta.cloned().unwrap_or_else(new),
        spec: ClusterTrustBundleSpec { signer_name: SIGNER.into(), trust_bundle: Istr::new(root_ca) },
    }
}
