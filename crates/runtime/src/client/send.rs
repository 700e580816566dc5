//! Sending a request and reading its answer.

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use kube::client::Body;

use super::request::Call;
use super::{CachedClient, ClientError};
use crate::NotLeader;
use crate::connection::exchange::{ANSWER_WITHIN, never_sent, retry_after};

/// No object is larger: upstream's servers take 3 MiB at most, and etcd 1.5 MiB.
const ANSWER_BYTES_MAX: usize = 16 << 20;

impl CachedClient {
    /// Sends a request once, and returns the body of a success.
    pub(super) async fn send(&self, call: Call<'_>) -> Result<Bytes, ClientError> {
        let what = call.what();
        let request = call.request()?;
        let exchange = async {
            // Not `Client::request`, which copies the body and logs it whole on errors.
            let client = &self.shared.client;
            let sent = match &self.mode.leadership {
                // A write is sent only while this process leads, if it has to lead.
                Some(leadership) if request.method() != Method::GET => leadership.send(client, request).await,
                _ => client.send(request.map(Body::from)).await,
            };
            let response = sent.map_err(|error| not_answered(&what, error))?;
            let (head, body) = response.into_parts();
            let no_answer = |source| ClientError::NoAnswer { what: what.clone(), source };
            let body = http_body_util::Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(no_answer)?;
            let body = body.to_bytes();
            if head.status.is_success() {
                return Ok(body);
            }
            Err(ClientError::refused(what.clone(), head.status, retry_after(&head.headers), &body))
        };
        match tokio::time::timeout(ANSWER_WITHIN, exchange).await {
            Ok(outcome) => outcome,
            Err(late) => Err(ClientError::NoAnswer { what: what.clone(), source: late.into() }),
        }
    }
}

/// A request that found no connection was never sent; after any other failure the outcome is unknown.
fn not_answered(what: &str, error: kube::Error) -> ClientError {
    if let Some(refusal) = NotLeader::cause_of(&error) {
        return refusal.clone().into();
    }
    let unsent = never_sent(&error);
    let what = what.to_owned();
    let source = error.into();
    if unsent { ClientError::Unreachable { what, source } } else { ClientError::NoAnswer { what, source } }
}
