//! Pure: which requests are those of kubelets, and what their users must be allowed to.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use steersman_base::{Condition, ConditionStatus};
use steersman_model::certificates::{
    CertificateSigningRequestSpec, CertificateSigningRequestStatus, CertificateSigningRequestView,
};

use crate::certificates::request::Request;
use crate::certificates::{APPROVED, KUBE_APISERVER_CLIENT_KUBELET, is_decided, kubelet};

/// A right by which a kubelet gets a client certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Right {
    /// A node renews its own certificate.
    SelfNodeClient,
    /// A user, such as that of a bootstrap token, gets the first certificate of a node.
    NodeClient,
}

// === impl Right ===

impl Right {
    /// Returns the subresource of requests that the user must be allowed to create.
    pub(super) const fn subresource(self) -> &'static str {
        match self {
            Self::SelfNodeClient => "selfnodeclient",
            Self::NodeClient => "nodeclient",
        }
    }

    /// Returns the message of the approval.
    const fn message(self) -> &'static str {
        match self {
            Self::SelfNodeClient => "Auto approving self kubelet client certificate after SubjectAccessReview.",
            Self::NodeClient => "Auto approving kubelet client certificate after SubjectAccessReview.",
        }
    }

    /// Returns the question whether the user of a request has the right.
    pub(super) fn review(self, spec: &CertificateSigningRequestSpec) -> Value {
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": spec.username,
                "uid": spec.uid,
                "groups": spec.groups,
                "extra": spec.extra,
                "resourceAttributes": {
                    "group": "certificates.k8s.io",
                    "resource": "certificatesigningrequests",
                    "subresource": self.subresource(),
                    "verb": "create",
                    "version": "*",
                },
            },
        })
    }
}

/// Returns the rights by which a request may be approved, the first one first; none if it is decided about, or not for
/// the client certificate of a kubelet.
pub(super) fn rights(request: &CertificateSigningRequestView) -> Vec<Right> {
    let CertificateSigningRequestView { spec, status, .. } = request;
    let is_open = status.certificate.is_empty() && !is_decided(status);
    if !is_open || spec.signer_name != KUBE_APISERVER_CLIENT_KUBELET {
        return Vec::new();
    }
    let pem = STANDARD.decode(spec.request.0.as_bytes()).unwrap_or_default();
    let Ok(asked) = Request::from_pem(&pem) else { return Vec::new() };
    if kubelet::check_client(&asked, &spec.usages).is_err() {
        return Vec::new();
    }
    if asked.subject.common_name() == &*spec.username {
        return vec![Right::SelfNodeClient, Right::NodeClient];
    }
    vec![Right::NodeClient]
}

/// Returns the status of a request that is approved by a right.
pub(super) fn approved(request: &CertificateSigningRequestView, right: Right) -> CertificateSigningRequestStatus {
    let approved = Condition {
        type_: APPROVED.into(),
        status: ConditionStatus::True,
        reason: "AutoApproved".into(),
        message: right.message().into(),
        ..Condition::default()
    };
    let conditions = request.status.conditions.iter().cloned().chain([approved]).collect();
    CertificateSigningRequestStatus { conditions, ..request.status.clone() }
}
