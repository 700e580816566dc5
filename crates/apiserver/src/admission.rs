//! What stands between a good request and the store: the part of upstream's default admission that an embedded server
//! needs, and the seam for plug-ins.
//!
//! 1. Nothing is created in a namespace that is missing or terminating; nobody deletes the namespaces a cluster needs.
//! 2. What default admission adds to an object is in [`kinds`](crate::kinds), beside the kind's defaults.
//! 3. Certificate requests are approved and signed by those who may, for the signer that they name.

use serde_json::Value;
use steersman_base::ObjectKey;

use crate::auth::rbac::Attributes;
use crate::kinds;
use crate::kinds::service::AllocateError;
use crate::registry::life::meta_text;
use crate::registry::list::everything;
use crate::registry::write::Claimed;
use crate::registry::{Call, Registry, Row};
use crate::status::{Cause, GroupResource, Status};

/// Namespaces that every cluster has.
pub(crate) const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];
/// Those that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

/// Whether an object can be created in its namespace.
pub(crate) fn namespace_for_create(registry: &Registry, call: &Call, object: &Value) -> Result<(), Status> {
    if !call.row.is_namespaced() {
        return Ok(());
    }
    let namespace = registry.stored("", "v1", "namespaces", &ObjectKey::cluster(&call.namespace));
    let target = GroupResource { group: "", resource: "namespaces" };
    let namespace = namespace.ok_or_else(|| Status::not_found(target, &call.namespace))?;
    if namespace["status"]["phase"] != "Terminating" {
        return Ok(());
    }
    let within = &call.namespace;
    let why = format!("unable to create new content in namespace {within} because it is being terminated");
    let name = meta_text(object, "name");
    let name = if name.is_empty() { meta_text(object, "generateName") } else { name };
    let mut status = Status::forbidden(call.row.target(), name, &why);
    if let Some(details) = &mut status.details {
        details.causes.push(Cause {
            reason: "NamespaceTerminating",
            message: format!("namespace {within} is being terminated"),
            field: "metadata.namespace".to_owned(),
        });
    }
    Err(status)
}

/// Whether an object may be deleted.
pub(crate) fn may_delete(call: &Call) -> Result<(), Status> {
    if call.row.is("", "namespaces") && IMMORTAL.contains(&call.name.as_str()) {
        return Err(Status::forbidden(call.row.target(), &call.name, "this namespace may not be deleted"));
    }
    Ok(())
}

/// What default admission adds to an object.
pub(crate) fn admit(registry: &Registry, call: &Call, object: &mut Value, old: Option<&Value>) -> Result<(), Status> {
    let (group, kind) = call.row.rules();
    let admitted = kinds::admission::admit(registry, group, kind, object, old);
    admitted.map_err(|refused| Status::forbidden(call.row.target(), meta_text(object, "name"), &refused.0))
}

/// Takes what a Service needs: addresses and node ports.
pub(crate) fn claim<'a>(
    registry: &'a Registry,
    row: &Row,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<Claimed<'a>, Status> {
    if !row.is("", "services") {
        return Ok(Claimed(None));
    }
    match registry.services.allocate(object, old) {
        Ok(claim) => Ok(Claimed(Some(claim))),
        Err(AllocateError::Invalid(errors)) => Err(Status::invalid(row.kind(), meta_text(object, "name"), &errors)),
        Err(AllocateError::Full(message)) => Err(Status::internal(message)),
    }
}

/// Whether somebody may say what they say about a certificate request: who approves and who signs is asked for that signer
/// (the plug-ins CertificateApproval and CertificateSigning), and nobody gets the groups of administrators by a request
/// (CertificateSubjectRestriction).
pub(crate) fn may_sign(registry: &Registry, call: &Call, new: &Value, old: Option<&Value>) -> Result<(), Status> {
    const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
    const MASTERS: &str = "system:masters";
    if !call.row.is("certificates.k8s.io", "certificatesigningrequests") {
        return Ok(());
    }
    let forbidden = |why: &str| Err(Status::forbidden(call.row.target(), meta_text(new, "name"), why));
    let signer = new["spec"]["signerName"].as_str().unwrap_or_default();
    let has_changed = |field: &str| old.is_some_and(|old| old["status"][field] != new["status"][field]);
    let (verb, requests) = match call.subresource.as_str() {
        "approval" => ("approve", "approve requests"),
        "status" if has_changed("certificate") || has_changed("conditions") => ("sign", "sign requests"),
        "" if signer == CLIENT_SIGNER => {
            let asked = kinds::organizations(new).unwrap_or_default();
            if asked.iter().any(|group| group == MASTERS) {
                return forbidden(&format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed"));
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
    if is_allowed { Ok(()) } else { forbidden(&format!("user not permitted to {requests} with signerName {signer:?}")) }
}

impl kinds::admission::Lookup for Registry {
    fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let row = self.any_version(group, resource)?;
        self.store.get(&row.shelf, &ObjectKey::new(namespace, name))?.parse().ok()
    }

    fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Value> {
        let Some(row) = self.any_version(group, resource) else { return Vec::new() };
        everything(self, &row, namespace).iter().filter_map(|stored| stored.parse().ok()).collect()
    }

    fn protects_storage(&self) -> bool {
        !self.unprotected_storage
    }
}
