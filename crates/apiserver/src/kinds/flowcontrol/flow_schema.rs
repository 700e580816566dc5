//! FlowSchemas: `pkg/apis/flowcontrol/{v1/defaults.go,validation/validation.go}`.

use serde_json::Value;
use steersman_base::validation::{dns1123_label, dns1123_subdomain};

use super::{COMMON, conditions};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::Rules;
use crate::kinds::shared::check::problems;
use crate::kinds::shared::json::{default_zero_to, each, flag, is_empty, is_set, items, number, text, with};
use crate::table::{Cell, cell};

const EXEMPT: &str = "exempt";
const PRECEDENCE_MAX: i64 = 10_000;
const VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// The rules of FlowSchemas.
pub(crate) static RULES: Rules = COMMON
    .defaulted(|object| with(object, "spec", |spec| default_zero_to(spec, "matchingPrecedence", 1000)))
    .validated(|new, _, errors| {
        spec(&new["spec"], text(&new["metadata"]["name"]), &Path::new("spec"), errors);
        conditions(&new["status"], errors);
    })
    .printed(&[
        Cell::Name,
        Cell::Text("/spec/priorityLevelConfiguration/name"),
        Cell::Int("/spec/matchingPrecedence"),
        Cell::TextOr("/spec/distinguisherMethod/type", "<none>"),
        Cell::Age,
        Cell::Made(|row| {
            row.condition("/status/conditions", "Dangling").map_or("?", |it| cell::text(it, "status")).to_owned()
        }),
    ]);

fn spec(spec: &Value, name: &str, path: &Path, errors: &mut Errors) {
    let precedence = number(&spec["matchingPrecedence"]);
    let at = path.child("matchingPrecedence");
    if precedence <= 0 {
        errors.push(FieldError::invalid(&at, precedence, "must be a positive value"));
    }
    if precedence > PRECEDENCE_MAX {
        errors.push(FieldError::invalid(&at, precedence, format!("must not be greater than {PRECEDENCE_MAX}")));
    }
    if precedence == 1 && name != EXEMPT {
        let detail = "only the schema named 'exempt' may have matchingPrecedence 1";
        errors.push(FieldError::invalid(&at, precedence, detail));
    }
    let method = &spec["distinguisherMethod"];
    if is_set(method) && !["ByNamespace", "ByUser"].contains(&text(&method["type"])) {
        let at = path.child("distinguisherMethod").child("type");
        let shown = serde_json::json!({"Type": text(&method["type"])});
        errors.push(FieldError::not_supported(&at, shown, &["ByNamespace", "ByUser"]));
    }
    let at = path.child("priorityLevelConfiguration").child("name");
    match text(&spec["priorityLevelConfiguration"]["name"]) {
        "" => errors.push(FieldError::required(&at, "must reference a priority level")),
        level => problems(level, dns1123_subdomain(level), &at, errors),
    }
    each(&spec["rules"], &path.child("rules"), |each_rule, path| rule(each_rule, path, errors));
}

fn rule(rule: &Value, path: &Path, errors: &mut Errors) {
    if is_empty(&rule["subjects"]) {
        errors.push(FieldError::required(&path.child("subjects"), "subjects must contain at least one value"));
    }
    each(&rule["subjects"], &path.child("subjects"), |it, path| subject(it, path, errors));
    if is_empty(&rule["resourceRules"]) && is_empty(&rule["nonResourceRules"]) {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(FieldError::required(path, detail));
    }
    each(&rule["resourceRules"], &path.child("resourceRules"), |it, path| resources(it, path, errors));
    each(&rule["nonResourceRules"], &path.child("nonResourceRules"), |it, path| urls(it, path, errors));
}

fn subject(subject: &Value, path: &Path, errors: &mut Errors) {
    const KINDS: [(&str, &str); 3] = [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];
    let Some((kind, field)) = KINDS.into_iter().find(|(kind, _)| text(&subject["kind"]) == *kind) else {
        let kinds = &["Group", "ServiceAccount", "User"];
        errors.push(FieldError::not_supported(&path.child("kind"), text(&subject["kind"]), kinds));
        return;
    };
    let at = path.child(field);
    let held = &subject[field];
    let name = text(&held["name"]);
    if !is_set(held) {
        errors.push(FieldError::required(&at, format!("{field} is required when subject kind is '{kind}'")));
    } else if name.is_empty() {
        errors.push(FieldError::required(&at.child("name"), ""));
    } else if kind == "ServiceAccount" && name != "*" {
        problems(name, dns1123_subdomain(name), &at.child("name"), errors);
    }
    if is_set(held) && kind == "ServiceAccount" {
        let at = at.child("namespace");
        match text(&held["namespace"]) {
            "" => errors.push(FieldError::required(&at, "must specify namespace for service account")),
            namespace => problems(namespace, dns1123_label(namespace), &at, errors),
        }
    }
    for (other, field) in KINDS.into_iter().filter(|(other, field)| *other != kind && is_set(&subject[*field])) {
        let detail = format!("{field} is forbidden when subject kind is not '{other}'");
        errors.push(FieldError::forbidden(&path.child(field), detail));
    }
}

/// Whether a list of texts has `*` in it.
fn has_wildcard(list: &Value) -> bool {
    items(list).iter().any(|item| item == "*")
}

/// Checks that a list is not empty, and that `*` is alone in it. Returns whether it has neither problem nor `*`.
fn wildcards(list: &Value, none: &str, other: &str, path: &Path, errors: &mut Errors) -> bool {
    if is_empty(list) {
        errors.push(FieldError::required(path, none));
    } else if has_wildcard(list) && items(list).len() > 1 {
        let detail = format!("if '*' is present, must not specify other {other}");
        errors.push(FieldError::invalid(path, list.clone(), detail));
    }
    !is_empty(list) && !has_wildcard(list)
}

fn verbs(rule: &Value, path: &Path, errors: &mut Errors) {
    let path = path.child("verbs");
    let list = &rule["verbs"];
    let are_named = wildcards(list, "verbs must contain at least one value", "verbs", &path, errors);
    if are_named && !items(list).iter().all(|verb| VERBS.contains(&text(verb))) {
        errors.push(FieldError::not_supported(&path, list.clone(), VERBS));
    }
}

fn resources(rule: &Value, path: &Path, errors: &mut Errors) {
    verbs(rule, path, errors);
    let none = "resource rules must supply at least one api group";
    wildcards(&rule["apiGroups"], none, "api groups", &path.child("apiGroups"), errors);
    let none = "resource rules must supply at least one resource";
    wildcards(&rule["resources"], none, "resources", &path.child("resources"), errors);
    let namespaces = &rule["namespaces"];
    let path = path.child("namespaces");
    if is_empty(namespaces) && flag(&rule["clusterScope"]) {
        return;
    }
    let none = "resource rules that are not cluster scoped must supply at least one namespace";
    if wildcards(namespaces, none, "namespaces", &path, errors) {
        each(namespaces, &path, |namespace, path| {
            for problem in dns1123_label(text(namespace)) {
                let detail = format!("each member of this list must be '*' or a DNS-1123 label; {problem}");
                errors.push(FieldError::invalid(path, text(namespace), detail));
            }
        });
    }
}

fn urls(rule: &Value, path: &Path, errors: &mut Errors) {
    verbs(rule, path, errors);
    let path = path.child("nonResourceURLs");
    let list = &rule["nonResourceURLs"];
    let none = "nonResourceURLs must contain at least one value";
    if wildcards(list, none, "non-resource URLs", &path, errors) {
        each(list, &path, |url, path| {
            if let Some(problem) = url_problem(text(url)) {
                errors.push(FieldError::invalid(path, text(url), problem));
            }
        });
    }
}

fn url_problem(url: &str) -> Option<&'static str> {
    let stars = url.matches('*').count();
    match url {
        "" => Some("must not be empty"),
        "/" => None,
        url if !url.starts_with('/') => Some("must start with slash"),
        url if url.contains(' ') => Some("must not contain white-space"),
        url if url.contains("//") => Some("must not contain double slash"),
        url if stars > 1 || stars == 1 && !url.ends_with("/*") => Some("wildcard can only do suffix matching"),
        _ => None,
    }
}
