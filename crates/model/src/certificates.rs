//! The group `certificates.k8s.io`.

use steersman_base::{Condition, ConditionStatus, Istr, Meta, Time};

use crate::view;
use crate::wire::{Adapt, Base64, ByName, Unique};

view! {
    /// A request for a certificate, whole: its status and its approval are PUT.
    pub struct CertificateSigningRequestView
        for cluster("certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest")
    {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec, which never changes.
        spec: CertificateSigningRequestSpec = 2,
        /// The status.
        status: CertificateSigningRequestStatus = 3,
    }
}

view! {
    /// The spec of a request for a certificate.
    pub struct CertificateSigningRequestSpec {
        /// The PKCS #10 request, as PEM.
        request: Base64 = 1,
        /// The name of the user who created it.
        username: Istr = 2,
        /// The uid of that user.
        uid: Istr = 3,
        /// The groups of that user.
        groups: Box<[Istr]> = 4,
        /// The requested usages of the key.
        usages: Box<[Istr]> = 5,
        /// Further facts about the user.
        extra: ByName<Box<[Istr]>> = 6,
        /// The signer that is asked.
        signer_name: Istr = 7,
        /// The requested lifetime.
        expiration_seconds: Option<i32> = 8,
    }
}

view! {
    /// The status of a request for a certificate.
    pub struct CertificateSigningRequestStatus: Serialize {
        /// The conditions.
        conditions: Box<[Condition]> as Vec<RequestCondition> = 1,
        /// The issued certificate, as PEM.
        certificate: Base64 = 2,
    }
}

view! {
    /// A condition of a request, which has its own numbers.
    pub(crate) struct RequestCondition {
        type_ "type": Istr = 1,
        reason: Istr = 2,
        message: Istr as Unique = 3,
        last_update_time: Option<Time> = 4,
        last_transition_time: Option<Time> = 5,
        status: ConditionStatus = 6,
    }
}

view! {
    /// The certificates that a signer's certificates are verified with, whole.
    pub struct ClusterTrustBundleView: Serialize
        for cluster("certificates.k8s.io", "v1", "clustertrustbundles", "ClusterTrustBundle")
    {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: ClusterTrustBundleSpec = 2,
    }
}

view! {
    /// The spec of a trust bundle.
    pub struct ClusterTrustBundleSpec: Serialize {
        /// The signer; empty if it is for no particular one.
        signer_name: Istr = 1,
        /// The certificates, as PEM.
        trust_bundle: Istr as Unique = 2,
    }
}

view! {
    /// The fields of a pod's request for a certificate that controllers read.
    pub struct PodCertificateRequestView
        for namespaced("certificates.k8s.io", "v1", "podcertificaterequests", "PodCertificateRequest")
    {
        /// The metadata.
        metadata: Meta = 1,
    }
}

// === impl RequestCondition ===

impl Adapt<Condition> for RequestCondition {
    fn adapt(self) -> Condition {
        let Self { type_, reason, message, last_update_time, last_transition_time, status } = self;
        Condition { type_, status, reason, message, last_update_time, last_transition_time, ..Condition::default() }
    }
}
