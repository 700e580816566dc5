//! A protobuf reader that borrows: it cuts a message into fields and copies nothing.

use crate::view::DecodeError;

/// Bytes of a body, and where in it they begin.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slice<'a> {
    offset: usize,
    bytes: &'a [u8],
}

/// The value of one field.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// A number of variable length: all integers and booleans.
    Varint {
        /// The number.
        number: u64,
        /// Where it ends in the body.
        offset: usize,
    },
    /// A string, bytes, or a message.
    Bytes(Slice<'a>),
    /// A number of four or eight bytes. Kubernetes writes doubles so, and no view reads one.
    Fixed {
        /// Where it ends in the body.
        offset: usize,
    },
}

/// Cuts a message into its fields.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    end: usize,
}

/// What is wrong with a protobuf body, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where reading stopped.
    pub offset: usize,
    /// What is wrong there.
    pub problem: &'static str,
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

    /// The bytes as text.
    ///
    /// # Errors
    /// They are not UTF-8.
    #[inline]
    pub fn text(self) -> Result<&'a str, Fault> {
        std::str::from_utf8(self.bytes)
            .map_err(|error| Fault::at(self.offset + error.valid_up_to(), "text that is not UTF-8"))
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

impl<'a> Value<'a> {
    /// The number, if it is one.
    ///
    /// # Errors
    /// It is something else.
    #[inline]
    pub fn number(self) -> Result<u64, Fault> {
        match self {
            Self::Varint { number, .. } => Ok(number),
            Self::Bytes(Slice { offset, .. }) | Self::Fixed { offset } => {
                Err(Fault::at(offset, "a number is written as something else"))
            }
        }
    }

    /// The bytes, if it has some.
    ///
    /// # Errors
    /// It is a number.
    #[inline]
    pub fn slice(self) -> Result<Slice<'a>, Fault> {
        match self {
            Self::Bytes(slice) => Ok(slice),
            Self::Varint { offset, .. } | Self::Fixed { offset } => {
                Err(Fault::at(offset, "a text or message is written as a number"))
            }
        }
    }

    /// The text, if it is one.
    ///
    /// # Errors
    /// It is a number, or not UTF-8.
    #[inline]
    pub fn text(self) -> Result<&'a str, Fault> {
        self.slice()?.text()
    }
}

// === impl Reader ===

impl<'a> Reader<'a> {
    /// The next field: its number and its value. `None` at the end of the message.
    ///
    /// # Errors
    /// The message is cut off, or what stands here is no field.
    #[inline]
    pub fn field(&mut self) -> Result<Option<(u32, Value<'a>)>, Fault> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let Ok(number @ 1..) = u32::try_from(tag >> 3) else {
            return Err(self.fault("a field number that cannot be"));
        };
        let value = match tag & 7 {
            0 => {
                let value = self.varint()?;
                Value::Varint { number: value, offset: self.offset() }
            }
            1 => {
                self.take(8)?;
                Value::Fixed { offset: self.offset() }
            }
            2 => {
                let length = self.varint()?;
                let bytes = self.take(usize::try_from(length).unwrap_or(usize::MAX))?;
                Value::Bytes(Slice { offset: self.offset() - bytes.len(), bytes })
            }
            5 => {
                self.take(4)?;
                Value::Fixed { offset: self.offset() }
            }
            _ => return Err(self.fault("a wire type that Kubernetes never writes")),
        };
        Ok(Some((number, value)))
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
    fn take(&mut self, count: usize) -> Result<&'a [u8], Fault> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
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
mod tests {
    use super::*;

    fn fields(bytes: &[u8]) -> Result<Vec<(u32, Value<'_>)>, Fault> {
        let mut reader = Slice::whole(bytes).reader();
        std::iter::from_fn(|| reader.field().transpose()).collect()
    }

    #[test]
    fn a_message_is_cut_into_its_fields() {
        let bytes =
            b"\x08\x96\x01\x12\x02hi\x1d\0\0\0\0\x21\0\0\0\0\0\0\0\0\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        let fields = fields(bytes).unwrap();
        assert_eq!(fields.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert_eq!(fields[0].1.number(), Ok(150));
        assert_eq!(fields[1].1.text(), Ok("hi"));
        assert!(matches!((fields[2].1, fields[3].1), (Value::Fixed { .. }, Value::Fixed { .. })));
        assert_eq!(fields[4].1.number(), Ok(u64::MAX));
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_place() {
        let check = |bytes: &[u8], offset, problem: &str| {
            let fault = fields(bytes).unwrap_err();
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
        assert_eq!(fields(b"\x08\x01").unwrap()[0].1.slice().unwrap_err().offset, 2);
        assert_eq!(fields(b"\x12\x01a").unwrap()[0].1.number().unwrap_err().offset, 2);
        assert_eq!(fields(b"\x12\x02a\xff").unwrap()[0].1.text().unwrap_err().offset, 3);
    }
}
