//! Why a read or a write failed.

use std::fmt;
use std::time::Duration;

use http::StatusCode;
use kube::core::Status;
use kube::core::response::StatusDetails;
use steersman_base::field_selector::ParseFieldSelectorError;
use steersman_base::selector::ParseSelectorError;
use steersman_base::{Istr, ObjectKey, Resource};
use steersman_informer::NotSynced;
use steersman_informer::{ApiStatus, WireError};

use super::BoxError;
use crate::NotLeader;

/// Why a read or a write failed. Nothing is retried by the client: [`retry`](crate::retry) has the usual policies.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// There is no such object (or no such resource).
    #[error("{0}")]
    NotFound(Box<Refusal>),
    /// An object of this name exists.
    #[error("{0}")]
    AlreadyExists(Box<Refusal>),
    /// Somebody else changed the object first, a precondition does not hold, or a field is another manager's.
    #[error("{0}")]
    Conflict(Box<Refusal>),
    /// The object is not valid; the causes name each field.
    #[error("{0}")]
    Invalid(Box<Refusal>),
    /// The server does not know who asks.
    #[error("{0}")]
    Unauthorized(Box<Refusal>),
    /// Who asks may not.
    #[error("{0}")]
    Forbidden(Box<Refusal>),
    /// The namespace is going away: nothing can be created in it.
    #[error("{0}")]
    NamespaceTerminating(Box<Refusal>),
    /// The version or the list that was asked for is no longer known.
    #[error("{0}")]
    Expired(Box<Refusal>),
    /// The server has too much to do, or a budget allows no more; [`retry_after`](ClientError::retry_after) says when to
    /// come back.
    #[error("{0}")]
    TooManyRequests(Box<Refusal>),
    /// The server gave up waiting; what it waited for may still happen.
    #[error("{0}")]
    TimedOut(Box<Refusal>),
    /// The server refused otherwise, or failed: a write answered with a 5xx
    /// [may have been made](ClientError::may_have_been_made).
    #[error("{0}")]
    Refused(Box<Refusal>),

    /// It was not sent: somebody else may lead by now.
    #[error(transparent)]
    NotLeader(#[from] NotLeader),
    /// It was never sent: the server cannot be reached.
    #[error("cannot {what}: the server cannot be reached: {source}")]
    Unreachable {
        /// What was to be done.
        what: String,
        /// What stood in the way.
        source: BoxError,
    },
    /// It was sent, and no answer came. A write may have been made.
    #[error("cannot tell the outcome of: {what}: {source}")]
    NoAnswer {
        /// What was to be done.
        what: String,
        /// What came instead.
        source: BoxError,
    },
    /// The answer is not what it should be. A write has been made.
    #[error("cannot read the answer to: {what}: {source}")]
    Unreadable {
        /// What was done.
        what: String,
        /// What is wrong with the answer.
        source: BoxError,
    },
    /// The request cannot be made of what was given; nothing was sent.
    #[error("cannot {what}: {problem}")]
    BadRequest {
        /// What was to be done.
        what: String,
        /// What is wrong.
        problem: String,
    },
    /// A label selector that is none.
    #[error(transparent)]
    Labels(#[from] ParseSelectorError),
    /// A field selector that is none.
    #[error(transparent)]
    Fields(#[from] ParseFieldSelectorError),

    /// The caches were not started: read after the manager has started, or read live.
    #[error("cannot read {resource} from the cache, which is not started: read after the manager has, or read live()")]
    NotStarted {
        /// What was to be read.
        resource: Box<Resource>,
    },
    /// Nobody declared an informer of this kind, and reads may not start one.
    #[error(
        "cannot read {resource} from the cache: no informer of it as {view} is declared, and reads may not start one \
         (CacheMiss::Forbidden)"
    )]
    NotCached {
        /// What was to be read.
        resource: Box<Resource>,
        /// As what.
        view: &'static str,
    },
    /// The cache is not filled, and why.
    #[error(transparent)]
    NotSynced(#[from] NotSynced),
    /// The cache holds another namespace.
    #[error("cannot read {resource} in {wanted:?}: the cache holds namespace {cached:?} alone; read live() instead")]
    OtherNamespace {
        /// What was to be read.
        resource: Box<Resource>,
        /// In which namespace; empty for all.
        wanted: Istr,
        /// Which one the cache holds.
        cached: Istr,
    },
    /// A cache cannot be asked by this field.
    #[error("cannot list {resource} by field {field:?} from the cache: list live(), or keep an index of the informer")]
    FieldNotCached {
        /// What was to be read.
        resource: Box<Resource>,
        /// By which field.
        field: String,
    },
    /// The function that was to change the object failed.
    #[error("cannot make {what} as wanted: {source}")]
    Mutate {
        /// Which object.
        what: String,
        /// What went wrong.
        source: BoxError,
    },
}

/// What the server said, and to what.
#[derive(Clone, Debug, Default)]
pub struct Refusal {
    /// What was asked, such as `get pods default/web`.
    pub what: String,
    /// The answer, as the server gave it.
    pub status: Status,
}

/// How much is told of a refusal that is not a Kubernetes status: enough to recognise a proxy's error page.
const REFUSAL_SHOWN_MAX: usize = 200;

// === impl ClientError ===

impl ClientError {
    /// What the server said, if it said something.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::NotFound(refusal)
            | Self::AlreadyExists(refusal)
            | Self::Conflict(refusal)
            | Self::Invalid(refusal)
            | Self::Unauthorized(refusal)
            | Self::Forbidden(refusal)
            | Self::NamespaceTerminating(refusal)
            | Self::Expired(refusal)
            | Self::TooManyRequests(refusal)
            | Self::TimedOut(refusal)
            | Self::Refused(refusal) => Some(&refusal.status),
            _ => None,
        }
    }

    /// When the server wants to be asked again, if it says so.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.status()?.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    }

    /// Whether there is no such object.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_))
    }

    /// Whether somebody else was first: look again.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict(_))
    }

    /// Whether an object of this name exists.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        matches!(self, Self::AlreadyExists(_))
    }

    /// Whether a write that failed so may have been made all the same: no answer came, or one that does not tell. Any 5xx
    /// is one: a store that did not answer in time, a server that died behind a load balancer.
    #[must_use]
    pub fn may_have_been_made(&self) -> bool {
        match self {
            Self::NoAnswer { .. } | Self::Unreadable { .. } => true,
            other => other.status().is_some_and(|status| (500..600).contains(&status.code)),
        }
    }

    /// What an answer that is no success means.
    pub(super) fn refused(what: String, code: StatusCode, retry_after: Option<u32>, body: &[u8]) -> Self {
        let mut status: Status = serde_json::from_slice(body).unwrap_or_default();
        status.code = code.as_u16();
        if status.message.is_empty() {
            status.message = String::from_utf8_lossy(&body[..body.len().min(REFUSAL_SHOWN_MAX)]).into_owned();
        }
        if let Some(seconds) = retry_after {
            let details = status.details.get_or_insert_with(no_details);
            details.retry_after_seconds = details.retry_after_seconds.max(seconds);
        }
        Self::of_status(what, status)
    }

    /// What the server would say of an object that is not there, in its words.
    pub(super) fn not_found(resource: &Resource, key: &ObjectKey) -> Self {
        let status = Status {
            code: StatusCode::NOT_FOUND.as_u16(),
            reason: "NotFound".into(),
            message: format!("{resource} {:?} not found", &*key.name),
            ..Status::default()
        };
        Self::NotFound(Box::new(Refusal { what: format!("get {resource} {key}"), status }))
    }

    /// What the failure of a list means.
    pub(super) fn of_wire(what: String, error: WireError) -> Self {
        match error {
            WireError::Status(status) => Self::of_status(what, kube_status(&status)),
            WireError::Connection(_) | WireError::Silent(_) => Self::NoAnswer { what, source: error.into() },
            WireError::Request(problem) => Self::BadRequest { what, problem: problem.to_string() },
            other => Self::Unreadable { what, source: other.into() },
        }
    }

    fn of_status(what: String, status: Status) -> Self {
        let (code, reason) = (status.code, status.reason.clone());
        let has_cause = |reason: &str| {
            let causes = status.details.iter().flat_map(|details| &details.causes);
            causes.into_iter().any(|cause| cause.reason == reason)
        };
        let is_terminating = has_cause("NamespaceTerminating");
        let refusal = Box::new(Refusal { what, status });
        match (code, reason.as_str()) {
            (404, _) => Self::NotFound(refusal),
            (409, "AlreadyExists") => Self::AlreadyExists(refusal),
            (409, _) => Self::Conflict(refusal),
            (422, _) => Self::Invalid(refusal),
            (401, _) => Self::Unauthorized(refusal),
            (403, _) if is_terminating => Self::NamespaceTerminating(refusal),
            (403, _) => Self::Forbidden(refusal),
            (410, _) => Self::Expired(refusal),
            (429, _) => Self::TooManyRequests(refusal),
            (504, _) => Self::TimedOut(refusal),
            _ => Self::Refused(refusal),
        }
    }
}

fn kube_status(status: &ApiStatus) -> Status {
    let seconds = status.retry_after.map_or(0, |after| u32::try_from(after.as_secs()).unwrap_or(u32::MAX));
    let mut answer = Status {
        code: status.code,
        reason: status.reason.clone(),
        message: status.message.clone(),
        ..Status::default()
    };
    if seconds > 0 {
        answer.details.get_or_insert_with(no_details).retry_after_seconds = seconds;
    }
    answer
}

fn no_details() -> StatusDetails {
    let [name, group, kind, uid] = [const { String::new() }; 4];
    StatusDetails { name, group, kind, uid, causes: Vec::new(), retry_after_seconds: 0 }
}

// === impl Refusal ===

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Status { code, reason, message, .. } = &self.status;
        let gap = if reason.is_empty() { "" } else { " " };
        write!(f, "cannot {}: {message} ({code}{gap}{reason})", self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_one_meaning() {
        let check = |code: u16, body: &str, want: &str| {
            let error = ClientError::refused("x".into(), StatusCode::from_u16(code).unwrap(), None, body.as_bytes());
            assert_eq!(format!("{error:?}").split('(').next().unwrap(), want, "{code} {body}");
        };
        check(404, r#"{"reason":"NotFound"}"#, "NotFound");
        check(409, r#"{"reason":"AlreadyExists"}"#, "AlreadyExists");
        check(409, r#"{"reason":"Conflict"}"#, "Conflict");
        check(422, r#"{"reason":"Invalid"}"#, "Invalid");
        check(401, "", "Unauthorized");
        check(403, r#"{"reason":"Forbidden"}"#, "Forbidden");
        check(
            403,
            r#"{"reason":"Forbidden","details":{"causes":[{"reason":"NamespaceTerminating","message":"m","field":"f"}]}}"#,
            "NamespaceTerminating",
        );
        check(410, r#"{"reason":"Expired"}"#, "Expired");
        check(429, "", "TooManyRequests");
        check(504, "", "TimedOut");
        check(500, "not json", "Refused");
    }

    #[test]
    fn a_write_that_the_server_failed_at_may_have_been_made() {
        for (code, want) in
            [(500, true), (502, true), (503, true), (504, true), (429, false), (409, false), (422, false)]
        {
            let error = ClientError::refused("x".into(), StatusCode::from_u16(code).unwrap(), None, b"");
            assert_eq!(error.may_have_been_made(), want, "{code}");
        }
    }

    #[test]
    fn a_refusal_says_what_was_asked_and_what_was_said() {
        let body = br#"{"message":"pods \"a\" not found","reason":"NotFound","code":404}"#;
        let error = ClientError::refused("get pods x/a".into(), StatusCode::NOT_FOUND, None, body);
        assert_eq!(error.to_string(), r#"cannot get pods x/a: pods "a" not found (404 NotFound)"#);
        let error =
            ClientError::refused("list pods".into(), StatusCode::BAD_GATEWAY, None, b"<html>bad gateway</html>");
        assert_eq!(error.to_string(), "cannot list pods: <html>bad gateway</html> (502)");
    }

    #[test]
    fn a_cache_says_not_found_as_the_server_does() {
        let sets = Resource::namespaced("apps", "v1", "replicasets", "ReplicaSet");
        let error = ClientError::not_found(&sets, &ObjectKey::new("default", "web"));
        let want = r#"cannot get replicasets.apps default/web: replicasets.apps "web" not found (404 NotFound)"#;
        assert_eq!(error.to_string(), want);
    }

    #[test]
    fn the_server_says_when_to_come_back() {
        let error = ClientError::refused("x".into(), StatusCode::TOO_MANY_REQUESTS, Some(7), b"");
        assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
        let body = br#"{"details":{"retryAfterSeconds":3}}"#;
        let error = ClientError::refused("x".into(), StatusCode::TOO_MANY_REQUESTS, None, body);
        assert_eq!(error.retry_after(), Some(Duration::from_secs(3)));
    }
}
