//! What the controller may report of a Job: `validateJobStatus` of `pkg/apis/batch/validation/validation.go`, without what
//! upstream checks only to keep other controllers in step.

use serde_json::Value;

use crate::field::{FieldError, Path};
use crate::kinds::check::{self, Errors};
use crate::kinds::json::{is_set, items, number, text};

/// What is wrong with a changed status of a job.
pub(in crate::kinds) fn validate(kind: &str, new: &Value, _old: &Value, errors: &mut Errors) {
    if kind != "Job" {
        return;
    }
    let (status, path) = (&new["status"], Path::new("status"));
    for field in ["active", "succeeded", "failed", "ready", "terminating"] {
        check::non_negative(&status[field], &path.child(field), errors);
    }
    let is = |name: &str| {
        items(&status["conditions"]).iter().any(|it| text(&it["type"]) == name && text(&it["status"]) == "True")
    };
    let conditions = path.child("conditions");
    let mut without_value = |detail: &str| {
        errors.push(FieldError { value: None, ..FieldError::invalid(&conditions, "", detail) });
    };
    let (complete, failed) = (is("Complete"), is("Failed"));
    if complete && failed {
        without_value("cannot set Complete=True and Failed=true conditions");
    }
    if complete && is("FailureTarget") {
        without_value("cannot set Complete=True and FailureTarget=true conditions");
    }
    if is("SuccessCriteriaMet") && failed {
        without_value("cannot set SuccessCriteriaMet=True and Failed=true conditions");
    }
    if is("SuccessCriteriaMet") && is("FailureTarget") {
        without_value("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
    }
    if complete && !is_set(&status["completionTime"]) {
        let detail = "completionTime is required for Complete jobs";
        errors.push(FieldError::required(&path.child("completionTime"), detail));
    }
    if !complete && is_set(&status["completionTime"]) {
        let detail = "cannot set completionTime when there is no Complete=True condition";
        let time = status["completionTime"].clone();
        errors.push(FieldError::invalid(&path.child("completionTime"), time, detail));
    }
    let active = number(&status["active"]);
    if (complete || failed) && active > 0 {
        let detail = "active>0 is invalid for finished job";
        errors.push(FieldError::invalid(&path.child("active"), active, detail));
    }
}
