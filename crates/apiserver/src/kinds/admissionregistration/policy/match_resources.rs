//! The requests that a policy or a binding is about: `validateMatchResources`.

use serde_json::Value;
use steersman_base::validation::path_segment;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::admissionregistration::webhook::validate_rule;
use crate::kinds::shared::check::{label_selector, one_of, problems};
use crate::kinds::shared::json::{each, is_set, text};

/// Checks `matchConstraints` or `matchResources`.
pub(super) fn validate(resources: &Value, path: &Path, errors: &mut Errors) {
    if !is_set(resources) {
        return;
    }
    one_of(&resources["matchPolicy"], &["Equivalent", "Exact"], &path.child("matchPolicy"), errors);
    for field in ["namespaceSelector", "objectSelector"] {
        label_selector(&resources[field], &path.child(field), errors);
    }
    for field in ["resourceRules", "excludeResourceRules"] {
        each(&resources[field], &path.child(field), |rule, path| {
            names(&rule["resourceNames"], &path.child("resourceNames"), errors);
            validate_rule(rule, path, errors);
        });
    }
}

/// The operations that mutating policies see: a deletion has nothing to change.
const MUTATING_OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "UPDATE"];

/// Refuses operations that mutating policies do not see.
pub(super) fn only_writes(resources: &Value, path: &Path, errors: &mut Errors) {
    let at = path.child("resourceRules").child("operations");
    each(&resources["resourceRules"], path, |rule, _| {
        each(&rule["operations"], path, |operation, _| {
            if !MUTATING_OPERATIONS.contains(&text(operation)) {
                errors.push(FieldError::not_supported(&at, text(operation), MUTATING_OPERATIONS));
            }
        });
    });
}

fn names(names: &Value, path: &Path, errors: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    each(names, path, |name, path| {
        let name = text(name);
        problems(name, path_segment(name), path, errors);
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(path, name));
        }
        seen.push(name);
    });
}
