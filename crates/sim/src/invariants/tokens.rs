//! Tokens with which nodes join a cluster, and the ConfigMap that they sign.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use steersman_base::{ObjectKey, Time};

use super::{BOOTSTRAP_SIGNER, Case, Findings, Rest, TOKEN_CLEANER, Verdict};

const SECRETS: &str = "secrets";
const TYPE: &str = "bootstrap.kubernetes.io/token";
const SIGNATURE: &str = "jws-kubeconfig-";
const FORGED: &str = "forged";

/// A text of the data of a secret; empty if there is none.
fn data(secret: &Value, key: &str) -> String {
    let bytes = secret["data"][key].as_str().and_then(|text| STANDARD.decode(text).ok());
    bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// When a token expires; none if it does not.
fn expires(secret: &Value) -> Option<Time> {
    data(secret, "expiration").parse().ok()
}

/// "Expired tokens are removed with the TokenCleaner controller in the Controller Manager." (website: Authenticating with Bootstrap
/// Tokens)
///
/// Asked when the cleaner deletes a token: it has expired. Judged against the store alone: the cleaner deletes a token as it has
/// seen it.
pub(super) fn tokens_live_until_they_expire(case: &Case<'_>) -> Verdict {
    let Some(deleted) = case.deleted().filter(|_| case.is(SECRETS) && case.by(&[TOKEN_CLEANER])) else {
        return Verdict::NotMine;
    };
    let at = case.change.before.as_deref().and_then(expires);
    Verdict::at_store(at.is_some_and(|at| at <= case.latest()), || {
        format!("{deleted} is deleted, and expires at {at:?}")
    })
}

/// The sentence of [`tokens_live_until_they_expire`].
///
/// At rest: no token that is still there has expired.
pub(super) fn expired_tokens_are_deleted(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(TOKEN_CLEANER) {
        return;
    }
    let latest = rest.world.now().plus_seconds(-rest.options.clock_skew_seconds);
    for (object, secret) in tokens(rest) {
        let at = expires(secret);
        found.expect(at.is_none_or(|at| at >= latest), || format!("{object} has expired at {at:?}"));
    }
}

fn tokens<'a>(rest: &Rest<'a>) -> impl Iterator<Item = (&'a crate::world::Object, &'a Value)> {
    let world = rest.world;
    let secrets = world.all(SECRETS).filter(|object| !object.is_terminating());
    let with_raw = secrets.filter_map(|object| Some((&**object, &**world.raw(SECRETS, &object.key)?)));
    with_raw.filter(|(_, secret)| secret["type"] == TYPE)
}

/// "The tokens are also used to create a signature for a specific ConfigMap used in a "discovery" process through a BootstrapSigner
/// controller." (website: Authenticating with Bootstrap Tokens)
///
/// At rest: the ConfigMap has a signature by each token that signs, and no other one.
pub(super) fn information_is_signed_by_every_token(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(BOOTSTRAP_SIGNER) {
        return;
    }
    let key = ObjectKey::new("kube-public", "cluster-info");
    let Some(information) = rest.world.raw("configmaps", &key) else { return };
    let now = rest.world.now();
    let signs =
        |secret: &Value| data(secret, "usage-bootstrap-signing") == "true" && expires(secret).is_none_or(|at| at > now);
    let wanted: BTreeSet<String> =
        tokens(rest).filter(|(_, secret)| signs(secret)).map(|(_, secret)| data(secret, "token-id")).collect();
    let entries = information["data"].as_object().into_iter().flatten();
    let signed = entries.filter(|(_, value)| *value != FORGED);
    let signed: BTreeSet<String> =
        signed.filter_map(|(key, _)| Some(key.strip_prefix(SIGNATURE)?.to_owned())).collect();
    found.expect(wanted == signed, || format!("configmaps {key} is signed by {signed:?}, and should be by {wanted:?}"));
}
