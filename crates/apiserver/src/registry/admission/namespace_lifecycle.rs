//! The plug-in NamespaceLifecycle: nothing is created in a namespace that is missing or terminating.

use serde_json::Value;
use steersman_base::ObjectKey;

use crate::kinds::core::namespace::PHASE;
use crate::registry::object_meta::meta_text;
use crate::registry::{Call, Registry};
use crate::status::{Cause, GroupResource, Status};

/// Refuses to create an object in a namespace that is missing or terminating.
pub(crate) fn check_namespace(registry: &Registry, call: &Call, object: &Value) -> Result<(), Status> {
    if !call.row.is_namespaced() {
        return Ok(());
    }
    let within = &call.namespace;
    let Some(is_terminating) = is_terminating(registry, within) else {
        let target = GroupResource { group: "", resource: "namespaces" };
        return Err(Status::not_found(target, within));
    };
    if !is_terminating {
        return Ok(());
    }
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

/// Whether a namespace is terminating; none if it is missing. The phase is a selectable field, so the object need not be
/// parsed.
fn is_terminating(registry: &Registry, name: &str) -> Option<bool> {
    let row = registry.row("", "v1", "namespaces")?;
    let namespace = registry.store.get(&row.collection, &ObjectKey::cluster(name))?;
    let phase = row.rules.strategy.selectable_fields.iter().position(|field| field.name == PHASE);
    Some(phase.and_then(|at| namespace.fields.get(at)).is_some_and(|phase| phase == "Terminating"))
}
