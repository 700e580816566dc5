//! Messages with an individual part and a part that repeats in many objects.
//!
//! The own part is decoded for each object. The bytes of the rest are gathered in up to two groups, so that what was
//! made of them can be [remembered](crate::memo): a group is a message of its own in protobuf, an object of its own in
//! JSON.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess};
use serde_json::value::RawValue;

use crate::DecodeError;
use crate::memo::Masked;
use crate::wire::{Fault, Message, Parts, Slice, at_index, decode_json, without_place};

/// The encoding of gathered bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Encoding {
    Json,
    Protobuf,
}

/// The fields that are the object's own, and those that are gathered.
pub(crate) trait Split {
    /// The object's own fields.
    type Own: Message;
    /// The fields of the first group.
    type First: Message;
    /// The fields of the second group.
    type Second: Message;
}

/// Buffers that are used again for every object.
#[derive(Default)]
pub(crate) struct Scratch {
    /// The bytes gathered for each group; several messages are concatenated.
    pub(crate) groups: [Vec<u8>; 2],
    /// The bytes of the object's own fields.
    own: Vec<u8>,
    /// The masked parts, and their positions.
    pub(crate) masked: Masked,
}

/// Buffers that had to grow beyond this are given back.
const SCRATCH_MAX: usize = 64 << 10;

/// Decodes the own part of a message, and gathers the others.
pub(crate) fn split_protobuf<S: Split>(parts: &Parts<'_>, scratch: &mut Scratch) -> Result<S::Own, Fault> {
    let [first, second, own] =
        const { [numbers_of(S::First::FIELDS), numbers_of(S::Second::FIELDS), numbers_of(S::Own::FIELDS)] };
    scratch.own.clear();
    for part in parts.as_slice() {
        let mut reader = part.reader();
        while let Some((number, bytes)) = reader.raw_field()? {
            let bit = 1_u64.checked_shl(number).unwrap_or(0);
            if bit & first != 0 {
                scratch.groups[0].extend_from_slice(bytes);
            } else if bit & second != 0 {
                scratch.groups[1].extend_from_slice(bytes);
            } else if bit & own != 0 {
                scratch.own.extend_from_slice(bytes);
            }
        }
    }
    // The few bytes are decoded faster separately; but an error position refers to the whole.
    S::Own::merge(&Slice::whole(&scratch.own).into()).or_else(|_| S::Own::merge(parts))
}

/// The numbers of some fields, one bit each.
const fn numbers_of(fields: &[(&str, u32)]) -> u64 {
    let mut numbers = 0;
    let mut at = 0;
    while at < fields.len() {
        assert!(fields[at].1 < 64, "only fields with a number below 64 can be gathered");
        numbers |= 1 << fields[at].1;
        at += 1;
    }
    numbers
}

/// Decodes the own part of an object, and gathers the others.
pub(crate) fn split_json<'de, S: Split, D: Deserializer<'de>>(
    deserializer: D,
    scratch: &mut Scratch,
) -> Result<S::Own, D::Error> {
    deserializer.deserialize_map(Splitting::<S>(scratch, PhantomData))
}

/// Decodes what was gathered.
pub(crate) fn decode_gathered<S: Message>(encoding: Encoding, body: &[u8]) -> Result<S, GatheredError> {
    match encoding {
        Encoding::Json => decode_json(body).map_err(GatheredError),
        Encoding::Protobuf => S::merge(&Parts::from(Slice::whole(body))).map_err(|fault| GatheredError(fault.into())),
    }
}

/// The error in gathered bytes. Its position refers to the gathered bytes, which have no meaning outside.
#[derive(Debug)]
pub(crate) struct GatheredError(DecodeError);

struct Splitting<'a, S>(&'a mut Scratch, PhantomData<S>);

enum SplitKey<S: Split> {
    Own(<S::Own as Message>::Key),
    Gathered { group: usize, name: &'static str },
    Other,
}

// === impl Scratch ===

impl Scratch {
    /// Lends the buffers of this thread, empty.
    pub(crate) fn with<T>(read: impl FnOnce(&mut Self) -> T) -> T {
        thread_local!(static SCRATCH: Cell<Scratch> = Cell::default());
        let mut scratch = SCRATCH.take();
        let result = read(&mut scratch);
        if scratch.groups.iter().all(|group| group.capacity() <= SCRATCH_MAX) {
            scratch.groups.iter_mut().for_each(Vec::clear);
            SCRATCH.set(scratch);
        }
        result
    }
}

// === impl GatheredError ===

impl GatheredError {
    /// The same, in an element of a list.
    pub(crate) fn in_element(self, index: usize) -> Self {
        match self.0 {
            DecodeError::Json(problem) => Self(at_index::<serde_json::Error>(index, &problem).into()),
            other => Self(other),
        }
    }

    /// The same at the beginning of the message that was gathered from.
    pub(crate) fn into_fault(self, parts: &Parts<'_>) -> Fault {
        let problem = match self.0 {
            DecodeError::Protobuf { problem, .. } => problem,
            DecodeError::Json(_) | DecodeError::JsonOnly { .. } => "JSON, where protobuf should be",
        };
        parts.as_slice().first().copied().unwrap_or_default().fault(problem)
    }

    pub(crate) fn into_json<E: de::Error>(self) -> E {
        without_place(&self.0)
    }
}

// === impl Splitting ===

impl<'de, S: Split> de::Visitor<'de> for Splitting<'_, S> {
    type Value = S::Own;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<S::Own, A::Error> {
        let mut own = S::Own::default();
        let groups = &mut self.0.groups;
        let starts = [groups[0].len(), groups[1].len()];
        while let Some(key) = map.next_key::<SplitKey<S>>()? {
            match key {
                SplitKey::Own(key) => own.read(key, &mut map)?,
                SplitKey::Other => drop(map.next_value::<IgnoredAny>()?),
                SplitKey::Gathered { group, name } => {
                    let raw: &RawValue = map.next_value()?;
                    let body = &mut groups[group];
                    let start = starts[group];
                    body.extend_from_slice(if body.len() == start { b"{\"" } else { b",\"" });
                    body.extend_from_slice(name.as_bytes());
                    body.extend_from_slice(b"\":");
                    body.extend_from_slice(raw.get().as_bytes());
                }
            }
        }
        for (body, start) in groups.iter_mut().zip(starts) {
            body.extend_from_slice(if body.len() == start { b"{}" } else { b"}" });
        }
        Ok(own)
    }
}

impl<'de, S: Split> Deserialize<'de> for SplitKey<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name<S>(PhantomData<S>);
        impl<S: Split> de::Visitor<'_> for Name<S> {
            type Value = SplitKey<S>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a field")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<SplitKey<S>, E> {
                if let Some(key) = S::Own::key(name) {
                    return Ok(SplitKey::Own(key));
                }
                let find =
                    |fields: &[(&'static str, u32)]| fields.iter().find(|(held, _)| *held == name).map(|held| held.0);
                let gathered = |group| move |name| SplitKey::Gathered { group, name };
                let first = find(S::First::FIELDS).map(gathered(0));
                Ok(first.or_else(|| find(S::Second::FIELDS).map(gathered(1))).unwrap_or(SplitKey::Other))
            }
        }
        deserializer.deserialize_identifier(Name(PhantomData))
    }
}
