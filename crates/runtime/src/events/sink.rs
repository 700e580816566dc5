//! The shell: one request for an event, and the meaning of its response.

use std::time::Duration;

use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use kube::client::Body;
use serde::Deserialize;
use serde_json::Value;

use super::correlate::{Api, Pending, Verdict};
use crate::connection::exchange::{JSON_METADATA, THROTTLED_MIN, retry_after};

/// Sends events to the server.
pub(super) struct Sink {
    client: kube::Client,
}

/// The outcome of a request.
#[derive(Debug, PartialEq)]
pub(super) enum Attempt {
    /// The event was accepted or refused: nothing is left to do.
    Settled,
    /// The server could not be reached, or is overloaded: retry.
    Failed(Failed),
}

/// A request that should be sent again.
#[derive(Debug, PartialEq)]
pub(super) struct Failed {
    pub(super) problem: String,
    /// The time for which the server asks to wait, if it does.
    pub(super) wait: Option<Duration>,
}

enum Answer {
    Taken,
    Gone,
    Refused,
    Failed(Failed),
}

/// An event is not worth a longer wait.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// More than enough for a refusal.
const ANSWER_BYTES_MAX: usize = 1 << 20;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Refusal {
    reason: String,
    message: String,
}

// === impl Sink ===

impl Sink {
    pub(super) fn new(client: kube::Client) -> Self {
        Self { client }
    }

    pub(super) async fn attempt(&self, verdict: &Verdict) -> Attempt {
        let answer = match verdict {
            Verdict::Skip => Answer::Taken,
            Verdict::Create(pending) => self.create(pending).await,
            Verdict::Patch(pending) => {
                let path = format!("{}/{}", collection(pending), pending.event.name);
                match self.send(Method::PATCH, path, "application/strategic-merge-patch+json", &pending.patch()).await {
                    // Events live for an hour; this one is created again.
                    Answer::Gone => self.create(pending).await,
                    answer => answer,
                }
            }
        };
        match answer {
            Answer::Taken | Answer::Refused | Answer::Gone => Attempt::Settled,
            Answer::Failed(failed) => Attempt::Failed(failed),
        }
    }

    async fn create(&self, pending: &Pending) -> Answer {
        self.send(Method::POST, collection(pending), "application/json", &pending.body()).await
    }

    async fn send(&self, method: Method, path: String, content: &str, body: &Value) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(&path)
            // Only the code of the response is used; the rest should be short.
            .header(header::ACCEPT, JSON_METADATA)
            .header(header::CONTENT_TYPE, content)
            .body(Body::from(body.to_string().into_bytes()));
        let request = match request {
            Ok(request) => request,
            Err(error) => {
                tracing::error!(path, %error, "an event is given up: its path cannot be asked for");
                return Answer::Refused;
            }
        };
        let exchange = async {
            let response = self.client.send(request).await.map_err(|error| error.to_string())?;
            let (head, body) = response.into_parts();
            let body = http_body_util::Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| error.to_string())?.to_bytes();
            Ok::<_, String>((head, body))
        };
        match tokio::time::timeout(ANSWER_WITHIN, exchange).await {
            Err(_) => Answer::Failed(Failed { problem: format!("no answer within {ANSWER_WITHIN:?}"), wait: None }),
            Ok(Err(problem)) => Answer::Failed(Failed { problem, wait: None }),
            Ok(Ok((head, body))) => {
                let seconds = retry_after(&head.headers).map(|seconds| Duration::from_secs(seconds.into()));
                // A time that is not a number of seconds is a date, which none of upstream's servers sends.
                let asks = head.headers.contains_key(header::RETRY_AFTER);
                meaning(head.status, asks.then(|| seconds.unwrap_or(THROTTLED_MIN)), &path, &body)
            }
        }
    }
}

fn collection(Pending { api, event }: &Pending) -> String {
    let namespace = &event.namespace;
    match api {
        Api::Core => format!("/api/v1/namespaces/{namespace}/events"),
        Api::Events => format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events"),
    }
}

/// Interprets a response; `wait` is the time for which the server asks to wait. Upstream gives up on every refusal; its
/// client has waited by then where the server asked for it (`Retry-After`), which is left to the next try here. A 429 without it
/// is not about load: the admission plug-in `EventRateLimit` refuses the events of a namespace or a source, and those of all
/// others must not wait for them.
fn meaning(code: StatusCode, wait: Option<Duration>, path: &str, body: &[u8]) -> Answer {
    if code.is_success() {
        return Answer::Taken;
    }
    let Refusal { reason, message } = serde_json::from_slice(body).unwrap_or_default();
    if wait.is_some() {
        return Answer::Failed(Failed { problem: format!("the server has too much to do: {message}"), wait });
    }
    if code == StatusCode::NOT_FOUND {
        tracing::debug!(path, message, "an event, or its namespace, is not there");
        return Answer::Gone;
    }
    let is_ordinary = reason == "AlreadyExists" || message.contains("because it is being terminated");
    if is_ordinary {
        tracing::debug!(path, message, "the server does not want an event");
    } else {
        tracing::error!(path, code = code.as_u16(), message, "an event is given up: the server refused it");
    }
    Answer::Refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let check = |code: u16, asks: bool, body: &str, want: &str| {
            let wait = asks.then_some(Duration::from_secs(3));
            let got = match meaning(StatusCode::from_u16(code).unwrap(), wait, "/p", body.as_bytes()) {
                Answer::Taken => "taken",
                Answer::Gone => "gone",
                Answer::Refused => "refused",
                Answer::Failed(failed) => {
                    assert_eq!(failed.wait, wait, "{code}");
                    "again"
                }
            };
            assert_eq!(got, want, "{code} {body}");
        };
        check(200, false, "", "taken");
        check(201, false, "{}", "taken");
        check(404, false, "", "gone");
        check(409, false, r#"{"reason":"AlreadyExists"}"#, "refused");
        check(403, false, r#"{"reason":"Forbidden"}"#, "refused");
        check(422, false, "not json", "refused");
        check(500, false, "", "refused");
        check(429, false, r#"{"reason":"TooManyRequests","message":"limit reached on type Namespace"}"#, "refused");
        check(429, true, "", "again");
        check(503, true, "", "again");
    }
}
