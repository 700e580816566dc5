//! Pure: what a token secret lacks, and its content.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use steersman_base::Meta;
use steersman_base::names::annotations::{SERVICE_ACCOUNT_NAME, SERVICE_ACCOUNT_UID};
use steersman_model::core::TokenData;

use super::signer::{KeyError, Signer};

/// The type of token secrets.
pub(super) const TYPE: &str = "kubernetes.io/service-account-token";

/// The content of token secrets.
#[derive(Clone, Debug)]
pub(super) struct Fill {
    pub(super) signer: Signer,
    /// In Base64.
    pub(super) root_ca: Option<String>,
}

/// The missing parts of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lacks {
    pub(super) ca_certificate: bool,
    pub(super) namespace: bool,
    pub(super) token: bool,
}

pub(super) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

// === impl Lacks ===

impl Lacks {
    /// Whether nothing is missing.
    pub(super) fn is_nothing(self) -> bool {
        self == Self { ca_certificate: false, namespace: false, token: false }
    }
}

// === impl Fill ===

impl Fill {
    /// Returns the missing parts of a secret.
    pub(super) fn lacks(&self, data: &TokenData) -> Lacks {
        let is_right = |root_ca: &String| data.ca_certificate == root_ca.as_str();
        Lacks {
            ca_certificate: !self.root_ca.as_ref().filter(|root_ca| !root_ca.is_empty()).is_none_or(is_right),
            namespace: !data.has_namespace,
            token: !data.has_token,
        }
    }

    /// Fills a secret, as the server has it, for an account; returns whether anything was missing.
    ///
    /// # Errors
    /// The key cannot sign.
    pub(super) fn fill(&self, secret: &mut Value, account: &Meta) -> Result<bool, KeyError> {
        let text = |name: &str| secret["data"][name].as_str().unwrap_or_default();
        let lacks = self.lacks(&TokenData {
            ca_certificate: text("ca.crt").into(),
            has_namespace: !text("namespace").is_empty(),
            has_token: !text("token").is_empty(),
        });
        if lacks.is_nothing() {
            return Ok(false);
        }
        let name = secret["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        for part in ["/data", "/metadata/annotations"] {
            make_map(secret, part);
        }
        let data = &mut secret["data"];
        if let Some(root_ca) = self.root_ca.as_ref().filter(|_| lacks.ca_certificate) {
            data["ca.crt"] = root_ca.as_str().into();
        }
        if lacks.namespace {
            data["namespace"] = base64(account.namespace.as_bytes()).into();
        }
        if lacks.token {
            data["token"] = base64(self.signer.legacy_token(account, &name)?.as_bytes()).into();
        }
        secret["metadata"]["annotations"][SERVICE_ACCOUNT_NAME] = json!(account.name);
        secret["metadata"]["annotations"][SERVICE_ACCOUNT_UID] = json!(account.uid);
        Ok(true)
    }
}

/// Replaces the value by an empty map, if it is not a map.
fn make_map(object: &mut Value, place: &str) {
    let mut at = object;
    for name in place.split('/').filter(|name| !name.is_empty()) {
        at = &mut at[name];
        if !at.is_object() {
            *at = json!({});
        }
    }
}
