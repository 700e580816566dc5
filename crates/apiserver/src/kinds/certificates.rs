//! The group `certificates.k8s.io`: certificate requests and trust bundles.

mod certificate_signing_request;
mod cluster_trust_bundle;
mod pem;
mod pod_certificate_request;
mod signing;

use crate::kinds::Kinds;

#[cfg(test)]
pub(crate) use certificate_signing_request::test_request;

/// The kinds of the group `certificates.k8s.io`.
pub(super) const KINDS: Kinds = &[
    ("CertificateSigningRequest", &certificate_signing_request::RULES),
    ("ClusterTrustBundle", &cluster_trust_bundle::RULES),
    ("PodCertificateRequest", &pod_certificate_request::RULES),
];
