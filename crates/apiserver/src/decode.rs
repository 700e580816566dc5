//! Bodies in: JSON, YAML and protobuf into one tree, with upstream's words for what is wrong.
//!
//! 1. Every input gives a tree or an error; nesting is bounded, so the tree can be walked by recursion.
//! 2. Of a key that is written twice the last value counts, and it is reported once.
//! 3. Bytes that are no UTF-8, and half surrogate pairs, become U+FFFD, as in Go.
//! 4. The message for broken JSON is that of Go's `encoding/json`; that for broken YAML has our parser's words.

mod go_json;
mod plain;
pub(crate) mod protobuf;
#[cfg(test)]
mod tests;
mod tree;

use std::borrow::Cow;
use std::fmt::Write;

use serde_json::{Map, Value};
pub(crate) use steersman_base::go::type_name;

/// The format of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentType {
    /// `application/json`
    Json,
    /// `application/yaml`
    Yaml,
    /// `application/vnd.kubernetes.protobuf`
    Protobuf,
}

/// A body that could be read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decoded {
    /// The decoded value: always an object.
    pub value: Value,
    /// The keys that are written twice, in strict decoding's words: `duplicate field "data.a"`.
    pub duplicates: Vec<String>,
}

/// A body that could not be read. It displays as upstream's inner error; [`DecodeError::message`] is the whole
/// sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub(crate) struct DecodeError {
    detail: String,
    summary: String,
}

/// The maximum bytes of a body that an error shows to its sender; upstream's bound.
const SUMMARY_BYTES_MAX: usize = 30;

/// Reads an object.
///
/// # Errors
/// The body is not of its content type, or no object: 400 `BadRequest` with [`DecodeError::message`].
pub(crate) fn object(body: &[u8], content_type: ContentType) -> Result<Decoded, DecodeError> {
    let decoded = match content_type {
        ContentType::Json => json(body).map_err(|detail| parse_error(&detail)),
        ContentType::Yaml => yaml(body),
        ContentType::Protobuf => protobuf::object(body).map(|value| Decoded { value, duplicates: Vec::new() }),
    };
    decoded.and_then(|decoded| with_kind(decoded).map_err(|detail| parse_error(&detail))).map_err(|detail| {
        let summary = summarise(body);
        DecodeError { detail, summary }
    })
}

/// Reads any JSON value, with Go's words for what is wrong. Patches are read with it.
///
/// # Errors
/// The text is no JSON.
pub(crate) fn json(text: &[u8]) -> Result<Decoded, String> {
    let text = utf8(text);
    match tree::from_json(&text) {
        Ok((value, duplicates)) => Ok(Decoded { value, duplicates }),
        // What serde_json refuses and Go takes: half surrogate pairs. What both refuse is worded as Go does.
        Err(error) => match go_json::syntax_error(text.as_bytes()) {
            Some(sentence) => Err(sentence),
            None => match go_json::mend_surrogates(&text).map(|mended| tree::from_json(&mended)) {
                Some(Ok((value, duplicates))) => Ok(Decoded { value, duplicates }),
                _ if error.to_string().starts_with("recursion limit") => Err("exceeded max depth".to_owned()),
                _ => Err(error.to_string()),
            },
        },
    }
}

/// Reads any YAML value, with our parser's words for what is wrong. Configurations to apply are read with it.
///
/// # Errors
/// The text is no YAML.
pub(crate) fn yaml(body: &[u8]) -> Result<Decoded, String> {
    tree::from_yaml(&utf8(body)).map(|(value, duplicates)| Decoded { value, duplicates })
}

fn parse_error(detail: &str) -> String {
    format!("couldn't get version/kind; json parse error: {detail}")
}

/// Upstream first reads `apiVersion` and `kind`, and with that refuses what is no object. `null` is an empty one.
fn with_kind(mut decoded: Decoded) -> Result<Decoded, String> {
    if decoded.value.is_null() {
        decoded.value = Value::Object(Map::new());
    }
    let Some(object) = decoded.value.as_object() else {
        let found = type_name(&decoded.value);
        return Err(format!(
            "json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \
             \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
        ));
    };
    for field in ["apiVersion", "kind"] {
        if let Some(other) = object.get(field).filter(|value| !value.is_string() && !value.is_null()) {
            let found = type_name(other);
            return Err(format!("json: cannot unmarshal {found} into Go struct field .{field} of type string"));
        }
    }
    Ok(decoded)
}

/// The text, with one U+FFFD for each byte that is no UTF-8.
fn utf8(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len() + 2);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '\u{fffd}'));
    }
    Cow::Owned(text)
}

fn summarise(body: &[u8]) -> String {
    let shown = body.get(..SUMMARY_BYTES_MAX).unwrap_or(body);
    let mut summary = match body.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(shown).into_owned(),
        Some(_) => shown.iter().fold(String::new(), |mut hex, byte| {
            // Writing to a string does not fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        }),
    };
    if body.len() > SUMMARY_BYTES_MAX {
        summary.push_str(" ...");
    }
    summary
}

// === impl DecodeError ===

impl DecodeError {
    /// The whole message of the 400 that upstream answers when it wanted an object of this kind.
    #[must_use]
    pub(crate) fn message(&self, kind: &str) -> String {
        format!("the object provided is unrecognized (must be of type {kind}): {} ({})", self.detail, self.summary)
    }
}
