//! The lease on the server: read, created, replaced.

use std::time::Duration;

use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Map, Value, json};
use steersman_base::ObjectKey;
use steersman_model::coordination::LeaseSpec;
use steersman_model::{DecodeError, Encoded, Kind, LeaseView, View};

/// One lease, through a client.
pub(super) struct LeaseServer {
    client: kube::Client,
    key: ObjectKey,
    patience: Duration,
}

/// A lease that the server has sent.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) view: LeaseView,
    /// The object as received, so that unknown fields survive when it is sent back.
    object: Map<String, Value>,
}

/// An error of a read or write of the lease. The elector retries by its own clock.
#[derive(Debug, thiserror::Error)]
pub(super) enum LeaseError {
    #[error("the lease was changed by another process")]
    Conflict,
    #[error("no answer: {0}")]
    NoAnswer(String),
    #[error("the server refused with {0}: {1}")]
    Refused(StatusCode, String),
    #[error("the answer cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the answer is not a lease: {0}")]
    NoLease(#[from] DecodeError),
}

/// A lease is a few hundred bytes; even with annotations at their limit (256 KiB) it is less than this.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// The bytes of a refusal that are shown.
const REFUSAL_SHOWN_MAX: usize = 200;

// === impl LeaseError ===

impl LeaseError {
    /// Whether the server will keep refusing until its configuration changes.
    pub(super) fn is_lasting(&self) -> bool {
        matches!(self, Self::Refused(status, _) if status.is_client_error() && *status != StatusCode::TOO_MANY_REQUESTS)
    }
}

// === impl LeaseServer ===

impl LeaseServer {
    pub(super) fn new(client: kube::Client, key: ObjectKey, patience: Duration) -> Self {
        Self { client, key, patience }
    }

    pub(super) fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// Reads the lease; `None` if there is none.
    pub(super) async fn get(&self) -> Result<Option<Lease>, LeaseError> {
        match self.exchange(Method::GET, LeaseView::RESOURCE.object_path(&self.key), Vec::new()).await {
            Ok(lease) => Ok(Some(lease)),
            Err(LeaseError::Refused(StatusCode::NOT_FOUND, _)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn create(&self, record: &LeaseSpec) -> Result<Lease, LeaseError> {
        let resource = LeaseView::RESOURCE;
        let kind = &*resource.kind;
        let version = resource.api_version();
        let metadata = json!({"name": &*self.key.name, "namespace": &*self.key.namespace});
        let object = json!({"kind": kind, "apiVersion": version, "metadata": metadata, "spec": record});
        let path = resource.collection_path(Some(&self.key.namespace));
        self.exchange(Method::POST, path, serde_json::to_vec(&object)?).await
    }

    /// Replaces a lease that was read before, unless it has changed since.
    pub(super) async fn update(&self, lease: &Lease, record: &LeaseSpec) -> Result<Lease, LeaseError> {
        let body = serde_json::to_vec(&lease.with(record)?)?;
        self.exchange(Method::PUT, LeaseView::RESOURCE.object_path(&self.key), body).await
    }

    async fn exchange(&self, method: Method, path: String, body: Vec<u8>) -> Result<Lease, LeaseError> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body))
            .map_err(|error| LeaseError::NoAnswer(error.to_string()))?;
        let exchange = async {
            let response = self.client.send(request).await.map_err(|error| LeaseError::NoAnswer(root_cause(&error)))?;
            let (head, body) = response.into_parts();
            let body = http_body_util::Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| LeaseError::NoAnswer(error.to_string()))?.to_bytes();
            match head.status {
                status if status.is_success() => Lease::read(&body),
                StatusCode::CONFLICT => Err(LeaseError::Conflict),
                status => Err(LeaseError::Refused(status, message(&body))),
            }
        };
        match tokio::time::timeout(self.patience, exchange).await {
            Ok(outcome) => outcome,
            Err(_) => Err(LeaseError::NoAnswer(format!("none within {:?}", self.patience))),
        }
    }
}

/// Returns the message of a Kubernetes status, or the beginning of another body.
fn message(body: &[u8]) -> String {
    let status = serde_json::from_slice::<Value>(body).ok();
    let message = status.as_ref().and_then(|status| status["message"].as_str());
    message
        .map_or_else(|| String::from_utf8_lossy(&body[..body.len().min(REFUSAL_SHOWN_MAX)]).into_owned(), str::to_owned)
}

fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}

// === impl Lease ===

impl Lease {
    pub(super) fn read(body: &[u8]) -> Result<Self, LeaseError> {
        Ok(Self { view: LeaseView::decode(Encoded::Json(body))?, object: serde_json::from_slice(body)? })
    }

    /// Returns the lease with this record; everything else is as received.
    fn with(&self, record: &LeaseSpec) -> Result<Map<String, Value>, LeaseError> {
        let mut object = self.object.clone();
        let spec = object.entry("spec").or_insert_with(|| json!({}));
        if !spec.is_object() {
            *spec = json!({});
        }
        if let (Value::Object(spec), Value::Object(record)) = (spec, serde_json::to_value(record)?) {
            spec.extend(record);
        }
        Ok(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_changes_the_record_and_nothing_else() {
        let before = json!({
            "kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
            "metadata": {
                "name": "l", "namespace": "n", "resourceVersion": "7", "labels": {"a": "b"}, "annotations": {"c": "d"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}], "newer": true,
            },
            "spec": {
                "holderIdentity": "other", "leaseDurationSeconds": 15, "leaseTransitions": 3,
                "strategy": "OldestEmulationVersion", "preferredHolder": "best", "newer": {"than": "us"},
            },
        });
        let lease = Lease::read(before.to_string().as_bytes()).unwrap();
        let record = LeaseSpec {
            holder_identity: Some("".into()),
            lease_transitions: Some(4),
            renew_time: Some("2026-11-15T22:04:07.000042Z".parse().unwrap()),
            ..lease.view.spec.clone()
        };
        let mut want = before;
        want["spec"]["holderIdentity"] = json!("");
        want["spec"]["leaseTransitions"] = json!(4);
        want["spec"]["renewTime"] = json!("2026-11-15T22:04:07.000042Z");
        assert_eq!(Value::Object(lease.with(&record).unwrap()), want);
    }

    #[test]
    fn a_lease_without_a_spec_gets_one() {
        for body in [r#"{"metadata":{"name":"l"}}"#, r#"{"metadata":{"name":"l"},"spec":null}"#] {
            let lease = Lease::read(body.as_bytes()).unwrap();
            let record = LeaseSpec { holder_identity: Some("me".into()), ..LeaseSpec::default() };
            assert_eq!(lease.with(&record).unwrap()["spec"], json!({"holderIdentity": "me"}));
        }
    }
}
