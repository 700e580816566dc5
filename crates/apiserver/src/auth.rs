//! Authentication.
//!
//! 1. A request is authenticated, or it is 401: by a client certificate signed by our authority (CN is the user, every
//!    O a group), by the administrator's token, or by a token of a service account that still exists. A certificate
//!    takes precedence, as upstream: a token beside it is ignored.
//! 2. Secrets are compared in constant time and come from the operating system's random numbers.
//! 3. Keys are made when the first token is signed or checked, not before.
//! 4. A token that is bound to a pod, a secret or a node expires with it.
//! 5. The use of a token in a secret is noted there, once a day.
//! 6. A user who may impersonate others is authorized as those: `kubectl --as` ([`impersonate`]).

pub(crate) mod certificate;
pub(crate) mod impersonate;
mod legacy;
pub(crate) mod rbac;
mod token;

use std::sync::OnceLock;

use base64::Engine as _;
use serde_json::{Value, json};
use steersman_base::{Clock, ObjectKey, Time};

use crate::registry::Registry;

pub(crate) use token::Bound;
use token::Keys;
pub use token::{BadKey, TokenKey};

/// The issuer of service account tokens, and the audience that this server is.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";
const ADMIN_TOKEN_BYTES: usize = 24;
/// The time for which a token outlives the object that it is bound to: clocks differ. Upstream's `jwt.DefaultLeeway`.
const LEEWAY_SECONDS: i64 = 60;

/// An authenticated user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct User {
    /// `username`
    pub name: String,
    /// `uid`
    pub uid: String,
    /// `groups`
    pub groups: Vec<String>,
    /// `extra`
    pub extra: Vec<(String, Vec<String>)>,
}

/// The user of a request, and what is to be said about the credentials.
#[derive(Clone, Debug)]
pub(crate) struct Authenticated {
    pub(crate) user: User,
    pub(crate) warning: Option<&'static str>,
}

/// The credentials of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Credentials<'a> {
    /// The token behind `Authorization: Bearer`.
    pub bearer: Option<&'a str>,
    /// The user that the connection's certificate names; the certificate has been checked against our authority.
    pub named: Option<&'a User>,
}

/// The authenticator.
pub(crate) struct Auth {
    clock: Clock,
    admin_token: OnceLock<String>,
    keys: OnceLock<Keys>,
}

/// The operating system's secure random numbers are not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no secure random numbers")]
pub struct NoRandom;

// === impl Auth ===

impl Auth {
    pub(crate) fn new(clock: Clock, admin_token: Option<String>, token_key: Option<TokenKey>) -> Self {
        let auth = Self { clock, admin_token: OnceLock::new(), keys: OnceLock::new() };
        if let Some(key) = token_key {
            let _ = auth.keys.set(key.into_keys());
        }
        if let Some(token) = admin_token.filter(|token| !token.is_empty()) {
            let _ = auth.admin_token.set(token);
        }
        auth
    }

    /// Returns the token of the administrator; created on first use.
    ///
    /// # Errors
    /// If there are no secure random numbers.
    pub(crate) fn admin_token(&self) -> Result<&str, NoRandom> {
        if self.admin_token.get().is_none() {
            let _ = self.admin_token.set(random_text(ADMIN_TOKEN_BYTES)?);
        }
        self.admin_token.get().map(String::as_str).ok_or(NoRandom)
    }

    /// Returns the user of a request; none if it is not authenticated.
    pub(crate) fn authenticate(&self, registry: &Registry, credentials: Credentials<'_>) -> Option<Authenticated> {
        let by_certificate = credentials.named.cloned().map(Authenticated::from);
        by_certificate.or_else(|| self.by_token(registry, credentials.bearer?, ISSUER))
    }

    /// Returns the user of a token, for this audience.
    pub(crate) fn by_token(&self, registry: &Registry, token: &str, audience: &str) -> Option<Authenticated> {
        if self.admin_token.get().is_some_and(|held| is_same_secret(held.as_bytes(), token.as_bytes())) {
            return Some(User::admin().into());
        }
        let keys = self.keys()?;
        let now = self.clock.now();
        if let Some(claims) = keys.verify(token, audience, now) {
            return service_account(registry, &claims, now).map(Authenticated::from);
        }
        // Tokens in secrets have no audience: they are for this server.
        let claims = keys.verify_legacy(token).filter(|_| audience == ISSUER)?;
        legacy::user(registry, token, &claims, now)
    }

    pub(crate) fn keys(&self) -> Option<&Keys> {
        if self.keys.get().is_none() {
            let _ = self.keys.set(Keys::generate().ok()?);
        }
        self.keys.get()
    }

    /// Returns the signing key as PEM, for controllers that sign tokens in secrets.
    pub(crate) fn key_pem(&self) -> Option<&str> {
        self.keys().map(Keys::pem)
    }

    /// Returns the public keys, for clients that verify tokens themselves.
    pub(crate) fn jwks(&self) -> Value {
        json!({"keys": self.keys().map(Keys::jwk).into_iter().collect::<Vec<_>>()})
    }
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Auth(..)")
    }
}

/// Returns the service account of a token, if its uid is unchanged, and the object that the token is bound to exists.
fn service_account(registry: &Registry, claims: &Value, now: Time) -> Option<User> {
    let about = &claims["kubernetes.io"];
    let namespace = about["namespace"].as_str()?;
    let name = about["serviceaccount"]["name"].as_str()?;
    let uid = about["serviceaccount"]["uid"].as_str()?;
    let is_alive = |namespace: &str, plural: &str, reference: &Value| {
        let (Some(name), Some(uid)) = (reference["name"].as_str(), reference["uid"].as_str()) else { return false };
        let held = registry.stored("", "v1", plural, &ObjectKey::new(namespace, name));
        held.is_some_and(|held| held["metadata"]["uid"] == uid && !is_past(&held, now))
    };
    if !is_alive(namespace, "serviceaccounts", &about["serviceaccount"]) {
        return None;
    }
    // A token that is bound to a pod names its node, but does not expire with it.
    let node = if about["pod"].is_object() { &Value::Null } else { &about["node"] };
    let bound = [(namespace, "pods", &about["pod"]), (namespace, "secrets", &about["secret"]), ("", "nodes", node)];
    if bound.iter().any(|(home, plural, bound)| bound.is_object() && !is_alive(home, plural, bound)) {
        return None;
    }
    let mut user = User::service_account(namespace, name, uid);
    let mut extra = |key: &str, value: &Value| {
        if let Some(text) = value.as_str() {
            user.extra.push((format!("authentication.kubernetes.io/{key}"), vec![text.to_owned()]));
        }
    };
    extra("credential-id", &claims["jti"].as_str().map(|id| format!("JTI={id}")).into());
    extra("pod-name", &about["pod"]["name"]);
    extra("pod-uid", &about["pod"]["uid"]);
    extra("node-name", &about["node"]["name"]);
    extra("node-uid", &about["node"]["uid"]);
    Some(user)
}

/// Whether the grace period of a terminating object is over, with a leeway for clock differences.
fn is_past(object: &Value, now: Time) -> bool {
    let ends = object["metadata"]["deletionTimestamp"].as_str().and_then(|ends| ends.parse::<Time>().ok());
    ends.is_some_and(|ends| ends < now.plus_seconds(-LEEWAY_SECONDS))
}

/// Compares in constant time.
fn is_same_secret(held: &[u8], given: &[u8]) -> bool {
    let differences = held.iter().zip(given).fold(0, |all, (left, right)| all | (left ^ right));
    held.len() == given.len() && std::hint::black_box(differences) == 0
}

/// Returns secret random text.
pub(crate) fn random_text(bytes: usize) -> Result<String, NoRandom> {
    let mut random = vec![0; bytes];
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.secure_random.fill(&mut random).map_err(|_| NoRandom)?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random))
}

// === impl Authenticated ===

impl From<User> for Authenticated {
    fn from(user: User) -> Self {
        Self { user, warning: None }
    }
}

// === impl User ===

impl User {
    /// Returns the administrator, who may do everything.
    #[must_use]
    pub(crate) fn admin() -> Self {
        Self {
            name: "admin".to_owned(),
            uid: "admin-uid".to_owned(),
            groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
            extra: Vec::new(),
        }
    }

    /// Returns the user that a review is about.
    pub(crate) fn of_review(spec: &Value) -> Self {
        let text = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
        let owned = |values: &Value| -> Vec<String> {
            values.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let extra = spec["extra"].as_object().into_iter().flatten();
        Self {
            name: text("user"),
            uid: text("uid"),
            groups: owned(&spec["groups"]),
            extra: extra.map(|(key, values)| (key.clone(), owned(values))).collect(),
        }
    }

    fn service_account(namespace: &str, name: &str, uid: &str) -> Self {
        let groups = [
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated".to_owned(),
        ];
        Self {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            uid: uid.to_owned(),
            groups: groups.into(),
            extra: Vec::new(),
        }
    }

    /// `userInfo`
    pub(crate) fn to_json(&self) -> Value {
        let mut json = json!({"username": self.name});
        if !self.uid.is_empty() {
            json["uid"] = self.uid.clone().into();
        }
        if !self.groups.is_empty() {
            json["groups"] = self.groups.clone().into();
        }
        for (key, values) in &self.extra {
            json["extra"][key] = values.clone().into();
        }
        json
    }
}
