//! Object uids.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Istr;

/// The uid of an object: the canonical UUIDs that API servers hand out are kept as 16 bytes, anything else as text.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uid(Repr);

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Repr {
    Uuid([u8; 16]),
    Text(Istr),
}

/// `8-4-4-4-12` hexadecimal digits: the positions of the hyphens.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
const UUID_LENGTH: usize = 36;

// === impl Uid ===

impl Uid {
    /// The uid with this text. Only lower-case canonical UUIDs are packed, so that printing gives the text back.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(pack(text.as_bytes()).map_or_else(|| Repr::Text(Istr::new(text)), Repr::Uuid))
    }

    /// The uid with these 16 bytes, printed as a canonical UUID.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Repr::Uuid(bytes))
    }

    /// Whether there is no uid: the object was not created on a server yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Repr::Text(text) if text.is_empty())
    }
}

/// The value of each hexadecimal digit in lower case; above 15 for every other byte.
const NIBBLES: [u8; 256] = {
    let mut nibbles = [u8::MAX; 256];
    let mut digit = 0;
    while digit < 16 {
        nibbles[b"0123456789abcdef"[digit as usize] as usize] = digit;
        digit += 1;
    }
    nibbles
};
/// The positions of the two digits of each byte.
const DIGITS_AT: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

fn pack(text: &[u8]) -> Option<[u8; 16]> {
    let text: &[u8; UUID_LENGTH] = text.try_into().ok()?;
    let mut wrong = HYPHENS.iter().fold(0, |wrong, &at| wrong | (text[at] ^ b'-'));
    let mut bytes = [0; 16];
    for (byte, at) in bytes.iter_mut().zip(DIGITS_AT) {
        let high = NIBBLES[usize::from(text[at])];
        let low = NIBBLES[usize::from(text[at + 1])];
        wrong |= (high | low) & 0xf0;
        *byte = high << 4 | low & 15;
    }
    (wrong == 0).then_some(bytes)
}

impl Default for Uid {
    fn default() -> Self {
        Self(Repr::Text(Istr::default()))
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Text(text) => f.write_str(text),
            Repr::Uuid(bytes) => {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                let mut text = [b'-'; UUID_LENGTH];
                let mut at = 0;
                for byte in bytes {
                    if HYPHENS.contains(&at) {
                        at += 1;
                    }
                    text[at] = DIGITS[usize::from(byte >> 4)];
                    text[at + 1] = DIGITS[usize::from(byte & 15)];
                    at += 2;
                }
                f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
            }
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Uid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Uid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Packing;
        impl de::Visitor<'_> for Packing {
            type Value = Uid;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a uid")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Uid, E> {
                Ok(Uid::new(text))
            }
        }
        deserializer.deserialize_str(Packing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_prints_as_it_was_read() {
        for text in [
            "6857e09a-dafd-4f51-9097-a283e1eeaac3",
            "6857E09A-dafd-4f51-9097-a283e1eeaac3",
            "6857e09a_dafd-4f51-9097-a283e1eeaac3",
            "6857e09a-dafd-4f51-9097-a283e1eeaac",
            "uid-1",
            "",
        ] {
            assert_eq!(Uid::new(text).to_string(), text);
        }
    }

    #[test]
    fn different_texts_are_different_uids() {
        let lower = Uid::new("6857e09a-dafd-4f51-9097-a283e1eeaac3");
        assert_ne!(lower, Uid::new("6857E09A-DAFD-4F51-9097-A283E1EEAAC3"), "uids are opaque: case counts");
        assert_eq!(size_of::<Uid>(), 24, "no larger than an owned string");
    }
}
