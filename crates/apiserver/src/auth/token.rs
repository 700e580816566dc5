//! Tokens of service accounts: signed with ES256, verified by signature, audience and time.
//!
//! Tokens in secrets (*legacy* tokens) are signed by a controller with the same key, and have neither audience nor
//! expiry.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde_json::{Value, json};
use steersman_base::Time;

use super::ISSUER;
use crate::registry::object_meta::new_uid;

/// The keys that sign and verify.
pub(crate) struct Keys {
    signing: EncodingKey,
    checking: DecodingKey,
    /// The private key, for the controller that signs tokens in secrets.
    pem: String,
    id: String,
    x: String,
    y: String,
}

/// The claims of a token.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bound {
    pub(crate) namespace: String,
    pub(crate) account: String,
    pub(crate) account_uid: String,
    /// `pod`, `secret` or `node`, with name and uid.
    pub(crate) objects: Vec<(&'static str, String, String)>,
}

/// The issuer of tokens in secrets.
const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";
/// Coordinates of a P-256 point.
const COORDINATE_BYTES: usize = 32;

/// A key that signs tokens of service accounts: P-256, as all of this server's.
pub struct TokenKey(Keys);

/// A key cannot be made or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadKey {
    /// It cannot be created, or is not a key.
    #[error("cannot make a key: {0}")]
    Generate(#[from] rcgen::Error),
    /// It cannot be used.
    #[error("cannot read a key: {0}")]
    Read(#[from] jsonwebtoken::errors::Error),
    /// It is not a P-256 key.
    #[error("the key is none of P-256")]
    Size,
}

// === impl TokenKey ===

impl TokenKey {
    /// The key in a PEM file, such as [`ApiServer::token_key_pem`](crate::ApiServer::token_key_pem) gives.
    ///
    /// # Errors
    /// If it is not a P-256 private key in PKCS#8.
    pub fn from_pem(pem: &str) -> Result<Self, BadKey> {
        Keys::of(&rcgen::KeyPair::from_pem(pem)?).map(Self)
    }

    pub(super) fn into_keys(self) -> Keys {
        self.0
    }
}

impl std::fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenKey(..)")
    }
}

// === impl Keys ===

impl Keys {
    pub(crate) fn generate() -> Result<Self, BadKey> {
        Self::of(&rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?)
    }

    fn of(pair: &rcgen::KeyPair) -> Result<Self, BadKey> {
        let point = pair.public_key_raw();
        let coordinates = point.strip_prefix(&[4]).filter(|rest| rest.len() == 2 * COORDINATE_BYTES);
        let (x, y) = coordinates.ok_or(BadKey::Size)?.split_at(COORDINATE_BYTES);
        let x = URL_SAFE_NO_PAD.encode(x);
        let y = URL_SAFE_NO_PAD.encode(y);
        Ok(Self {
            signing: EncodingKey::from_ec_der(pair.serialized_der()),
            checking: DecodingKey::from_ec_components(&x, &y)?,
            pem: pair.serialize_pem(),
            // Upstream's is a hash of the key; anything that differs between keys will do.
            id: x.clone(),
            x,
            y,
        })
    }

    /// Returns the public key as a JWK.
    pub(crate) fn jwk(&self) -> Value {
        json!({"use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256", "x": self.x, "y": self.y})
    }

    /// Returns the private key as PEM.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns a token for a service account.
    pub(crate) fn sign(&self, bound: &Bound, audiences: &[&str], from: Time, to: Time) -> Result<String, BadKey> {
        let mut about = json!({
            "namespace": bound.namespace,
            "serviceaccount": {"name": bound.account, "uid": bound.account_uid},
        });
        for (kind, name, uid) in &bound.objects {
            about[*kind] = json!({"name": name, "uid": uid});
        }
        let claims = json!({
            "aud": audiences,
            "exp": to.unix(),
            "iat": from.unix(),
            "iss": ISSUER,
            "jti": new_uid(),
            "kubernetes.io": about,
            "nbf": from.unix(),
            "sub": format!("system:serviceaccount:{}:{}", bound.namespace, bound.account),
        });
        let header = Header { typ: None, kid: Some(self.id.clone()), ..Header::new(Algorithm::ES256) };
        Ok(jsonwebtoken::encode(&header, &claims, &self.signing)?)
    }

    /// Returns the claims of a valid token of this issuer, for this audience, at this time.
    pub(crate) fn verify(&self, token: &str, audience: &str, now: Time) -> Option<Value> {
        let mut validation = Validation::new(Algorithm::ES256);
        validation.set_audience(&[audience]);
        validation.set_issuer(&[ISSUER]);
        validation.set_required_spec_claims(&["exp", "aud", "iss"]);
        // Time comes from our clock, which a test may have stopped.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        let claims = jsonwebtoken::decode::<Value>(token, &self.checking, &validation).ok()?.claims;
        let time = |name: &str| claims[name].as_i64();
        let is_current = time("exp")? > now.unix() && time("nbf").unwrap_or(0) <= now.unix();
        is_current.then_some(claims)
    }

    /// Returns the claims of a token in a secret.
    pub(crate) fn verify_legacy(&self, token: &str) -> Option<Value> {
        let mut validation = Validation::new(Algorithm::ES256);
        validation.set_issuer(&[LEGACY_ISSUER]);
        validation.set_required_spec_claims(&["iss"]);
        validation.validate_exp = false;
        validation.validate_aud = false;
        Some(jsonwebtoken::decode::<Value>(token, &self.checking, &validation).ok()?.claims)
    }
}
