//! Patches: JSON patch (RFC 6902), merge patch (RFC 7396) and strategic merge patch.
//!
//! 1. A patch applies as a whole or not at all; the original is never changed.
//! 2. What comes out is not checked: it goes through [`schema::check_with`] next, together
//!    with the [`findings`] of the patch itself. What that refuses is worded by [`refused_result`].
//! 3. Custom resources take no strategic merge patches, for want of merge keys.
//! 4. The work is bounded: at most 10,000 operations, which copy at most 3 MiB, and a number of steps (see [`work`]). A
//!    patch is read once, however often it is applied.
//!
//! Follows `apiserver/pkg/endpoints/handlers/patch.go` of Kubernetes 1.37.

mod go_format;
mod json_patch;
mod order;
pub(crate) mod shown;
mod strategic;
#[cfg(test)]
mod tests;
mod work;

use std::borrow::Cow;

use serde_json::Value;

use crate::field::{FieldError, Path};
use crate::{decode, schema};
use work::Work;

/// The kinds of patch, by content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchType {
    /// `application/json-patch+json`
    Json,
    /// `application/merge-patch+json`
    Merge,
    /// `application/strategic-merge-patch+json`
    Strategic,
}

/// Why a patch does not apply, with the status upstream answers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct PatchError {
    /// The HTTP status: 400, 413, 415, 422 or 500.
    pub code: u16,
    /// `reason` of the status; empty where upstream gives none (500).
    pub reason: &'static str,
    /// `message` of the status.
    pub message: String,
    /// Whether the status carries empty `details`.
    pub details: bool,
}

/// A patch that has been read.
#[derive(Debug)]
pub(crate) struct Patch {
    patch_type: PatchType,
    value: Value,
    findings: Vec<String>,
}

/// Whether objects of this kind take such patches, which upstream asks before it looks for the object.
///
/// # Errors
/// 415 for a strategic merge patch of a custom resource.
pub(crate) fn accepts(patch_type: PatchType, group: &str, version: &str, kind: &str) -> Result<(), PatchError> {
    if patch_type == PatchType::Strategic && !schema::is_known(group, version, kind) {
        return Err(PatchError::unsupported());
    }
    Ok(())
}

/// Applies a patch to an object and returns what becomes of it, not yet checked against the schema.
///
/// # Errors
/// The patch cannot be read, does not fit the object, or is of a type that the kind does not take.
pub(crate) fn apply(
    patch_type: PatchType,
    group: &str,
    version: &str,
    kind: &str,
    original: &Value,
    patch: &[u8],
) -> Result<Value, PatchError> {
    accepts(patch_type, group, version, kind)?;
    Patch::read(patch_type, patch)?.apply(group, version, kind, original.clone())
}

/// Returns the findings of strict decoding in the patch itself: duplicate keys, and unknown ones of an operation.
#[must_use]
pub(crate) fn findings(patch_type: PatchType, patch: &[u8]) -> Vec<String> {
    Patch::read(patch_type, patch).map(|patch| patch.findings).unwrap_or_default()
}

/// The kind of a patched object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind<'a> {
    /// The group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The name.
    pub kind: &'a str,
}

/// The error for a patched object that its schema refuses: 422, of no kind and no name, with this as the only cause.
#[must_use]
pub(crate) fn refused_result(
    patch_type: PatchType,
    kind: &Kind<'_>,
    original: &Value,
    patched: &Value,
    patch: &[u8],
    problem: &str,
) -> FieldError {
    match Patch::read(patch_type, patch) {
        Ok(patch) => patch.refused_result(kind, original, patched, problem),
        Err(_) => FieldError::invalid(&Path::new("patch"), "", problem),
    }
}

// === impl Patch ===

impl Patch {
    /// Reads a patch.
    ///
    /// # Errors
    /// It is no JSON.
    pub(crate) fn read(patch_type: PatchType, patch: &[u8]) -> Result<Self, PatchError> {
        let decoded = decode::json(patch).map_err(|_| PatchError::bad_request("invalid JSON patch"))?;
        let findings = match patch_type {
            PatchType::Json => json_patch::findings(&decoded),
            PatchType::Merge | PatchType::Strategic => decoded.duplicates,
        };
        Ok(Self { patch_type, value: decoded.value, findings })
    }

    /// Returns the findings of strict decoding in the patch.
    #[must_use]
    pub(crate) fn findings(&self) -> &[String] {
        &self.findings
    }

    /// Returns the patched object, which is not yet checked against the schema.
    ///
    /// # Errors
    /// The patch does not fit the object, or is of a type that the kind does not take.
    pub(crate) fn apply(&self, group: &str, version: &str, kind: &str, original: Value) -> Result<Value, PatchError> {
        let work = Work::default();
        match self.patch_type {
            PatchType::Json => json_patch::apply(original, &self.value, &work),
            PatchType::Merge if self.value.is_null() => Err(PatchError::bad_request("Invalid JSON Patch")),
            PatchType::Merge => {
                let patch = object(&self.value)
                    .map_err(|found| PatchError::bad_request(format!("error decoding patch: {}", no_object(found))))?;
                let mut patched = original;
                merge(&mut patched, &patch);
                Ok(patched)
            }
            PatchType::Strategic => {
                let patch = object(&self.value).map_err(|found| PatchError::bad_request(no_object(found)))?;
                let schema = schema::find(group, version, kind).ok_or_else(PatchError::unsupported)?;
                strategic::apply(schema, original, patch.into_owned(), &work)
            }
        }
    }

    /// Applies a JSON patch that was not sent by a client, but answered by a webhook.
    ///
    /// # Errors
    /// Why it does not apply; clients do not see that of their own patches.
    pub(crate) fn apply_json(&self, original: Value) -> Result<Value, String> {
        json_patch::apply_explained(original, &self.value, &Work::default())
    }

    /// The error for what became of an object, if its schema refuses it: 422, of no kind and no name, with this as the
    /// only cause.
    #[must_use]
    pub(crate) fn refused_result(
        &self,
        kind: &Kind<'_>,
        original: &Value,
        patched: &Value,
        problem: &str,
    ) -> FieldError {
        let reached = match self.patch_type {
            PatchType::Json => shown::traversed(&self.value),
            PatchType::Merge => shown::merged(original, &self.value),
            PatchType::Strategic => {
                let shown = go_format::value(&self.value);
                return FieldError::invalid(&Path::new("patch"), Value::String(shown), shown::converted(problem));
            }
        };
        // Go keeps the bytes of what a patch does not reach.
        let shown = match schema::name_of(kind.group, kind.version, kind.kind) {
            Some(name) => decode::protobuf::order::text(name, patched, &reached),
            None => patched.to_string(),
        };
        FieldError::invalid(&Path::new("patch"), Value::String(shown), problem)
    }
}

/// Applies a merge patch as Go's library does: what is new has no nulls in it, not even within lists.
fn merge(target: &mut Value, patch: &Value) {
    let (Value::Object(target), Value::Object(patch)) = (target, patch) else { return };
    for (name, patch) in patch {
        match (target.get_mut(name), patch) {
            (_, Value::Null) => {
                target.remove(name);
            }
            (Some(held @ Value::Object(_)), Value::Object(_)) => merge(held, patch),
            // Only here are nulls kept.
            (Some(held @ Value::Object(_)), other) => *held = other.clone(),
            _ => {
                target.insert(name.clone(), without_nulls(patch));
            }
        }
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// The patch as an object, or what it is instead. `null` is an empty one.
fn object(patch: &Value) -> Result<Cow<'_, Value>, &'static str> {
    match patch {
        Value::Object(_) => Ok(Cow::Borrowed(patch)),
        Value::Null => Ok(Cow::Owned(Value::Object(serde_json::Map::new()))),
        other => Err(decode::type_name(other)),
    }
}

fn no_object(found: &str) -> String {
    format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")
}

// === impl PatchError ===

impl PatchError {
    fn bad_request(message: impl Into<String>) -> Self {
        Self { code: 400, reason: "BadRequest", message: message.into(), details: false }
    }

    fn too_large(message: &str) -> Self {
        let message = format!("Request entity too large: {message}");
        Self { code: 413, reason: "RequestEntityTooLarge", message, details: false }
    }

    fn unsupported() -> Self {
        let message = "the body of the request was in an unknown format - accepted media types include: \
                       application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
            .to_owned();
        Self { code: 415, reason: "UnsupportedMediaType", message, details: false }
    }

    /// Upstream hides why a patch does not fit the object.
    fn unprocessable() -> Self {
        let message = "the server rejected our request due to an error in our request".to_owned();
        Self { code: 422, reason: "Invalid", message, details: true }
    }

    /// Returns an error that upstream does not foresee, and so answers with 500.
    fn internal(message: impl Into<String>) -> Self {
        Self { code: 500, reason: "", message: message.into(), details: false }
    }
}
