//! What handlers are asked, and what they answer.

use std::collections::BTreeMap;

use kube::core::{GroupVersionKind, GroupVersionResource};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A write that an API server asks about.
#[derive(Clone, Debug)]
pub struct Admission<K> {
    /// Names this question; the answer has the same.
    pub uid: String,
    /// What kind of object is sent to this webhook.
    pub kind: GroupVersionKind,
    /// Of which resource.
    pub resource: GroupVersionResource,
    /// Of which subresource, as `status` or `scale`.
    pub sub_resource: Option<String>,
    /// The kind the client wrote, where it was converted for this webhook.
    pub request_kind: Option<GroupVersionKind>,
    /// The resource the client wrote.
    pub request_resource: Option<GroupVersionResource>,
    /// The subresource the client wrote.
    pub request_sub_resource: Option<String>,
    /// The object's name; empty if the server is still to make one.
    pub name: String,
    /// Its namespace, if it has one.
    pub namespace: Option<String>,
    /// What shall happen.
    pub operation: Operation,
    /// Who wants it.
    pub user: User,
    /// The object as it shall be; none on delete.
    pub object: Option<K>,
    /// The object as it is; none on create.
    pub old_object: Option<K>,
    /// Whether nothing is going to be kept: a handler with side effects must leave them.
    pub dry_run: bool,
    /// The options of the request, as `CreateOptions`.
    pub options: Value,
}

/// What shall happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// The object is new.
    Create,
    /// It changes.
    Update,
    /// It goes.
    Delete,
    /// Somebody connects to it, as with `exec`.
    Connect,
}

/// Who sent a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct User {
    /// The name.
    pub username: String,
    /// What tells users of one name apart.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// What the authenticator knows besides.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Yes or no, and what is to be said besides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Verdict {
    pub(super) denial: Option<Denial>,
    pub(super) warnings: Vec<String>,
    pub(super) audit_annotations: BTreeMap<String, String>,
}

/// No, and why: what the client of the API server reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[must_use]
pub struct Denial {
    pub(super) code: u16,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) causes: Vec<Cause>,
}

/// A field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// What is wrong, as `FieldValueInvalid`.
    pub reason: String,
    /// The same for people.
    pub message: String,
    /// Which field, as `spec.replicas`.
    pub field: String,
}

/// An object as it should be written, or none if it is right as it is; and what is to be said besides.
#[derive(Clone, Debug)]
#[must_use]
pub struct Mutated<K> {
    pub(super) object: Option<K>,
    pub(super) verdict: Verdict,
}

// === impl Admission ===

impl<K> Admission<K> {
    /// The object as it shall be.
    ///
    /// # Errors
    /// A denial, if there is none: the webhook is registered for deletes, and not written for them.
    pub fn object(&self) -> Result<&K, Denial> {
        self.object.as_ref().ok_or_else(no_object)
    }

    /// Takes the object as it shall be, to change it.
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
    /// Yes.
    pub fn allow() -> Self {
        Self::default()
    }

    /// No, because.
    pub fn deny(message: impl Into<String>) -> Self {
        Denial::forbidden(message).into()
    }

    /// Says something to the client. API servers cut what is longer than 256 characters.
    pub fn warn(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }

    /// Writes something into the audit log. API servers put the webhook's name before the key.
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
    /// No, with this HTTP status and this reason of `metav1.Status`.
    pub fn new(code: u16, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), message: message.into(), causes: Vec::new() }
    }

    /// It is not allowed: 403.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, "Forbidden", message)
    }

    /// The object is wrong: 422.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(422, "Invalid", message)
    }

    /// The object cannot be understood: 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// It cannot be decided: 500.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "InternalError", message)
    }

    /// Names a field that is wrong.
    pub fn cause(mut self, field: impl Into<String>, reason: impl Into<String>, message: impl Into<String>) -> Self {
        self.causes.push(Cause { reason: reason.into(), message: message.into(), field: field.into() });
        self
    }
}

// === impl Mutated ===

impl<K> Mutated<K> {
    /// It is right as it is.
    pub fn unchanged() -> Self {
        Self { object: None, verdict: Verdict::allow() }
    }

    /// Says something to the client.
    pub fn warn(mut self, warning: impl Into<String>) -> Self {
        self.verdict = self.verdict.warn(warning);
        self
    }

    /// Writes something into the audit log.
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
