//! What Deployments, ReplicaSets, ReplicationControllers, StatefulSets, DaemonSets and Jobs have in common: selectors, pod
//! templates, counts in the status, cells of tables.

use serde_json::Value;
use steersman_base::Selector;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::core::pod;
use crate::kinds::shared::check;
use crate::kinds::shared::json::{is_set, number, text};
use crate::table::{Cell, labels};

/// The cell with the names of the template's containers.
pub(crate) const CONTAINERS: Cell = Cell::Joined("/spec/template/spec/containers", "name");
/// The cell with the images of the template's containers.
pub(crate) const IMAGES: Cell = Cell::Joined("/spec/template/spec/containers", "image");
/// The cell with the selector.
pub(crate) const SELECTOR: Cell = Cell::Made(|row| labels::selector(row.at("/spec/selector")));
/// The cell with ready and desired replicas.
pub(crate) const READY_OF_REPLICAS: Cell =
    Cell::Made(|row| format!("{}/{}", row.int("/status/readyReplicas"), row.int("/spec/replicas")));

/// Drops fields of the template that are behind feature gates.
pub(crate) fn prepare(new: &mut Value, old: Option<&Value>) {
    pod::gated::drop_disabled(new, old, "/spec/template/spec");
}

/// Checks a selector, which must not be empty; `kind` is the name in upstream's message.
pub(crate) fn selector(spec: &Value, kind: &str, path: &Path, errors: &mut Errors) {
    let selector = &spec["selector"];
    let path = path.child("selector");
    if !is_set(selector) {
        errors.push(FieldError::required(&path, ""));
        return;
    }
    check::label_selector(selector, &path, errors);
    if check::selects_everything(selector) {
        let detail = format!("empty selector is invalid for {kind}");
        errors.push(FieldError::invalid(&path, check::shown_selector(selector), detail));
    }
}

/// Returns the selector of a workload; an absent one selects nothing.
pub(crate) fn compiled(spec: &Value) -> Option<Selector> {
    let declared = check::selector_of(&spec["selector"]);
    Selector::from_declared(is_set(&spec["selector"]).then_some(&declared)).ok()
}

/// Checks that an update keeps the selector.
pub(crate) fn lasting_selector(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    if let Some(old) = old {
        let path = Path::new("spec").child("selector");
        check::immutable_selector(&new["spec"]["selector"], &old["spec"]["selector"], &path, errors);
    }
}

/// Checks that the selector selects the labels of the template.
pub(crate) fn template_labels(spec: &Value, selector: &Selector, path: &Path, errors: &mut Errors) {
    let labels = &spec["template"]["metadata"]["labels"];
    if !selector.is_everything() && !check::matches(selector, labels) {
        let path = path.child("template").child("metadata").child("labels");
        errors.push(FieldError::invalid(&path, labels.clone(), "`selector` does not match template `labels`"));
    }
}

/// Checks the template of pods that are restarted always.
pub(crate) fn lasting_template(spec: &Value, kind: &str, path: &Path, errors: &mut Errors) {
    let path = path.child("template");
    pod::validation::template(&spec["template"], &path, errors);
    lasting(spec, kind, &path, errors);
}

/// Checks that the pods of a template restart always and have no deadline.
pub(crate) fn lasting(spec: &Value, kind: &str, path: &Path, errors: &mut Errors) {
    let pod = &spec["template"]["spec"];
    let path = path.child("spec");
    let policy = text(&pod["restartPolicy"]);
    if policy != "Always" {
        errors.push(FieldError::not_supported(&path.child("restartPolicy"), policy, &["Always"]));
    }
    if is_set(&pod["activeDeadlineSeconds"]) {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden(&path.child("activeDeadlineSeconds"), detail));
    }
}

/// Checks that no count of a status is negative.
pub(crate) fn status_counts(status: &Value, fields: &[&str], errors: &mut Errors) {
    for field in fields {
        check::non_negative(&status[*field], &Path::new("status").child(field), errors);
    }
}

/// Checks that no count of replicas is greater than the count it is part of: these counts than `replicas`, and
/// `availableReplicas` than `readyReplicas`, which some kinds call by its path.
pub(crate) fn replica_counts(status: &Value, parts: &[&str], ready: &str, errors: &mut Errors) {
    let path = Path::new("status");
    for field in parts {
        check::at_most(status, field, "replicas", "cannot be greater than status.replicas", &path, errors);
    }
    let detail = format!("cannot be greater than {ready}");
    check::at_most(status, "availableReplicas", "readyReplicas", &detail, &path, errors);
}

/// Checks that the count of name collisions is not decremented.
pub(crate) fn collision_count(new: &Value, old: &Value, errors: &mut Errors) {
    let count = number(&new["status"]["collisionCount"]);
    if count < number(&old["status"]["collisionCount"]) {
        let path = Path::new("status").child("collisionCount");
        errors.push(FieldError::invalid(&path, count, "cannot be decremented"));
    }
}
