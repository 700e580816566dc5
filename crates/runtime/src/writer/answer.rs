//! Pure: what an answer to a write means.

use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use steersman_base::{ResourceVersion, Uid};

use super::{Rejection, WriteError};

/// What the server says of the object it has now. The rest of the answer is not asked for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Written {
    /// The object's name: told, or made by the server.
    pub name: String,
    /// The object's uid.
    pub uid: Uid,
    /// The version this write made.
    #[serde(rename = "resourceVersion")]
    pub resource_version: ResourceVersion,
}

#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    metadata: Written,
}

/// Reads the metadata out of a successful answer.
///
/// # Errors
/// The write went through, but what it made is not known: [`WriteError::Unknown`].
pub(super) fn written(body: &[u8]) -> Result<Written, WriteError> {
    serde_json::from_slice::<Object>(body)
        .map(|object| object.metadata)
        .map_err(|error| WriteError::Unknown(format!("the answer cannot be read: {error}")))
}

/// What a failed answer means.
pub(super) fn failure(code: StatusCode, retry_after: Option<Duration>, body: &[u8]) -> WriteError {
    let status: Rejection = serde_json::from_slice(body).unwrap_or_default();
    let status = status.with_code(code, body);
    match code {
        StatusCode::NOT_FOUND => WriteError::NotFound,
        StatusCode::CONFLICT if status.reason == "AlreadyExists" => WriteError::AlreadyExists,
        StatusCode::CONFLICT => WriteError::Conflict,
        StatusCode::FORBIDDEN if status.has_cause("NamespaceTerminating") => WriteError::NamespaceTerminating,
        // The server said so before it did anything.
        StatusCode::TOO_MANY_REQUESTS => WriteError::Throttled(retry_after.unwrap_or(THROTTLED_MIN)),
        // The server gave up waiting; what it waited for may still happen.
        StatusCode::GATEWAY_TIMEOUT => WriteError::Unknown(status.to_string()),
        _ => WriteError::Rejected(status),
    }
}

/// Upstream's servers say one second when they say anything.
const THROTTLED_MIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_has_one_meaning() {
        let check = |code: u16, body: &str, want: &str| {
            let error = failure(StatusCode::from_u16(code).unwrap(), None, body.as_bytes());
            assert_eq!(format!("{error:?}").split(['(', ' ']).next().unwrap(), want, "{code} {body}");
        };
        check(404, r#"{"reason":"NotFound"}"#, "NotFound");
        check(409, r#"{"reason":"AlreadyExists"}"#, "AlreadyExists");
        check(409, r#"{"reason":"Conflict"}"#, "Conflict");
        check(
            403,
            r#"{"reason":"Forbidden","details":{"causes":[{"reason":"NamespaceTerminating"}]}}"#,
            "NamespaceTerminating",
        );
        check(403, r#"{"reason":"Forbidden"}"#, "Rejected");
        check(429, "", "Throttled");
        check(504, "", "Unknown");
        check(422, r#"{"reason":"Invalid"}"#, "Rejected");
        check(500, "not json", "Rejected");
    }

    #[test]
    fn a_rejection_says_what_the_server_said() {
        let error =
            failure(StatusCode::UNPROCESSABLE_ENTITY, None, br#"{"message":"Pod \"a\" is invalid: spec: wrong"}"#);
        assert_eq!(error.to_string(), r#"the server refused: Pod "a" is invalid: spec: wrong (422)"#);
        let error = failure(StatusCode::BAD_GATEWAY, None, b"<html>bad gateway</html>");
        assert_eq!(error.to_string(), "the server refused: <html>bad gateway</html> (502)");
    }

    #[test]
    fn a_written_object_tells_its_version() {
        let body = br#"{"kind":"PartialObjectMetadata","metadata":{"name":"a","uid":"u","resourceVersion":"7"}}"#;
        let want = Written { name: "a".into(), uid: "u".into(), resource_version: "7".into() };
        assert_eq!(written(body).unwrap(), want);
        assert!(matches!(written(b"{"), Err(WriteError::Unknown(_))));
    }
}
