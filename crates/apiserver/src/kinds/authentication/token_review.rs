//! TokenReviews: whose a token is. Follows `pkg/registry/authentication/tokenreview`.

use serde_json::{Value, json};

use crate::auth::ISSUER;
use crate::kinds::Rules;
use crate::kinds::shared::review;
use crate::registry::Registry;
use crate::registry::query::strings;
use crate::status::Status;

/// The rules of TokenReviews.
pub(crate) static RULES: Rules = Rules::not_stored(|registry, call, body, kind| {
    review::answer(registry, call, body, kind, |review| status(registry, review))
});

fn status(registry: &Registry, review: &Value) -> Result<Value, Status> {
    let token = review["spec"]["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    let audiences = strings(&review["spec"]["audiences"]);
    let audiences = if audiences.is_empty() { vec![ISSUER] } else { audiences };
    let user_for = |audience: &&str| registry.auth.by_token(registry, token, audience).map(|known| known.user);
    let found = audiences.iter().find_map(|audience| Some((user_for(audience)?, audience)));
    Ok(match found {
        Some((user, audience)) => json!({"authenticated": true, "user": user.to_json(), "audiences": [audience]}),
        None => json!({"user": {}, "error": "invalid bearer token"}),
    })
}
