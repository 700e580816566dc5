//! Bootstrap tokens: the secrets with which new nodes join a cluster.
//!
//! Follows `k8s.io/cluster-bootstrap/util/secrets` of Kubernetes 1.37.1.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use steersman_base::Time;
use steersman_informer::{Selection, SharedInformer};
use steersman_model::View;
use steersman_model::core::BootstrapTokenView;
use steersman_runtime::__internal::descriptor::ControllerContext;

/// The namespace of the tokens.
const NAMESPACE: &str = "kube-system";
const TYPE: &str = "bootstrap.kubernetes.io/token";
const NAME_PREFIX: &str = "bootstrap-token-";
const ID_LENGTH: usize = 6;

/// The time that is left to a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// It does not expire.
    Never,
    /// It expires then.
    At(Time),
    /// It has expired, or does not say when in a way that can be read.
    Expired,
}

/// A token that signs.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) id: String,
    pub(crate) secret: String,
}

/// Returns the informer of bootstrap tokens, which controllers share.
pub(crate) fn informer(cx: &ControllerContext) -> SharedInformer<BootstrapTokenView> {
    cx.informers.informer_in(Selection::namespace(NAMESPACE).with_fields(&format!("type={TYPE}")))
}

/// Returns whether, and when, a token expires.
pub(crate) fn expiry(token: &BootstrapTokenView, now: Time) -> Expiry {
    let text = data(token, "expiration");
    if text.is_empty() {
        return Expiry::Never;
    }
    match text.parse::<Time>() {
        Ok(time) if time > now => Expiry::At(time),
        _ => Expiry::Expired,
    }
}

/// Returns the token of a secret that may sign; `None` if it is malformed, has expired, or is for something else.
pub(crate) fn signing(token: &BootstrapTokenView, now: Time) -> Option<Token> {
    let id = token.meta().name.strip_prefix(NAME_PREFIX)?;
    let is_id = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase();
    let secret = data(token, "token-secret");
    let may_sign = id.len() == ID_LENGTH
        && id.bytes().all(is_id)
        && data(token, "token-id") == id
        && !secret.is_empty()
        && expiry(token, now) != Expiry::Expired
        && data(token, "usage-bootstrap-signing") == "true";
    may_sign.then(|| Token { id: id.to_owned(), secret })
}

/// Returns a text of the data; empty if there is none.
fn data(token: &BootstrapTokenView, key: &str) -> String {
    let bytes = token.data.get(key).and_then(|value| STANDARD.decode(value.0.as_bytes()).ok());
    bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// Secrets are not shown.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("id", &self.id).finish_non_exhaustive()
    }
}
