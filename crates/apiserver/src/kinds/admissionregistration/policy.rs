//! What both kinds of admission policies and of their bindings have in common: defaults
//! (`pkg/apis/admissionregistration/v1/defaults.go`), validation and cells.

mod binding;
mod expressions;
mod match_resources;
mod mutating;
mod validating;

use serde_json::{Value, json};

use crate::kinds::shared::json::{default_to, each_mut, object_mut, with};
use crate::table::{Cell, TableRow, cell, labels};
pub(super) use binding::{validate_actions, validate_binding};
pub(super) use mutating::validate_mutating;
pub(super) use validating::{validate_policy, validate_status};

/// Sets the defaults of a policy.
pub(crate) fn default(object: &mut Value) {
    with(object, "spec", |spec| {
        default_to(spec, "failurePolicy", "Fail");
        if let Some(resources) = object_mut(spec, "matchConstraints") {
            match_resources(resources);
        }
    });
}

/// Sets the defaults of a binding.
pub(crate) fn default_binding(object: &mut Value) {
    if let Some(resources) = object_mut(object, "spec").and_then(|spec| object_mut(spec, "matchResources")) {
        match_resources(resources);
    }
}

/// The cells of bindings.
pub(crate) const BINDING_CELLS: &[Cell] = &[Cell::Name, Cell::Text("/spec/policyName"), Cell::Made(param), Cell::Age];

fn match_resources(resources: &mut Value) {
    default_to(resources, "matchPolicy", "Equivalent");
    default_to(resources, "namespaceSelector", json!({}));
    default_to(resources, "objectSelector", json!({}));
    for rules in ["resourceRules", "excludeResourceRules"] {
        each_mut(resources, rules, |rule| default_to(rule, "scope", "*"));
    }
}

/// The cell text with the kind of a policy's parameters.
pub(crate) fn param_kind(row: &TableRow<'_>) -> String {
    row.at("/spec/paramKind").map_or_else(
        || "<unset>".to_owned(),
        |kind| format!("{}/{}", cell::text(kind, "apiVersion"), cell::text(kind, "kind")),
    )
}

fn param(row: &TableRow<'_>) -> String {
    let namespace = row.text("/spec/paramRef/namespace");
    let name = row.text("/spec/paramRef/name");
    match (name, namespace) {
        ("", _) => {
            row.at("/spec/paramRef/selector").map_or_else(|| "<unset>".to_owned(), |it| labels::selector(Some(it)))
        }
        (name, "") => format!("*/{name}"),
        (name, namespace) => format!("{namespace}/{name}"),
    }
}
