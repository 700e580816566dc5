//! What stands between a good request and the store: the part of upstream's default admission that an embedded server
//! needs, and the seam for plug-ins.
//!
//! 1. Nothing is created in a namespace that is missing or terminating; nobody deletes the namespaces a cluster needs.
//! 2. What default admission adds to an object is in [`kinds`](crate::kinds), beside the kind's defaults.

use serde_json::Value;
use steersman_base::ObjectKey;

use crate::field::FieldError;
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
    let resource = &call.row.resource;
    let admitted = kinds::admission::admit(registry, &resource.group, &resource.kind, object, old);
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

/// What is wrong with a part of a pod's spec that has been changed through its subresource.
pub(crate) fn validate_spec(subresource: &str, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    kinds::validate_meta(object, old, kinds::NameRule::default(), &mut errors);
    if let Some(old) = old.filter(|_| subresource == "ephemeralcontainers") {
        kinds::validate_ephemeral_containers(object, old, &mut errors);
    }
    errors
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
