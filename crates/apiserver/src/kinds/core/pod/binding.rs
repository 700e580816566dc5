//! `pods/binding`: a scheduler assigns a pod to a node. Follows `pkg/registry/core/pod/storage/storage.go`.

use serde_json::{Value, json};
use steersman_base::ObjectKey;

use super::{set_condition, topology};
use crate::decode::ContentType;
use crate::field::{FieldError, Path};
use crate::registry::checked::Checked;
use crate::registry::object_meta::{meta_text, metadata};
use crate::registry::request_match::{uid_conflict, version_conflict};
use crate::registry::subresource::read_body;
use crate::registry::write::{Computed, Owners, Part};
use crate::registry::{Answer, Call, Registry};
use crate::status::{GroupResource, Status};

/// Answers the POST of a Binding. Its uid and its resource version are preconditions.
pub(crate) fn create(registry: &Registry, call: &Call, body: &[u8], kind: ContentType) -> Result<Answer, Status> {
    let mut binding = read_body(body, kind, "", "v1", "Binding", call)?;
    if binding["target"]["kind"] == "Node"
        && let Some(nodes) = registry.row("", "v1", "nodes")
        && let Some(name) = binding["target"]["name"].as_str()
        && let Some(node) = registry.store.get(&nodes.collection, &ObjectKey::cluster(name))
    {
        topology::label(&mut binding, |label| node.labels.get(label).map(ToString::to_string));
    }
    let binding = registry.ask_about_body(call, binding, None)?;
    let target = GroupResource { group: "", resource: "pods/binding" };
    if meta_text(&binding, "name") != call.name {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    check_target(&binding["target"])?;
    let now = registry.clock.now().to_string();
    registry.update(call, Part::Composed, &mut |old| {
        let Some(old) = old else { return Err(Status::not_found(call.row.target(), &call.name)) };
        check_preconditions(call, &binding, old)?;
        if let Some(why) = unbindable(old) {
            return Err(Status::conflict(target, &call.name, &why));
        }
        Ok(Computed { owners: Owners::Recorded, ..Checked::composed(&call.row, bound(old, &binding, &now))?.into() })
    })?;
    Ok(Answer { code: 201, ..Answer::from(Status::new(201, "", "")) })
}

/// Returns the pod with its node, and with the labels and annotations of the Binding.
fn bound(pod: &Value, binding: &Value, now: &str) -> Value {
    let mut pod = pod.clone();
    pod["spec"]["nodeName"] = binding["target"]["name"].clone();
    for field in ["annotations", "labels"] {
        for (key, value) in binding["metadata"][field].as_object().into_iter().flatten() {
            pod["metadata"][field][key] = value.clone();
        }
    }
    if let Some(status) = pod["status"].as_object_mut() {
        status.remove("nominatedNodeName");
    }
    let scheduled = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
    set_condition(&mut pod, scheduled);
    metadata(&mut pod).remove("resourceVersion");
    pod
}

/// Refuses a Binding that names another uid or resource version than the pod has.
fn check_preconditions(call: &Call, binding: &Value, pod: &Value) -> Result<(), Status> {
    let uid = meta_text(binding, "uid");
    let stored = meta_text(pod, "uid");
    if !uid.is_empty() && uid != stored {
        return Err(uid_conflict(call, uid, stored));
    }
    let version = meta_text(binding, "resourceVersion");
    let stored = meta_text(pod, "resourceVersion");
    if !version.is_empty() && version != stored {
        return Err(version_conflict(call, version, stored));
    }
    Ok(())
}

/// Returns why a pod cannot be bound to a node, if it cannot.
fn unbindable(pod: &Value) -> Option<String> {
    let name = meta_text(pod, "name");
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return Some(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    match pod["spec"]["nodeName"].as_str() {
        Some(held) if !held.is_empty() => return Some(format!("pod {name} is already assigned to node {held:?}")),
        _ => {}
    }
    let is_gated = pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
    is_gated.then(|| format!("pod {name} has non-empty .spec.schedulingGates"))
}

/// Refuses a target that is not a node. Upstream answers 500.
fn check_target(target: &Value) -> Result<(), Status> {
    let path = Path::new("target");
    let mut errors = Vec::new();
    let kind = target["kind"].as_str().unwrap_or_default();
    if !matches!(kind, "" | "Node") {
        errors.push(FieldError::not_supported(&path.child("kind"), kind, &["Node", "<empty>"]));
    }
    if target["name"].as_str().is_none_or(str::is_empty) {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    match errors.as_slice() {
        [] => Ok(()),
        [one] => Err(Status::plain(one.to_string())),
        many => {
            Err(Status::plain(format!("[{}]", many.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))))
        }
    }
}
