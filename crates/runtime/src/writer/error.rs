//! Errors of writes.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

/// The reason for which a write was not made, or may not have been.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The object was changed meanwhile: read it again.
    #[error("somebody else changed the object first")]
    Conflict,
    /// The object does not exist: read it again.
    #[error("the object is not there")]
    NotFound,
    /// An object of this name exists: read it.
    #[error("an object of this name exists already")]
    AlreadyExists,
    /// The namespace is terminating: there is nothing to do.
    #[error("the namespace is going away")]
    NamespaceTerminating,
    /// The write was not sent: another process may lead by now.
    #[error("this process does not lead any more, or cannot be sure that it does")]
    NotLeader,
    /// The write was sent and its outcome is unknown: no answer came, or one that does not show it (any 5xx). The object
    /// is read from the server, and the owner waits until the caches show that state.
    #[error("it is not known whether the write was made: {0}")]
    Unknown(Box<Rejection>),
    /// The write was not sent: the server cannot be reached.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The write was not sent: the read of the object that it depends on had no answer in time, or one that makes no sense, as
    /// from a proxy or an aggregated API. It says nothing about the server.
    #[error("the object cannot be read: {0}")]
    Unreadable(String),
    /// The write was not sent and never can be: the object has no JSON form, or its name is no valid path. A retry does
    /// not help, and it says nothing about the server.
    #[error("the write cannot be made: {0}")]
    Invalid(String),
    /// The server refused the write.
    #[error("the server refused: {0}")]
    Rejected(Rejection),
    /// The server is overloaded, and says when to retry.
    #[error("the server asks to come back in {0:?}")]
    Throttled(Duration),
}

/// A refusal by the server.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Rejection {
    /// The HTTP status code; zero if there was no answer.
    pub code: u16,
    /// The reason in one word, such as `Invalid`.
    pub reason: String,
    /// The reason in a sentence.
    pub message: String,
    /// The invalid fields.
    #[serde(deserialize_with = "details")]
    pub details: RejectionDetails,
}

/// The machine-readable part of a [`Rejection`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RejectionDetails {
    /// The invalid fields.
    pub causes: Vec<RejectionCause>,
}

/// An invalid field.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RejectionCause {
    /// The kind of problem.
    pub reason: String,
    /// The problem, in a sentence.
    pub message: String,
    /// The field.
    pub field: String,
}

/// A failed write, with the literal message of the server: events quote it, as upstream's do.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: WriteError,
    pub(super) said: String,
    /// Whether it may be sent again: it was not sent, or the server refused it and said when to retry.
    pub(super) retriable: Option<Duration>,
}

/// The bytes shown of a refusal that is not a Kubernetes status: enough to recognise a proxy's error page.
const REFUSAL_SHOWN_MAX: usize = 200;

/// Upstream's servers may send `null`.
fn details<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<RejectionDetails, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

// === impl WriteError ===

impl WriteError {
    /// An unknown outcome, for this reason.
    pub(super) fn unknown(message: impl Into<String>) -> Self {
        Self::Unknown(Box::new(Rejection { message: message.into(), ..Rejection::default() }))
    }

    /// Returns the literal message of the server, if it refused; else the error in a sentence. Conditions quote it, as
    /// upstream's do.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Rejected(rejection) => rejection.message.clone(),
            Self::Unknown(rejection) => rejection.message.clone(),
            other => other.to_string(),
        }
    }
}

// === impl Failure ===

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        let said = error.to_string();
        Self { error, said, retriable: None }
    }
}

// === impl Rejection ===

impl Rejection {
    /// Whether the server gave this cause.
    #[must_use]
    pub fn has_cause(&self, reason: &str) -> bool {
        self.details.causes.iter().any(|cause| cause.reason == reason)
    }

    pub(super) fn with_code(mut self, code: http::StatusCode, body: &[u8]) -> Self {
        self.code = code.as_u16();
        if self.message.is_empty() {
            self.message = String::from_utf8_lossy(&body[..body.len().min(REFUSAL_SHOWN_MAX)]).into_owned();
        }
        self
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            0 => f.write_str(&self.message),
            code => write!(f, "{} ({code})", self.message),
        }
    }
}
