//! Sending a request and reading its answer.

use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::client::Body;

use super::request::Call;
use super::{CachedClient, ClientError};
use crate::NotLeader;

/// A request that has no answer after this long will have none: upstream's servers give up after a minute.
const ANSWER_WITHIN: Duration = Duration::from_secs(65);
/// No object is larger: upstream's servers take 3 MiB at most, and etcd 1.5 MiB.
const ANSWER_BYTES_MAX: usize = 16 << 20;

impl CachedClient {
    /// Sends a request once, and answers the body of a success.
    pub(super) async fn send(&self, call: Call<'_>) -> Result<Bytes, ClientError> {
        let what = call.what();
        let request = call.request()?;
        let request =
            if request.method() == Method::GET { request.map(Body::from) } else { self.guarded(request).await? };
        let exchange = async {
            // Not `Client::request`, which copies the body and logs it whole on errors.
            let response = self.shared.client.send(request).await.map_err(|error| not_answered(&what, error))?;
            let (head, body) = response.into_parts();
            let no_answer = |source| ClientError::NoAnswer { what: what.clone(), source };
            let body = http_body_util::Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(no_answer)?;
            let body = body.to_bytes();
            if head.status.is_success() {
                return Ok(body);
            }
            let retry_after = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
            Err(ClientError::refused(what.clone(), head.status, retry_after, &body))
        };
        match tokio::time::timeout(ANSWER_WITHIN, exchange).await {
            Ok(outcome) => outcome,
            Err(late) => Err(ClientError::NoAnswer { what: what.clone(), source: late.into() }),
        }
    }

    /// A write that leaves only while this process leads, if it has to.
    async fn guarded(&self, request: Request<Vec<u8>>) -> Result<Request<Body>, ClientError> {
        let Some(leadership) = &self.mode.leadership else { return Ok(request.map(Body::from)) };
        let (head, body) = request.into_parts();
        Ok(Request::from_parts(head, leadership.guard(body).await?))
    }
}

/// A request that found no connection was never sent; any other failure leaves open what the server did.
fn not_answered(what: &str, error: kube::Error) -> ClientError {
    if let Some(refusal) = NotLeader::cause_of(&error) {
        return refusal.clone().into();
    }
    let mut unsent = false;
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(error) = cause {
        unsent |= error
            .downcast_ref::<hyper_util::client::legacy::Error>()
            .is_some_and(hyper_util::client::legacy::Error::is_connect);
        cause = error.source();
    }
    let (what, source) = (what.to_owned(), error.into());
    if unsent { ClientError::Unreachable { what, source } } else { ClientError::NoAnswer { what, source } }
}
