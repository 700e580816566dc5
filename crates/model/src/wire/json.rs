//! A JSON reader for what API servers send: compact, valid, and mostly to be skipped.
//!
//! It is a serde deserializer that borrows from the body, finds the end of what nobody reads 64 bytes at a time, and
//! leaves all that is unusual to `serde_json`: whoever gets an error from here reads the body again with that, and
//! reports *its* error. So it need not explain, and it must accept nothing that `serde_json` reads differently. What it
//! skips it does not check, but for strings and brackets.

mod skip;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{self, Deserializer, Visitor};
use serde_json::Error;

use self::skip::{end_of_nested, end_of_string};

/// Reads one JSON document.
pub(super) struct Reader<'de> {
    text: &'de str,
    at: usize,
    /// The remaining nesting depth.
    depth_left: u8,
}

/// The depth limit of `serde_json`.
const DEPTH_MAX: u8 = 127;

/// The request of `serde_json` for a raw value.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// Elements of a list, or entries of an object.
struct Elements<'a, 'de> {
    reader: &'a mut Reader<'de>,
    is_first: bool,
}

/// The one entry that `serde_json`'s raw value expects.
struct Raw<'de>(Option<&'de str>);

/// Reads `text` as a `T`.
///
/// # Errors
/// Something is wrong or unusual.
pub(super) fn read<'de, T: de::Deserialize<'de>>(text: &'de str) -> Result<T, Error> {
    let mut reader = Reader { text, at: 0, depth_left: DEPTH_MAX };
    let value = T::deserialize(&mut reader)?;
    reader.skip_space();
    if reader.at == text.len() { Ok(value) } else { Err(unusual()) }
}

#[cold]
fn unusual() -> Error {
    de::Error::custom("something that serde_json should look at")
}

// === impl Reader ===

impl<'de> Reader<'de> {
    fn bytes(&self) -> &'de [u8] {
        self.text.as_bytes()
    }

    #[inline]
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes().get(self.at) {
            self.at += 1;
        }
    }

    /// Returns the next byte that is not white space, without consuming it.
    #[inline]
    fn peek(&mut self) -> Result<u8, Error> {
        self.skip_space();
        self.bytes().get(self.at).copied().ok_or_else(unusual)
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), Error> {
        if self.peek()? != byte {
            return Err(unusual());
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), Error> {
        if !self.bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(unusual());
        }
        self.at += word.len();
        Ok(())
    }

    /// A string without escapes. The others are rare enough.
    #[inline]
    fn string(&mut self) -> Result<&'de str, Error> {
        self.expect(b'"')?;
        let start = self.at;
        let end = end_of_string(self.bytes(), start).ok_or_else(unusual)?;
        if self.bytes()[end] != b'"' {
            return Err(unusual());
        }
        self.at = end + 1;
        self.text.get(start..end).ok_or_else(unusual)
    }

    /// A whole number that fits. Fractions and exponents are rare enough.
    fn number(&mut self) -> Result<i64, Error> {
        let is_negative = self.peek()? == b'-';
        let digits = &self.bytes()[self.at + usize::from(is_negative)..];
        let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_whole = !matches!(digits.get(length), Some(b'.' | b'e' | b'E'));
        // A zero with a sign is a fraction to `serde_json`.
        let has_leading_zero = (length > 1 || is_negative) && digits.first() == Some(&b'0');
        // Eighteen digits always fit.
        if !(1..=18).contains(&length) || !is_whole || has_leading_zero {
            return Err(unusual());
        }
        self.at += usize::from(is_negative) + length;
        let number = digits[..length].iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
        Ok(if is_negative { -number } else { number })
    }

    /// Calls the same method as `serde_json` does.
    #[inline]
    fn visit_number<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Error> {
        let number = self.number()?;
        match u64::try_from(number) {
            Ok(number) => visitor.visit_u64(number),
            Err(_) => visitor.visit_i64(number),
        }
    }

    /// Skips a value, and returns its text.
    fn skip(&mut self) -> Result<&'de str, Error> {
        let first = self.peek()?;
        let start = self.at;
        self.at = match first {
            b'{' | b'[' => end_of_nested(self.bytes(), start).ok_or_else(unusual)?,
            b'"' => {
                let mut end = start + 1;
                loop {
                    end = end_of_string(self.bytes(), end).ok_or_else(unusual)?;
                    match self.bytes()[end] {
                        b'"' => break end + 1,
                        b'\\' => end += 2,
                        _ => return Err(unusual()),
                    }
                }
            }
            b't' | b'f' | b'n' | b'-' | b'0'..=b'9' => {
                let rest = &self.bytes()[start..];
                let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
                start + rest.iter().take_while(is_part).count()
            }
            _ => return Err(unusual()),
        };
        self.text.get(start..self.at).ok_or_else(unusual)
    }

    /// Reads what stands between two brackets.
    fn nested<T>(
        &mut self,
        open: u8,
        close: u8,
        read: impl FnOnce(Elements<'_, 'de>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.expect(open)?;
        self.depth_left = self.depth_left.checked_sub(1).ok_or_else(unusual)?;
        let value = read(Elements { reader: self, is_first: true })?;
        self.depth_left += 1;
        self.expect(close)?;
        Ok(value)
    }
}

macro_rules! numbers {
    ($($method:ident)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.visit_number(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.peek()? {
            b'"' => self.deserialize_str(visitor),
            b'{' => self.deserialize_map(visitor),
            b'[' => self.deserialize_seq(visitor),
            b't' | b'f' => self.deserialize_bool(visitor),
            b'n' => {
                self.word("null")?;
                visitor.visit_unit()
            }
            _ => self.visit_number(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let is_true = self.peek()? == b't';
        self.word(if is_true { "true" } else { "false" })?;
        visitor.visit_bool(is_true)
    }

    numbers! { deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.string()?)
    }

    #[inline]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    #[inline]
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.peek()? == b'n' {
            self.word("null")?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.nested(b'[', b']', |elements| visitor.visit_seq(elements))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.nested(b'{', b'}', |elements| visitor.visit_map(elements))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Error> {
        if name == RAW_VALUE {
            return visitor.visit_map(Raw(Some(self.skip()?)));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.skip()?;
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct enum
    }
}

// === impl Elements ===

impl Elements<'_, '_> {
    /// Whether there is one more, and it stands next.
    #[inline]
    fn has_next(&mut self, close: u8) -> Result<bool, Error> {
        let next = self.reader.peek()?;
        if next == close {
            return Ok(false);
        }
        if !std::mem::replace(&mut self.is_first, false) {
            self.reader.expect(b',')?;
            // No comma before a bracket.
            return if self.reader.peek()? == close { Err(unusual()) } else { Ok(true) };
        }
        Ok(true)
    }
}

impl<'de> de::SeqAccess<'de> for Elements<'_, 'de> {
    type Error = Error;
    fn next_element_seed<T: de::DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        if self.has_next(b']')? { seed.deserialize(&mut *self.reader).map(Some) } else { Ok(None) }
    }
}

impl<'de> de::MapAccess<'de> for Elements<'_, 'de> {
    type Error = Error;
    #[inline]
    fn next_key_seed<K: de::DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        if !self.has_next(b'}')? {
            return Ok(None);
        }
        let key = self.reader.string()?;
        seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some)
    }
    #[inline]
    fn next_value_seed<V: de::DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        self.reader.expect(b':')?;
        seed.deserialize(&mut *self.reader)
    }
}

// === impl Raw ===

impl<'de> de::MapAccess<'de> for Raw<'de> {
    type Error = Error;
    fn next_key_seed<K: de::DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        if self.0.is_none() {
            return Ok(None);
        }
        seed.deserialize(BorrowedStrDeserializer::new(RAW_VALUE)).map(Some)
    }
    fn next_value_seed<V: de::DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(BorrowedStrDeserializer::new(self.0.take().ok_or_else(unusual)?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;
    use crate::corpus::{Corpus, every_field};
    use crate::wire::Json;
    use crate::{DeploymentView, EndpointSliceView, NodeView, PodView, ReplicaSetView, ServiceView};

    /// Bodies of API servers are decoded here, with the same result as `serde_json`.
    #[test]
    fn usual_objects_need_no_help() {
        fn check<T: crate::wire::Wire + PartialEq + std::fmt::Debug>(body: &str) {
            let Json(want) = serde_json::from_str::<Json<T>>(body).unwrap();
            let Json(got) = read::<Json<T>>(body).unwrap();
            assert_eq!(got, want);
        }
        let corpus = Corpus::new(11);
        for index in 0..20 {
            check::<PodView>(&corpus.pod(index));
            check::<ReplicaSetView>(&corpus.replica_set(index));
        }
        check::<PodView>(&every_field("core.v1.Pod").to_string());
        check::<ServiceView>(&every_field("core.v1.Service").to_string());
        check::<NodeView>(&every_field("core.v1.Node").to_string());
        check::<EndpointSliceView>(&every_field("discovery.v1.EndpointSlice").to_string());
        check::<DeploymentView>(&serde_json::to_string_pretty(&every_field("apps.v1.Deployment")).unwrap());
    }

    #[test]
    fn what_is_wrong_or_unusual_is_left_to_others() {
        let check = |body: &str| assert!(read::<Json<ServiceView>>(body).is_err(), "{body}");
        for body in ["", " ", "{", "{}}", "{} {}", "[]", "nul", "{\"spec\"}", "{\"spec\":}", "{\"spec\":{},}", "{,}"] {
            check(body);
        }
        let of_port = |port: &str| format!(r#"{{"spec":{{"ports":[{{"port":{port}}}]}}}}"#);
        assert!(read::<Json<ServiceView>>(&of_port("80")).is_ok());
        for port in ["-0", "01", "1.0", "1e2", "-", "+1", "2147483648", "9999999999999999999", "\"80\"", "1,", ",1"] {
            check(&of_port(port));
        }
        check(r#"{"metadata":{"name":"\u0061"}}"#);
        check("{\"metadata\":{\"name\":\"a\nb\"}}");
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        assert!(read::<serde_json::Value>(&deep).is_err(), "as deep as this is for others to refuse");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// Whatever is done to a body: what is read here is what `serde_json` reads, if it reads it at all.
        #[test]
        fn nothing_is_read_differently(index in 0_usize..50, changes in prop::collection::vec((any::<Index>(), 0_u8..128), 1..6)) {
            let mut body = Corpus::new(13).pod(index).into_bytes();
            for (at, byte) in changes {
                let at = at.index(body.len());
                body[at] = byte;
            }
            let body = String::from_utf8(body).unwrap();
            if let (Ok(Json(got)), Ok(Json(want))) =
                (read::<Json<PodView>>(&body), serde_json::from_str::<Json<PodView>>(&body))
            {
                prop_assert_eq!(got, want);
            }
        }
    }
}
