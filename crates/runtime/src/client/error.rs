//! Errors of reads and writes.

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

/// An error of a read or a write. The client retries nothing: [`retry`](crate::retry) has the usual policies.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The object (or the resource) does not exist.
    #[error("{0}")]
    NotFound(Box<Refusal>),
    /// An object of this name exists.
    #[error("{0}")]
    AlreadyExists(Box<Refusal>),
    /// The object was changed meanwhile, a precondition does not hold, or a field belongs to another manager.
    #[error("{0}")]
    Conflict(Box<Refusal>),
    /// The object is not valid; the causes name each field.
    #[error("{0}")]
    Invalid(Box<Refusal>),
    /// The server does not accept the credentials.
    #[error("{0}")]
    Unauthorized(Box<Refusal>),
    /// The user is not allowed to do this.
    #[error("{0}")]
    Forbidden(Box<Refusal>),
    /// The namespace is terminating: nothing can be created in it.
    #[error("{0}")]
    NamespaceTerminating(Box<Refusal>),
    /// The requested version, or the continuation of a list, has expired.
    #[error("{0}")]
    Expired(Box<Refusal>),
    /// The server is overloaded, or a disruption budget allows no more; [`retry_after`](ClientError::retry_after)
    /// returns when to retry.
    #[error("{0}")]
    TooManyRequests(Box<Refusal>),
    /// The server timed out; the operation may still happen.
    #[error("{0}")]
    TimedOut(Box<Refusal>),
    /// The server refused for another reason, or failed: a write answered with a 5xx [may have been
    /// applied](ClientError::may_have_been_made).
    #[error("{0}")]
    Refused(Box<Refusal>),

    /// The request was not sent: another process may lead by now.
    #[error(transparent)]
    NotLeader(#[from] NotLeader),
    /// The request was not sent: the server cannot be reached.
    #[error("cannot {what}: the server cannot be reached: {source}")]
    Unreachable {
        /// The operation.
        what: String,
        /// The cause.
        source: BoxError,
    },
    /// The request was sent, and no answer came. A write may have been applied.
    #[error("unknown outcome of: {what}: {source}")]
    NoAnswer {
        /// The operation.
        what: String,
        /// The cause.
        source: BoxError,
    },
    /// The answer cannot be read. A write has been applied.
    #[error("cannot read the answer to: {what}: {source}")]
    Unreadable {
        /// The operation.
        what: String,
        /// The cause.
        source: BoxError,
    },
    /// The request is invalid and was not sent.
    #[error("cannot {what}: {problem}")]
    BadRequest {
        /// The operation.
        what: String,
        /// The problem.
        problem: String,
    },
    /// An invalid label selector.
    #[error(transparent)]
    Labels(#[from] ParseSelectorError),
    /// An invalid field selector.
    #[error(transparent)]
    Fields(#[from] ParseFieldSelectorError),

    /// The caches were not started: read after the manager has started, or read live.
    #[error("cannot read {resource} from the cache, which is not started: read after the manager has, or read live()")]
    NotStarted {
        /// The resource to read.
        resource: Box<Resource>,
    },
    /// No informer of this kind is declared, and reads may not start one.
    #[error(
        "cannot read {resource} from the cache: no informer of it as {view} is declared, and reads may not start one \
         (CacheMiss::Forbidden)"
    )]
    NotCached {
        /// The resource to read.
        resource: Box<Resource>,
        /// The view.
        view: &'static str,
    },
    /// The cache is not filled in time.
    #[error(transparent)]
    NotSynced(#[from] NotSynced),
    /// The cache holds another namespace.
    #[error("cannot read {resource} in {wanted:?}: the cache holds namespace {cached:?} alone; read live() instead")]
    OtherNamespace {
        /// The resource to read.
        resource: Box<Resource>,
        /// The requested namespace; empty for all.
        wanted: Istr,
        /// The namespace that the cache holds.
        cached: Istr,
    },
    /// The cache cannot select by this field.
    #[error("cannot list {resource} by field {field:?} from the cache: list live(), or keep an index of the informer")]
    FieldNotCached {
        /// The resource to read.
        resource: Box<Resource>,
        /// The field.
        field: String,
    },
    /// The function that changes the object failed.
    #[error("cannot make {what} as wanted: {source}")]
    Mutate {
        /// The object.
        what: String,
        /// The cause.
        source: BoxError,
    },
}

/// A refusal by the server.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Refusal {
    /// The operation, such as `get pods default/web`.
    pub what: String,
    /// The server's answer.
    pub status: Status,
}

/// The bytes shown of a refusal that is not a Kubernetes status: enough to recognise a proxy's error page.
const REFUSAL_SHOWN_MAX: usize = 200;

// === impl ClientError ===

impl ClientError {
    /// Returns the server's answer, if there is one.
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

    /// Returns when the server wants the request to be retried, if it says so.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.status()?.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    }

    /// Whether the object does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_))
    }

    /// Whether the object has changed meanwhile: read it again.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict(_))
    }

    /// Whether an object of this name exists.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        matches!(self, Self::AlreadyExists(_))
    }

    /// Whether a failed write may have been applied nevertheless: no answer came, or one that does not show the outcome. This holds
    /// for any 5xx: a store that did not answer in time, a server that died behind a load balancer.
    #[must_use]
    pub fn may_have_been_made(&self) -> bool {
        match self {
            Self::NoAnswer { .. } | Self::Unreadable { .. } => true,
            other => other.status().is_some_and(|status| (500..600).contains(&status.code)),
        }
    }

    /// Returns the error of an unsuccessful response.
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

    /// Returns the error that the server would return for a missing object.
    pub(super) fn not_found(resource: &Resource, key: &ObjectKey) -> Self {
        let status = Status {
            code: StatusCode::NOT_FOUND.as_u16(),
            reason: "NotFound".into(),
            message: format!("{resource} {:?} not found", &*key.name),
            ..Status::default()
        };
        Self::NotFound(Box::new(Refusal { what: format!("get {resource} {key}"), status }))
    }

    /// Returns the error of a failed list.
    pub(super) fn of_wire(what: String, error: WireError) -> Self {
        match error {
            WireError::Status(status) => Self::of_status(what, kube_status(&status)),
            WireError::Connection(_) | WireError::Silent(_) => Self::NoAnswer { what, source: error.into() },
            WireError::Request(problem) => Self::BadRequest { what, problem: problem.to_string() },
            other => Self::Unreadable { what, source: other.into() },
        }
    }

    fn of_status(what: String, status: Status) -> Self {
        let code = status.code;
        let reason = status.reason.clone();
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
