//! Conditions of statuses: `ValidateConditions` of `apimachinery/pkg/apis/meta/v1/validation/validation.go`.

use serde_json::Value;

use super::check::{problems, required};
use super::json::{each, number, text};
use crate::field::{Errors, FieldError, Path};
use steersman_base::validation::qualified_name;

const REASON_BYTES_MAX: usize = 1024;
const MESSAGE_BYTES_MAX: usize = 32 * 1024;
const STATUSES: &[&str] = &["False", "True", "Unknown"];

/// Checks a list of conditions.
pub(crate) fn validate(conditions: &Value, path: &Path, errors: &mut Errors) {
    let mut types: Vec<&str> = Vec::new();
    each(conditions, path, |condition, path| {
        let kind = text(&condition["type"]);
        if types.contains(&kind) {
            errors.push(FieldError::duplicate(path, kind));
        }
        types.push(kind);
        validate_one(condition, path, errors);
    });
}

fn validate_one(condition: &Value, path: &Path, errors: &mut Errors) {
    let kind = text(&condition["type"]);
    if kind.is_empty() {
        errors.push(FieldError::required(&path.child("type"), "is required"));
    } else {
        problems(kind, qualified_name(kind), &path.child("type"), errors);
    }
    if required(&condition["status"], &path.child("status"), errors) && !STATUSES.contains(&text(&condition["status"]))
    {
        errors.push(FieldError::not_supported(&path.child("status"), text(&condition["status"]), STATUSES));
    }
    let generation = number(&condition["observedGeneration"]);
    if generation < 0 {
        let detail = "must be greater than or equal to zero";
        errors.push(FieldError::invalid(&path.child("observedGeneration"), generation, detail));
    }
    required(&condition["lastTransitionTime"], &path.child("lastTransitionTime"), errors);
    let at = path.child("reason");
    if required(&condition["reason"], &at, errors) {
        let reason = text(&condition["reason"]);
        if !is_reason(reason) {
            let detail = "a condition reason must start with alphabetic character, optionally followed by a string of \
                          alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. \
                          'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used \
                          for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
            errors.push(FieldError::invalid(&at, reason, detail));
        }
        if reason.len() > REASON_BYTES_MAX {
            errors.push(FieldError::too_long(&at, REASON_BYTES_MAX));
        }
    }
    if text(&condition["message"]).len() > MESSAGE_BYTES_MAX {
        errors.push(FieldError::too_long(&path.child("message"), MESSAGE_BYTES_MAX));
    }
}

fn is_reason(reason: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b',' | b':');
    reason.starts_with(|first: char| first.is_ascii_alphabetic())
        && reason.bytes().all(is_inner)
        && !reason.ends_with([',', ':'])
}
