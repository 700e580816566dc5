//! AdmissionReviews: the question, and what is taken for an answer. Pure.
//!
//! Follows `apiserver/pkg/admission/plugin/webhook/{request/admissionreview.go,errors/statuserror.go}` of Kubernetes 1.37.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::decode::type_name;
use crate::kinds::shared::json::text;
use crate::status::{Details, Status};
use crate::webhook::decode_answer;

const GROUP: &str = "admission.k8s.io";
const KIND: &str = "AdmissionReview";
/// The versions of reviews that are known.
pub(super) const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The kind of the webhook that answers: only mutating ones may answer with a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Mutating,
    Validating,
}

/// The answer of a webhook.
#[derive(Debug, PartialEq)]
pub(super) struct Response {
    pub(super) is_allowed: bool,
    /// The patch, not yet read; empty if there is none.
    pub(super) patch: Vec<u8>,
    pub(super) patch_type: String,
    /// `status`: why it says no.
    pub(super) result: Value,
    pub(super) warnings: Vec<String>,
}

/// The reason why an answer is not usable.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It cannot be read.
    Unreadable(String),
    /// It is no answer to the question.
    Invalid(String),
}

/// Returns the first version of a review that is known.
pub(super) fn version_of(accepted: &[String]) -> Option<&'static str> {
    accepted.iter().find_map(|version| VERSIONS.into_iter().find(|known| known == version))
}

/// Returns the question.
pub(super) fn question(version: &str, request: &Value) -> Value {
    json!({"kind": KIND, "apiVersion": format!("{GROUP}/{version}"), "request": request})
}

/// Reads the answer to the question with this uid.
pub(super) fn read(version: &str, uid: &str, of: Of, body: &[u8]) -> Result<Response, Wrong> {
    let review = decode_answer(body).map_err(Wrong::Unreadable)?;
    let api_version = text(&review["apiVersion"]);
    let kind = text(&review["kind"]);
    check_kind(version, api_version, kind)?;
    let response = &review["response"];
    if response.is_null() {
        return Err(Wrong::Invalid("webhook response was absent".to_owned()));
    }
    let fields = fields(response)?;
    if version == "v1" {
        if fields.uid != uid {
            return Err(Wrong::Invalid(format!("expected response.uid={uid:?}, got {:?}", fields.uid)));
        }
        if api_version != "admission.k8s.io/v1" || kind != KIND {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            let wrong = format!(
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {group}/{version}, \
                 Kind={kind}"
            );
            return Err(Wrong::Invalid(wrong));
        }
    }
    check_patch(version, of, fields)
}

/// The fields of a response, with the right types.
struct Fields {
    uid: String,
    is_allowed: bool,
    patch: Vec<u8>,
    patch_type: Option<String>,
    result: Value,
    warnings: Vec<String>,
}

/// Refuses a review of another kind, which upstream cannot convert. One without a kind is taken for the right one.
fn check_kind(version: &str, api_version: &str, kind: &str) -> Result<(), Wrong> {
    let sent_group = api_version.split_once('/').map_or("", |(group, _)| group);
    let sent_version = api_version.split_once('/').map_or(api_version, |(_, version)| version);
    let kind = if kind.is_empty() { KIND } else { kind };
    if api_version.is_empty() && kind == KIND {
        return Ok(());
    }
    let is_known = kind == KIND && sent_group == GROUP && VERSIONS.contains(&sent_version);
    if !is_known {
        let wrong = format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
        );
        return Err(Wrong::Unreadable(wrong));
    }
    if sent_version != version {
        let wrong = format!("converting ({sent_version}.{KIND}) to ({version}.{KIND}): unknown conversion");
        return Err(Wrong::Unreadable(wrong));
    }
    Ok(())
}

fn fields(response: &Value) -> Result<Fields, Wrong> {
    let mismatch = |found: &Value, field: &str, want: &str| {
        let found = type_name(found);
        let place = if field.is_empty() {
            "AdmissionReview.response".to_owned()
        } else {
            format!("AdmissionResponse.response.{field}")
        };
        Wrong::Unreadable(format!("json: cannot unmarshal {found} into Go struct field {place} of type {want}"))
    };
    if !response.is_object() {
        return Err(mismatch(response, "", "v1.AdmissionResponse"));
    }
    let words = |field: &str, want: &str| match &response[field] {
        Value::Null => Ok(None),
        Value::String(word) => Ok(Some(word.clone())),
        other => Err(mismatch(other, field, want)),
    };
    let is_allowed = match &response["allowed"] {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        other => return Err(mismatch(other, "allowed", "bool")),
    };
    let mut warnings = Vec::new();
    match &response["warnings"] {
        Value::Null => {}
        Value::Array(list) => {
            for warning in list {
                let word = warning.as_str().ok_or_else(|| mismatch(warning, "warnings", "string"))?;
                warnings.push(word.to_owned());
            }
        }
        other => return Err(mismatch(other, "warnings", "[]string")),
    }
    match &response["auditAnnotations"] {
        Value::Null => {}
        Value::Object(annotations) => {
            if let Some(other) = annotations.values().find(|value| !value.is_string()) {
                return Err(mismatch(other, "auditAnnotations", "string"));
            }
        }
        other => return Err(mismatch(other, "auditAnnotations", "map[string]string")),
    }
    let result = &response["status"];
    if !result.is_null() && !result.is_object() {
        return Err(mismatch(result, "status", "v1.Status"));
    }
    let patch = words("patch", "[]uint8")?.unwrap_or_default();
    let patch = STANDARD.decode(patch.as_bytes()).map_err(|error| {
        let at = match error {
            base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => at,
            _ => patch.len(),
        };
        Wrong::Unreadable(format!("illegal base64 data at input byte {at}"))
    })?;
    Ok(Fields {
        uid: words("uid", "types.UID")?.unwrap_or_default(),
        is_allowed,
        patch,
        patch_type: words("patchType", "v1.PatchType")?,
        result: result.clone(),
        warnings,
    })
}

fn check_patch(version: &str, of: Of, fields: Fields) -> Result<Response, Wrong> {
    let Fields { is_allowed, mut patch, patch_type, result, warnings, .. } = fields;
    let invalid = |wrong: &str| Err(Wrong::Invalid(wrong.to_owned()));
    let patch_type = match (version, of) {
        ("v1", Of::Mutating) => {
            if !patch.is_empty() && patch_type.is_none() {
                return invalid("webhook returned response.patch but not response.patchType");
            }
            if patch.is_empty() && patch_type.is_some() {
                return invalid("webhook returned response.patchType but not response.patch");
            }
            if patch_type.as_ref().is_some_and(String::is_empty) {
                return invalid("webhook returned invalid response.patchType of \"\"");
            }
            patch_type.unwrap_or_default()
        }
        ("v1", Of::Validating) => {
            if !patch.is_empty() {
                return invalid("validating webhook may not return response.patch");
            }
            if patch_type.is_some() {
                return invalid("validating webhook may not return response.patchType");
            }
            String::new()
        }
        (_, Of::Mutating) => "JSONPatch".to_owned(),
        (_, Of::Validating) => {
            patch.clear();
            String::new()
        }
    };
    Ok(Response { is_allowed, patch, patch_type, result, warnings })
}

/// Returns the refusal of a webhook that said no: what it answered, with its name in the message.
pub(super) fn denial(webhook: &str, result: &Value) -> Status {
    let denied_by = format!("admission webhook {webhook:?} denied the request");
    let message = match (text(&result["message"]), text(&result["reason"])) {
        ("", "") => format!("{denied_by} without explanation"),
        ("", reason) => format!("{denied_by}: {reason}"),
        (message, _) => format!("{denied_by}: {message}"),
    };
    let code = result["code"].as_i64().filter(|code| (400..1000).contains(code)).unwrap_or(400);
    let mut shown = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code});
    shown["message"] = message.clone().into();
    if let Some(status) = result["status"].as_str().filter(|status| !matches!(*status, "" | "Success")) {
        shown["status"] = status.into();
    }
    if let Some(reason) = result["reason"].as_str().filter(|reason| !reason.is_empty()) {
        shown["reason"] = reason.into();
    }
    let details = &result["details"];
    if details.is_object() {
        shown["details"] = details.clone();
    }
    let retry_after_seconds = details["retryAfterSeconds"].as_u64().and_then(|seconds| u32::try_from(seconds).ok());
    let details =
        Details { retry_after_seconds: retry_after_seconds.unwrap_or(0), answered: Some(shown), ..Details::default() };
    let code = u16::try_from(code).unwrap_or(400);
    Status { code, reason: "", message, details: Some(Box::new(details)), warnings: Vec::new() }
}
