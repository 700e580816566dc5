//! Pure: the meaning of a response to a write.

use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use steersman_base::{Istr, Meta, ObjectKey};
use steersman_model::{Encoded, View};

use super::error::{Failure, Rejection};
use super::{WriteError, Written};
use crate::connection::exchange::THROTTLED_MIN;

/// A placeholder for the letters that the server would append to a prefix.
pub(super) const NAME_TO_COME: &str = "?????";

/// Reads the metadata of a successful response, and whether it is only a status.
///
/// # Errors
/// The write was made, but its result is unknown: [`WriteError::Unknown`].
pub(super) fn written(body: &[u8]) -> Result<(Written, bool), WriteError> {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(borrow, default)]
        kind: Option<std::borrow::Cow<'a, str>>,
    }
    let unknown = |error: &dyn std::fmt::Display| WriteError::unknown(format!("the answer cannot be read: {error}"));
    let meta = Meta::decode(Encoded::Json(body)).map_err(|error| unknown(&error))?;
    // A status has no uid; every stored object has one, and its body is not read twice.
    if !meta.uid.is_empty() {
        return Ok((meta, false));
    }
    let Kind { kind } = serde_json::from_slice(body).map_err(|error| unknown(&error))?;
    if kind.as_deref() == Some("Status") { Ok((Written::default(), true)) } else { Ok((meta, false)) }
}

/// Returns the metadata of an object that is not sent, from its body.
pub(super) fn as_if_written(key: &ObjectKey, body: &[u8]) -> Written {
    #[derive(Deserialize, Default)]
    struct Object {
        #[serde(default)]
        metadata: serde_json::Map<String, serde_json::Value>,
    }
    let object: Object = serde_json::from_slice(body).unwrap_or_default();
    let whole = serde_json::json!({ "metadata": &object.metadata }).to_string();
    let mut meta = Meta::decode(Encoded::Json(whole.as_bytes())).unwrap_or_default();
    if !key.name.is_empty() {
        meta.name = key.name.clone();
    } else if meta.name.is_empty() {
        let prefix = object.metadata.get("generateName").and_then(serde_json::Value::as_str).unwrap_or_default();
        meta.name = Istr::from(format!("{prefix}{NAME_TO_COME}"));
    }
    meta.namespace = key.namespace.clone();
    meta
}

/// Interprets a failed response.
pub(super) fn failure(code: StatusCode, retry_after: Option<Duration>, body: &[u8]) -> Failure {
    let status: Rejection = serde_json::from_slice(body).unwrap_or_default();
    let status = status.with_code(code, body);
    let said = status.message.clone();
    let error = match code {
        StatusCode::NOT_FOUND if status.reason == "NotFound" => WriteError::NotFound,
        // Not the API's word: a proxy without a server behind it, or a path that is not served. Nothing was written, and the
        // object may exist.
        StatusCode::NOT_FOUND => WriteError::Rejected(status),
        StatusCode::CONFLICT if status.reason == "AlreadyExists" => WriteError::AlreadyExists,
        StatusCode::CONFLICT => WriteError::Conflict,
        StatusCode::FORBIDDEN if status.has_cause("NamespaceTerminating") => WriteError::NamespaceTerminating,
        // The server refused before it did anything.
        StatusCode::TOO_MANY_REQUESTS => {
            let error = WriteError::Throttled(retry_after.unwrap_or(THROTTLED_MIN));
            return Failure { error, said, retriable: retry_after };
        }
        // A failure while the server, or a proxy, had the request: a store that did not answer in time, a server that
        // died. The write may have been made, or may still be. Some of these responses are refusals (an admission
        // webhook that cannot be called); a read that settles it is cheap.
        code if code.is_server_error() => WriteError::Unknown(Box::new(status)),
        _ => WriteError::Rejected(status),
    };
    Failure { error, said, retriable: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_has_one_meaning() {
        let check = |code: u16, body: &str, want: &str| {
            let failure = failure(StatusCode::from_u16(code).unwrap(), None, body.as_bytes());
            assert_eq!(format!("{:?}", failure.error).split(['(', ' ']).next().unwrap(), want, "{code} {body}");
            assert_eq!(failure.retriable, None, "{code} {body}");
        };
        check(404, r#"{"reason":"NotFound"}"#, "NotFound");
        check(404, "404 page not found", "Rejected");
        check(404, r#"{"error":"no backend"}"#, "Rejected");
        check(409, r#"{"reason":"AlreadyExists"}"#, "AlreadyExists");
        check(409, r#"{"reason":"Conflict"}"#, "Conflict");
        check(
            403,
            r#"{"reason":"Forbidden","details":{"causes":[{"reason":"NamespaceTerminating"}]}}"#,
            "NamespaceTerminating",
        );
        check(403, r#"{"reason":"Forbidden","details":null}"#, "Rejected");
        check(429, "", "Throttled");
        for code in [500, 502, 503, 504, 507, 599] {
            check(code, "", "Unknown");
            check(code, r#"{"reason":"InternalError"}"#, "Unknown");
        }
        check(422, r#"{"reason":"Invalid"}"#, "Rejected");
        check(500, "not json", "Unknown");
        check(408, "", "Rejected");
    }

    #[test]
    fn only_a_refusal_with_retry_after_is_retried() {
        let second = Some(Duration::from_secs(1));
        for (code, want) in [(429, second), (503, None), (500, None), (409, None), (504, None)] {
            let failure = failure(StatusCode::from_u16(code).unwrap(), second, b"");
            assert_eq!(failure.retriable, want, "{code}: a server that did something must not be asked twice");
        }
    }

    #[test]
    fn a_rejection_says_what_the_server_said() {
        let refused =
            failure(StatusCode::UNPROCESSABLE_ENTITY, None, br#"{"message":"Pod \"a\" is invalid: spec: wrong"}"#);
        assert_eq!(refused.error.to_string(), r#"the server refused: Pod "a" is invalid: spec: wrong (422)"#);
        assert_eq!(refused.said, r#"Pod "a" is invalid: spec: wrong"#, "events say it as upstream does");
        let refused = failure(StatusCode::BAD_GATEWAY, None, b"<html>bad gateway</html>");
        let want = "it is not known whether the write was made: <html>bad gateway</html> (502)";
        assert_eq!(refused.error.to_string(), want);
        assert_eq!(refused.error.message(), "<html>bad gateway</html>", "conditions say it as upstream does");
    }

    #[test]
    fn the_version_of_a_written_object_is_read() {
        let body = br#"{"kind":"PartialObjectMetadata","metadata":{"name":"a","uid":"u","resourceVersion":"7"}}"#;
        let want = Meta { name: "a".into(), uid: "u".into(), resource_version: "7".into(), ..Meta::default() };
        assert_eq!(written(body).unwrap(), (want, false));
        let status = br#"{"kind":"Status","metadata":{},"status":"Success","code":201}"#;
        assert_eq!(written(status).unwrap(), (Meta::default(), true));
        assert!(matches!(written(b"{"), Err(WriteError::Unknown(_))));
    }

    #[test]
    fn what_is_not_sent_is_known_by_its_own_metadata() {
        let check = |key: ObjectKey, body: &str, want: (&str, &str)| {
            let meta = as_if_written(&key, body.as_bytes());
            assert_eq!((&*meta.namespace, &*meta.name), want, "{body}");
        };
        let created = ObjectKey::new("ns", "");
        check(created.clone(), r#"{"metadata":{"name":"a"},"spec":{}}"#, ("ns", "a"));
        check(created.clone(), r#"{"metadata":{"generateName":"web-"}}"#, ("ns", "web-?????"));
        check(created, "no json", ("ns", "?????"));
        check(ObjectKey::new("ns", "b"), r#"[{"op":"remove"}]"#, ("ns", "b"));
        let labelled = as_if_written(&ObjectKey::cluster("n"), br#"{"metadata":{"labels":{"a":"b"}}}"#);
        assert_eq!(labelled.labels.get("a").map(|value| &**value), Some("b"));
    }
}
