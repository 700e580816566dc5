//! Responses, as Go's servers write them.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use super::Query;
use crate::serving::Response;

/// A response of this content type, which browsers must not guess.
pub(super) fn bytes(code: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// A page of text.
pub fn text(code: StatusCode, body: impl Into<Bytes>) -> Response {
    bytes(code, "text/plain; charset=utf-8", body)
}

/// A page of JSON.
pub fn json(code: StatusCode, value: &Value) -> Response {
    bytes(code, "application/json", value.to_string())
}

/// Go's `http.Error`: the text and a line feed.
pub(super) fn error(code: StatusCode, message: &str) -> Response {
    text(code, format!("{message}\n"))
}

/// Go's `http.NotFound`.
pub(super) fn not_found() -> Response {
    error(StatusCode::NOT_FOUND, "404 page not found")
}

/// Go's `http.NotFound`, with a list of the existing paths for clients that may see it.
pub(super) fn not_found_but(paths: &[String]) -> Response {
    let mut body = "404 page not found\n\nThere is:\n".to_owned();
    for path in paths {
        body.push_str(path);
        body.push('\n');
    }
    text(StatusCode::NOT_FOUND, body)
}

/// A `Status`, as upstream's filters answer; indented for people.
pub(super) fn status(
    headers: &HeaderMap,
    query: &Query,
    code: StatusCode,
    reason: &str,
    message: &str,
    details: bool,
) -> Response {
    // In upstream's order; serde_json would sort.
    let mut fields = vec![
        ("kind", json!("Status")),
        ("apiVersion", json!("v1")),
        ("metadata", json!({})),
        ("status", json!("Failure")),
        ("message", json!(message)),
        ("reason", json!(reason)),
    ];
    if details {
        fields.push(("details", json!({})));
    }
    fields.push(("code", json!(code.as_u16())));
    let (open, gap, close, colon) =
        if wants_indent(headers, query) { ("{\n  ", ",\n  ", "\n}", ": ") } else { ("{", ",", "}", ":") };
    let fields: Vec<_> = fields.into_iter().map(|(name, value)| format!("\"{name}\"{colon}{value}")).collect();
    let tail = if colon == ": " { "" } else { "\n" };
    bytes(code, "application/json", format!("{open}{}{close}{tail}", fields.join(gap)))
}

/// Upstream's rule: indentation was asked for, or the client is one that people type into.
fn wants_indent(headers: &HeaderMap, query: &Query) -> bool {
    if let Some(pretty) = query.get("pretty") {
        return matches!(pretty, "1" | "true");
    }
    let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|person| agent.starts_with(person))
}
