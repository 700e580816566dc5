//! Decoding of values from the wire: once from JSON, once from protobuf, with the same result.
//!
//! [`view!`](crate::view) writes the readers of structs; this module has those of everything a field can be.
//!
//! 1. What is absent, what is JSON `null` and what protobuf leaves out are all the default value.
//! 2. A field that nobody declared is skipped, and nothing is allocated for it.
//! 3. Of a scalar that comes twice the last one counts, lists and maps grow, and messages are merged, as protobuf has it.
//!    JSON knows no merging: the last one counts.
//! 4. Text that is not UTF-8 is no error: in either encoding, each byte that is not becomes U+FFFD, as Go reads it.
//! 5. No input panics. A JSON error says which field it is in, a protobuf error at which byte.

mod collections;
mod few;
mod json;
mod message;
mod protobuf;
mod scalars;

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer};

pub(crate) use collections::read_list;
pub use collections::{ByName, Pick, Picked, Quantities, Times};
pub use few::Few;
pub use message::{Message, Parts, read_message};
pub use protobuf::{Fault, Reader, Slice, Value};
pub use scalars::{Base64, Ignored, Instant, IsSet, NumberAndText, Unique};

use crate::view::{DecodeError, Encoded};

/// A value that can be read from either encoding. The default value stands for absence.
pub trait Wire: Sized + Default {
    /// Whether it can be read from protobuf.
    const PROTOBUF: bool = true;

    /// The accumulator while protobuf fields arrive: a list arrives as many fields, and a message may arrive in parts.
    type Building<'a>: Default;

    /// Reads a JSON value other than `null`.
    ///
    /// # Errors
    /// The value is of another type.
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;

    /// Takes in one protobuf field.
    ///
    /// # Errors
    /// The field has the wrong wire type or ends too early.
    fn take<'a>(building: &mut Self::Building<'a>, value: Value<'_, 'a>) -> Result<(), Fault>;

    /// Returns the value, when all fields have arrived.
    ///
    /// # Errors
    /// A part of it cannot be read.
    fn finish(building: Self::Building<'_>) -> Result<Self, Fault>;

    /// The value of an optional field that was there. A zero time is written as an empty message, and means none.
    ///
    /// # Errors
    /// A part of it cannot be read.
    fn finish_some(building: Self::Building<'_>) -> Result<Option<Self>, Fault> {
        Self::finish(building).map(Some)
    }

    /// Reads a JSON value; `null` is the default.
    ///
    /// # Errors
    /// The value is of another type.
    fn from_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_option(NullOr(PhantomData))
    }

    /// Reads a value that is one protobuf field, such as an element of a list.
    ///
    /// # Errors
    /// The field has the wrong wire type or ends too early.
    fn from_protobuf(value: Value<'_, '_>) -> Result<Self, Fault> {
        let mut building = Self::Building::default();
        Self::take(&mut building, value)?;
        Self::finish(building)
    }
}

/// A value that is read in one shape and kept in another: the `as` of [`view!`](crate::view).
pub trait Adapt<T>: Wire {
    /// The shape in which it is kept.
    fn adapt(self) -> T;
}

/// Lets serde read a [`Wire`] value.
#[derive(Clone, Debug, Default)]
pub struct Json<T>(pub T);

struct NullOr<T>(PhantomData<T>);

/// Reads one object of kind `kind` from its body.
///
/// # Errors
/// The body is not what it should be.
pub fn decode<T: Message>(body: Encoded<'_>, kind: &'static str) -> Result<T, DecodeError> {
    match body {
        Encoded::Json(bytes) => decode_json(bytes),
        Encoded::Protobuf(_) if !T::PROTOBUF => Err(DecodeError::JsonOnly { kind }),
        Encoded::Protobuf(bytes) => Ok(T::merge(&Parts::from(Slice::whole(bytes)))?),
    }
}

pub(crate) fn decode_json<T: Wire>(bytes: &[u8]) -> Result<T, DecodeError> {
    // One check of the whole body is cheaper than one of each string.
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(Json(value)) = json::read(text)
    {
        return Ok(value);
    }
    // The input is invalid or unusual: `serde_json` decides.
    let Json(value) = serde_json::from_str(&protobuf::lossy(bytes))?;
    Ok(value)
}

/// Puts the name of a field before what went wrong in it: `.spec.containers[0].name: …`.
#[cold]
pub fn in_field<E: de::Error>(name: &str, problem: &E) -> E {
    let problem = problem.to_string();
    if problem.starts_with(['.', '[']) {
        E::custom(format_args!(".{name}{problem}"))
    } else {
        E::custom(format_args!(".{name}: {problem}"))
    }
}

/// The error of a text that was cut out of the body, without the place in it, which is not known; the reader puts
/// in its own.
#[cold]
pub(crate) fn without_place<E: de::Error>(problem: &DecodeError) -> E {
    let DecodeError::Json(problem) = problem else { return E::custom(problem) };
    let problem = problem.to_string();
    E::custom(problem.rsplit_once(" at line ").map_or(problem.as_str(), |(problem, _)| problem))
}

/// Puts the position in a list before what went wrong there.
#[cold]
pub(crate) fn at_index<E: de::Error>(index: usize, problem: &E) -> E {
    let problem = problem.to_string();
    if problem.starts_with(['.', '[']) {
        E::custom(format_args!("[{index}]{problem}"))
    } else {
        E::custom(format_args!("[{index}]: {problem}"))
    }
}

// === impl Json ===

impl<'de, T: Wire> Deserialize<'de> for Json<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::from_json(deserializer).map(Self)
    }
}

// === impl NullOr ===

impl<'de, T: Wire> de::Visitor<'de> for NullOr<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or null")
    }
    fn visit_none<E: de::Error>(self) -> Result<T, E> {
        Ok(T::default())
    }
    fn visit_unit<E: de::Error>(self) -> Result<T, E> {
        Ok(T::default())
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        T::read_json(deserializer)
    }
}
