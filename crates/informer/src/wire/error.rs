//! Errors of requests and responses.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use steersman_model::DecodeError;

use super::Peeked;
use super::protobuf::{Fields, Value};

/// An error of a list or a watch. Nothing of the broken part was returned.
///
/// The reflector retries all of them, after a back-off.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The server refused, or ended a watch with an ERROR event.
    #[error("the server answered {0}")]
    Status(Box<ApiStatus>),
    /// No connection, or one that broke.
    #[error("the connection failed: {}", chain(.0))]
    Connection(#[source] Box<kube::Error>),
    /// Neither a response nor the end of the connection.
    #[error("the server was silent for {} s", .0.as_secs())]
    Silent(Duration),
    /// The body ended too early.
    #[error("the answer ends in the middle of {what}")]
    Truncated {
        /// The incomplete part.
        what: &'static str,
    },
    /// A part exceeds its limit.
    #[error("{what} is larger than {limit} bytes")]
    TooLarge {
        /// The part.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// Malformed bytes.
    #[error("cannot read {what}: {problem} at byte {offset}")]
    Malformed {
        /// The part.
        what: &'static str,
        /// The problem.
        problem: String,
        /// The offset from the start of the body.
        offset: u64,
    },
    /// Well-formed data of another kind than requested.
    #[error("expected {expected}, the server sent {found}")]
    WrongKind {
        /// The requested kind.
        expected: String,
        /// The received kind.
        found: String,
    },
    /// A list that is older than what the server has shown before.
    #[error("the list is of version {listed}, and version {reached} was shown before: the server lags behind")]
    Past {
        /// The version of the list.
        listed: String,
        /// The version that was shown before.
        reached: String,
    },
    /// One object that the view cannot decode. What follows it can be decoded.
    #[error("{0}")]
    Object(Box<UnreadableObject>),
    /// The request cannot be built: a namespace or selector that does not fit into a URL.
    #[error("cannot build the request: {0}")]
    Request(#[from] http::Error),
}

/// An object that the view cannot decode.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {kind} {}: {source}", shown(.identity.as_ref()))]
#[non_exhaustive]
pub struct UnreadableObject {
    /// The requested kind.
    pub kind: String,
    /// The identity of the object, if at least its name can be read. An unreadable uid or version is empty.
    pub identity: Option<Peeked>,
    /// The problem.
    pub source: DecodeError,
}

/// A Kubernetes `Status`: the server's refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiStatus {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason, such as `Expired`.
    pub reason: String,
    /// The server's message.
    pub message: String,
    /// The time after which the server wants the request to be retried.
    pub retry_after: Option<Duration>,
    /// Reasons and messages of the causes.
    pub causes: Vec<(String, String)>,
}

/// `Status` of meta/v1, as far as it is used.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct StatusJson {
    code: u16,
    reason: String,
    message: String,
    details: Option<DetailsJson>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DetailsJson {
    retry_after_seconds: u32,
    causes: Option<Vec<CauseJson>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CauseJson {
    reason: String,
    message: String,
}

// === impl ApiStatus ===

impl ApiStatus {
    /// Whether the requested version is no longer known: list again.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.code == 410 || self.reason == "Expired" || self.reason == "Gone"
    }

    /// Whether the requested version is not yet known to this server: it lags, or it was restored from a backup.
    #[must_use]
    pub fn is_version_too_large(&self) -> bool {
        let timed_out = self.code == 504 || self.reason == "Timeout";
        self.causes.iter().any(|(reason, message)| {
            reason == "ResourceVersionTooLarge" || (timed_out && message.contains("Too large resource version"))
        }) || (timed_out && self.message.contains("Too large resource version"))
    }

    pub(super) fn from_json(body: &[u8]) -> Result<Self, serde_json::Error> {
        let status: StatusJson = serde_json::from_slice(body)?;
        let details = status.details.unwrap_or_default();
        Ok(Self {
            code: status.code,
            reason: status.reason,
            message: status.message,
            retry_after: seconds(u64::from(details.retry_after_seconds)),
            causes: details.causes.into_iter().flatten().map(|cause| (cause.reason, cause.message)).collect(),
        })
    }

    /// Decodes a `Status` message of `k8s.io.apimachinery.pkg.apis.meta.v1` (generated.proto of apimachinery 0.37).
    pub(super) fn from_protobuf(message: &[u8]) -> Result<Self, &'static str> {
        let mut status = Self::default();
        for field in Fields::of(message) {
            match field? {
                (3, Value::Bytes(text)) => status.message = lossy(text),
                (4, Value::Bytes(text)) => status.reason = lossy(text),
                (5, Value::Bytes(details)) => status.read_details(details)?,
                (6, Value::Varint(code)) => status.code = u16::try_from(code).unwrap_or(0),
                _ => {}
            }
        }
        Ok(status)
    }

    fn read_details(&mut self, details: &[u8]) -> Result<(), &'static str> {
        for field in Fields::of(details) {
            match field? {
                (4, Value::Bytes(cause)) => {
                    let mut reason = String::new();
                    let mut message = String::new();
                    for field in Fields::of(cause) {
                        match field? {
                            (1, Value::Bytes(text)) => reason = lossy(text),
                            (2, Value::Bytes(text)) => message = lossy(text),
                            _ => {}
                        }
                    }
                    self.causes.push((reason, message));
                }
                (5, Value::Varint(after)) => self.retry_after = seconds(after),
                _ => {}
            }
        }
        Ok(())
    }
}

fn seconds(count: u64) -> Option<Duration> {
    (count > 0).then(|| Duration::from_secs(count))
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

impl fmt::Display for ApiStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if !self.reason.is_empty() {
            write!(f, " {}", self.reason)?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}

// === impl WireError ===

impl WireError {
    /// Returns the server's refusal, if there is one.
    #[must_use]
    pub fn status(&self) -> Option<&ApiStatus> {
        match self {
            Self::Status(status) => Some(status),
            _ => None,
        }
    }
}

fn shown(identity: Option<&Peeked>) -> String {
    identity.map_or_else(|| "without a name".to_owned(), |identity| identity.key.to_string())
}

/// Returns an error with its causes, in one line: `a: b: c`. A repeated cause is left out.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        source = cause.source();
    }
    text
}
