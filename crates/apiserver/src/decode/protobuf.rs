//! Protobuf bodies: what client-go sends by default, turned into the tree that JSON would have given.
//!
//! 1. Every kind that has a schema can be read; which field is which comes from a table (see [`table`]).
//! 2. Every input gives a tree or an error; nesting is bounded, so the tree can be walked by recursion.
//! 3. Zero values stay: Go writes them for what was never set, and the schema drops them (see [`crate::schema`]).
//! 4. Fields that nobody knows are skipped, as generated Go code does.
//!
//! Follows `apimachinery/pkg/runtime/serializer/protobuf` and the types with an encoding of their own of Kubernetes 1.37.

pub(crate) mod order;
mod table;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use steersman_base::{MicroTime, Time};

use super::{json, utf8};
use crate::schema;
use table::{Field, Holds, Message, Often, Place};

/// The beginning of every body: `k8s` and a zero.
const MAGIC: &[u8] = b"k8s\0";
/// Messages in messages; the same bound as that of JSON.
const DEPTH_MAX: usize = 128;
/// Options and statuses, which every group and version has.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const MICROS: i64 = 1_000_000;

/// A value on the wire.
#[derive(Clone, Copy)]
enum Wire<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Fixed32,
    Bytes(&'a [u8]),
}

/// The unread rest of a message.
struct Reader<'a>(&'a [u8]);

/// The envelope of a body: `runtime.Unknown`.
#[derive(Default)]
struct Envelope<'a> {
    api_version: Cow<'a, str>,
    kind: Cow<'a, str>,
    raw: &'a [u8],
}

/// Reads a body; the tree has `apiVersion` and `kind` from its envelope.
pub(super) fn object(body: &[u8]) -> Result<Value, String> {
    let message = match body.strip_prefix(MAGIC) {
        _ if body.is_empty() => return Err("empty data".to_owned()),
        None => {
            let message = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
            return Err(message.to_owned());
        }
        Some([]) => return Err("empty body".to_owned()),
        Some(message) => message,
    };
    enveloped(message, 0)
}

fn enveloped(message: &[u8], depth: usize) -> Result<Value, String> {
    let envelope = Envelope::read(message)?;
    let Envelope { api_version, kind, raw } = &envelope;
    for (field, text) in [("Kind", kind), ("apiVersion", api_version)] {
        if text.is_empty() {
            return Err(format!(
                "Object '{field}' is missing in 'runtime.TypeMeta{{APIVersion:{api_version:?}, Kind:{kind:?}}}'"
            ));
        }
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let name = schema::name_of(group, version, kind).map_or_else(|| format!("{META}.{kind}").into(), Cow::Borrowed);
    let unknown = || format!("no kind {kind:?} is registered for version {api_version:?}");
    let message = table::find(&name).ok_or_else(unknown)?;
    let mut value = read_message(message, raw, None, depth)?;
    if let Some(map) = value.as_object_mut() {
        map.insert("apiVersion".to_owned(), api_version.as_ref().into());
        map.insert("kind".to_owned(), kind.as_ref().into());
    }
    Ok(value)
}

/// Reads a message; two of a kind, one after the other, mean the same as one, so there may be a value already.
fn read_message(message: &Message, bytes: &[u8], held: Option<Value>, depth: usize) -> Result<Value, String> {
    let mut value = held.unwrap_or_else(|| empty(message));
    read_into(message, bytes, &mut value, depth)?;
    Ok(value)
}

/// The value of a message without fields: an object, or nothing if it stands for one of its values.
fn empty(message: &Message) -> Value {
    let is_whole = message.fields.first().is_some_and(|field| field.place == Place::Whole);
    if is_whole { Value::Null } else { Value::Object(Map::new()) }
}

fn read_into(message: &Message, bytes: &[u8], value: &mut Value, depth: usize) -> Result<(), String> {
    if depth >= DEPTH_MAX {
        return Err("exceeded max depth".to_owned());
    }
    let mut reader = Reader(bytes);
    while let Some((number, wire)) = reader.field(message.name)? {
        let Some(field) = message.field(number) else { continue };
        match field.place {
            Place::Named => {
                let Some(map) = value.as_object_mut() else { continue };
                let held = map.entry(field.name).or_insert(Value::Null);
                read_field(field, wire, held, depth)?;
            }
            Place::Whole => {
                // Of several, the last counts; a list goes on only in itself.
                if field.often == Often::Once || !value.is_array() {
                    *value = Value::Null;
                }
                read_field(field, wire, value, depth)?;
            }
            Place::Inline => {
                let (Holds::Message(id), Wire::Bytes(bytes)) = (field.holds, wire) else {
                    return Err(wire.mismatch(field));
                };
                if let Some(inner) = id.message() {
                    read_into(inner, bytes, value, depth + 1)?;
                }
            }
        }
    }
    Ok(())
}

fn read_field(field: &Field, wire: Wire<'_>, held: &mut Value, depth: usize) -> Result<(), String> {
    match field.often {
        Often::Once => *held = read_value(field, wire, Some(held.take()).filter(Value::is_object), depth)?,
        Often::List => {
            if !held.is_array() {
                *held = Value::Array(Vec::new());
            }
            let Some(list) = held.as_array_mut() else { return Ok(()) };
            match (field.holds, wire) {
                (Holds::Bool | Holds::Integer | Holds::Double, Wire::Bytes(packed)) => {
                    let mut reader = Reader(packed);
                    while !reader.0.is_empty() {
                        let wire = match field.holds {
                            Holds::Double => Wire::Fixed64(reader.fixed()?),
                            _ => Wire::Varint(reader.varint()?),
                        };
                        list.push(read_value(field, wire, None, depth)?);
                    }
                }
                _ => list.push(read_value(field, wire, None, depth)?),
            }
        }
        Often::Map => {
            if !held.is_object() {
                *held = Value::Object(Map::new());
            }
            let Wire::Bytes(entry) = wire else { return Err(wire.mismatch(field)) };
            let (key, value) = read_entry(field, entry, depth)?;
            if let Some(map) = held.as_object_mut() {
                map.insert(key, value);
            }
        }
    }
    Ok(())
}

fn read_entry(field: &Field, entry: &[u8], depth: usize) -> Result<(String, Value), String> {
    let mut key = String::new();
    let mut value = None;
    let mut reader = Reader(entry);
    while let Some((number, wire)) = reader.field(field.name)? {
        match (number, wire) {
            (1, Wire::Bytes(text)) => key = utf8(text).into_owned(),
            (2, wire) => value = Some(read_value(field, wire, value, depth)?),
            _ => {}
        }
    }
    let value = match (value, field.holds) {
        (Some(value), _) => value,
        (None, Holds::Integer | Holds::Bool) => read_value(field, Wire::Varint(0), None, depth)?,
        (None, Holds::Double) => read_value(field, Wire::Fixed64([0; 8]), None, depth)?,
        (None, _) => read_value(field, Wire::Bytes(&[]), None, depth)?,
    };
    Ok((key, value))
}

#[allow(clippy::cast_possible_wrap, reason = "protobuf sends signed numbers as 64 bits")]
fn read_value(field: &Field, wire: Wire<'_>, held: Option<Value>, depth: usize) -> Result<Value, String> {
    Ok(match (field.holds, wire) {
        (Holds::Bool, Wire::Varint(number)) => Value::Bool(number != 0),
        (Holds::Integer, Wire::Varint(number)) => Value::from(number as i64),
        (Holds::Double, Wire::Fixed64(bytes)) => Value::from(f64::from_le_bytes(bytes)),
        (Holds::Text, Wire::Bytes(bytes)) => Value::String(utf8(bytes).into_owned()),
        (Holds::Bytes, Wire::Bytes(bytes)) => Value::String(STANDARD.encode(bytes)),
        (Holds::Json, Wire::Bytes(bytes)) => read_json(bytes, depth)?,
        (Holds::Time | Holds::MicroTime, Wire::Bytes([])) => Value::Null,
        (Holds::Time, Wire::Bytes(bytes)) => {
            let (seconds, _) = timestamp(bytes)?;
            let time = Time::from_unix(seconds);
            written(time, time.is_writable())?
        }
        (Holds::MicroTime, Wire::Bytes(bytes)) => {
            let (seconds, nanos) = timestamp(bytes)?;
            let time = MicroTime::from_unix_micros(seconds.saturating_mul(MICROS).saturating_add(nanos / 1_000));
            written(time, time.is_writable())?
        }
        (Holds::IntOrString, Wire::Bytes(bytes)) => int_or_string(bytes)?,
        (Holds::Message(id), Wire::Bytes(bytes)) => match id.message() {
            Some(message) => read_message(message, bytes, held, depth + 1)?,
            None => Value::Null,
        },
        (_, wire) => return Err(wire.mismatch(field)),
    })
}

/// JSON inside of protobuf; upstream also takes an object that is protobuf itself.
fn read_json(bytes: &[u8], depth: usize) -> Result<Value, String> {
    match bytes.strip_prefix(MAGIC) {
        _ if bytes.is_empty() => Ok(Value::Null),
        Some(message) if depth < DEPTH_MAX => enveloped(message, depth + 1),
        Some(_) => Err("exceeded max depth".to_owned()),
        None => json(bytes).map(|decoded| decoded.value),
    }
}

fn written(time: impl std::fmt::Display, is_writable: bool) -> Result<Value, String> {
    if !is_writable {
        return Err("a time is not between the years 0 and 9999".to_owned());
    }
    Ok(Value::String(time.to_string()))
}

/// Seconds and nanoseconds of a `Timestamp`.
#[allow(clippy::cast_possible_wrap, reason = "protobuf sends signed numbers as 64 bits")]
fn timestamp(bytes: &[u8]) -> Result<(i64, i64), String> {
    let mut seconds = 0;
    let mut nanos = 0;
    let mut reader = Reader(bytes);
    while let Some((number, wire)) = reader.field("Timestamp")? {
        match (number, wire) {
            (1, Wire::Varint(value)) => seconds = value as i64,
            (2, Wire::Varint(value)) => nanos = value as i64,
            _ => {}
        }
    }
    Ok((seconds, nanos))
}

#[allow(clippy::cast_possible_wrap, reason = "protobuf sends signed numbers as 64 bits")]
fn int_or_string(bytes: &[u8]) -> Result<Value, String> {
    let mut is_text = false;
    let mut number = 0;
    let mut text = Cow::Borrowed("");
    let mut reader = Reader(bytes);
    while let Some((field, wire)) = reader.field("IntOrString")? {
        match (field, wire) {
            (1, Wire::Varint(value)) => is_text = value == 1,
            (2, Wire::Varint(value)) => number = value as i64,
            (3, Wire::Bytes(value)) => text = utf8(value),
            _ => {}
        }
    }
    Ok(if is_text { text.into_owned().into() } else { number.into() })
}

// === impl Envelope ===

impl<'a> Envelope<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, String> {
        let mut envelope = Self::default();
        let mut reader = Reader(bytes);
        while let Some((number, wire)) = reader.field("Unknown")? {
            match (number, wire) {
                (1, Wire::Bytes(type_meta)) => {
                    let mut reader = Reader(type_meta);
                    while let Some((number, wire)) = reader.field("TypeMeta")? {
                        match (number, wire) {
                            (1, Wire::Bytes(text)) => envelope.api_version = utf8(text),
                            (2, Wire::Bytes(text)) => envelope.kind = utf8(text),
                            _ => {}
                        }
                    }
                }
                (2, Wire::Bytes(raw)) => envelope.raw = raw,
                _ => {}
            }
        }
        Ok(envelope)
    }
}

// === impl Wire ===

impl Wire<'_> {
    fn mismatch(self, field: &Field) -> String {
        let number = match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Fixed32 => 5,
        };
        format!("proto: wrong wireType = {number} for field {}", field.name)
    }
}

// === impl Reader ===

impl<'a> Reader<'a> {
    /// The next field: its number and its value. None: the message is over.
    fn field(&mut self, message: &str) -> Result<Option<(u64, Wire<'a>)>, String> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = tag >> 3;
        let kind = tag & 7;
        if number == 0 {
            return Err(format!("proto: {message}: illegal tag {number} (wire type {tag})"));
        }
        let wire = match kind {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(self.fixed()?),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| cut_off())?;
                Wire::Bytes(self.take(length)?)
            }
            4 => return Err(format!("proto: {message}: wiretype end group for non-group")),
            5 => {
                self.take(4)?;
                Wire::Fixed32
            }
            other => return Err(format!("proto: illegal wireType {other}")),
        };
        Ok(Some((number, wire)))
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or_else(cut_off)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return Ok(value);
            }
        }
        Err("proto: integer overflow".to_owned())
    }

    fn fixed(&mut self) -> Result<[u8; 8], String> {
        self.take(8)?.try_into().map_err(|_| cut_off())
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(cut_off)?;
        self.0 = rest;
        Ok(taken)
    }
}

fn cut_off() -> String {
    "unexpected EOF".to_owned()
}
