//! SubjectAccessReviews, and what all reviews of access have in common. Follows `pkg/registry/authorization` and
//! `pkg/apis/authorization/validation`.

use serde_json::{Value, json};

use crate::auth::User;
use crate::auth::rbac::Attributes;
use crate::field::{FieldError, Path};
use crate::kinds::Rules;
use crate::kinds::shared::review;
use crate::registry::query::strings;
use crate::registry::{Call, Registry};
use crate::status::{GroupResource, Status};

/// The rules of SubjectAccessReviews.
pub(crate) static RULES: Rules = Rules::not_stored(|registry, call, body, kind| {
    review::answer(registry, call, body, kind, |review| status(registry, call, review, Of::Anyone))
});

/// Whose access a review is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// The access of the user that the review names.
    Anyone,
    /// The same, within the namespace of the request.
    Namespace,
    /// The access of the sender.
    Sender,
}

/// Returns the status of a review of access.
pub(crate) fn status(registry: &Registry, call: &Call, review: &Value, of: Of) -> Result<Value, Status> {
    let spec = &review["spec"];
    let errors = check(review, of, &call.namespace);
    if !errors.is_empty() {
        // Upstream names no kind.
        let kind = GroupResource { group: &call.row.resource.group, resource: "" };
        return Err(Status::invalid(kind, "", &errors));
    }
    let user = if of == Of::Sender { call.user.clone() } else { User::of_review(spec) };
    let decision = registry.decide(&user, &Attributes::of_review(spec));
    let mut status = json!({"allowed": decision.is_allowed});
    if !decision.reason.is_empty() {
        status["reason"] = decision.reason.into();
    }
    Ok(status)
}

/// Checks a review: `ValidateSubjectAccessReviewSpec` and the like.
fn check(review: &Value, of: Of, namespace: &str) -> Vec<FieldError> {
    let spec = &review["spec"];
    let path = Path::new("spec");
    let resource = &spec["resourceAttributes"];
    let other = &spec["nonResourceAttributes"];
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
    if of != Of::Sender && is_nobody {
        let detail = "at least one of user or group must be specified";
        errors.push(FieldError::invalid(&path.child("user"), "", detail));
    }
    if of == Of::Namespace {
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
