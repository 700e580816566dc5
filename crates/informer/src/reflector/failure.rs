//! Classification of errors.
//!
//! Pure: an error in, its consequences out.

use super::state::Failure;
use crate::wire::{ApiStatus, UnreadableObject, WireError};
use steersman_model::DecodeError;

/// The kind of a reflector's problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProblemKind {
    /// Listing or watching is not allowed, or the credentials are not accepted (401, 403).
    Forbidden,
    /// The API does not exist, or no longer (404).
    NotFound,
    /// The server is overloaded (429).
    Throttled,
    /// The version has expired or is not known yet; a list follows (410, *too large resource version*).
    Expired,
    /// No connection, no answer, or 5xx.
    Unreachable,
    /// An answer that cannot be read, or a request that the server does not understand.
    BadAnswer,
}

/// Returns the meaning of an error for the state machine.
pub(super) fn classify(error: &WireError) -> Failure {
    match error {
        WireError::Status(status) => classify_status(status),
        WireError::Connection(_) | WireError::Silent(_) | WireError::Truncated { .. } => {
            Failure::Broken { retry_after: None }
        }
        // As for a server that does not know our version yet: it is given time.
        WireError::Past { .. } => Failure::VersionTooLarge { retry_after: None },
        WireError::TooLarge { .. }
        | WireError::Malformed { .. }
        | WireError::WrongKind { .. }
        | WireError::Object(_) => Failure::Garbage,
        WireError::Request(_) => Failure::Refused,
    }
}

fn classify_status(status: &ApiStatus) -> Failure {
    let retry_after = status.retry_after;
    if status.is_expired() {
        return Failure::Expired;
    }
    if status.is_version_too_large() {
        return Failure::VersionTooLarge { retry_after };
    }
    match status.code {
        401 | 403 => Failure::Denied,
        404 => Failure::NotFound,
        406 | 415 => Failure::NotAcceptable,
        429 => Failure::Throttled { retry_after },
        400..500 => Failure::Refused,
        _ => Failure::Broken { retry_after },
    }
}

/// Whether an error is that of one object which cannot be decoded in any requested encoding, so that another request
/// brings the same. Not if the name is missing, without which it is unknown what would be left out; and not if the
/// server sends an encoding that the view does not support.
pub(super) fn is_to_be_skipped(error: &UnreadableObject, asks_for_protobuf: bool) -> bool {
    let is_final = match error.source {
        DecodeError::Json(_) => true,
        DecodeError::Protobuf { .. } => !asks_for_protobuf,
        DecodeError::JsonOnly { .. } => false,
    };
    is_final && error.identity.is_some()
}

/// Whether JSON may help: an object could not be decoded from protobuf.
pub(super) fn asks_for_json(error: &WireError) -> bool {
    matches!(error, WireError::Object(object) if matches!(object.source, DecodeError::Protobuf { .. }))
}

/// Returns the kind of an error.
pub(super) fn problem_kind(error: &WireError) -> ProblemKind {
    match classify(error) {
        Failure::Denied => ProblemKind::Forbidden,
        Failure::NotFound => ProblemKind::NotFound,
        Failure::Throttled { .. } => ProblemKind::Throttled,
        Failure::Expired | Failure::VersionTooLarge { .. } => ProblemKind::Expired,
        Failure::Broken { .. } => ProblemKind::Unreachable,
        Failure::Refused | Failure::NotAcceptable | Failure::Garbage => ProblemKind::BadAnswer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn codes_and_reasons_decide_what_to_do() {
        let status = |code, reason: &str, message: &str| ApiStatus {
            code,
            reason: reason.into(),
            message: message.into(),
            retry_after: Some(Duration::from_secs(1)),
            causes: Vec::new(),
        };
        let wait = Some(Duration::from_secs(1));
        let check = |status: ApiStatus, want: Failure| {
            let shown = status.to_string();
            assert_eq!(classify(&WireError::Status(Box::new(status))), want, "{shown}");
        };
        check(status(410, "Expired", "too old resource version"), Failure::Expired);
        check(status(410, "Gone", ""), Failure::Expired);
        check(status(0, "Expired", ""), Failure::Expired);
        check(
            status(504, "Timeout", "Too large resource version: 9, current: 3"),
            Failure::VersionTooLarge { retry_after: wait },
        );
        let caused =
            ApiStatus { causes: vec![("ResourceVersionTooLarge".into(), String::new())], ..status(504, "Timeout", "") };
        check(caused, Failure::VersionTooLarge { retry_after: wait });
        check(status(504, "Timeout", "no time"), Failure::Broken { retry_after: wait });
        check(status(429, "TooManyRequests", ""), Failure::Throttled { retry_after: wait });
        check(status(500, "InternalError", ""), Failure::Broken { retry_after: wait });
        check(status(503, "", ""), Failure::Broken { retry_after: wait });
        check(status(401, "Unauthorized", ""), Failure::Denied);
        check(status(403, "Forbidden", ""), Failure::Denied);
        check(status(404, "NotFound", ""), Failure::NotFound);
        check(status(406, "NotAcceptable", ""), Failure::NotAcceptable);
        check(status(415, "", ""), Failure::NotAcceptable);
        check(status(400, "BadRequest", ""), Failure::Refused);
        check(status(422, "Invalid", ""), Failure::Refused);
        check(status(307, "", ""), Failure::Broken { retry_after: wait });
    }

    #[test]
    fn a_cut_connection_is_broken_and_bad_bytes_are_garbage() {
        assert_eq!(classify(&WireError::Truncated { what: "x" }), Failure::Broken { retry_after: None });
        assert_eq!(classify(&WireError::Silent(Duration::ZERO)), Failure::Broken { retry_after: None });
        assert_eq!(classify(&WireError::TooLarge { what: "x", limit: 1 }), Failure::Garbage);
    }
}
