//! Pure: the key that signs tokens.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use rcgen::{KeyPair, PublicKeyData as _};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::json;
use steersman_base::Meta;

use super::der;
use crate::certificates::sha256;

/// Signs tokens of service accounts. Cheap to clone.
#[derive(Clone)]
pub struct Signer(Arc<Inner>);

struct Inner {
    key: EncodingKey,
    algorithm: Algorithm,
    id: String,
}

/// Why a key cannot sign.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file has no private key.
    #[error("there is no private key in PEM in it: {0}")]
    NotPem(#[from] rustls_pki_types::pem::Error),
    /// The key is malformed, or of an unsupported kind.
    #[error("it is neither an RSA key of 2048 bits or more nor an ECDSA key")]
    NotAKey(#[from] rcgen::Error),
    /// An ECDSA key of an unsupported curve.
    #[error("tokens are signed with RSA keys and with ECDSA keys of the curves P-256 and P-384, not with {0}")]
    Unsupported(String),
    /// Signing failed.
    #[error("the key does not sign: {0}")]
    Signing(#[from] jsonwebtoken::errors::Error),
}

/// The issuer of tokens in secrets.
const ISSUER: &str = "kubernetes/serviceaccount";

// === impl Signer ===

impl Signer {
    /// Returns a signer for a private key in PEM: RSA (PKCS #1 or #8), or ECDSA (SEC 1 or PKCS #8).
    ///
    /// # Errors
    /// The key is malformed, or of an unsupported kind.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeyError> {
        // Files of `openssl ecparam` begin with parameters; the first *key* counts.
        let key = PrivateKeyDer::from_pem_slice(pem)?;
        let pair = KeyPair::try_from(&key)?;
        let curve = |curve| match &key {
            PrivateKeyDer::Sec1(sec1) => EncodingKey::from_ec_der(&der::into_pkcs8(curve, sec1.secret_sec1_der())),
            other => EncodingKey::from_ec_der(other.secret_der()),
        };
        let rsa = || match &key {
            PrivateKeyDer::Pkcs8(pkcs8) => der::out_of_pkcs8(pkcs8.secret_pkcs8_der()).unwrap_or_default(),
            other => other.secret_der(),
        };
        let (algorithm, key) = if pair.is_compatible(&rcgen::PKCS_ECDSA_P256_SHA256) {
            (Algorithm::ES256, curve(der::P256))
        } else if pair.is_compatible(&rcgen::PKCS_ECDSA_P384_SHA384) {
            (Algorithm::ES384, curve(der::P384))
        } else if pair.is_compatible(&rcgen::PKCS_RSA_SHA256) {
            (Algorithm::RS256, EncodingKey::from_rsa_der(rsa()))
        } else {
            return Err(KeyError::Unsupported(format!("{:?}", pair.algorithm())));
        };
        // Upstream's id: a hash of the public key.
        let id = URL_SAFE_NO_PAD.encode(sha256(&pair.subject_public_key_info()));
        Ok(Self(Arc::new(Inner { key, algorithm, id })))
    }

    /// Returns the token of an account, for a secret of this name. It does not expire.
    ///
    /// # Errors
    /// The key cannot sign.
    pub(super) fn legacy_token(&self, account: &Meta, secret: &str) -> Result<String, KeyError> {
        let Meta { name, namespace, uid, .. } = account;
        let claims = json!({
            "iss": ISSUER,
            "sub": format!("system:serviceaccount:{namespace}:{name}"),
            "kubernetes.io/serviceaccount/namespace": namespace,
            "kubernetes.io/serviceaccount/secret.name": secret,
            "kubernetes.io/serviceaccount/service-account.name": name,
            "kubernetes.io/serviceaccount/service-account.uid": uid,
        });
        let header = Header { typ: None, kid: Some(self.0.id.clone()), ..Header::new(self.0.algorithm) };
        Ok(jsonwebtoken::encode(&header, &claims, &self.0.key)?)
    }
}

/// Keys are not shown.
impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("algorithm", &self.0.algorithm).field("id", &self.0.id).finish_non_exhaustive()
    }
}
