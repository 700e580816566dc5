//! `AdmissionReview` of `admission.k8s.io/v1`: reading and writing.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use json_patch::Patch;
use kube::core::{GroupVersionKind, GroupVersionResource};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::admission::{Admission, Denial, Operation, User, Verdict};
use crate::serving::{Request, Response, text, with_type};

/// A body that is not a review; answered with 400.
#[derive(Debug)]
pub(super) struct Malformed(pub(super) String);

/// A review whose objects are not typed yet.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Question {
    pub(super) uid: String,
    kind: GroupVersionKind,
    resource: GroupVersionResource,
    sub_resource: Option<String>,
    request_kind: Option<GroupVersionKind>,
    request_resource: Option<GroupVersionResource>,
    request_sub_resource: Option<String>,
    #[serde(default)]
    name: String,
    namespace: Option<String>,
    operation: Operation,
    #[serde(default)]
    user_info: User,
    #[serde(default)]
    pub(super) object: Value,
    #[serde(default)]
    old_object: Value,
    #[serde(default)]
    dry_run: Option<bool>,
    #[serde(default)]
    options: Value,
}

/// The fields of every review.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<Value>,
}

pub(super) const API_VERSION: &str = "admission.k8s.io/v1";
pub(super) const KIND: &str = "AdmissionReview";

/// Reads the review of a request.
pub(super) fn read(request: &Request) -> Result<Question, Malformed> {
    open(request.body(), API_VERSION, KIND)
}

/// Reads the request of a review of this kind.
pub(super) fn open<R: DeserializeOwned>(body: &[u8], api_version: &str, kind: &str) -> Result<R, Malformed> {
    if body.is_empty() {
        return Err(Malformed(format!("the body is empty; a {kind} is expected")));
    }
    // The kind decides what the parts must be, so it is checked first.
    let envelope: Envelope =
        serde_json::from_slice(body).map_err(|error| Malformed(format!("the body is no {kind}: {error}")))?;
    if envelope.kind != kind || envelope.api_version != api_version {
        let Envelope { api_version: got_version, kind: got_kind, .. } = envelope;
        let got = format!("{got_kind:?} of {got_version:?}");
        return Err(Malformed(format!("the body is a {got}; only {kind} of {api_version} is understood")));
    }
    let Some(request) = envelope.request else {
        return Err(Malformed(format!("the {kind} has no request")));
    };
    serde_json::from_value(request).map_err(|error| Malformed(format!("the request of the {kind} is wrong: {error}")))
}

/// Returns a review with this response.
pub(super) fn answer(uid: &str, verdict: Verdict, patch: Option<&Patch>) -> Response {
    let Verdict { denial, warnings, audit_annotations } = verdict;
    let mut response = json!({"uid": uid, "allowed": denial.is_none()});
    if !warnings.is_empty() {
        response["warnings"] = json!(warnings);
    }
    if !audit_annotations.is_empty() {
        response["auditAnnotations"] = json!(audit_annotations);
    }
    if let Some(denial) = denial {
        response["status"] = status(&denial);
    } else if let Some(patch) = patch.filter(|patch| !patch.0.is_empty()) {
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(STANDARD.encode(json!(patch).to_string()));
    }
    envelope(API_VERSION, KIND, &response)
}

/// `metav1.Status`.
fn status(denial: &Denial) -> Value {
    let Denial { code, reason, message, causes } = denial;
    let mut status = json!({"status": "Failure", "code": code, "reason": reason, "message": message});
    if !causes.is_empty() {
        status["details"] = json!({"causes": causes});
    }
    status
}

/// A review with a response.
pub(super) fn envelope(api_version: &str, kind: &str, response: &Value) -> Response {
    let review = json!({"apiVersion": api_version, "kind": kind, "response": response});
    with_type(StatusCode::OK, "application/json", Bytes::from(review.to_string()))
}

// === impl Question ===

impl Question {
    /// Decodes the objects as this type.
    pub(super) fn typed<K: DeserializeOwned>(&self) -> Result<Admission<K>, Denial> {
        let object = typed(&self.object, "object", &self.kind)?;
        let old_object = typed(&self.old_object, "oldObject", &self.kind)?;
        let some = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        Ok(Admission {
            uid: self.uid.clone(),
            kind: self.kind.clone(),
            resource: self.resource.clone(),
            sub_resource: some(&self.sub_resource),
            request_kind: self.request_kind.clone(),
            request_resource: self.request_resource.clone(),
            request_sub_resource: some(&self.request_sub_resource),
            name: self.name.clone(),
            namespace: some(&self.namespace),
            operation: self.operation,
            user: self.user_info.clone(),
            object,
            old_object,
            dry_run: self.dry_run.unwrap_or(false),
            options: self.options.clone(),
        })
    }
}

fn typed<K: DeserializeOwned>(object: &Value, what: &str, kind: &GroupVersionKind) -> Result<Option<K>, Denial> {
    if object.is_null() {
        return Ok(None);
    }
    K::deserialize(object)
        .map(Some)
        .map_err(|error| Denial::bad_request(format!("the {what} is not as this webhook knows {}: {error}", kind.kind)))
}

// === impl Malformed ===

impl From<Malformed> for Response {
    fn from(Malformed(reason): Malformed) -> Self {
        text(StatusCode::BAD_REQUEST, format!("{reason}\n"))
    }
}
