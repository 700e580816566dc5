//! SelfSubjectReviews: as whom a request is authenticated. Follows `pkg/registry/authentication/selfsubjectreview`.

use serde_json::json;

use crate::kinds::Rules;
use crate::kinds::shared::review;
use crate::registry::object_meta::metadata;

/// The rules of SelfSubjectReviews.
pub(crate) static RULES: Rules = Rules::not_stored(|registry, call, body, kind| {
    review::answer(registry, call, body, kind, |review| {
        // Upstream answers with an object of its own.
        metadata(review).remove("managedFields");
        metadata(review).insert("creationTimestamp".into(), registry.clock.now().to_string().into());
        Ok(json!({"userInfo": call.user.to_json()}))
    })
});
