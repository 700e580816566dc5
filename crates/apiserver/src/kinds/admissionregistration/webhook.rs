//! The defaults of a webhook: `pkg/apis/admissionregistration/v1/defaults.go`.

use serde_json::{Value, json};

use crate::kinds::shared::json::{default_to, each_mut, object_mut};

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
