//! Reviews: who is it, and may they?
//!
//! Follows `pkg/registry/{authentication,authorization}` of Kubernetes 1.37.

use serde_json::{Value, json};

use super::query::strings;
use super::{Call, Registry};
use crate::auth::rbac::{self, Attributes, Decision};
use crate::auth::{ISSUER, User};
use crate::field::{FieldError, Path};
use crate::server::Authorization;
use crate::status::{GroupResource, Status};

impl Registry {
    /// The status of a TokenReview.
    pub(super) fn review_token(&self, review: &Value) -> Result<Value, Status> {
        let token = review["spec"]["token"].as_str().unwrap_or_default();
        if token.is_empty() {
            return Err(Status::bad_request("token is required for TokenReview in authentication"));
        }
        let audiences = strings(&review["spec"]["audiences"]);
        let audiences = if audiences.is_empty() { vec![ISSUER] } else { audiences };
        let found = audiences.iter().find_map(|audience| Some((self.auth.by_token(self, token, audience)?, audience)));
        Ok(match found {
            Some((user, audience)) => json!({"authenticated": true, "user": user.to_json(), "audiences": [audience]}),
            None => json!({"user": {}, "error": "invalid bearer token"}),
        })
    }

    /// Whether a user may do something.
    pub(crate) fn decide(&self, user: &User, wanted: &Attributes) -> Decision {
        match self.authorization {
            Authorization::AlwaysAllow => Decision { is_allowed: true, reason: String::new() },
            Authorization::Rbac => rbac::decide(self, user, wanted),
        }
    }

    /// Refuses what a user may not do.
    pub(crate) fn authorize(&self, user: &User, wanted: &Attributes) -> Result<(), Status> {
        let decision = self.decide(user, wanted);
        if decision.is_allowed { Ok(()) } else { Err(wanted.refusal(user, &decision)) }
    }

    /// The status of a review of what somebody may do: whoever asks, or whoever it names.
    pub(super) fn review_access(&self, call: &Call, review: &Value) -> Result<Value, Status> {
        let (spec, plural) = (&review["spec"], &*call.row.resource.plural);
        let errors = check(review, plural, &call.namespace);
        if !errors.is_empty() {
            // Upstream names no kind.
            let kind = GroupResource { group: &call.row.resource.group, resource: "" };
            return Err(Status::invalid(kind, "", &errors));
        }
        let user = if plural == "selfsubjectaccessreviews" { call.user.clone() } else { User::of_review(spec) };
        let decision = self.decide(&user, &Attributes::of_review(spec));
        let mut status = json!({"allowed": decision.is_allowed});
        if !decision.reason.is_empty() {
            status["reason"] = decision.reason.into();
        }
        Ok(status)
    }

    /// The status of a review of all that whoever asks may do in a namespace.
    pub(super) fn review_rules(&self, call: &Call, review: &Value) -> Value {
        let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
        let (resources, paths) = match self.authorization {
            Authorization::AlwaysAllow => rbac::rules(self, &User::admin(), namespace),
            Authorization::Rbac => rbac::rules(self, &call.user, namespace),
        };
        json!({"incomplete": false, "nonResourceRules": paths, "resourceRules": resources})
    }
}

/// What is wrong with a review: `ValidateSubjectAccessReviewSpec` and its kin.
fn check(review: &Value, plural: &str, namespace: &str) -> Vec<FieldError> {
    let (spec, path) = (&review["spec"], Path::new("spec"));
    let (resource, other) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    // As Go shows a struct without JSON names.
    let shown = match other.as_object() {
        Some(other) => json!({"Path": other.get("path"), "Verb": other.get("verb")}),
        None => Value::Null,
    };
    let mut errors = Vec::new();
    if resource.is_object() == other.is_object() {
        let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        errors.push(FieldError::invalid(&path, shown.clone(), detail));
    }
    let is_nobody = spec["user"].as_str().is_none_or(str::is_empty) && strings(&spec["groups"]).is_empty();
    if plural != "selfsubjectaccessreviews" && is_nobody {
        let detail = "at least one of user or group must be specified";
        errors.push(FieldError::invalid(&path.child("user"), "", detail));
    }
    if plural == "localsubjectaccessreviews" {
        let within = resource["namespace"].as_str().unwrap_or_default();
        if resource.is_object() && within != namespace {
            let path = path.child("resourceAttributes").child("namespace");
            errors.push(FieldError::invalid(&path, within, "must match metadata.namespace"));
        }
        if other.is_object() {
            let path = path.child("nonResourceAttributes");
            errors.push(FieldError::invalid(&path, shown, "disallowed on this kind of request"));
        }
    }
    errors
}
