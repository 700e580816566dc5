//! Tokens in secrets: who they are, and the note of the day on which one was last used, by which a controller finds those that
//! nobody uses. Follows `pkg/serviceaccount/legacy.go`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use steersman_base::names::labels::{LEGACY_TOKEN_INVALID_SINCE, LEGACY_TOKEN_LAST_USED};
use steersman_base::{ObjectKey, Time};

use super::{Authenticated, User, is_same_secret};
use crate::kinds::shared::json::{items, set, text, with};
use crate::registry::checked::Checked;
use crate::registry::write::{Computed, Part};
use crate::registry::{Call, Registry};
use crate::status::Status;

const SECONDS_OF_A_DAY: i64 = 24 * 60 * 60;
const UNASKED: &str = "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated \
                       secret-based tokens.";

/// Returns the service account of a token in a secret, as long as the secret contains it and is not marked as invalid, and
/// notes its use.
pub(super) fn user(registry: &Registry, token: &str, claims: &Value, now: Time) -> Option<Authenticated> {
    let claim = |name: &str| claims[format!("kubernetes.io/serviceaccount/{name}")].as_str();
    let namespace = claim("namespace")?;
    let account = claim("service-account.name")?;
    let uid = claim("service-account.uid")?;
    let stored = |plural: &str, name: &str| registry.stored("", "v1", plural, &ObjectKey::new(namespace, name));
    let secret = stored("secrets", claim("secret.name")?)?;
    let kept = STANDARD.decode(secret["data"]["token"].as_str()?).ok()?;
    let holder = stored("serviceaccounts", account)?;
    let is_alive = |object: &Value| object["metadata"]["deletionTimestamp"].is_null();
    let is_valid = is_alive(&secret) && is_same_secret(&kept, token.as_bytes());
    if !is_valid || !is_alive(&holder) || holder["metadata"]["uid"] != uid {
        return None;
    }
    // The use of an invalid one is noted, too: whoever has marked it learns of it.
    note_use(registry, &secret, now);
    if !text(&secret["metadata"]["labels"][LEGACY_TOKEN_INVALID_SINCE]).is_empty() {
        return None;
    }
    let is_unasked = items(&holder["secrets"]).iter().any(|held| held["name"] == secret["metadata"]["name"]);
    let user = User::service_account(namespace, account, uid);
    Some(Authenticated { user, warning: is_unasked.then_some(UNASKED) })
}

/// Labels a secret with the day, unless it has been. Somewhere it is tomorrow already.
fn note_use(registry: &Registry, secret: &Value, now: Time) {
    let day = |time: Time| time.to_string().split('T').next().unwrap_or_default().to_owned();
    let today = day(now);
    let used = text(&secret["metadata"]["labels"][LEGACY_TOKEN_LAST_USED]);
    if used == today || used == day(now.plus_seconds(SECONDS_OF_A_DAY)) {
        return;
    }
    let Some(row) = registry.row("", "v1", "secrets") else { return };
    let namespace = text(&secret["metadata"]["namespace"]);
    let name = text(&secret["metadata"]["name"]);
    let call = Call::by_server(row, namespace, name, "");
    let noted = registry.update(&call, Part::Whole, &mut |old| {
        let uid = &secret["metadata"]["uid"];
        let Some(old) = old.filter(|old| old["metadata"]["uid"] == *uid) else {
            return Err(Status::not_found(call.row.target(), name));
        };
        let mut labelled = old.clone();
        with(&mut labelled, "metadata", |metadata| {
            with(metadata, "labels", |labels| set(labels, LEGACY_TOKEN_LAST_USED, today.clone()));
        });
        Ok(Computed::from(Checked::composed(&call.row, labelled)?))
    });
    if let Err(refused) = noted {
        tracing::warn!(namespace, name, reason = refused.message, "the use of a token in a secret could not be noted");
    }
}
