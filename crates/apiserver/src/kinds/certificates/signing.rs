//! Who may approve and sign certificate requests, and attest to trust bundles: the plug-ins CertificateApproval,
//! CertificateSigning, CertificateSubjectRestriction and ClusterTrustBundleAttest.

use serde_json::Value;

use super::certificate_signing_request::organizations;
use crate::auth::User;
use crate::auth::rbac::Attributes;
use crate::kinds::shared::json::{copy, same, text, with};
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
                return Err(Refused::because(why));
            }
            return Ok(());
        }
        _ => return Ok(()),
    };
    if is_allowed(registry, &call.user, verb, signer) {
        return Ok(());
    }
    Err(Refused::because(format!("user not permitted to {requests} with signerName {signer:?}")))
}

/// Refuses trust bundles of a signer from users that may not attest for it.
pub(crate) fn may_attest(registry: &Registry, call: &Call, new: &Value, old: Option<&Value>) -> Result<(), Refused> {
    let signer = text(&new["spec"]["signerName"]);
    if signer.is_empty() || old.is_some_and(|old| is_for_collectors(new, old)) {
        return Ok(());
    }
    if is_allowed(registry, &call.user, "attest", signer) {
        return Ok(());
    }
    Err(Refused::because(format!("user not permitted to attest for signerName {signer:?}")))
}

/// Whether a write changes no more than owners and finalizers.
fn is_for_collectors(new: &Value, old: &Value) -> bool {
    let mut new = new.clone();
    with(&mut new, "metadata", |metadata| {
        for field in ["ownerReferences", "finalizers", "managedFields"] {
            copy(metadata, &old["metadata"], field);
        }
    });
    same(&new, old)
}

/// Whether a user may do this for a signer, or for all of its domain.
pub(super) fn is_allowed(registry: &Registry, user: &User, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    [signer.to_owned(), format!("{domain}/*")].into_iter().any(|name| {
        let wanted = Attributes {
            verb: verb.to_owned(),
            group: "certificates.k8s.io".to_owned(),
            resource: "signers".to_owned(),
            name,
            ..Attributes::default()
        };
        registry.decide(user, &wanted).is_allowed
    })
}
