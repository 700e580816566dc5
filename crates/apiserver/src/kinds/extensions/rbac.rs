//! Roles and bindings: `pkg/apis/rbac/v1/defaults.go` and `pkg/apis/rbac/validation/validation.go`.

use serde_json::Value;
use steersman_base::validation::{dns1123_subdomain, path_segment};

use crate::field::{FieldError, Path};
use crate::kinds::check::{self, Errors, problems};
use crate::kinds::json::{default_zero_to, each, each_mut, is_empty, is_set, items, same, text, with};
use crate::kinds::{NameRule, Rules};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Whether an object belongs to a namespace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Namespace,
    Cluster,
}

pub(super) static ROLE: Rules =
    Rules::named(NameRule::PathSegment).validated(|new, _, errors| rules(new, Scope::Namespace, errors));

pub(super) static CLUSTER_ROLE: Rules = Rules::named(NameRule::PathSegment).validated(|new, _, errors| {
    rules(new, Scope::Cluster, errors);
    let aggregation = &new["aggregationRule"];
    if is_set(aggregation) {
        let path = Path::new("aggregationRule").child("clusterRoleSelectors");
        if items(&aggregation["clusterRoleSelectors"]).is_empty() {
            let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
            errors.push(FieldError::required(&path, detail));
        }
        each(&aggregation["clusterRoleSelectors"], &path, |it, path| {
            let count = errors.len();
            check::label_selector(it, path, errors);
            if errors.len() > count {
                errors.push(FieldError::invalid(path, Value::Null, "invalid label selector."));
            }
        });
    }
});

pub(super) static ROLE_BINDING: Rules = Rules::named(NameRule::PathSegment)
    .defaulted(binding_defaults)
    .validated(|new, old, errors| binding(new, old, Scope::Namespace, errors));

pub(super) static CLUSTER_ROLE_BINDING: Rules = Rules::named(NameRule::PathSegment)
    .defaulted(binding_defaults)
    .validated(|new, old, errors| binding(new, old, Scope::Cluster, errors));

fn binding_defaults(binding: &mut Value) {
    with(binding, "roleRef", |role| default_zero_to(role, "apiGroup", GROUP));
    each_mut(binding, "subjects", |subject| {
        if matches!(text(&subject["kind"]), "User" | "Group") {
            default_zero_to(subject, "apiGroup", GROUP);
        }
    });
}

fn rules(role: &Value, scope: Scope, errors: &mut Errors) {
    rules_by_hand(role, scope, errors);
    // Checked declaratively upstream, after what is checked by hand; so are the names in bindings.
    each(&role["rules"], &Path::new("rules"), |rule, path| {
        if is_empty(&rule["verbs"]) {
            errors.push(FieldError::required(&path.child("verbs"), ""));
        }
    });
}

fn rules_by_hand(role: &Value, scope: Scope, errors: &mut Errors) {
    each(&role["rules"], &Path::new("rules"), |rule, path| {
        let (urls, at) = (&rule["nonResourceURLs"], path.child("nonResourceURLs"));
        if !is_empty(urls) {
            if scope == Scope::Namespace {
                let detail = "namespaced rules cannot apply to non-resource URLs";
                errors.push(FieldError::invalid(&at, urls.clone(), detail));
            }
            if ["apiGroups", "resources", "resourceNames"].iter().any(|field| !is_empty(&rule[*field])) {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                errors.push(FieldError::invalid(&at, urls.clone(), detail));
            }
            return;
        }
        for (field, what) in [("apiGroups", "api group"), ("resources", "resource")] {
            if is_empty(&rule[field]) {
                let detail = format!("resource rules must supply at least one {what}");
                errors.push(FieldError::required(&path.child(field), detail));
            }
        }
    });
}

fn binding(new: &Value, old: Option<&Value>, scope: Scope, errors: &mut Errors) {
    let (role, path) = (&new["roleRef"], Path::new("roleRef"));
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
        let shown = check::ordered(role, &["apiGroup", "kind", "name"]);
        errors.push(FieldError::invalid(&path, shown, check::IMMUTABLE));
    }
}

fn subject(subject: &Value, scope: Scope, path: &Path, errors: &mut Errors) {
    let (name, group) = (text(&subject["name"]), text(&subject["apiGroup"]));
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
