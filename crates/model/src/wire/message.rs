//! Structs: messages in protobuf, objects in JSON.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess};

use super::{Fault, Slice, Wire};

/// A struct of fields, as [`view!`](crate::view) declares it.
pub trait Message: Wire {
    /// Names a field in JSON.
    type Key: Copy;

    /// JSON name and protobuf number of each field, but for those of an inlined struct.
    const FIELDS: &'static [(&'static str, u32)];

    /// The field of this JSON name.
    fn key(name: &str) -> Option<Self::Key>;

    /// Reads the JSON value of a field.
    ///
    /// # Errors
    /// The value is of another type.
    fn read<'de, A: MapAccess<'de>>(&mut self, key: Self::Key, map: &mut A) -> Result<(), A::Error>;

    /// Reads the message from its protobuf parts.
    ///
    /// # Errors
    /// A part is cut off, or a field has the wrong wire type.
    fn merge(parts: &Parts<'_>) -> Result<Self, Fault>;
}

/// The parts of one protobuf message: two of a kind, one after the other, mean the same as one message.
#[derive(Debug, Default)]
pub enum Parts<'a> {
    /// The field was not there.
    #[default]
    None,
    /// The form that every encoder writes.
    One(Slice<'a>),
    /// The form that the format allows.
    Many(Vec<Slice<'a>>),
}

struct ObjectOf<M>(PhantomData<M>);
struct KeyOf<M: Message>(Option<M::Key>);

/// Reads a message from a JSON object.
///
/// # Errors
/// It is not an object, or a field has the wrong type.
pub fn read_message<'de, M: Message, D: Deserializer<'de>>(deserializer: D) -> Result<M, D::Error> {
    deserializer.deserialize_map(ObjectOf(PhantomData))
}

// === impl Parts ===

impl<'a> Parts<'a> {
    /// Adds a part.
    #[inline]
    pub fn push(&mut self, part: Slice<'a>) {
        match self {
            Self::None => *self = Self::One(part),
            Self::One(first) => *self = Self::Many(vec![*first, part]),
            Self::Many(parts) => parts.push(part),
        }
    }

    /// The parts, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Slice<'a>] {
        match self {
            Self::None => &[],
            Self::One(part) => std::slice::from_ref(part),
            Self::Many(parts) => parts,
        }
    }
}

impl<'a> From<Slice<'a>> for Parts<'a> {
    fn from(part: Slice<'a>) -> Self {
        Self::One(part)
    }
}

// === impl ObjectOf ===

impl<'de, M: Message> de::Visitor<'de> for ObjectOf<M> {
    type Value = M;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<M, A::Error> {
        let mut message = M::default();
        while let Some(KeyOf(key)) = map.next_key::<KeyOf<M>>()? {
            match key {
                Some(key) => message.read(key, &mut map)?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(message)
    }
}

// === impl KeyOf ===

impl<'de, M: Message> Deserialize<'de> for KeyOf<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name<M>(PhantomData<M>);
        impl<M: Message> de::Visitor<'_> for Name<M> {
            type Value = KeyOf<M>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a field")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<KeyOf<M>, E> {
                Ok(KeyOf(M::key(name)))
            }
        }
        deserializer.deserialize_identifier(Name(PhantomData))
    }
}
