//! Kinds that extend or guard the API: RBAC, custom resource definitions, webhooks, admission policies, flow control; and
//! claims of devices.

mod definition;
mod rbac;

use serde_json::{Value, json};

use super::json::{default_to, default_zero_to, each_mut, object_mut, text, with};
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
        "FlowSchema" => &FLOW_SCHEMA,
        "PriorityLevelConfiguration" => &PRIORITY_LEVEL,
        "ResourceClaim" => &RESOURCE_CLAIM,
        "ResourceClaimTemplate" => &RESOURCE_CLAIM_TEMPLATE,
        _ => return None,
    })
}

/// Follows `pkg/apis/flowcontrol/v1/defaults.go`.
static FLOW_SCHEMA: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(|object| with(object, "spec", |spec| default_zero_to(spec, "matchingPrecedence", 1000)));

static PRIORITY_LEVEL: Rules = Rules::named(NameRule::Subdomain).defaulted(|object| {
    let Some(spec) = object_mut(object, "spec") else { return };
    for (kind, shares) in [("exempt", 0), ("limited", 30)] {
        if let Some(level) = object_mut(spec, kind) {
            default_to(level, "nominalConcurrencyShares", shares);
            default_to(level, "lendablePercent", 0);
            let response = object_mut(level, "limitResponse");
            if let Some(queuing) = response.and_then(|it| object_mut(it, "queuing")) {
                default_zero_to(queuing, "handSize", 8);
                default_zero_to(queuing, "queues", 64);
                default_zero_to(queuing, "queueLengthLimit", 50);
            }
        }
    }
});

/// Follows `pkg/apis/resource/v1/defaults.go`.
static RESOURCE_CLAIM: Rules = Rules::named(NameRule::Subdomain).defaulted(|object| {
    if let Some(spec) = object_mut(object, "spec") {
        device_requests(spec);
    }
});

static RESOURCE_CLAIM_TEMPLATE: Rules = Rules::named(NameRule::Subdomain).defaulted(|object| {
    if let Some(spec) = object_mut(object, "spec").and_then(|spec| object_mut(spec, "spec")) {
        device_requests(spec);
    }
});

fn device_requests(spec: &mut Value) {
    let exactly = |request: &mut Value| {
        default_zero_to(request, "allocationMode", "ExactCount");
        if text(&request["allocationMode"]) == "ExactCount" {
            default_zero_to(request, "count", 1);
        }
    };
    let Some(devices) = object_mut(spec, "devices") else { return };
    each_mut(devices, "requests", |request| {
        if let Some(request) = object_mut(request, "exactly") {
            exactly(request);
        }
        each_mut(request, "firstAvailable", exactly);
    });
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
