//! Requests and responses of admission handlers.

use std::collections::BTreeMap;

use kube::core::{GroupVersionKind, GroupVersionResource};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A write that an API server asks about.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Admission<K> {
    /// The uid of the request; the response has the same.
    pub uid: String,
    /// The kind of the object.
    pub kind: GroupVersionKind,
    /// The resource of the object.
    pub resource: GroupVersionResource,
    /// The subresource, such as `status` or `scale`.
    pub sub_resource: Option<String>,
    /// The kind that the client wrote, if it was converted for this webhook.
    pub request_kind: Option<GroupVersionKind>,
    /// The resource that the client wrote.
    pub request_resource: Option<GroupVersionResource>,
    /// The subresource that the client wrote.
    pub request_sub_resource: Option<String>,
    /// The object's name; empty if the server is to generate one.
    pub name: String,
    /// The object's namespace, if it has one.
    pub namespace: Option<String>,
    /// The operation.
    pub operation: Operation,
    /// The user.
    pub user: User,
    /// The new object; `None` on delete.
    pub object: Option<K>,
    /// The old object; `None` on create.
    pub old_object: Option<K>,
    /// Whether nothing will be stored: a handler must not have side effects then.
    pub dry_run: bool,
    /// The options of the request, such as `CreateOptions`.
    pub options: Value,
}

/// The operation of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[non_exhaustive]
pub enum Operation {
    /// The object is created.
    Create,
    /// The object is updated.
    Update,
    /// The object is deleted.
    Delete,
    /// A connection to the object, such as `exec`.
    Connect,
}

/// The user of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct User {
    /// The name.
    pub username: String,
    /// The uid, which distinguishes users of one name.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Further attributes of the authenticator.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The decision of a handler, with warnings and audit annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Verdict {
    pub(super) denial: Option<Denial>,
    pub(super) warnings: Vec<String>,
    pub(super) audit_annotations: BTreeMap<String, String>,
}

/// A denial with its reason, which the client of the API server gets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[must_use]
pub struct Denial {
    pub(super) code: u16,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) causes: Vec<Cause>,
}

/// An invalid field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Cause {
    /// The reason, such as `FieldValueInvalid`.
    pub reason: String,
    /// The message, for people.
    pub message: String,
    /// The field, such as `spec.replicas`.
    pub field: String,
}

/// The object as it should be stored, or none if it is unchanged; with warnings and audit annotations.
#[derive(Clone, Debug)]
#[must_use]
pub struct Mutated<K> {
    pub(super) object: Option<K>,
    pub(super) verdict: Verdict,
}

// === impl Admission ===

impl<K> Admission<K> {
    /// Returns the new object.
    ///
    /// # Errors
    /// A denial, if there is none: the webhook is registered for deletes, but does not handle them.
    pub fn object(&self) -> Result<&K, Denial> {
        self.object.as_ref().ok_or_else(no_object)
    }

    /// Takes the new object, to change it.
    ///
    /// # Errors
    /// A denial, if there is none.
    pub fn take_object(&mut self) -> Result<K, Denial> {
        self.object.take().ok_or_else(no_object)
    }
}

fn no_object() -> Denial {
    Denial::bad_request("the review has no object; register this webhook for CREATE and UPDATE only")
}

// === impl Verdict ===

impl Verdict {
    /// Allows the write.
    pub fn allow() -> Self {
        Self::default()
    }

    /// Denies the write.
    pub fn deny(message: impl Into<String>) -> Self {
        Denial::forbidden(message).into()
    }

    /// Adds a warning for the client. API servers cut it at 256 characters.
    pub fn warn(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }

    /// Adds an annotation to the audit log. API servers put the webhook's name before the key.
    pub fn annotate(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.audit_annotations.insert(key.into(), value.into());
        self
    }
}

impl From<Denial> for Verdict {
    fn from(denial: Denial) -> Self {
        Self { denial: Some(denial), ..Self::default() }
    }
}

// === impl Denial ===

impl Denial {
    /// Creates a denial with this HTTP status and this reason of `metav1.Status`.
    pub fn new(code: u16, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), message: message.into(), causes: Vec::new() }
    }

    /// Creates a denial with status 403: not allowed.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, "Forbidden", message)
    }

    /// Creates a denial with status 422: the object is invalid.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(422, "Invalid", message)
    }

    /// Creates a denial with status 400: the object cannot be read.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// Creates a denial with status 500: an internal error.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "InternalError", message)
    }

    /// Adds an invalid field.
    pub fn cause(mut self, field: impl Into<String>, reason: impl Into<String>, message: impl Into<String>) -> Self {
        self.causes.push(Cause { reason: reason.into(), message: message.into(), field: field.into() });
        self
    }
}

// === impl Mutated ===

impl<K> Mutated<K> {
    /// Leaves the object unchanged.
    pub fn unchanged() -> Self {
        Self { object: None, verdict: Verdict::allow() }
    }

    /// Adds a warning for the client.
    pub fn warn(mut self, warning: impl Into<String>) -> Self {
        self.verdict = self.verdict.warn(warning);
        self
    }

    /// Adds an annotation to the audit log.
    pub fn annotate(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.verdict = self.verdict.annotate(key, value);
        self
    }
}

impl<K> From<K> for Mutated<K> {
    fn from(object: K) -> Self {
        Self { object: Some(object), verdict: Verdict::allow() }
    }
}
