//! Sending a request, and distinguishing a response from a refusal.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use steersman_base::ResourceVersion;
use steersman_model::Projection;
use tokio::time::timeout;

use super::protobuf::Unknown;
use super::{Accept, ApiStatus, Expected, ListDecoder, ListQuery, WireError, list_request};
use crate::target::Target;

/// The encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// JSON: a list is one document, a watch one document per line.
    Json,
    /// Kubernetes' protobuf: `k8s\0` and an envelope; a watch is a sequence of frames.
    Protobuf,
}

/// A response of 200: its encoding, and its unread body.
#[derive(Debug)]
pub struct Answer {
    /// The encoding of the body.
    pub format: Format,
    body: Body,
}

/// A refusal is a few hundred bytes; more than this is not read.
const REFUSAL_BYTES_MAX: usize = 64 << 10;
/// The maximum time for the rest of a refusal.
const REFUSAL_WAIT: Duration = Duration::from_secs(10);
/// The characters shown of a refusal that is not a `Status`.
const EXCERPT_CHARS: usize = 200;

/// Sends a request and waits for the head of the response, no longer than `patience`.
///
/// # Errors
/// No connection, no response, or a refusal.
pub async fn send(client: &Client, request: Request<()>, patience: Duration) -> Result<Answer, WireError> {
    let response = timeout(patience, client.send(request.map(|()| Body::empty())))
        .await
        .map_err(|_| WireError::Silent(patience))?
        .map_err(|error| WireError::Connection(Box::new(error)))?;
    if response.status() != StatusCode::OK {
        return Err(WireError::Status(Box::new(refusal(response).await)));
    }
    let format = format(response.headers())?;
    Ok(Answer { format, body: response.into_body() })
}

/// Returns the current version of a resource: by a consistent list of one item. A store that has reached it shows every
/// write that was finished before the call.
///
/// # Errors
/// As a list: no connection, no response within `patience`, or a refusal. It is not retried here.
pub async fn latest_version(
    client: &Client,
    target: &Target,
    patience: Duration,
) -> Result<ResourceVersion, WireError> {
    let request = list_request(target, ListQuery { limit: Some(1), continue_token: "" }, Accept::metadata())?;
    let mut answer = send(client, request, patience).await?;
    let mut decoder = ListDecoder::new(answer.format, Expected::new(&target.resource, Projection::Metadata));
    while let Some(chunk) = answer.chunk(patience).await? {
        decoder.feed(&chunk);
        while decoder.next_item()?.is_some() {}
    }
    Ok(decoder.finish()?.resource_version)
}

// === impl Answer ===

impl Answer {
    /// Returns the next bytes of the body; `None` at its end.
    ///
    /// # Errors
    /// The connection broke, or nothing came within `patience`.
    pub async fn chunk(&mut self, patience: Duration) -> Result<Option<Bytes>, WireError> {
        loop {
            let frame = timeout(patience, self.body.frame()).await.map_err(|_| WireError::Silent(patience))?;
            let Some(frame) = frame else { return Ok(None) };
            // Trailers are not needed.
            if let Ok(chunk) = frame.map_err(|error| WireError::Connection(Box::new(error)))?.into_data()
                && !chunk.is_empty()
            {
                return Ok(Some(chunk));
            }
        }
    }
}

fn format(headers: &HeaderMap) -> Result<Format, WireError> {
    let Some(kind) = headers.get(CONTENT_TYPE) else { return Ok(Format::Json) };
    let kind = kind.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    match kind.to_ascii_lowercase().as_slice() {
        b"application/json" => Ok(Format::Json),
        b"application/vnd.kubernetes.protobuf" => Ok(Format::Protobuf),
        other => Err(WireError::WrongKind {
            expected: "JSON or protobuf".to_owned(),
            found: format!("content of type {}", String::from_utf8_lossy(other)),
        }),
    }
}

/// Reads the refusal: a `Status` in either encoding, or the text of a proxy.
async fn refusal(response: Response<Body>) -> ApiStatus {
    let (head, mut body) = response.into_parts();
    let mut bytes = Vec::new();
    let read = async {
        while bytes.len() < REFUSAL_BYTES_MAX
            && let Some(Ok(frame)) = body.frame().await
        {
            if let Ok(chunk) = frame.into_data() {
                bytes.extend_from_slice(&chunk);
            }
        }
    };
    // The code alone says most; without the rest of the text it goes on.
    let _ = timeout(REFUSAL_WAIT, read).await;
    let mut status = match Unknown::open(&bytes) {
        Ok(unknown) => ApiStatus::from_protobuf(unknown.raw).ok(),
        Err(_) => ApiStatus::from_json(&bytes).ok(),
    }
    .unwrap_or_else(|| ApiStatus { message: excerpt(&bytes), ..ApiStatus::default() });
    status.code = head.status.as_u16();
    if let Some(wait) = retry_after(&head.headers) {
        status.retry_after = Some(wait);
    }
    status
}

/// `Retry-After` in seconds, as API servers send it. A date is ignored, and the usual back-off applies.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u32 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    (seconds > 0).then(|| Duration::from_secs(u64::from(seconds)))
}

fn excerpt(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().chars().take(EXCERPT_CHARS).collect()
}
