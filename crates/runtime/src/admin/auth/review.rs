//! Reviews by the API server: `TokenReview` and `SubjectAccessReview`.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::super::Access;
use super::{NotAuthentic, REVIEW_PATIENCE, User};

/// The decision about a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Decision {
    /// The pages that the client may see, if the request is allowed.
    pub(super) allowed: Option<Access>,
    /// Whether the request was explicitly denied, rather than not allowed.
    pub(super) denied: bool,
    /// The reason, as the API server gives it.
    pub(super) reason: String,
}

/// A review without an answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReviewError {
    /// The API server did not answer.
    #[error("the API server does not answer: {0}")]
    NoAnswer(String),
    /// The API server did not answer in time.
    #[error("the API server did not answer within {} s", REVIEW_PATIENCE.as_secs())]
    TooSlow,
    /// The API server answered why it does not decide: a token is invalid, an authorizer cannot be asked.
    #[error("the API server answered: {0}")]
    Undecided(String),
    /// The API server refused the review.
    #[error("the API server answered {code}: {message}")]
    Refused {
        /// The status code.
        code: StatusCode,
        /// The message.
        message: String,
    },
    /// The answer cannot be read.
    #[error("the API server's answer cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
}

#[derive(Deserialize)]
struct Reviewed<S> {
    status: S,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TokenStatus {
    authenticated: bool,
    user: UserInfo,
    error: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct UserInfo {
    username: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct AccessStatus {
    allowed: bool,
    denied: bool,
    reason: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Refusal {
    message: String,
}

/// Upstream's `DefaultAuthWebhookRetryBackoff`: five tries, 500 ms, a factor of 1.5, a jitter of a fifth.
const TRIES: u32 = 5;
const WAIT: Duration = Duration::from_millis(500);
const WAIT_FACTOR: f64 = 1.5;
const WAIT_JITTER: f64 = 0.2;
/// Answers to reviews are a few hundred bytes; bundles of authorities are some thousand.
const ANSWER_BYTES_MAX: usize = 1 << 20;

const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// Returns the user of a token; the inner error if the token is not valid.
pub(super) async fn token(client: &Client, token: &str) -> Result<Result<User, NotAuthentic>, ReviewError> {
    let review = json!({
        "kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "metadata": {}, "spec": {"token": token},
    });
    let TokenStatus { authenticated, user, error } = post(client, TOKEN_REVIEWS, &review).await?;
    if authenticated {
        let UserInfo { username: name, uid, groups, extra } = user;
        return Ok(Ok(User { name, uid, groups, extra }));
    }
    if error.is_empty() {
        return Ok(Err(NotAuthentic("invalid bearer token".to_owned())));
    }
    // The server could not decide: upstream does not cache that either.
    Err(ReviewError::Undecided(error))
}

/// Asks whether this user may do this.
pub(super) async fn access(client: &Client, user: &User, verb: &str, path: &str) -> Result<Decision, ReviewError> {
    let mut spec = json!({"nonResourceAttributes": {"path": path, "verb": verb}, "user": user.name});
    if !user.groups.is_empty() {
        spec["groups"] = json!(user.groups);
    }
    if !user.uid.is_empty() {
        spec["uid"] = json!(user.uid);
    }
    if !user.extra.is_empty() {
        spec["extra"] = json!(user.extra);
    }
    let review = json!({
        "kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}, "spec": spec,
    });
    let AccessStatus { allowed, denied, reason } = post(client, ACCESS_REVIEWS, &review).await?;
    Ok(Decision { allowed: (allowed && !denied).then_some(Access::Authorised), denied, reason })
}

/// Reads an object.
pub(super) async fn get<T: DeserializeOwned>(client: &Client, path: &str) -> Result<T, ReviewError> {
    let request = || Request::get(path).header(header::ACCEPT, "application/json").body(Body::empty());
    retried(|| async { send(client, request().map_err(kube::Error::HttpError)).await }).await
}

async fn post<S: DeserializeOwned>(client: &Client, path: &str, review: &serde_json::Value) -> Result<S, ReviewError> {
    let body = serde_json::to_vec(review)?;
    let request = || {
        Request::post(path)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.clone()))
    };
    let reviewed: Reviewed<S> =
        retried(|| async { send(client, request().map_err(kube::Error::HttpError)).await }).await?;
    Ok(reviewed.status)
}

/// Retries reviews: a review changes nothing, so sending it twice does no harm.
async fn retried<T, F>(ask: impl Fn() -> F) -> Result<T, ReviewError>
where
    F: Future<Output = Result<T, ReviewError>>,
{
    let tries = async {
        let mut wait = WAIT;
        for _ in 1..TRIES {
            match ask().await {
                Err(error) if error.may_pass() => {}
                answer => return answer,
            }
            tokio::time::sleep(wait.mul_f64(1.0 + WAIT_JITTER * fastrand::f64())).await;
            wait = wait.mul_f64(WAIT_FACTOR);
        }
        ask().await
    };
    tokio::time::timeout(REVIEW_PATIENCE, tries).await.unwrap_or(Err(ReviewError::TooSlow))
}

async fn send<T: DeserializeOwned>(
    client: &Client,
    request: Result<Request<Body>, kube::Error>,
) -> Result<T, ReviewError> {
    let no_answer = |error: &dyn std::fmt::Display| ReviewError::NoAnswer(error.to_string());
    let request = request.map_err(|error| no_answer(&error))?;
    let response = client.send(request).await.map_err(|error| no_answer(&error))?;
    let code = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| no_answer(&error))?.to_bytes();
    if !code.is_success() {
        let refusal: Refusal = serde_json::from_slice(&body).unwrap_or_default();
        return Err(ReviewError::Refused { code, message: refusal.message });
    }
    Ok(serde_json::from_slice(&body)?)
}

// === impl Decision ===

impl Decision {
    pub(super) fn allow(access: Access) -> Self {
        Self { allowed: Some(access), ..Self::default() }
    }
}

// === impl ReviewError ===

impl ReviewError {
    fn may_pass(&self) -> bool {
        match self {
            Self::NoAnswer(_) => true,
            Self::Refused { code, .. } => *code == StatusCode::TOO_MANY_REQUESTS || code.is_server_error(),
            Self::TooSlow | Self::Undecided(_) | Self::Unreadable(_) => false,
        }
    }
}
