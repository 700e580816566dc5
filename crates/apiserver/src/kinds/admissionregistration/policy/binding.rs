//! Bindings of policies: `validateValidatingAdmissionPolicyBindingSpec` and `validateParamRef`.

use serde_json::Value;
use steersman_base::validation::{dns1123_subdomain, path_segment};

use super::match_resources;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::{label_selector, problems, required};
use crate::kinds::shared::json::{each, is_set, items, text};

const ACTIONS: &[&str] = &["Audit", "Deny", "Warn"];
const EXCLUSIVE: &str = "name and selector are mutually exclusive";

/// Checks what bindings of both kinds of policies have.
pub(crate) fn validate_binding(binding: &Value, is_mutating: bool, errors: &mut Errors) {
    let spec = &binding["spec"];
    let path = Path::new("spec");
    let at = path.child("policyName");
    if required(&spec["policyName"], &at, errors) {
        problems(text(&spec["policyName"]), dns1123_subdomain(text(&spec["policyName"])), &at, errors);
    }
    param_ref(&spec["paramRef"], &path.child("paramRef"), errors);
    let at = path.child("matchResources");
    match_resources::validate(&spec["matchResources"], &at, errors);
    if is_mutating {
        match_resources::only_writes(&spec["matchResources"], &at, errors);
    }
}

/// Checks the actions of a binding of a validating policy.
pub(crate) fn validate_actions(binding: &Value, errors: &mut Errors) {
    let actions = &binding["spec"]["validationActions"];
    let path = Path::new("spec").child("validationActions");
    let mut seen: Vec<&str> = Vec::new();
    each(actions, &path, |action, path| {
        let action = text(action);
        if !ACTIONS.contains(&action) {
            errors.push(FieldError::not_supported(path, action, ACTIONS));
        }
        if seen.contains(&action) {
            errors.push(FieldError::duplicate(path, action));
        }
        seen.push(action);
    });
    if seen.contains(&"Deny") && seen.contains(&"Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                      response and headers serves no purpose)";
        errors.push(FieldError::invalid(&path, actions.clone(), detail));
    }
    if items(actions).is_empty() {
        errors.push(FieldError::required(&path, ""));
    }
}

fn param_ref(chosen: &Value, path: &Path, errors: &mut Errors) {
    if !is_set(chosen) {
        return;
    }
    let name = text(&chosen["name"]);
    let has_selector = is_set(&chosen["selector"]);
    if !name.is_empty() {
        problems(name, path_segment(name), &path.child("name"), errors);
        if has_selector {
            errors.push(FieldError::forbidden(&path.child("name"), EXCLUSIVE));
        }
    }
    label_selector(&chosen["selector"], &path.child("selector"), errors);
    if has_selector && !name.is_empty() {
        errors.push(FieldError::forbidden(&path.child("selector"), EXCLUSIVE));
    }
    if !has_selector && name.is_empty() {
        errors.push(FieldError::required(path, "one of name or selector must be specified"));
    }
    let at = path.child("parameterNotFoundAction");
    match text(&chosen["parameterNotFoundAction"]) {
        "" => errors.push(FieldError::required(&at, "")),
        "Allow" | "Deny" => {}
        other => errors.push(FieldError::not_supported(&at, other, &["Deny", "Allow"])),
    }
}
