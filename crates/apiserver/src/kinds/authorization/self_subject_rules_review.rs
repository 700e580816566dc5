//! SelfSubjectRulesReviews: all that the sender may do in a namespace.

use serde_json::json;

use crate::auth::rbac;
use crate::kinds::Rules;
use crate::kinds::shared::review;
use crate::registry::object_meta::metadata;
use crate::server::Authorization;
use crate::status::Status;

/// The rules of SelfSubjectRulesReviews.
pub(crate) static RULES: Rules = Rules::not_stored(|registry, call, body, kind| {
    review::answer(registry, call, body, kind, |review| {
        // Upstream answers with an object of its own.
        metadata(review).remove("managedFields");
        let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
        if namespace.is_empty() {
            return Err(Status::bad_request("no namespace on request"));
        }
        let (resources, paths) = match registry.authorization {
            Authorization::AlwaysAllow => (
                vec![json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})],
                vec![json!({"verbs": ["*"], "nonResourceURLs": ["*"]})],
            ),
            Authorization::Rbac => rbac::rules(registry, &call.user, namespace),
        };
        Ok(json!({"incomplete": false, "nonResourceRules": paths, "resourceRules": resources}))
    })
});
