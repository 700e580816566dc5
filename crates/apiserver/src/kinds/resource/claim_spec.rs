//! The spec of claims and of their templates: `validateDeviceClaim`.

use serde_json::Value;

use super::device::{
    CONFIGS_MAX, bounded, class_name, configuration, full_attribute_name, label, selectors, tolerations, unique,
};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::json::{is_set, items, number, text};

pub(super) const REQUESTS_MAX: usize = 32;
const ALTERNATIVES_MAX: usize = 8;
const CONSTRAINTS_MAX: usize = 32;
const NO_REQUEST: &str =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

/// Checks the spec of a claim.
pub(super) fn validate(spec: &Value, path: &Path, errors: &mut Errors) {
    let devices = &spec["devices"];
    let path = path.child("devices");
    let at = path.child("requests");
    let is_bounded = items(&devices["requests"]).len() <= REQUESTS_MAX;
    bounded(&devices["requests"], REQUESTS_MAX, &at, errors, request);
    if is_bounded {
        unique(&devices["requests"], &at, errors, |request| text(&request["name"]));
    }
    bounded(
        &devices["constraints"],
        CONSTRAINTS_MAX,
        &path.child("constraints"),
        errors,
        |constraint, path, errors| {
            request_names(&constraint["requests"], devices, &path.child("requests"), errors);
            let attribute =
                ["matchAttribute", "distinctAttribute"].into_iter().find(|field| is_set(&constraint[*field]));
            match attribute {
                Some(field) => full_attribute_name(text(&constraint[field]), &path.child(field), errors),
                None => {
                    let detail = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields \
                              are set";
                    errors.push(FieldError::required(path, detail));
                }
            }
        },
    );
    bounded(&devices["config"], CONFIGS_MAX, &path.child("config"), errors, |config, path, errors| {
        request_names(&config["requests"], devices, &path.child("requests"), errors);
        configuration(config, path, errors);
    });
}

fn request(request: &Value, path: &Path, errors: &mut Errors) {
    const ONE: &str = "exactly one of `exactly` or `firstAvailable` is required";
    label(text(&request["name"]), &path.child("name"), errors);
    let alternatives = &request["firstAvailable"];
    let exactly = &request["exactly"];
    match (is_set(exactly), !items(alternatives).is_empty()) {
        (false, false) => errors.push(FieldError::required(path, ONE)),
        (true, true) => {
            let detail = format!("{ONE}, but multiple fields are set");
            errors.push(FieldError::invalid(path, Value::Null, detail));
        }
        (true, false) => requested(exactly, &path.child("exactly"), errors),
        (false, true) => {
            let at = path.child("firstAvailable");
            let is_bounded = items(alternatives).len() <= ALTERNATIVES_MAX;
            bounded(alternatives, ALTERNATIVES_MAX, &at, errors, |alternative, path, errors| {
                label(text(&alternative["name"]), &path.child("name"), errors);
                requested(alternative, path, errors);
            });
            if is_bounded {
                unique(alternatives, &at, errors, |alternative| text(&alternative["name"]));
            }
        }
    }
}

fn requested(request: &Value, path: &Path, errors: &mut Errors) {
    class_name(&request["deviceClassName"], &path.child("deviceClassName"), errors);
    selectors(&request["selectors"], &path.child("selectors"), errors);
    let count = number(&request["count"]);
    match text(&request["allocationMode"]) {
        "All" if count != 0 => {
            let detail = "must not be specified when allocationMode is 'All'";
            errors.push(FieldError::invalid(&path.child("count"), count, detail));
        }
        "ExactCount" if count <= 0 => {
            errors.push(FieldError::invalid(&path.child("count"), count, "must be greater than zero"));
        }
        "All" | "ExactCount" => {}
        other => {
            let at = path.child("allocationMode");
            errors.push(FieldError::not_supported(&at, other, &["All", "ExactCount"]));
        }
    }
    tolerations(&request["tolerations"], &path.child("tolerations"), errors);
}

/// Checks a list of requests of the claim.
pub(super) fn request_names(names: &Value, devices: &Value, path: &Path, errors: &mut Errors) {
    let is_bounded = items(names).len() <= REQUESTS_MAX;
    bounded(names, REQUESTS_MAX, path, errors, |name, path, errors| request_name(text(name), devices, path, errors));
    if is_bounded {
        unique(names, path, errors, text);
    }
}

/// Checks the name of a request of the claim, or of one of its alternatives.
pub(super) fn request_name(name: &str, devices: &Value, path: &Path, errors: &mut Errors) {
    let parts: Vec<&str> = name.split('/').collect();
    if parts.len() > 2 {
        return errors.push(FieldError::invalid(path, name, NO_REQUEST));
    }
    parts.iter().for_each(|part| label(part, path, errors));
    let mut requests = items(&devices["requests"]).iter();
    let is_known = requests.any(|request| {
        let mut alternatives = items(&request["firstAvailable"]).iter();
        request["name"] == parts[0] && parts.get(1).is_none_or(|part| alternatives.any(|it| it["name"] == *part))
    });
    if !is_known {
        errors.push(FieldError::invalid(path, name, NO_REQUEST));
    }
}
