//! What of a pod may change: `ValidatePodUpdate`, `ValidatePodStatusUpdate` and `ValidatePodEphemeralContainersUpdate` of
//! `pkg/apis/core/validation/validation.go`.

use serde_json::{Value, json};
use steersman_base::validation::{dns1123_subdomain, qualified_name};

use super::{restarts, validation};
use crate::field::{FieldError, Path};
use crate::kinds::shared::check::{self, Errors, forbid_if, immutable, problems, required};
use crate::kinds::shared::go;
use crate::kinds::shared::json::{copy, each, entries, is_empty, items, same, set, text, unset};

const CHANGEABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
                          `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions \
                          to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it \
                          was previously negative)";

/// Checks a change of a pod.
pub(crate) fn pod(new: &Value, old: &Value, errors: &mut Errors) {
    validation::pod_spec_of(new, errors);
    let path = Path::new("spec");
    let spec = &new["spec"];
    let before = &old["spec"];
    for list in ["containers", "initContainers"] {
        if !containers(&spec[list], &before[list], &path.child(list), errors) {
            return;
        }
    }
    if !active_deadline(spec, before, &path.child("activeDeadlineSeconds"), errors) {
        return;
    }
    tolerations(&spec["tolerations"], &before["tolerations"], &path.child("tolerations"), errors);
    scheduling_gates(spec, before, &path.child("schedulingGates"), errors);
    if same(spec, before) {
        return;
    }
    let mut masked = spec.clone();
    mask(&mut masked, before);
    if !is_empty(&before["schedulingGates"]) {
        gated(&mut masked, before, &path, errors);
    }
    if !same(&masked, before) {
        let detail = format!("{CHANGEABLE}\n{}", go::difference("PodSpec", before, &masked));
        errors.push(FieldError::forbidden(&path, detail));
    }
}

/// Takes back the changes that are allowed.
fn mask(spec: &mut Value, old: &Value) {
    for list in ["containers", "initContainers"] {
        if let Some(containers) = spec.get_mut(list).and_then(Value::as_array_mut) {
            for (container, old) in containers.iter_mut().zip(items(&old[list])) {
                copy(container, old, "image");
            }
        }
    }
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        copy(spec, old, field);
    }
    let was_negative = old["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0);
    if was_negative && spec["terminationGracePeriodSeconds"] == 1 {
        copy(spec, old, "terminationGracePeriodSeconds");
    }
}

/// Until a pod is let to the scheduler, where it may run can be narrowed.
fn gated(spec: &mut Value, old: &Value, path: &Path, errors: &mut Errors) {
    if !same(&spec["nodeSelector"], &old["nodeSelector"]) {
        let kept =
            entries(&old["nodeSelector"]).iter().all(|(key, value)| spec["nodeSelector"].get(key) == Some(*value));
        if !kept {
            let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
            errors.push(FieldError::invalid(&path.child("nodeSelector"), spec["nodeSelector"].clone(), detail));
        }
        copy(spec, old, "nodeSelector");
    }
    let new_affinity = &spec["affinity"]["nodeAffinity"];
    let old_affinity = &old["affinity"]["nodeAffinity"];
    if !same(new_affinity, old_affinity) {
        node_affinity(new_affinity, old_affinity, &path.child("affinity").child("nodeAffinity"), errors);
        let old_affinity = old_affinity.clone();
        if let Some(affinity) = spec.get_mut("affinity") {
            set(affinity, "nodeAffinity", old_affinity);
        } else {
            copy(spec, old, "affinity");
        }
        if old["affinity"].is_null() {
            unset(spec, "affinity");
        }
    }
}

fn node_affinity(new: &Value, old: &Value, path: &Path, errors: &mut Errors) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    if old[REQUIRED].is_null() {
        return;
    }
    let path = path.child(REQUIRED).child("nodeSelectorTerms");
    let terms = &new[REQUIRED]["nodeSelectorTerms"];
    let before = &old[REQUIRED]["nodeSelectorTerms"];
    if items(terms).len() != items(before).len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(FieldError::invalid(&path, terms.clone(), detail));
        return;
    }
    for (index, (term, before)) in items(terms).iter().zip(items(before)).enumerate() {
        let grown = |list: &str| items(&term[list]).starts_with(items(&before[list]));
        if is_empty(before) || !grown("matchExpressions") || !grown("matchFields") {
            let detail = "only additions are allowed (no mutations or deletions)";
            errors.push(FieldError::invalid(&path.index(index), term.clone(), detail));
        }
    }
}

fn containers(new: &Value, old: &Value, path: &Path, errors: &mut Errors) -> bool {
    if items(new).len() != items(old).len() {
        errors.push(FieldError::forbidden(path, "pod updates may not add or remove containers"));
        return false;
    }
    each(new, path, |container, path| {
        let image = text(&container["image"]);
        required(&container["image"], &path.child("image"), errors);
        if image.trim().len() != image.len() {
            let detail = "must not have leading or trailing whitespace";
            errors.push(FieldError::invalid(&path.child("image"), image, detail));
        }
    });
    true
}

fn active_deadline(new: &Value, old: &Value, path: &Path, errors: &mut Errors) -> bool {
    let before = old["activeDeadlineSeconds"].as_i64();
    match (new["activeDeadlineSeconds"].as_i64(), before) {
        (Some(seconds), _) if seconds < 0 || seconds > i64::from(i32::MAX) => {
            check::in_range(seconds, 0, i64::from(i32::MAX), path, errors);
            false
        }
        (Some(seconds), Some(before)) if before < seconds => {
            errors.push(FieldError::invalid(path, seconds, "must be less than or equal to previous value"));
            false
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(path, Value::Null, detail));
            true
        }
        _ => true,
    }
}

fn tolerations(new: &Value, old: &Value, path: &Path, errors: &mut Errors) {
    let bare = |toleration: &Value| {
        let mut toleration = toleration.clone();
        unset(&mut toleration, "tolerationSeconds");
        toleration
    };
    let given: Vec<Value> = items(new).iter().map(bare).collect();
    let kept = items(old).iter().map(bare).all(|old| given.iter().any(|new| same(new, &old)));
    if kept {
        validation::tolerations(new, path, errors);
    } else {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden(path, detail));
    }
}

fn scheduling_gates(new: &Value, old: &Value, path: &Path, errors: &mut Errors) {
    each(&new["schedulingGates"], path, |gate, path| {
        let name = text(&gate["name"]);
        if !items(&old["schedulingGates"]).iter().any(|gate| text(&gate["name"]) == name) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.push(FieldError::forbidden(&path.child("name"), detail));
        }
    });
}

/// Checks a change of a pod's `ephemeralcontainers`, except for its metadata.
pub(crate) fn ephemeral_containers(new: &Value, old: &Value, errors: &mut Errors) {
    validation::pod_spec_of(new, errors);
    let path = Path::new("spec").child("ephemeralContainers");
    let list = items(&new["spec"]["ephemeralContainers"]);
    for before in items(&old["spec"]["ephemeralContainers"]) {
        let name = text(&before["name"]);
        match list.iter().find(|container| text(&container["name"]) == name) {
            None => {
                let detail = format!("existing ephemeral containers {name:?} may not be removed\n");
                errors.push(FieldError::forbidden(&path, detail));
            }
            Some(container) if !same(container, before) => {
                let difference = go::difference("EphemeralContainer", before, container);
                let detail = format!("existing ephemeral containers {name:?} may not be changed\n{difference}");
                errors.push(FieldError::forbidden(&path, detail));
            }
            Some(_) => {}
        }
    }
}

/// Checks a change of a pod's status, besides its metadata.
pub(crate) fn status(new: &Value, old: &Value, errors: &mut Errors) {
    let path = Path::new("status");
    let status = &new["status"];
    let before = &old["status"];
    each(&status["conditions"], &path.child("conditions"), |condition, path| {
        let name = text(&condition["type"]);
        if !matches!(name, "PodScheduled" | "Ready" | "Initialized" | "ContainersReady") {
            // The capital is upstream's.
            problems(name, qualified_name(name), &path.child("Type"), errors);
        }
    });
    let nominated = text(&status["nominatedNodeName"]);
    if nominated != text(&before["nominatedNodeName"]) && !nominated.is_empty() {
        problems(nominated, dns1123_subdomain(nominated), &path.child("nominatedNodeName"), errors);
        forbid_if(
            !is_empty(&old["spec"]["nodeName"]),
            "may not be set on pods that are already bound to a node",
            &path.child("nominatedNodeName"),
            errors,
        );
    }
    if status["observedGeneration"].as_i64().is_some_and(|generation| generation < 0) {
        let at = path.child("observedGeneration");
        errors.push(FieldError::invalid(&at, status["observedGeneration"].clone(), "must be a non-negative integer"));
    }
    immutable(&status["qosClass"], &before["qosClass"], &path.child("qosClass"), errors);
    restarts::check(status, old, &path, errors);
    pod_ips(status, &path, errors);
}

fn pod_ips(status: &Value, path: &Path, errors: &mut Errors) {
    for (list, one) in [("podIPs", "podIP"), ("hostIPs", "hostIP")] {
        let ips = items(&status[list]);
        let at = path.child(list);
        if list == "hostIPs" && !ips.is_empty() && text(&ips[0]["ip"]) != text(&status[one]) {
            let detail = "must be equal to `hostIP`";
            errors.push(FieldError::invalid(&at.index(0).child("ip"), text(&ips[0]["ip"]), detail));
        }
        each(&status[list], &at, |it, path| check::legacy_ip(text(&it["ip"]), &[], path, errors));
        let is_v6 = |it: &Value| text(&it["ip"]).contains(':');
        if ips.len() > 2 || (ips.len() == 2 && is_v6(&ips[0]) == is_v6(&ips[1])) {
            let shown: Vec<_> = ips.iter().map(|it| json!({"IP": it["ip"]})).collect();
            let detail = "may specify no more than one IP for each IP family";
            errors.push(FieldError::invalid(&at, shown, detail));
        }
    }
}
