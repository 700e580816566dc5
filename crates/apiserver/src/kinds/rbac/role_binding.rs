//! RoleBindings, and what both kinds of bindings have in common: `pkg/apis/rbac/v1/defaults.go` and
//! `pkg/apis/rbac/validation/validation.go`.

use serde_json::Value;
use steersman_base::validation::{dns1123_subdomain, path_segment};

use super::{GROUP, STRATEGY, Scope, grants};
use crate::field::{Errors, FieldError, Path, Shown};
use crate::kinds::shared::check::{self, problems};
use crate::kinds::shared::json::{default_zero_to, each, each_mut, is_empty, same, text, with};
use crate::kinds::{NameRule, Rules};
use crate::table::{Cell, TableRow, cell};

/// The rules of RoleBindings.
pub(crate) static RULES: Rules = Rules::named(NameRule::PathSegment)
    .defaulted(binding_defaults)
    .validated(|new, old, errors| binding(new, old, Scope::Namespace, errors))
    .confirmed(grants::of_binding)
    .with_strategy(STRATEGY)
    .printed(CELLS);

/// The cells of bindings.
pub(crate) const CELLS: &[Cell] = &[
    Cell::Name,
    Cell::Made(|row| format!("{}/{}", row.text("/roleRef/kind"), row.text("/roleRef/name"))),
    Cell::Age,
    Cell::Made(|row| subjects(row, "User")),
    Cell::Made(|row| subjects(row, "Group")),
    Cell::Made(|row| subjects(row, "ServiceAccount")),
];

pub(crate) fn binding_defaults(binding: &mut Value) {
    with(binding, "roleRef", |role| default_zero_to(role, "apiGroup", GROUP));
    each_mut(binding, "subjects", |subject| {
        if matches!(text(&subject["kind"]), "User" | "Group") {
            default_zero_to(subject, "apiGroup", GROUP);
        }
    });
}

pub(crate) fn binding(new: &Value, old: Option<&Value>, scope: Scope, errors: &mut Errors) {
    let role = &new["roleRef"];
    let path = Path::new("roleRef");
    if text(&role["apiGroup"]) != GROUP {
        errors.push(FieldError::not_supported(&path.child("apiGroup"), text(&role["apiGroup"]), &[GROUP]));
    }
    let kinds: &[&str] = if scope == Scope::Namespace { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&text(&role["kind"])) {
        errors.push(FieldError::not_supported(&path.child("kind"), text(&role["kind"]), kinds));
    }
    let name = text(&role["name"]);
    if !name.is_empty() {
        problems(name, path_segment(name), &path.child("name"), errors);
    }
    each(&new["subjects"], &Path::new("subjects"), |it, path| subject(it, scope, path, errors));
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    each(&new["subjects"], &Path::new("subjects"), |it, path| {
        if is_empty(&it["name"]) {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
    });
    if old.is_some_and(|old| !same(&old["roleRef"], role)) {
        let field = |name: &str| Value::from(text(&role[name]));
        let [group, kind, name] = ["apiGroup", "kind", "name"].map(field);
        let shown = Shown::Text(format!("{{\"APIGroup\":{group},\"Kind\":{kind},\"Name\":{name}}}"));
        errors.push(FieldError::invalid(&path, shown, check::IMMUTABLE));
    }
}

fn subject(subject: &Value, scope: Scope, path: &Path, errors: &mut Errors) {
    let name = text(&subject["name"]);
    let group = text(&subject["apiGroup"]);
    match text(&subject["kind"]) {
        "ServiceAccount" => {
            if !name.is_empty() {
                problems(name, dns1123_subdomain(name), &path.child("name"), errors);
            }
            if !group.is_empty() {
                errors.push(FieldError::not_supported(&path.child("apiGroup"), group, &[""]));
            }
            if scope == Scope::Cluster && is_empty(&subject["namespace"]) {
                errors.push(FieldError::required(&path.child("namespace"), ""));
            }
        }
        "User" | "Group" if group == GROUP => {}
        "User" | "Group" => errors.push(FieldError::not_supported(&path.child("apiGroup"), group, &[GROUP])),
        kind => {
            let kinds = &["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported(&path.child("kind"), kind, kinds));
        }
    }
}

fn subjects(row: &TableRow<'_>, kind: &str) -> String {
    let of_kind = row.list_at("/subjects").iter().filter(|subject| cell::text(subject, "kind") == kind);
    let names = of_kind.map(|subject| match kind {
        "ServiceAccount" => format!("{}/{}", cell::text(subject, "namespace"), cell::text(subject, "name")),
        _ => cell::text(subject, "name").to_owned(),
    });
    names.collect::<Vec<_>>().join(", ")
}
