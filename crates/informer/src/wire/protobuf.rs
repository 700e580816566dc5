//! Reading protobuf messages field by field, and the envelope that Kubernetes puts around them.
//!
//! Pure: bytes in, fields out. Views have their own reader, made from the `view!` table; this one is for envelopes.

/// The fields of a message that is there as a whole.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// 4 or 8 bytes: no envelope has such a field.
    Fixed,
}

/// The first bytes of every protobuf body of Kubernetes.
pub(super) const MAGIC: &[u8; 4] = b"k8s\0";

/// `runtime.Unknown`: the envelope of an object.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Unknown<'a> {
    pub(super) api_version: Option<&'a str>,
    pub(super) kind: Option<&'a str>,
    pub(super) raw: &'a [u8],
}

/// The longest varint: 64 bits in groups of 7.
pub(super) const VARINT_BYTES_MAX: usize = 10;

pub(super) const BAD_VARINT: &str = "a number that does not end";
const SHORT: &str = "a field longer than its message";
const BAD_WIRE_TYPE: &str = "an unknown wire type";

/// Returns the number at the start of `bytes` and its length; `None` if it is incomplete.
pub(super) fn varint(bytes: &[u8]) -> Result<Option<(u64, usize)>, &'static str> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().take(VARINT_BYTES_MAX).enumerate() {
        value |= u64::from(byte & 0x7f).checked_shl(7 * at as u32).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Ok(Some((value, at + 1)));
        }
    }
    if bytes.len() < VARINT_BYTES_MAX { Ok(None) } else { Err(BAD_VARINT) }
}

// === impl Fields ===

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn number(&mut self) -> Result<u64, &'static str> {
        let (value, length) = varint(self.rest)?.ok_or(BAD_VARINT)?;
        self.rest = &self.rest[length..];
        Ok(value)
    }

    fn bytes(&mut self, length: u64) -> Result<&'a [u8], &'static str> {
        let length = usize::try_from(length).map_err(|_| SHORT)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(SHORT)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn field(&mut self) -> Result<(u64, Value<'a>), &'static str> {
        let tag = self.number()?;
        let value = match tag & 7 {
            0 => Value::Varint(self.number()?),
            1 => self.bytes(8).map(|_| Value::Fixed)?,
            2 => {
                let length = self.number()?;
                Value::Bytes(self.bytes(length)?)
            }
            5 => self.bytes(4).map(|_| Value::Fixed)?,
            _ => return Err(BAD_WIRE_TYPE),
        };
        Ok((tag >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

// === impl Unknown ===

impl<'a> Unknown<'a> {
    /// Removes the envelope of a body: the magic, then type and raw message.
    pub(super) fn open(body: &'a [u8]) -> Result<Self, &'static str> {
        let message = body.strip_prefix(MAGIC).ok_or("it does not start with `k8s\\0`")?;
        let mut unknown = Self::default();
        for field in Fields::of(message) {
            match field? {
                (1, Value::Bytes(type_meta)) => (unknown.api_version, unknown.kind) = read_type(type_meta)?,
                (2, Value::Bytes(raw)) => unknown.raw = raw,
                _ => {}
            }
        }
        Ok(unknown)
    }
}

/// Returns apiVersion and kind of a `TypeMeta`; empty ones are `None`.
pub(super) fn read_type(type_meta: &[u8]) -> Result<(Option<&str>, Option<&str>), &'static str> {
    let mut api_version = None;
    let mut kind = None;
    for field in Fields::of(type_meta) {
        match field? {
            (1, Value::Bytes(text)) => api_version = said(text)?,
            (2, Value::Bytes(text)) => kind = said(text)?,
            _ => {}
        }
    }
    Ok((api_version, kind))
}

fn said(text: &[u8]) -> Result<Option<&str>, &'static str> {
    let text = std::str::from_utf8(text).map_err(|_| "text that is not UTF-8")?;
    Ok((!text.is_empty()).then_some(text))
}
