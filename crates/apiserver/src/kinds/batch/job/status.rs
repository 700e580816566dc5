//! What the controller may report of a Job: `ValidateJobStatusUpdate` of `pkg/apis/batch/validation/validation.go`, with the
//! options of `pkg/registry/batch/job/strategy.go`. Upstream asks some of this only of a status that changed in that
//! respect; here it is asked of all, because none is older, unless a change of the spec can make a status wrong.

use serde_json::Value;

use super::index;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check;
use crate::kinds::shared::json::{flag, is_empty, is_set, items, number, text};
use crate::kinds::shared::meta::validate_meta_update;

/// Checks a written status of a Job.
pub(crate) fn validate(new: &Value, old: &Value, errors: &mut Errors) {
    validate_meta_update(new, old, errors);
    let path = Path::new("status");
    counts(new, old, &path, errors);
    conditions(&new["status"], &path, errors);
    finished(new, &path, errors);
    change(new, old, &path, errors);
}

fn is(status: &Value, name: &str) -> bool {
    items(&status["conditions"]).iter().any(|it| text(&it["type"]) == name && text(&it["status"]) == "True")
}

/// An error that shows no value.
fn bare(path: &Path, detail: &str) -> FieldError {
    FieldError { value: None, ..FieldError::invalid(path, "", detail) }
}

fn counts(job: &Value, old: &Value, path: &Path, errors: &mut Errors) {
    let status = &job["status"];
    for field in ["active", "succeeded", "failed", "ready", "terminating"] {
        check::non_negative(&status[field], &path.child(field), errors);
    }
    let Some(completions) = job["spec"]["completions"].as_i64() else { return };
    for field in ["completedIndexes", "failedIndexes"] {
        let list = text(&status[field]);
        // A Job that was just scaled down has indexes that it has not any more.
        if list == text(&old["status"][field]) {
            continue;
        }
        if let Err(why) = index::count(list, completions) {
            let detail = format!("error parsing {field}: {why}");
            errors.push(FieldError::invalid(&path.child(field), list, detail));
        }
    }
}

fn conditions(status: &Value, path: &Path, errors: &mut Errors) {
    const TOGETHER: &[(&str, &str, &str)] = &[
        ("Complete", "Failed", "cannot set Complete=True and Failed=true conditions"),
        ("Complete", "FailureTarget", "cannot set Complete=True and FailureTarget=true conditions"),
        ("SuccessCriteriaMet", "Failed", "cannot set SuccessCriteriaMet=True and Failed=true conditions"),
        ("SuccessCriteriaMet", "FailureTarget", "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"),
    ];
    let at = path.child("conditions");
    let time = path.child("completionTime");
    for (one, other, detail) in TOGETHER {
        if is(status, one) && is(status, other) {
            errors.push(bare(&at, detail));
        }
    }
    if is_set(&status["completionTime"]) && !is(status, "Complete") {
        let detail = "cannot set completionTime when there is no Complete=True condition";
        errors.push(FieldError::invalid(&time, status["completionTime"].clone(), detail));
    }
    if !is_set(&status["completionTime"]) && is(status, "Complete") {
        errors.push(FieldError::required(&time, "completionTime is required for Complete jobs"));
    }
    if is(status, "Failed") && !is(status, "FailureTarget") {
        errors.push(bare(&at, "cannot set Failed=True condition without the FailureTarget=true condition"));
    }
    if is(status, "Complete") && !is(status, "SuccessCriteriaMet") {
        let detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
        errors.push(bare(&at, detail));
    }
}

fn finished(job: &Value, path: &Path, errors: &mut Errors) {
    let status = &job["status"];
    let active = number(&status["active"]);
    let ready = number(&status["ready"]);
    let terminating = number(&status["terminating"]);
    if is(status, "Complete") || is(status, "Failed") {
        if active > 0 {
            let detail = "active>0 is invalid for finished job";
            errors.push(FieldError::invalid(&path.child("active"), active, detail));
        }
        let is_empty_and_suspended = flag(&job["spec"]["suspend"]) && job["spec"]["completions"] == 0;
        if !is_set(&status["startTime"]) && !is_empty_and_suspended {
            errors.push(FieldError::required(&path.child("startTime"), "startTime is required for finished job"));
        }
        let uncounted = &status["uncountedTerminatedPods"];
        if !is_empty(&uncounted["failed"]) || !is_empty(&uncounted["succeeded"]) {
            let detail = "must be empty for finished job";
            errors.push(FieldError::invalid(&path.child("uncountedTerminatedPods"), uncounted.clone(), detail));
        }
        if terminating > 0 {
            let detail = "terminating>0 is invalid for finished job";
            errors.push(FieldError::invalid(&path.child("terminating"), terminating, detail));
        }
    }
    if is_set(&status["ready"]) && ready > active {
        errors.push(FieldError::invalid(&path.child("ready"), ready, "cannot set more ready pods than active"));
    }
}

fn change(new: &Value, old: &Value, path: &Path, errors: &mut Errors) {
    let status = &new["status"];
    let before = &old["status"];
    let at = path.child("conditions");
    for name in ["Failed", "Complete", "FailureTarget"] {
        if is(before, name) && !is(status, name) {
            errors.push(bare(&at, &format!("cannot disable the terminal {name}=True condition")));
        }
    }
    // An indexed Job can be scaled down.
    let spec = &new["spec"];
    let is_elastic = text(&spec["completionMode"]) == "Indexed" && spec["completions"] == spec["parallelism"];
    for field in ["failed", "succeeded"] {
        let count = number(&status[field]);
        if count < number(&before[field]) && !(is_elastic && field == "succeeded") {
            let detail = format!("cannot decrease the {field} counter");
            errors.push(FieldError::invalid(&path.child(field), count, detail));
        }
    }
    let both_set = is_set(&status["completionTime"]) && is_set(&before["completionTime"]);
    if both_set && status["completionTime"] != before["completionTime"] {
        let shown = status["completionTime"].clone();
        errors.push(FieldError::invalid(&path.child("completionTime"), shown, check::IMMUTABLE));
    }
    let restarted = is_set(&before["startTime"]) && before["startTime"] != status["startTime"];
    let is_resumed = is(before, "Suspended")
        && items(&status["conditions"])
            .iter()
            .any(|it| text(&it["type"]) == "Suspended" && text(&it["status"]) == "False");
    if restarted && !is_resumed && !flag(&new["spec"]["suspend"]) {
        let detail = "field is immutable for unsuspended job once set";
        errors.push(FieldError::invalid(&path.child("startTime"), status["startTime"].clone(), detail));
    }
    if is(before, "SuccessCriteriaMet") && !is(status, "SuccessCriteriaMet") {
        errors.push(bare(&at, "cannot disable the SuccessCriteriaMet=True condition"));
    }
}
