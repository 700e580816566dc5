//! Why a write has not been made, or may not have been.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

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
    /// Somebody else may lead by now: it was not sent.
    #[error("this process does not lead any more, or cannot be sure that it does")]
    NotLeader,
    /// It was sent and nobody knows what became of it: no answer came, or one that does not tell (any 5xx). The server is
    /// asked, and the owner waits until the caches show what it says.
    #[error("it is not known whether the write was made: {0}")]
    Unknown(Box<Rejection>),
    /// It was never sent: the server cannot be reached.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// It was never sent, and never can be: the object has no JSON form, or no request can be made of its name. Trying again
    /// does not help, and it says nothing about the server.
    #[error("the write cannot be made: {0}")]
    Invalid(String),
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
    /// HTTP code; zero if there was no answer.
    pub code: u16,
    /// The reason in one word, such as `Invalid`.
    pub reason: String,
    /// The reason in a sentence.
    pub message: String,
    /// What is wrong, field by field.
    #[serde(deserialize_with = "details")]
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

/// A failed write, and what the server said to it word for word: events quote it, as upstream's do.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: WriteError,
    pub(super) said: String,
    /// Whether the server turned it away and said when to come back, or it never left: it may be sent again.
    pub(super) retriable: Option<Duration>,
}

/// What is told of a refusal that is not a Kubernetes status: enough to recognise a proxy's error page.
const REFUSAL_SHOWN_MAX: usize = 200;

/// Upstream's servers may say `null`.
fn details<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<RejectionDetails, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

// === impl WriteError ===

impl WriteError {
    /// No answer came, for this reason.
    pub(super) fn unknown(message: impl Into<String>) -> Self {
        Self::Unknown(Box::new(Rejection { message: message.into(), ..Rejection::default() }))
    }

    /// What the server said, word for word, if that is what went wrong; else the error in a sentence. Conditions quote it,
    /// as upstream's do.
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
