//! A webhook of either configuration: `pkg/apis/admissionregistration/{v1/defaults.go,validation/validation.go}` and
//! `apiserver/pkg/util/webhook/validation.go`.

use serde_json::{Value, json};
use steersman_base::validation::dns1123_subdomain;
use steersman_cel::Variables;

use super::client_config;
use super::match_conditions::{self, Before};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::{label_selector, one_of_if_set};
use crate::kinds::shared::json::{default_to, each, each_mut, is_set, items, number, object_mut, text};
use crate::registry::query::strings;

const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: &[&str] = &["*", "Cluster", "Namespaced"];
const SIDE_EFFECTS: &[&str] = &["None", "NoneOnDryRun"];
const TIMEOUT_SECONDS_MAX: i64 = 30;

/// Sets the defaults of a webhook of either configuration.
pub(crate) fn default(webhook: &mut Value) {
    default_to(webhook, "failurePolicy", "Fail");
    default_to(webhook, "matchPolicy", "Equivalent");
    default_to(webhook, "namespaceSelector", json!({}));
    default_to(webhook, "objectSelector", json!({}));
    default_to(webhook, "timeoutSeconds", 10);
    each_mut(webhook, "rules", |rule| default_to(rule, "scope", "*"));
    if let Some(service) = object_mut(webhook, "clientConfig").and_then(|config| object_mut(config, "service")) {
        default_to(service, "port", 443);
    }
}

/// Checks the webhooks of a configuration.
pub(crate) fn validate(configuration: &Value, old: Option<&Value>, errors: &mut Errors) {
    let before = old.map(|old| Before::read(configuration, old)).unwrap_or_default();
    let mut names: Vec<&str> = Vec::new();
    each(&configuration["webhooks"], &Path::new("webhooks"), |webhook, path| {
        validate_webhook(webhook, path, errors);
        let conditions = &webhook["matchConditions"];
        let at = path.child("matchConditions");
        match_conditions::validate(conditions, &before, Variables::admission(), &at, errors);
        let none = format!("must specify one of {}", REVIEW_VERSIONS.join(", "));
        let at = path.child("admissionReviewVersions");
        client_config::review_versions(&webhook["admissionReviewVersions"], &REVIEW_VERSIONS, &none, &at, errors);
        let name = text(&webhook["name"]);
        if !name.is_empty() && names.contains(&name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        } else {
            names.push(name);
        }
    });
}

fn validate_webhook(webhook: &Value, path: &Path, errors: &mut Errors) {
    qualified_name(text(&webhook["name"]), &path.child("name"), errors);
    each(&webhook["rules"], &path.child("rules"), |rule, path| validate_rule(rule, path, errors));
    one_of_if_set(&webhook["failurePolicy"], &["Fail", "Ignore"], &path.child("failurePolicy"), errors);
    one_of_if_set(&webhook["matchPolicy"], &["Equivalent", "Exact"], &path.child("matchPolicy"), errors);
    let at = path.child("sideEffects");
    match webhook["sideEffects"].as_str() {
        None => errors.push(FieldError::required(&at, format!("must specify one of {}", SIDE_EFFECTS.join(", ")))),
        Some(class) if !SIDE_EFFECTS.contains(&class) => {
            errors.push(FieldError::not_supported(&at, class, SIDE_EFFECTS));
        }
        Some(_) => {}
    }
    let seconds = number(&webhook["timeoutSeconds"]);
    if is_set(&webhook["timeoutSeconds"]) && !(1..=TIMEOUT_SECONDS_MAX).contains(&seconds) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(&path.child("timeoutSeconds"), seconds, detail));
    }
    for field in ["namespaceSelector", "objectSelector"] {
        label_selector(&webhook[field], &path.child(field), errors);
    }
    one_of_if_set(&webhook["reinvocationPolicy"], &["IfNeeded", "Never"], &path.child("reinvocationPolicy"), errors);
    client_config::validate(&webhook["clientConfig"], &path.child("clientConfig"), errors);
}

/// Checks a name that must have three parts.
fn qualified_name(name: &str, path: &Path, errors: &mut Errors) {
    if name.is_empty() {
        return errors.push(FieldError::required(path, ""));
    }
    let problems = dns1123_subdomain(name);
    if !problems.is_empty() {
        return errors.push(FieldError::invalid(path, name, problems.join(",")));
    }
    if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.push(FieldError::invalid(path, name, detail));
    }
}

/// Checks a rule of a webhook or of a policy.
pub(super) fn validate_rule(rule: &Value, path: &Path, errors: &mut Errors) {
    let operations = only_wildcard(rule, "operations", "operations", path, errors);
    for (at, operation) in operations.iter().enumerate().filter(|(_, operation)| !OPERATIONS.contains(operation)) {
        let at = path.child("operations").index(at);
        errors.push(FieldError::not_supported(&at, *operation, OPERATIONS));
    }
    only_wildcard(rule, "apiGroups", "API groups", path, errors);
    let versions = only_wildcard(rule, "apiVersions", "API versions", path, errors);
    for (at, _) in versions.iter().enumerate().filter(|(_, version)| version.is_empty()) {
        errors.push(FieldError::required(&path.child("apiVersions").index(at), ""));
    }
    resources(&rule["resources"], &path.child("resources"), errors);
    one_of_if_set(&rule["scope"], SCOPES, &path.child("scope"), errors);
}

/// Checks a list that has at least one word, and no other if one is `*`.
fn only_wildcard<'a>(rule: &'a Value, field: &str, what: &str, path: &Path, errors: &mut Errors) -> Vec<&'a str> {
    let words = strings(&rule[field]);
    if words.is_empty() {
        errors.push(FieldError::required(&path.child(field), ""));
    }
    if words.len() > 1 && words.contains(&"*") {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.push(FieldError::invalid(&path.child(field), rule[field].clone(), detail));
    }
    words
}

fn resources(resources: &Value, path: &Path, errors: &mut Errors) {
    let names: Vec<&str> = items(resources).iter().map(text).collect();
    if names.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    let mut with_all_parts: Vec<&str> = Vec::new();
    let mut of_all_resources: Vec<&str> = Vec::new();
    // Upstream looks at the last resource without a part only.
    let mut has_whole = false;
    for (at, name) in names.iter().enumerate() {
        let at = path.index(at);
        if name.is_empty() {
            errors.push(FieldError::required(&at, ""));
            continue;
        }
        let Some((resource, part)) = name.split_once('/') else {
            has_whole = *name != "*";
            continue;
        };
        if with_all_parts.contains(&resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {name}");
            errors.push(FieldError::invalid(&at, *name, detail));
        }
        if of_all_resources.contains(&part) {
            let detail = format!("if '*/{part}' is present, must not specify {name}");
            errors.push(FieldError::invalid(&at, *name, detail));
        }
        if part == "*" {
            with_all_parts.push(resource);
        }
        if resource == "*" {
            of_all_resources.push(part);
        }
    }
    if names.len() > 1 && names.contains(&"*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.push(FieldError::invalid(path, resources.clone(), detail));
    }
    if names.contains(&"*") && has_whole {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(path, resources.clone(), detail));
    }
}
