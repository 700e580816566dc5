//! Pure: the signatures that the ConfigMap should have.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey};
use serde_json::Value;
use steersman_base::Time;
use steersman_model::core::{BootstrapTokenView, ConfigMapView};

use crate::bootstrap_token::{self, Expiry};

/// The signed entry of the ConfigMap.
const CONTENT: &str = "kubeconfig";
/// The prefix of the entries with signatures; the id of the token follows.
const PREFIX: &str = "jws-kubeconfig-";

/// The signatures by the names of their entries.
pub(super) type Signatures = BTreeMap<String, String>;

/// Returns the detached signature of a content (RFC 7515, appendix F): a JWS without its payload, HMAC with SHA-256.
///
/// # Errors
/// The token cannot sign.
pub(super) fn detached(content: &str, id: &str, secret: &str) -> Result<String, jsonwebtoken::errors::Error> {
    // Go sorts the fields.
    let header = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"HS256","kid":{}}}"#, Value::from(id)));
    let message = format!("{header}.{}", URL_SAFE_NO_PAD.encode(content));
    let key = EncodingKey::from_secret(secret.as_bytes());
    let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &key, Algorithm::HS256)?;
    Ok(format!("{header}..{signature}"))
}

/// Returns the signatures that a ConfigMap should have; `None` if there is nothing to sign.
///
/// # Errors
/// A token cannot sign.
pub(super) fn wanted(
    map: &ConfigMapView,
    tokens: &[Arc<BootstrapTokenView>],
    now: Time,
) -> Result<Option<Signatures>, jsonwebtoken::errors::Error> {
    let Some(content) = map.data.get(CONTENT) else { return Ok(None) };
    let mut all = Signatures::new();
    for token in tokens.iter().filter_map(|token| bootstrap_token::signing(token, now)) {
        all.insert(format!("{PREFIX}{}", token.id), detached(content, &token.id, &token.secret)?);
    }
    Ok(Some(all))
}

/// Whether a ConfigMap has these signatures, and no others.
pub(super) fn is_signed(map: &ConfigMapView, wanted: &Signatures) -> bool {
    let held = map.data.iter().filter(|(key, _)| key.starts_with(PREFIX));
    held.map(|(key, value)| (&**key, &**value)).eq(wanted.iter().map(|(key, value)| (key.as_str(), value.as_str())))
}

/// Replaces the signatures of a ConfigMap; returns whether it changed. `map` is as the server has it, and its content must
/// be the one that is signed.
pub(super) fn sign(map: &mut Value, seen: &ConfigMapView, wanted: &Signatures) -> bool {
    let content = seen.data.get(CONTENT).map(|content| &**content);
    let Some(data) = map["data"].as_object_mut() else { return false };
    if data.get(CONTENT).and_then(Value::as_str) != content {
        return false;
    }
    let before = data.clone();
    data.retain(|key, _| !key.starts_with(PREFIX));
    data.extend(wanted.iter().map(|(key, value)| (key.clone(), value.as_str().into())));
    *data != before
}

/// Returns the time at which the next token expires, after which its signature is removed.
pub(super) fn next_expiry(tokens: &[Arc<BootstrapTokenView>], now: Time) -> Option<Time> {
    let signing = tokens.iter().filter(|token| bootstrap_token::signing(token, now).is_some());
    let times = signing.filter_map(|token| match bootstrap_token::expiry(token, now) {
        Expiry::At(time) => Some(time),
        Expiry::Never | Expiry::Expired => None,
    });
    times.min()
}
