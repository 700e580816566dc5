//! The parts that the controllers of certificates share: requests, and what kubelets may ask for.
//!
//! Follows `pkg/apis/certificates/helpers.go` and `pkg/controller/certificates` of Kubernetes 1.37.1.

use steersman_base::{Condition, ObjectKey, condition};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::certificates::{CertificateSigningRequestStatus, CertificateSigningRequestView};

pub(crate) mod der;
pub(crate) mod kubelet;
pub(crate) mod request;

/// The signer of client certificates for the API server.
pub(crate) const KUBE_APISERVER_CLIENT: &str = "kubernetes.io/kube-apiserver-client";
/// The signer of kubelets' client certificates for the API server.
pub(crate) const KUBE_APISERVER_CLIENT_KUBELET: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// The signer of kubelets' serving certificates.
pub(crate) const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
/// The signer of everything else, as before signers had names.
pub(crate) const LEGACY_UNKNOWN: &str = "kubernetes.io/legacy-unknown";

pub(crate) const APPROVED: &str = "Approved";
pub(crate) const DENIED: &str = "Denied";
pub(crate) const FAILED: &str = "Failed";

/// Whether somebody has decided about a request: it is approved or denied.
pub(crate) fn is_decided(status: &CertificateSigningRequestStatus) -> bool {
    find(status, APPROVED).is_some() || find(status, DENIED).is_some()
}

/// Whether a request is approved, and not denied.
pub(crate) fn is_approved(status: &CertificateSigningRequestStatus) -> bool {
    find(status, APPROVED).is_some() && find(status, DENIED).is_none()
}

/// Returns a condition of a request.
pub(crate) fn find<'a>(status: &'a CertificateSigningRequestStatus, type_: &str) -> Option<&'a Condition> {
    condition::find(&status.conditions, type_)
}

/// Returns a changed request that has no certificate yet; of a deleted one there is nothing to do.
pub(crate) fn unissued(change: &Change<CertificateSigningRequestView>) -> Option<ObjectKey> {
    match change {
        Change::Added { new, .. } | Change::Updated { new, .. } => {
            new.status.certificate.is_empty().then(|| new.meta().key())
        }
        Change::Deleted { .. } => None,
    }
}

/// Returns the hash of some bytes.
pub(crate) fn sha256(bytes: &[u8]) -> Vec<u8> {
    let suite = rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
    let hash = suite.tls13().map(|suite| suite.common.hash_provider.hash(bytes));
    hash.map_or_else(Vec::new, |hash| hash.as_ref().to_vec())
}
