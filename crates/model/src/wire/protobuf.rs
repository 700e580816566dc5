//! A protobuf reader that borrows: it cuts a message into fields and copies nothing but text that is not UTF-8.

use std::borrow::Cow;

use crate::view::DecodeError;

/// Bytes of a body, and where in it they begin.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slice<'a> {
    offset: usize,
    bytes: &'a [u8],
}

/// The value of one field, which is to be read, or skipped.
#[derive(Debug)]
#[must_use = "the reader stands before the value until it is read or skipped"]
pub struct Value<'r, 'a> {
    reader: &'r mut Reader<'a>,
    wire_type: u8,
}

/// Cuts a message into its fields.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    end: usize,
}

/// The error in a protobuf body, and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The offset at which reading stopped.
    pub offset: usize,
    /// The problem.
    pub problem: &'static str,
}

/// Decodes text: borrowed if it is UTF-8, else with U+FFFD for each invalid byte.
#[inline]
pub(crate) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(replaced(bytes)),
    }
}

/// One mark per byte, as Go has it; `String::from_utf8_lossy` writes one per broken sequence.
#[cold]
fn replaced(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + char::REPLACEMENT_CHARACTER.len_utf8());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

/// A varint holds seven bits a byte, and 64 in all.
const VARINT_BYTES_MAX: usize = 10;

// === impl Slice ===

impl<'a> Slice<'a> {
    /// A whole body.
    #[must_use]
    pub fn whole(bytes: &'a [u8]) -> Self {
        Self { offset: 0, bytes }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes as text, lossily: each byte that is not UTF-8 is U+FFFD.
    ///
    /// API servers check neither the text of annotations nor that of owner references, and store in protobuf what a
    /// user sends. Go's JSON shows the same text in the same way, so that both encodings give equal views.
    #[inline]
    #[must_use]
    pub fn text(self) -> Cow<'a, str> {
        lossy(self.bytes)
    }

    /// Something is wrong with these bytes.
    #[must_use]
    pub fn fault(self, problem: &'static str) -> Fault {
        Fault::at(self.offset, problem)
    }

    /// Reads the bytes as a message.
    #[must_use]
    pub fn reader(self) -> Reader<'a> {
        Reader { rest: self.bytes, end: self.offset + self.bytes.len() }
    }
}

// === impl Value ===

const VARINT: u8 = 0;
const FIXED_64: u8 = 1;
const BYTES: u8 = 2;
const FIXED_32: u8 = 5;

impl<'a> Value<'_, 'a> {
    /// The number: all integers and booleans.
    ///
    /// # Errors
    /// It is something else, or cut off.
    #[inline]
    pub fn number(self) -> Result<u64, Fault> {
        if self.wire_type != VARINT {
            return Err(self.reader.fault("a number is written as something else"));
        }
        self.reader.varint()
    }

    /// The bytes: those of a text, or a message.
    ///
    /// # Errors
    /// It is a number, or cut off.
    #[inline]
    pub fn slice(self) -> Result<Slice<'a>, Fault> {
        if self.wire_type != BYTES {
            return Err(self.reader.fault("a text or message is written as a number"));
        }
        let length = self.reader.varint()?;
        let bytes = self.reader.take(length)?;
        Ok(Slice { offset: self.reader.offset() - bytes.len(), bytes })
    }

    /// The text, as [`Slice::text`] reads it.
    ///
    /// # Errors
    /// It is a number, or cut off.
    #[inline]
    pub fn text(self) -> Result<Cow<'a, str>, Fault> {
        self.slice().map(Slice::text)
    }

    /// Nothing.
    ///
    /// # Errors
    /// It is cut off, or of a wire type that Kubernetes never writes, such as a group.
    #[inline]
    pub fn skip(self) -> Result<(), Fault> {
        let length = match self.wire_type {
            BYTES => self.reader.varint()?,
            VARINT => return self.reader.varint().map(drop),
            FIXED_64 => 8,
            FIXED_32 => 4,
            _ => return Err(self.reader.fault("a wire type that Kubernetes never writes")),
        };
        self.reader.take(length).map(drop)
    }
}

// === impl Reader ===

impl<'a> Reader<'a> {
    /// The next field: its number and its value. `None` at the end of the message.
    ///
    /// # Errors
    /// The message is truncated, or the bytes are not a field.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "three bits are left")]
    pub fn field(&mut self) -> Result<Option<(u32, Value<'_, 'a>)>, Fault> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let Ok(number @ 1..) = u32::try_from(tag >> 3) else {
            return Err(self.fault("a field number that cannot be"));
        };
        Ok(Some((number, Value { reader: self, wire_type: tag as u8 & 7 })))
    }

    /// The next field: its number, and all its bytes, from the tag on.
    ///
    /// # Errors
    /// As [`field`](Self::field).
    pub fn raw_field(&mut self) -> Result<Option<(u32, &'a [u8])>, Fault> {
        let before = self.rest;
        let Some((number, value)) = self.field()? else { return Ok(None) };
        value.skip()?;
        Ok(Some((number, &before[..before.len() - self.rest.len()])))
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, Fault> {
        // Nearly all tags and lengths are one byte.
        if let [byte @ 0..=0x7f, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u64::from(*byte));
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Result<u64, Fault> {
        let mut number = 0_u64;
        for (at, &byte) in self.rest.iter().enumerate().take(VARINT_BYTES_MAX) {
            if at == VARINT_BYTES_MAX - 1 && byte > 1 {
                break;
            }
            number |= u64::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                self.rest = &self.rest[at + 1..];
                return Ok(number);
            }
        }
        Err(self.fault(if self.rest.len() < VARINT_BYTES_MAX {
            "the end, within a number"
        } else {
            "a number over 64 bits"
        }))
    }

    #[inline]
    fn take(&mut self, count: u64) -> Result<&'a [u8], Fault> {
        let Some((taken, rest)) = usize::try_from(count).ok().and_then(|count| self.rest.split_at_checked(count))
        else {
            return Err(self.fault("a field that is longer than what holds it"));
        };
        self.rest = rest;
        Ok(taken)
    }

    fn offset(&self) -> usize {
        self.end - self.rest.len()
    }

    #[cold]
    fn fault(&self, problem: &'static str) -> Fault {
        Fault::at(self.offset(), problem)
    }
}

// === impl Fault ===

impl Fault {
    pub(crate) fn at(offset: usize, problem: &'static str) -> Self {
        Self { offset, problem }
    }
}

impl From<Fault> for DecodeError {
    fn from(Fault { offset, problem }: Fault) -> Self {
        Self::Protobuf { offset, problem }
    }
}

#[cfg(test)]
#[allow(clippy::redundant_closure_for_method_calls, reason = "the method alone is not general enough")]
mod tests {
    use super::*;

    fn numbers(bytes: &[u8]) -> Result<Vec<u32>, Fault> {
        let mut reader = Slice::whole(bytes).reader();
        std::iter::from_fn(|| reader.raw_field().map(|field| field.map(|(number, _)| number)).transpose()).collect()
    }

    fn first<T>(bytes: &[u8], read: impl Fn(Value<'_, '_>) -> Result<T, Fault>) -> Result<T, Fault> {
        read(Slice::whole(bytes).reader().field()?.unwrap().1)
    }

    #[test]
    fn a_message_is_cut_into_its_fields() {
        let bytes =
            b"\x08\x96\x01\x12\x02hi\x1d\0\0\0\0\x21\0\0\0\0\0\0\0\0\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        assert_eq!(numbers(bytes), Ok(vec![1, 2, 3, 4, 5]));
        assert_eq!(first(bytes, |value| value.number()), Ok(150));
        assert_eq!(first(&bytes[3..], |value| value.text().map(Cow::into_owned)), Ok("hi".to_owned()));
        assert_eq!(first(&bytes[21..], |value| value.number()), Ok(u64::MAX));
        let mut reader = Slice::whole(bytes).reader();
        assert_eq!(reader.raw_field(), Ok(Some((1, &b"\x08\x96\x01"[..]))));
        assert_eq!(reader.raw_field(), Ok(Some((2, &b"\x12\x02hi"[..]))));
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_place() {
        let check = |bytes: &[u8], offset, problem: &str| {
            let fault = numbers(bytes).unwrap_err();
            assert!(fault.offset == offset && fault.problem.contains(problem), "{bytes:x?}: {fault:?}");
        };
        check(b"\x08", 1, "the end, within a number");
        check(b"\x08\xff\xff", 1, "the end, within a number");
        check(b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 1, "over 64 bits");
        check(b"\x12\x03hi", 2, "longer than what holds it");
        check(b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "longer than what holds it");
        check(b"\x1d\0\0\0", 1, "longer than what holds it");
        check(b"\x0b\x0c", 1, "wire type");
        check(b"\x0f", 1, "wire type");
        check(b"\x00\x00", 1, "field number");
    }

    #[test]
    fn a_value_of_the_wrong_wire_type_is_refused() {
        assert_eq!(first(b"\x08\x01", |value| value.slice().map(drop)).unwrap_err().offset, 1);
        assert_eq!(first(b"\x12\x01a", |value| value.number()).unwrap_err().offset, 1);
    }

    #[test]
    fn each_byte_that_is_no_text_becomes_a_mark_as_in_go() {
        // The output of `json.Marshal(string(bytes))` of Go 1.26.
        let check = |bytes: &[u8], want: &str| assert_eq!(lossy(bytes), want, "{bytes:x?}");
        check(b"", "");
        check("h\u{fc}".as_bytes(), "h\u{fc}");
        check(b"\xff", "\u{fffd}");
        check(b"a\xffb", "a\u{fffd}b");
        check(b"\xe2\x82", "\u{fffd}\u{fffd}");
        check(b"\xe2\x82A", "\u{fffd}\u{fffd}A");
        check(b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}");
        check(b"\xf0\x9f\x98\x80\xf0\x9f", "\u{1f600}\u{fffd}\u{fffd}");
        assert!(matches!(lossy(b"plain"), Cow::Borrowed("plain")), "nothing is copied");
    }
}
