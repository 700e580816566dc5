//! Kinds that extend or guard the API: RBAC, custom resource definitions, webhooks and admission policies.

mod definition;
mod rbac;

use serde_json::{Value, json};

use super::json::{default_to, each_mut, object_mut, with};
use super::{NameRule, Rules};

/// The rules of a kind of one of these groups.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "Role" => &rbac::ROLE,
        "ClusterRole" => &rbac::CLUSTER_ROLE,
        "RoleBinding" => &rbac::ROLE_BINDING,
        "ClusterRoleBinding" => &rbac::CLUSTER_ROLE_BINDING,
        "CustomResourceDefinition" => &definition::DEFINITION,
        "ValidatingWebhookConfiguration" => &VALIDATING_WEBHOOKS,
        "MutatingWebhookConfiguration" => &MUTATING_WEBHOOKS,
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => &ADMISSION_POLICY,
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => &ADMISSION_POLICY_BINDING,
        _ => return None,
    })
}

static VALIDATING_WEBHOOKS: Rules =
    Rules::named(NameRule::Subdomain).defaulted(|object| each_mut(object, "webhooks", webhook));

static MUTATING_WEBHOOKS: Rules = Rules::named(NameRule::Subdomain).defaulted(|object| {
    each_mut(object, "webhooks", |it| {
        webhook(it);
        default_to(it, "reinvocationPolicy", "Never");
    });
});

static ADMISSION_POLICY: Rules = Rules::named(NameRule::Subdomain).defaulted(|object| {
    with(object, "spec", |spec| {
        default_to(spec, "failurePolicy", "Fail");
        if let Some(resources) = object_mut(spec, "matchConstraints") {
            match_resources(resources);
        }
    });
});

static ADMISSION_POLICY_BINDING: Rules = Rules::named(NameRule::Subdomain).defaulted(|object| {
    if let Some(resources) = object_mut(object, "spec").and_then(|spec| object_mut(spec, "matchResources")) {
        match_resources(resources);
    }
});

/// Follows `pkg/apis/admissionregistration/v1/defaults.go`.
fn webhook(webhook: &mut Value) {
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

fn match_resources(resources: &mut Value) {
    default_to(resources, "matchPolicy", "Equivalent");
    default_to(resources, "namespaceSelector", json!({}));
    default_to(resources, "objectSelector", json!({}));
    for rules in ["resourceRules", "excludeResourceRules"] {
        each_mut(resources, rules, |rule| default_to(rule, "scope", "*"));
    }
}
