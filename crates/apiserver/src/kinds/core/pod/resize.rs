//! `pods/resize`: a write of the resources of containers. Follows `ValidatePodResize` of `pkg/apis/core/validation/validation.go`,
//! and the plug-in PodResizeValidator.

use serde::Deserialize;
use serde_json::Value;
use steersman_base::Quantity;
use steersman_base::quota::Pod;

use super::ephemeral_containers::with_preconditions_of;
use super::prepare::qos_class;
use super::validation;
use crate::field::{FieldError, Path};
use crate::kinds::shared::check::{self, Errors};
use crate::kinds::shared::json::{copy, entries, is_set, items, object_mut, same, text};
use crate::kinds::shared::meta::validate_meta_update;
use crate::kinds::{PartRules, Resets};
use crate::registry::admission::{Lookup, Refused};

const LISTS: [&str; 2] = ["containers", "initContainers"];

/// The rules of a resize.
pub(crate) static RULES: PartRules = PartRules {
    prepare: |new, old, _| *new = resized(new, old),
    validate: |new, old, errors| {
        validate_meta_update(new, old, errors);
        validate(new, old, errors);
    },
    raises_generation: true,
    resets: Resets::AllBut(&[
        "spec.containers.*.resources",
        "spec.containers.*.resizePolicy",
        "spec.initContainers.*.resources",
        "spec.initContainers.*.resizePolicy",
    ]),
};

/// Returns the stored pod with the resources of the body.
fn resized(body: &Value, old: &Value) -> Value {
    let mut pod = with_preconditions_of(body, old);
    if LISTS.iter().any(|list| items(&body["spec"][*list]).len() != items(&old["spec"][*list]).len()) {
        // Validation refuses it.
        copy(&mut pod, body, "spec");
        return pod;
    }
    let Some(spec) = object_mut(&mut pod, "spec") else { return pod };
    copy(spec, &body["spec"], "resources");
    for list in LISTS {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, sent) in containers.zip(items(&body["spec"][list])) {
            for field in ["name", "resources", "resizePolicy"] {
                copy(container, sent, field);
            }
        }
    }
    pod
}

/// Checks a change of a pod's resources, besides its metadata.
fn validate(new: &Value, old: &Value, errors: &mut Errors) {
    validation::pod_spec_of(new, errors);
    let spec = &new["spec"];
    let before = &old["spec"];
    let path = Path::new("spec");
    if text(&before["os"]["name"]) == "windows" {
        errors.push(FieldError::forbidden(&Path::root(), "windows pods cannot be resized"));
        return;
    }
    if qos_class(spec) != qos_class(before) {
        let detail = "Pod QOS Class may not change as a result of resizing";
        errors.push(FieldError::invalid(&path, text(&new["status"]["qosClass"]), detail));
    }
    let running = items(&old["status"]["containerStatuses"]).iter().find(|it| is_set(&it["state"]["running"]));
    if running.is_some_and(|container| !is_set(&container["resources"])) {
        errors.push(FieldError::forbidden(&path, "Pod running on node without support for resize"));
    }
    if !same_containers(spec, before, &path, errors) {
        return;
    }
    let found = errors.len();
    for list in LISTS {
        for (at, (container, held)) in items(&spec[list]).iter().zip(items(&before[list])).enumerate() {
            let path = path.child(list).index(at).child("resources");
            for field in ["requests", "limits"] {
                let left = &container["resources"][field];
                if entries(&held["resources"][field]).iter().any(|(name, _)| left[*name].is_null()) {
                    let detail = format!("resource {field} cannot be removed");
                    errors.push(FieldError::forbidden(&path.child(field), detail));
                }
            }
        }
    }
    let mut masked = spec.clone();
    mask(&mut masked, before);
    if errors.len() == found && !same(&masked, before) {
        errors.push(FieldError::forbidden(&path, "only cpu and memory resources are mutable"));
    }
}

/// Whether the containers are the same ones in the same order.
fn same_containers(spec: &Value, before: &Value, path: &Path, errors: &mut Errors) -> bool {
    let found = errors.len();
    for list in LISTS {
        let containers = items(&spec[list]);
        let held = items(&before[list]);
        let at = path.child(list);
        if containers.len() != held.len() {
            errors.push(FieldError::forbidden(&at, format!("{list} may not be added or removed on resize")));
            continue;
        }
        for (index, (container, held)) in containers.iter().zip(held).enumerate() {
            if container["name"] != held["name"] {
                let detail = format!("{list} may not be renamed or reordered on resize");
                errors.push(FieldError::forbidden(&at.index(index).child("name"), detail));
            }
        }
    }
    errors.len() == found
}

/// Takes back the changes that are allowed: cpu and memory, and what happens when they change.
fn mask(spec: &mut Value, before: &Value) {
    take_back(spec, before);
    for list in LISTS {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, held) in containers.zip(items(&before[list])) {
            take_back(container, held);
            copy(container, held, "resizePolicy");
        }
    }
}

fn take_back(holder: &mut Value, before: &Value) {
    let Some(resources) = object_mut(holder, "resources") else { return };
    for field in ["requests", "limits"] {
        if let Some(amounts) = object_mut(resources, field) {
            for name in ["cpu", "memory"] {
                copy(amounts, &before["resources"][field], name);
            }
        }
    }
}

/// Refuses a pod that asks for more than its node has, or whose node is not there or no Linux.
pub(crate) fn fits_node(lookup: &dyn Lookup, new: &Value, old: &Value) -> Result<(), Refused> {
    let name = text(&new["spec"]["nodeName"]);
    if name.is_empty() || new["metadata"]["generation"] == old["metadata"]["generation"] {
        return Ok(());
    }
    let node = lookup.get("", "nodes", "", name);
    let node = node.ok_or_else(|| Refused::because(format!("node {name:?} not found")))?;
    let system = node["metadata"]["labels"]["kubernetes.io/os"].as_str().unwrap_or("linux");
    if system != "linux" {
        let why = format!("pod resize is only supported on linux nodes, node {name:?} is {system:?}");
        return Err(Refused::because(why).caused_by("UnsupportedPlatform"));
    }
    let requests = Pod::deserialize(new).unwrap_or_default().requests_of_spec();
    let mut lacking = Vec::new();
    for resource in ["cpu", "memory"] {
        let asked = requests.get(resource).copied().unwrap_or_default();
        let there = check::quantity(&node["status"]["allocatable"][resource]).unwrap_or_default();
        if asked > there {
            let shown = |amount: Quantity| if resource == "cpu" { amount.milli_value() } else { amount.value() };
            lacking.push(format!("{resource}, requested: {}, allocatable: {}", shown(asked), shown(there)));
        }
    }
    if lacking.is_empty() {
        return Ok(());
    }
    let why = format!("node didn't have enough allocatable resources: {}", lacking.join("; "));
    Err(Refused::because(why).caused_by("NodeCapacity"))
}
