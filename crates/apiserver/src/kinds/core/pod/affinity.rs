//! Where a pod may run: `validateAffinity` and `validateTopologySpreadConstraints` of
//! `pkg/apis/core/validation/validation.go`.

use std::collections::HashMap;

use serde_json::Value;
use steersman_base::validation::{dns1123_label, dns1123_subdomain, label_value, qualified_name};

use crate::field::{FieldError, Path};
use crate::kinds::shared::check::{self, Errors, one_of_if_set, problems};
use crate::kinds::shared::json::{each, is_set, items, number, text};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Whether the values of a node selector must be possible: those that are only preferred need not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    Checked,
    Unchecked,
}

/// A pod's affinity.
pub(crate) fn affinity(affinity: &Value, path: &Path, errors: &mut Errors) {
    let node = &affinity["nodeAffinity"];
    let at = path.child("nodeAffinity");
    if is_set(&node[REQUIRED]) {
        node_selector(&node[REQUIRED], &at.child(REQUIRED), errors);
    }
    each(&node[PREFERRED], &at.child(PREFERRED), |term, path| {
        weight(term, path, errors);
        selector_term(&term["preference"], Values::Unchecked, &path.child("preference"), errors);
    });
    for kind in ["podAffinity", "podAntiAffinity"] {
        let terms = &affinity[kind];
        let at = path.child(kind);
        each(&terms[REQUIRED], &at.child(REQUIRED), |term, path| pod_term(term, path, errors));
        each(&terms[PREFERRED], &at.child(PREFERRED), |term, path| {
            weight(term, path, errors);
            pod_term(&term["podAffinityTerm"], &path.child("podAffinityTerm"), errors);
        });
    }
}

/// A selector of nodes: `ValidateNodeSelector`.
pub(crate) fn node_selector(selector: &Value, path: &Path, errors: &mut Errors) {
    let path = path.child("nodeSelectorTerms");
    if items(&selector["nodeSelectorTerms"]).is_empty() {
        errors.push(FieldError::required(&path, "must have at least one node selector term"));
    }
    each(&selector["nodeSelectorTerms"], &path, |term, path| selector_term(term, Values::Checked, path, errors));
}

fn weight(term: &Value, path: &Path, errors: &mut Errors) {
    let weight = number(&term["weight"]);
    if !(1..=100).contains(&weight) {
        errors.push(FieldError::invalid(&path.child("weight"), weight, "must be in the range 1-100"));
    }
}

fn selector_term(term: &Value, values: Values, path: &Path, errors: &mut Errors) {
    each(&term["matchExpressions"], &path.child("matchExpressions"), |it, path| {
        expression(it, values, path, errors);
    });
    each(&term["matchFields"], &path.child("matchFields"), |it, path| field(it, path, errors));
}

fn expression(it: &Value, values: Values, path: &Path, errors: &mut Errors) {
    let operator = text(&it["operator"]);
    let count = items(&it["values"]).len();
    let at = path.child("values");
    match operator {
        "In" | "NotIn" if count == 0 => {
            errors.push(FieldError::required(&at, "must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if count > 0 => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(&at, detail));
        }
        "Gt" | "Lt" if count != 1 => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(FieldError::required(&at, detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => {
            errors.push(FieldError::invalid(&path.child("operator"), other, "not a valid selector operator"));
        }
    }
    let key = text(&it["key"]);
    problems(key, qualified_name(key), &path.child("key"), errors);
    if values == Values::Checked {
        each(&it["values"], &at, |value, path| problems(text(value), label_value(text(value)), path, errors));
    }
}

fn field(it: &Value, path: &Path, errors: &mut Errors) {
    let operator = text(&it["operator"]);
    if !matches!(operator, "In" | "NotIn") {
        errors.push(FieldError::invalid(&path.child("operator"), operator, "not a valid selector operator"));
    } else if items(&it["values"]).len() != 1 {
        let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
        errors.push(FieldError::required(&path.child("values"), detail));
    }
    if text(&it["key"]) == "metadata.name" {
        each(&it["values"], &path.child("values"), |value, path| {
            problems(text(value), dns1123_subdomain(text(value)), path, errors);
        });
    } else {
        let detail = "not a valid field selector key";
        errors.push(FieldError::invalid(&path.child("key"), text(&it["key"]), detail));
    }
}

fn pod_term(term: &Value, path: &Path, errors: &mut Errors) {
    check::label_selector(&term["labelSelector"], &path.child("labelSelector"), errors);
    check::label_selector(&term["namespaceSelector"], &path.child("namespaceSelector"), errors);
    for name in items(&term["namespaces"]) {
        problems(text(name), dns1123_label(text(name)), &path.child("namespace"), errors);
    }
    label_keys(term, path, errors);
    let topology = text(&term["topologyKey"]);
    if topology.is_empty() {
        errors.push(FieldError::required(&path.child("topologyKey"), "can not be empty"));
    }
    problems(topology, qualified_name(topology), &path.child("topologyKey"), errors);
}

fn label_keys(term: &Value, path: &Path, errors: &mut Errors) {
    for list in ["matchLabelKeys", "mismatchLabelKeys"] {
        if !items(&term[list]).is_empty() && term["labelSelector"].is_null() {
            let detail = "must not be specified when labelSelector is not set";
            errors.push(FieldError::forbidden(&path.child(list), detail));
        }
        each(&term[list], &path.child(list), |key, path| {
            problems(text(key), qualified_name(text(key)), path, errors);
        });
    }
    each(&term["matchLabelKeys"], &path.child("matchLabelKeys"), |key, path| {
        if items(&term["mismatchLabelKeys"]).contains(key) {
            let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.push(FieldError::invalid(path, key.clone(), detail));
        }
    });
}

/// Checks the constraints that spread pods.
pub(crate) fn spread_constraints(constraints: &Value, path: &Path, errors: &mut Errors) {
    const ACTIONS: &[&str] = &["DoNotSchedule", "ScheduleAnyway"];
    const POLICIES: &[&str] = &["Honor", "Ignore"];
    let kind = |it: &Value| (text(&it["topologyKey"]).to_owned(), text(&it["whenUnsatisfiable"]).to_owned());
    let mut behind: HashMap<_, usize> = HashMap::new();
    for constraint in items(constraints) {
        *behind.entry(kind(constraint)).or_default() += 1;
    }
    for (index, constraint) in items(constraints).iter().enumerate() {
        let path = path.index(index);
        check::positive(&constraint["maxSkew"], &path.child("maxSkew"), errors);
        let (topology, action) = kind(constraint);
        if topology.is_empty() {
            errors.push(FieldError::required(&path.child("topologyKey"), "can not be empty"));
        }
        if !ACTIONS.contains(&action.as_str()) {
            errors.push(FieldError::not_supported(&path.child("whenUnsatisfiable"), action.as_str(), ACTIONS));
        }
        let others = behind.get_mut(&kind(constraint));
        let is_repeated = others.is_some_and(|count| {
            *count -= 1;
            *count > 0
        });
        if is_repeated {
            let at = path.child("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(&at, format!("{{{topology}, {action}}}")));
        }
        if is_set(&constraint["minDomains"]) {
            let at = path.child("minDomains");
            check::positive(&constraint["minDomains"], &at, errors);
            if action != "DoNotSchedule" {
                let detail = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                errors.push(FieldError::invalid(&at, constraint["minDomains"].clone(), detail));
            }
        }
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            one_of_if_set(&constraint[policy], POLICIES, &path.child(policy), errors);
        }
        label_keys(constraint, &path, errors);
        check::label_selector(&constraint["labelSelector"], &path.child("labelSelector"), errors);
    }
}
