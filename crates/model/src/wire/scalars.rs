//! Numbers, texts, times, and what is left of a field that only has to be there.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny};
use serde::{Serialize, Serializer};
use steersman_base::{ConditionStatus, IntOrString, Istr, MicroTime, Quantity, ResourceVersion, Time, Uid};

use super::{Adapt, Fault, Slice, Value, Wire};

/// Reads a text that is usually unique, such as a name: it is not interned.
#[derive(Clone, Debug, Default)]
pub struct Unique(pub Istr);

/// Bytes, as their Base64 text: they are read from JSON only, where they have that form. They may be a secret, and are not
/// shown.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Base64(pub Istr);

/// Reads whether a field is there at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct IsSet(pub bool);

/// Reads nothing: a field that one of several views of a message has no use for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ignored;

/// Seconds and nanoseconds of a time. An empty message is a time that was never set.
#[derive(Clone, Copy, Debug, Default)]
pub struct Instant {
    seconds: i64,
    nanos: i64,
    is_set: bool,
}

/// The three fields of a number or text.
#[derive(Clone, Debug, Default)]
pub struct NumberAndText {
    is_text: bool,
    number: i32,
    text: Istr,
}

const NANOS_PER_MICRO: i64 = 1_000;
const MICROS_PER_SECOND: i64 = 1_000_000;

macro_rules! scalar {
    ($($type:ty, $value:ident => $read:expr;)*) => {$(
        impl Wire for $type {
            type Building<'a> = Self;
            fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::deserialize(deserializer)
            }
            #[inline]
            fn take<'a>(building: &mut Self, $value: Value<'_, 'a>) -> Result<(), Fault> {
                *building = $read;
                Ok(())
            }
            #[inline]
            fn finish(building: Self) -> Result<Self, Fault> {
                Ok(building)
            }
        }
    )*};
}

// Protobuf sends a negative number of any width as 64 bits; the narrow types cut it, as every decoder does.
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "see above")]
mod numbers {
    use super::*;
    scalar! {
        bool, value => value.number()? != 0;
        i32, value => value.number()? as i32;
        i64, value => value.number()? as i64;
    }
}

scalar! {
    Istr, value => Istr::interned(&value.text()?);
    Uid, value => Uid::new(&value.text()?);
    ResourceVersion, value => ResourceVersion::new(&value.text()?);
    ConditionStatus, value => condition_status(value.slice()?.bytes());
}

/// Bytes that are not text are neither of the two that matter.
fn condition_status(text: &[u8]) -> ConditionStatus {
    match text {
        b"True" => ConditionStatus::True,
        b"False" => ConditionStatus::False,
        _ => ConditionStatus::Unknown,
    }
}

// === impl Unique ===

impl Wire for Unique {
    type Building<'a> = Self;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl serde::de::Visitor<'_> for Text {
            type Value = Unique;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Unique, E> {
                Ok(Unique(Istr::new(text)))
            }
        }
        deserializer.deserialize_str(Text)
    }
    fn take<'a>(building: &mut Self, value: Value<'_, 'a>) -> Result<(), Fault> {
        building.0 = Istr::new(&value.text()?);
        Ok(())
    }
    fn finish(building: Self) -> Result<Self, Fault> {
        Ok(building)
    }
}

// === impl Base64 ===

impl Base64 {
    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Wire for Base64 {
    const PROTOBUF: bool = false;
    type Building<'a> = Self;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Unique::read_json(deserializer).map(|text| Self(text.0))
    }
    fn take<'a>(_: &mut Self, value: Value<'_, 'a>) -> Result<(), Fault> {
        Err(value.slice()?.fault("a field that is read as JSON only"))
    }
    fn finish(building: Self) -> Result<Self, Fault> {
        Ok(building)
    }
}

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl fmt::Debug for Base64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Base64({} characters)", self.0.len())
    }
}

// === impl IsSet ===

impl Wire for IsSet {
    type Building<'a> = Self;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self(true))
    }
    fn take<'a>(building: &mut Self, value: Value<'_, 'a>) -> Result<(), Fault> {
        building.0 = true;
        value.skip()
    }
    fn finish(building: Self) -> Result<Self, Fault> {
        Ok(building)
    }
}

// === impl Ignored ===

impl Wire for Ignored {
    type Building<'a> = Self;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
    fn take<'a>(_: &mut Self, value: Value<'_, 'a>) -> Result<(), Fault> {
        value.skip()
    }
    fn finish(_: Self) -> Result<Self, Fault> {
        Ok(Self)
    }
}

// === impl Time, MicroTime ===

impl Instant {
    #[allow(clippy::cast_possible_wrap, reason = "protobuf sends signed numbers as 64 bits")]
    fn take(&mut self, slice: Slice<'_>) -> Result<(), Fault> {
        let mut reader = slice.reader();
        while let Some((number, value)) = reader.field()? {
            self.is_set = true;
            match number {
                1 => self.seconds = value.number()? as i64,
                2 => self.nanos = value.number()? as i64,
                _ => value.skip()?,
            }
        }
        Ok(())
    }
}

impl Wire for Time {
    type Building<'a> = Instant;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer)
    }
    fn take<'a>(building: &mut Instant, value: Value<'_, 'a>) -> Result<(), Fault> {
        building.take(value.slice()?)
    }
    fn finish(building: Instant) -> Result<Self, Fault> {
        Ok(Self::from_unix(building.seconds))
    }
    fn finish_some(building: Instant) -> Result<Option<Self>, Fault> {
        Ok(building.is_set.then_some(Self::from_unix(building.seconds)))
    }
}

impl Wire for MicroTime {
    type Building<'a> = Instant;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer)
    }
    fn take<'a>(building: &mut Instant, value: Value<'_, 'a>) -> Result<(), Fault> {
        building.take(value.slice()?)
    }
    fn finish(building: Instant) -> Result<Self, Fault> {
        let micros = building.seconds.saturating_mul(MICROS_PER_SECOND);
        Ok(Self::from_unix_micros(micros.saturating_add(building.nanos / NANOS_PER_MICRO)))
    }
    fn finish_some(building: Instant) -> Result<Option<Self>, Fault> {
        building.is_set.then(|| Self::finish(building)).transpose()
    }
}

// === impl Quantity ===

impl Wire for Quantity {
    type Building<'a> = Self;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer)
    }
    fn take<'a>(building: &mut Self, value: Value<'_, 'a>) -> Result<(), Fault> {
        let mut reader = value.slice()?.reader();
        while let Some((number, value)) = reader.field()? {
            if number != 1 {
                value.skip()?;
                continue;
            }
            let slice = value.slice()?;
            *building = slice.text().parse().map_err(|_| slice.fault("a quantity that cannot be read"))?;
        }
        Ok(())
    }
    fn finish(building: Self) -> Result<Self, Fault> {
        Ok(building)
    }
}

// === impl IntOrString ===

impl Wire for IntOrString {
    type Building<'a> = NumberAndText;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer)
    }
    fn take<'a>(building: &mut NumberAndText, value: Value<'_, 'a>) -> Result<(), Fault> {
        let mut reader = value.slice()?.reader();
        while let Some((number, value)) = reader.field()? {
            match number {
                1 => building.is_text = value.number()? != 0,
                2 => i32::take(&mut building.number, value)?,
                3 => Istr::take(&mut building.text, value)?,
                _ => value.skip()?,
            }
        }
        Ok(())
    }
    fn finish(building: NumberAndText) -> Result<Self, Fault> {
        Ok(if building.is_text { Self::String(building.text) } else { Self::Int(building.number) })
    }
}

// === impl Adapt ===

impl Adapt<Istr> for Unique {
    fn adapt(self) -> Istr {
        self.0
    }
}

impl Adapt<bool> for IsSet {
    fn adapt(self) -> bool {
        self.0
    }
}

/// For a macro that needs an `as` in any case.
impl Adapt<Istr> for Istr {
    fn adapt(self) -> Istr {
        self
    }
}

impl<T: Default> Adapt<T> for Ignored {
    fn adapt(self) -> T {
        T::default()
    }
}
