//! The one way to write.
//!
//! 1. Every write has a [`Reason`] and an owner: the object on whose behalf it is made.
//! 2. Every write is in the consistency book before the caller goes on, so that the owner's next reconcile waits until
//!    the caches show it.
//! 3. Deletes and patches name the uid they mean: a new object of the same name is never touched.
//! 4. No write is sent twice: an outcome that is not known is [`WriteError::Unknown`], and the owner waits for a barrier
//!    read instead.
//! 5. Conflict, not found, already exists and a terminating namespace are ordinary outcomes, each a variant.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, header};
use http_body_util::BodyExt;
use kube::client::Body;
use serde::Deserialize;
use steersman_base::{Meta, ObjectKey, Resource};
use steersman_informer::consistency::Book;

use crate::Reason;

mod answer;
mod slow_start;

pub use answer::Written;

/// Sends writes, with reasons. Cheap to clone.
#[derive(Clone)]
pub struct Writer {
    shared: Arc<Shared>,
}

struct Shared {
    client: kube::Client,
    book: Book,
}

/// Writes on behalf of one object.
pub struct Behalf<'a> {
    writer: &'a Writer,
    owner: &'a Meta,
}

/// How to delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// Dependents go later, by the garbage collector.
    Background,
    /// The object goes after its dependents.
    Foreground,
    /// Dependents stay, and lose their reference.
    Orphan,
}

/// Why a write has not been made, or may not have been.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Somebody else changed the object first: look again.
    #[error("somebody else changed the object first")]
    Conflict,
    /// The object is not there: look again.
    #[error("the object is not there")]
    NotFound,
    /// An object of this name exists: look again.
    #[error("an object of this name exists already")]
    AlreadyExists,
    /// The namespace is going away: there is nothing to do.
    #[error("the namespace is going away")]
    NamespaceTerminating,
    /// It was sent and nobody knows what became of it. The owner waits for a barrier read.
    #[error("it is not known whether the write was made: {0}")]
    Unknown(String),
    /// It was never sent: the server cannot be reached.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The server refused it.
    #[error("the server refused: {0}")]
    Rejected(Rejection),
    /// The server has too much to do, and says when to come back.
    #[error("the server asks to come back in {0:?}")]
    Throttled(Duration),
}

/// What the server said when it refused.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Rejection {
    /// HTTP code.
    pub code: u16,
    /// The reason in one word, such as `Invalid`.
    pub reason: String,
    /// The reason in a sentence.
    pub message: String,
    /// What is wrong, field by field.
    pub details: RejectionDetails,
}

/// The machine-readable part of a [`Rejection`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RejectionDetails {
    /// What is wrong, field by field.
    pub causes: Vec<RejectionCause>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RejectionCause {
    /// What kind of wrong.
    pub reason: String,
    /// In a sentence.
    pub message: String,
    /// Which field.
    pub field: String,
}

/// A write that has no answer after this long has an unknown outcome: upstream's servers give up after a minute.
const ANSWER_WITHIN: Duration = Duration::from_secs(65);
/// What is told of a refusal that is not a Kubernetes status: enough to recognise a proxy's error page.
const REFUSAL_SHOWN_MAX: usize = 200;
/// An answer holds the object's metadata alone; upstream bounds it well below this.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// The metadata is all a controller needs to know of what it wrote.
const ACCEPT: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

// === impl Writer ===

impl Writer {
    /// A writer that sends through `client` and keeps `book`.
    #[must_use]
    pub fn new(client: kube::Client, book: Book) -> Self {
        Self { shared: Arc::new(Shared { client, book }) }
    }

    /// Writes on behalf of an object: the consistency book is kept per owner.
    #[must_use]
    pub fn on_behalf_of<'a>(&'a self, owner: &'a Meta) -> Behalf<'a> {
        Behalf { writer: self, owner }
    }

    async fn send(&self, request: Request<Body>) -> Result<Written, WriteError> {
        let exchange = async {
            let response = self.shared.client.send(request).await.map_err(|error| not_answered(&error))?;
            let (head, body) = response.into_parts();
            let body = http_body_util::Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| WriteError::Unknown(error.to_string()))?.to_bytes();
            if head.status.is_success() {
                return answer::written(&body);
            }
            let retry_after = head.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
            Err(answer::failure(head.status, retry_after.map(Duration::from_secs), &body))
        };
        match tokio::time::timeout(ANSWER_WITHIN, exchange).await {
            Ok(outcome) => outcome,
            Err(_) => Err(WriteError::Unknown(format!("no answer within {ANSWER_WITHIN:?}"))),
        }
    }
}

/// A request that found no connection was never sent; any other failure leaves open what the server did.
fn not_answered(error: &kube::Error) -> WriteError {
    let mut text = error.to_string();
    let mut cause: Option<&(dyn std::error::Error + 'static)> = std::error::Error::source(error);
    let mut unsent = false;
    while let Some(error) = cause {
        unsent |= error
            .downcast_ref::<hyper_util::client::legacy::Error>()
            .is_some_and(hyper_util::client::legacy::Error::is_connect);
        text = error.to_string();
        cause = error.source();
    }
    if unsent { WriteError::Unreachable(text) } else { WriteError::Unknown(text) }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

// === impl Behalf ===

impl Behalf<'_> {
    /// Creates an object from a JSON body.
    ///
    /// # Errors
    /// See [`WriteError`]; nothing is retried here.
    pub async fn create(&self, resource: &Resource, body: Vec<u8>, why: &dyn Reason) -> Result<Written, WriteError> {
        let path = resource.collection_path(Some(&self.owner.namespace));
        self.write(Method::POST, resource, path, "application/json", body, why).await
    }

    /// Patches an object with a strategic merge patch. The patch should hold the uid of the object it means.
    ///
    /// # Errors
    /// See [`WriteError`]; nothing is retried here.
    pub async fn patch(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        patch: &serde_json::Value,
        why: &dyn Reason,
    ) -> Result<Written, WriteError> {
        let (path, body) = (resource.object_path(key), patch.to_string().into_bytes());
        self.write(Method::PATCH, resource, path, "application/strategic-merge-patch+json", body, why).await
    }

    /// Replaces the status of an object. The body's resourceVersion is the precondition.
    ///
    /// # Errors
    /// See [`WriteError`]; nothing is retried here.
    pub async fn put_status(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        body: Vec<u8>,
        why: &dyn Reason,
    ) -> Result<Written, WriteError> {
        let path = resource.subresource_path(key, "status");
        self.write(Method::PUT, resource, path, "application/json", body, why).await
    }

    /// Deletes an object: this one, and none that got its name since.
    ///
    /// # Errors
    /// See [`WriteError`]; nothing is retried here.
    pub async fn delete(
        &self,
        resource: &Resource,
        object: &Meta,
        propagation: Propagation,
        why: &dyn Reason,
    ) -> Result<(), WriteError> {
        let key = object.key();
        let body = serde_json::json!({
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": format!("{propagation:?}"),
            "preconditions": { "uid": object.uid },
        });
        let path = resource.object_path(&key);
        let book = &self.writer.shared.book;
        tracing::info!(%resource, object = %key, reason = why.code(), "delete: {why}");
        let outcome =
            self.writer.send(request(Method::DELETE, path, "application/json", body.to_string().into())?).await;
        match outcome {
            Ok(_) => book.deleted(&self.owner.uid, resource, key, object.uid.clone()),
            Err(WriteError::Unknown(_)) => book.unknown(&self.owner.uid, resource),
            Err(_) => {}
        }
        outcome.map(drop)
    }

    /// Makes `count` equal writes, in batches of 1, 2, 4, …; the first batch with a failure is the last one. Answers how
    /// many went through, and the first failure.
    pub async fn slow_start<F>(&self, count: usize, write: impl FnMut(usize) -> F) -> (usize, Option<WriteError>)
    where
        F: Future<Output = Result<Written, WriteError>>,
    {
        slow_start::slow_start(count, write).await
    }

    async fn write(
        &self,
        method: Method,
        resource: &Resource,
        path: String,
        content: &'static str,
        body: Vec<u8>,
        why: &dyn Reason,
    ) -> Result<Written, WriteError> {
        tracing::info!(%method, path, reason = why.code(), "write: {why}");
        let outcome = self.writer.send(request(method, path, content, body)?).await;
        let book = &self.writer.shared.book;
        match &outcome {
            Ok(written) => book.wrote(&self.owner.uid, resource, written.resource_version.clone()),
            Err(WriteError::Unknown(_)) => book.unknown(&self.owner.uid, resource),
            Err(_) => {}
        }
        outcome
    }
}

fn request(method: Method, path: String, content: &'static str, body: Vec<u8>) -> Result<Request<Body>, WriteError> {
    Request::builder()
        .method(method)
        .uri(path)
        .header(header::ACCEPT, ACCEPT)
        .header(header::CONTENT_TYPE, content)
        .body(Body::from(body))
        .map_err(|error| WriteError::Unreachable(format!("the path cannot be asked for: {error}")))
}

// === impl Rejection ===

impl Rejection {
    /// Whether the server gave this cause.
    #[must_use]
    pub fn has_cause(&self, reason: &str) -> bool {
        self.details.causes.iter().any(|cause| cause.reason == reason)
    }

    fn with_code(mut self, code: http::StatusCode, body: &[u8]) -> Self {
        self.code = code.as_u16();
        if self.message.is_empty() {
            self.message = String::from_utf8_lossy(&body[..body.len().min(REFUSAL_SHOWN_MAX)]).into_owned();
        }
        self
    }
}

impl std::fmt::Display for Rejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}
