//! The group `certificates.k8s.io`: certificate requests and trust bundles.

mod certificate_signing_request;
mod cluster_trust_bundle;
mod pem;
mod pod_certificate_request;
mod signing;

use crate::kinds::Kinds;

pub(crate) use certificate_signing_request::signer_name;
#[cfg(test)]
pub(crate) use certificate_signing_request::test_request;
pub(crate) use cluster_trust_bundle::name_problems;
pub(crate) use pod_certificate_request::{is_kubernetes_signer, user_annotations};

/// The kinds of the group `certificates.k8s.io`.
pub(super) const KINDS: Kinds = &[
    ("CertificateSigningRequest", &certificate_signing_request::RULES),
    ("ClusterTrustBundle", &cluster_trust_bundle::RULES),
    ("PodCertificateRequest", &pod_certificate_request::RULES),
];
