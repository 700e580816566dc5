//! What keeps pods running: Deployments, ReplicaSets, ReplicationControllers, StatefulSets and DaemonSets.

mod daemon_set;
mod defaults;
mod deployment;
mod replica_set;
mod stateful_set;
mod status;

use serde_json::Value;
use steersman_base::Selector;

use super::check::{self, Errors};
use super::json::is_set;
use super::{NameRule, Rules, pod};
use crate::field::{FieldError, Path};

pub(super) use daemon_set::keep_template_generation;
pub(super) use replica_set::REPLICATION_CONTROLLER;
pub(super) use status::validate as validate_status;

/// The rules of a kind of the group `apps`.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "Deployment" => &deployment::DEPLOYMENT,
        "ReplicaSet" => &replica_set::REPLICA_SET,
        "StatefulSet" => &stateful_set::STATEFUL_SET,
        "DaemonSet" => &daemon_set::DAEMON_SET,
        "ControllerRevision" => &CONTROLLER_REVISION,
        _ => return None,
    })
}

static CONTROLLER_REVISION: Rules = Rules::named(NameRule::Subdomain).validated(|new, old, errors| {
    check::non_negative(&new["revision"], &Path::new("revision"), errors);
    let path = Path::new("data");
    match old {
        Some(old) => check::immutable(&new["data"], &old["data"], &path, errors),
        None if new["data"].is_null() => errors.push(FieldError::required(&path, "data is mandatory")),
        None if !new["data"].is_object() => {
            errors.push(FieldError::required(&path, "data must be a valid JSON object"));
        }
        None => {}
    }
});

/// A selector that must be there and select something, by the name that upstream calls the kind.
fn selector(spec: &Value, kind: &str, path: &Path, errors: &mut Errors) {
    let (selector, path) = (&spec["selector"], path.child("selector"));
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

/// The selector of a workload: none selects nothing.
fn compiled(spec: &Value) -> Option<Selector> {
    let declared = check::selector_of(&spec["selector"]);
    Selector::from_declared(is_set(&spec["selector"]).then_some(&declared)).ok()
}

/// The labels of the template must be what the selector selects.
fn template_labels(spec: &Value, selector: &Selector, path: &Path, errors: &mut Errors) {
    let labels = &spec["template"]["metadata"]["labels"];
    if !selector.is_everything() && !check::matches(selector, labels) {
        let path = path.child("template").child("metadata").child("labels");
        errors.push(FieldError::invalid(&path, labels.clone(), "`selector` does not match template `labels`"));
    }
}

/// The template of pods that run for ever.
fn lasting_template(spec: &Value, kind: &str, path: &Path, errors: &mut Errors) {
    let path = path.child("template");
    pod::validation::template(&spec["template"], &path, errors);
    lasting(spec, kind, &path, errors);
}

/// Pods of a workload restart always and have no deadline.
fn lasting(spec: &Value, kind: &str, path: &Path, errors: &mut Errors) {
    let (pod, path) = (&spec["template"]["spec"], path.child("spec"));
    let policy = super::json::text(&pod["restartPolicy"]);
    if policy != "Always" {
        errors.push(FieldError::not_supported(&path.child("restartPolicy"), policy, &["Always"]));
    }
    if is_set(&pod["activeDeadlineSeconds"]) {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden(&path.child("activeDeadlineSeconds"), detail));
    }
}
