//! Who may approve and sign certificate requests: the plug-ins CertificateApproval, CertificateSigning and
//! CertificateSubjectRestriction.

use serde_json::Value;

use super::certificate_signing_request::organizations;
use crate::auth::rbac::Attributes;
use crate::registry::admission::Refused;
use crate::registry::{Call, Registry};

/// Refuses approvals and certificates of users that may not approve or sign for the signer, and requests for the group of
/// administrators.
pub(crate) fn may_sign(registry: &Registry, call: &Call, new: &Value, old: Option<&Value>) -> Result<(), Refused> {
    const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
    const MASTERS: &str = "system:masters";
    let signer = new["spec"]["signerName"].as_str().unwrap_or_default();
    let has_changed = |field: &str| old.is_some_and(|old| old["status"][field] != new["status"][field]);
    let (verb, requests) = match call.subresource.as_str() {
        "approval" => ("approve", "approve requests"),
        "status" if has_changed("certificate") || has_changed("conditions") => ("sign", "sign requests"),
        "" if signer == CLIENT_SIGNER => {
            let asked = organizations(new).unwrap_or_default();
            if asked.iter().any(|group| group == MASTERS) {
                let why = format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed");
                return Err(Refused(why));
            }
            return Ok(());
        }
        _ => return Ok(()),
    };
    let domain = signer.split('/').next().unwrap_or_default();
    let is_allowed = [signer.to_owned(), format!("{domain}/*")].into_iter().any(|name| {
        let wanted = Attributes {
            verb: verb.to_owned(),
            group: "certificates.k8s.io".to_owned(),
            resource: "signers".to_owned(),
            name,
            ..Attributes::default()
        };
        registry.decide(&call.user, &wanted).is_allowed
    });
    if is_allowed {
        return Ok(());
    }
    Err(Refused(format!("user not permitted to {requests} with signerName {signer:?}")))
}
