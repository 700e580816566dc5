//! Where a field is: steps from an object's root.
//!
//! 1. **One order.** Elements are ordered by kind (field, key, value, index), then by content; numbers compare by value,
//!    so `1` and `1.0` are one element.
//! 2. **Text both ways.** [`PathElement::to_text`] writes the names that `FieldsV1` has for its members (`f:spec`,
//!    `k:{"name":"a"}`, `v:"x"`, `i:0`) byte for byte as upstream does, and [`PathElement::parse`] reads them.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::value::{self, Encoder, Escape};

/// One step of a path.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A member of an object.
    Field(Arc<str>),
    /// The item of a list that has these values for its keys, ordered by name.
    Key(Arc<[(Arc<str>, Value)]>),
    /// The item of a set that is this value.
    Value(Arc<Value>),
    /// The item of a list at this place.
    Index(i64),
}

/// Steps from the root of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<PathElement>);

/// Why the name of a member of `FieldsV1` cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// Shorter than a prefix.
    #[error("key must be 2 characters long:")]
    TooShort,
    /// The second character is not a colon.
    #[error("missing colon: {0}")]
    MissingColon(String),
    /// The text after `k:` or `v:` is not JSON, or not an object.
    #[error("{0}")]
    Json(String),
    /// The text after `i:` is not a number.
    #[error("strconv.Atoi: parsing {0:?}: invalid syntax")]
    Index(String),
}

// === impl PathElement ===

impl PathElement {
    /// A member of an object.
    pub fn field(name: impl Into<Arc<str>>) -> Self {
        Self::Field(name.into())
    }

    /// The item with these values for its keys.
    pub fn key(keys: impl IntoIterator<Item = (Arc<str>, Value)>) -> Self {
        let mut keys: Vec<_> = keys.into_iter().collect();
        if keys.len() > 1 {
            keys.sort_by(|a, b| a.0.cmp(&b.0));
        }
        Self::Key(keys.into())
    }

    /// The item of a set.
    pub fn value(value: Value) -> Self {
        Self::Value(Arc::new(value))
    }

    /// The name of the member of `FieldsV1` that stands for this element.
    pub fn to_text(&self) -> String {
        let mut out = String::with_capacity(match self {
            Self::Field(name) => "f:".len() + name.len(),
            _ => 0,
        });
        self.write_text(&mut out);
        out
    }

    pub(crate) fn write_text(&self, out: &mut String) {
        match self {
            Self::Field(name) => {
                out.push_str("f:");
                out.push_str(name);
            }
            Self::Key(keys) => {
                out.push_str("k:{");
                for (index, (name, value)) in keys.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    value::json_string(name, Escape::Plain, out);
                    out.push(':');
                    value::json_escaped(value, Encoder::Iterator, out);
                }
                out.push('}');
            }
            Self::Value(value) => {
                out.push_str("v:");
                value::json_escaped(value, Encoder::Iterator, out);
            }
            Self::Index(index) => {
                out.push_str("i:");
                out.push_str(&index.to_string());
            }
        }
    }

    /// Reads a name as [`PathElement::to_text`] writes it. `None` is an element of a kind that does not exist yet,
    /// which readers skip.
    ///
    /// # Errors
    ///
    /// The text has no prefix, or what follows the prefix is not what it announces.
    pub fn parse(text: &str) -> Result<Option<Self>, PathError> {
        let bytes = text.as_bytes();
        if bytes.len() < 2 {
            return Err(PathError::TooShort);
        }
        if bytes[1] != b':' {
            return Err(PathError::MissingColon(text.to_owned()));
        }
        // The second byte is a colon, so the first is a character of its own and the rest starts at a boundary.
        let rest = &text[2..];
        match bytes[0] {
            b'f' => Ok(Some(Self::field(rest))),
            b'v' => parse_json(rest).map(|value| Some(Self::value(value))),
            b'k' => parse_key(rest).map(Some),
            b'i' => match rest.parse() {
                Ok(index) => Ok(Some(Self::Index(index))),
                Err(_) => Err(PathError::Index(rest.to_owned())),
            },
            _ => Ok(None),
        }
    }
}

fn parse_key(json: &str) -> Result<PathElement, PathError> {
    if let Some((name, text)) = one_text(json) {
        return Ok(PathElement::Key(Arc::new([(name.into(), Value::String(text.to_owned()))])));
    }
    match parse_json(json)? {
        Value::Object(keys) => Ok(PathElement::key(keys.into_iter().map(|(name, value)| (name.into(), value)))),
        Value::Null => Ok(PathElement::key([])),
        _ => Err(PathError::Json("expect { or n".to_owned())),
    }
}

/// The name and the text of an object like `{"name":"a"}`, which is what most keys are; none for all others.
fn one_text(json: &str) -> Option<(&str, &str)> {
    let (name, value) = json.strip_prefix("{\"")?.strip_suffix("\"}")?.split_once("\":\"")?;
    let is_plain = |text: &str| text.bytes().all(|byte| byte >= b' ' && !matches!(byte, b'"' | b'\\'));
    (is_plain(name) && is_plain(value)).then_some((name, value))
}

fn parse_json(text: &str) -> Result<Value, PathError> {
    let value: Value = serde_json::from_str(text).map_err(|error| PathError::Json(error.to_string()))?;
    // serde_json may miss a fraction by its last bit: it would be another one when it is written and read again.
    let exact = value.as_number().filter(|number| number.is_f64()).and_then(|_| text.trim().parse().ok());
    Ok(exact.and_then(serde_json::Number::from_f64).map_or(value, Value::Number))
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => compare_keys(a, b),
            (Self::Value(a), Self::Value(b)) => value::compare(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PathElement {
    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

fn compare_keys(a: &[(Arc<str>, Value)], b: &[(Arc<str>, Value)]) -> Ordering {
    let pairs = a.iter().zip(b);
    let differing = pairs.map(|(a, b)| a.0.cmp(&b.0).then_with(|| value::compare(&a.1, &b.1))).find(|o| o.is_ne());
    differing.unwrap_or_else(|| a.len().cmp(&b.len()))
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PathElement {}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => {
                let mut out = String::new();
                for (index, (name, value)) in keys.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    out.push_str(name);
                    out.push('=');
                    value::in_path(value, &mut out);
                }
                write!(f, "[{out}]")
            }
            Self::Value(value) => {
                let mut out = String::new();
                value::in_path(value, &mut out);
                write!(f, "[={out}]")
            }
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

// === impl Path ===

impl Path {
    /// The path through objects: `["spec", "replicas"]`.
    pub fn of_fields<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(names.into_iter().map(PathElement::field).collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| write!(f, "{element}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_one_text_are_read_as_all_json_is() {
        for (json, want) in [
            (r#"{"name":"a"}"#, Some(("name", "a"))),
            (r#"{"":""}"#, Some(("", ""))),
            (r#"{"ä":"{,} "}"#, Some(("ä", "{,} "))),
            (r#"{"name":"a","b":"c"}"#, None),
            (r#"{"name":"a\n"}"#, None),
            ("{\"name\":\"a\n\"}", None),
            (r#"{"name": "a"}"#, None),
            (r#"{"name":1}"#, None),
            (r#"{"}"#, None),
            (r#"{"a"}"#, None),
            ("{}", None),
        ] {
            assert_eq!(one_text(json), want, "{json}");
            if let Some((name, text)) = want {
                let read: Value = serde_json::from_str(json).expect("JSON");
                assert_eq!(read.get(name).and_then(Value::as_str), Some(text));
            }
        }
    }
}
