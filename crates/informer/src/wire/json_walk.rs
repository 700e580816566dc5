//! The fields of a JSON object, one by one, without reading what they hold.

use super::json_scan::ValueEnd;

/// Walks over the fields of one object that is there as a whole. Stopping early costs nothing for the rest.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    first: bool,
}

/// The name of a field, as written but without its quotes, and its value.
pub(super) type Field<'a> = (&'a [u8], &'a [u8]);

/// A problem, and the byte of the object at which it is.
pub(super) type Problem = (&'static str, usize);

// === impl Fields ===

impl<'a> Fields<'a> {
    /// Returns the fields of an object.
    pub(super) fn of(bytes: &'a [u8]) -> Result<Self, Problem> {
        let mut fields = Self { bytes, at: 0, first: true };
        match fields.next_byte() {
            Some(b'{') => Ok(fields),
            _ => Err(("not a JSON object", 0)),
        }
    }

    /// Returns the next field; `None` at the end of the object.
    pub(super) fn next(&mut self) -> Result<Option<Field<'a>>, Problem> {
        let Some(name) = self.next_name()? else { return Ok(None) };
        Ok(Some((name, self.value()?)))
    }

    /// Returns the next name alone; [`value`](Self::value) or [`here`](Self::here) must follow.
    pub(super) fn next_name(&mut self) -> Result<Option<&'a [u8]>, Problem> {
        let mut byte = self.next_byte();
        if byte == Some(b'}') {
            return Ok(None);
        }
        if !std::mem::take(&mut self.first) {
            if byte != Some(b',') {
                return Err(("expected `,` or `}`", self.at));
            }
            byte = self.next_byte();
        }
        if byte != Some(b'"') {
            return Err(("expected a name", self.at));
        }
        self.at -= 1;
        let name = self.value()?;
        if self.next_byte() != Some(b':') {
            return Err(("expected `:`", self.at));
        }
        self.skip_space();
        Ok(Some(&name[1..name.len() - 1]))
    }

    /// Returns the value behind the last returned name.
    pub(super) fn value(&mut self) -> Result<&'a [u8], Problem> {
        let rest = self.here();
        let length = ValueEnd::default().find(rest).ok_or(("incomplete value", self.at))?;
        self.at += length;
        Ok(&rest[..length])
    }

    /// Returns everything behind the last returned name, for a caller that needs only the front of a value.
    pub(super) fn here(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Checks that nothing but white space follows the object.
    pub(super) fn end(mut self) -> Result<(), Problem> {
        self.skip_space();
        if self.at == self.bytes.len() { Ok(()) } else { Err(("something follows the object", self.at)) }
    }

    fn next_byte(&mut self) -> Option<u8> {
        self.skip_space();
        let byte = self.bytes.get(self.at).copied();
        self.at += usize::from(byte.is_some());
        byte
    }

    fn skip_space(&mut self) {
        let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.at += self.bytes[self.at..].iter().take_while(blank).count();
    }
}

/// Returns the text of a JSON string, if the value is one.
pub(super) fn text(value: &[u8]) -> Option<String> {
    serde_json::from_slice(value).ok()
}
