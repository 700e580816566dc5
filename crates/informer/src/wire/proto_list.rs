//! A protobuf list, split into items as it arrives.
//!
//! A body is `k8s\0`, then `Unknown { typeMeta 1, raw 2, … }`; raw is the list: `{ metadata 1, items 2 }`.

use std::ops::Range;

use steersman_base::ResourceVersion;
use steersman_model::{Encoded, View};

use super::buffer::Buffer;
use super::list::ListMeta;
use super::protobuf::{Fields, MAGIC, Value, read_type, varint};
use super::{Expected, OBJECT_BYTES_MAX, WireError};

#[derive(Debug)]
pub(super) struct ProtoList {
    buffer: Buffer,
    expected: Expected,
    place: Place,
    meta: ListMeta,
    described: bool,
}

/// The next part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Magic,
    /// A field of `Unknown`.
    Envelope,
    /// A field of the list, with this many bytes left.
    List {
        left: u64,
    },
}

/// The head of a field, and its length.
struct Head {
    number: u64,
    kind: u64,
    /// The length of the body behind the head.
    length: u64,
    head: usize,
}

const WHAT: &str = "a protobuf list";

// === impl ProtoList ===

impl ProtoList {
    pub(super) fn new(expected: Expected) -> Self {
        let buffer = Buffer::default();
        Self { buffer, expected, place: Place::Magic, meta: ListMeta::default(), described: false }
    }

    pub(super) fn feed(&mut self, chunk: &[u8]) {
        self.buffer.feed(chunk);
    }

    /// Returns the number of bytes that wait to be read.
    pub(super) fn buffered(&self) -> usize {
        self.buffer.rest().len()
    }

    /// Returns the next item, decoded, if it is complete.
    pub(super) fn next_object<V: View>(&mut self) -> Result<Option<V>, WireError> {
        let Some(item) = self.seek_item()? else { return Ok(None) };
        self.expected.decode(Encoded::Protobuf(self.buffer.slice(item))).map(Some)
    }

    /// Returns the next item, if it is complete.
    pub(super) fn next_item(&mut self) -> Result<Option<&[u8]>, WireError> {
        let item = self.seek_item()?;
        Ok(item.map(|item| self.buffer.slice(item)))
    }

    /// Advances to the next item; returns its range, if it is complete.
    fn seek_item(&mut self) -> Result<Option<Range<usize>>, WireError> {
        loop {
            match self.place {
                Place::Magic => {
                    let rest = self.buffer.rest();
                    let seen = rest.len().min(MAGIC.len());
                    if rest[..seen] != MAGIC[..seen] {
                        return Err(self.malformed("it does not start with `k8s\\0`"));
                    }
                    if seen < MAGIC.len() {
                        return Ok(None);
                    }
                    self.buffer.take(MAGIC.len());
                    self.place = Place::Envelope;
                }
                Place::Envelope => {
                    let Some(head) = self.head()? else { return Ok(None) };
                    if head.number == 2 && head.kind == 2 {
                        self.buffer.take(head.head);
                        self.place = Place::List { left: head.length };
                    } else if !self.envelope_field(&head)? {
                        return Ok(None);
                    }
                }
                Place::List { left: 0 } => self.place = Place::Envelope,
                Place::List { left } => {
                    let Some(head) = self.head()? else { return self.more(left).map(|()| None) };
                    let size = (head.head as u64).saturating_add(head.length);
                    let Some(left) = left.checked_sub(size) else {
                        return Err(self.malformed("a field longer than its message"));
                    };
                    let Some(body) = self.body(&head)? else { return Ok(None) };
                    self.place = Place::List { left };
                    match (head.number, head.kind) {
                        (2, 2) => return Ok(Some(body)),
                        (1, 2) => {
                            self.meta =
                                read_meta(self.buffer.slice(body)).map_err(|problem| self.malformed(problem))?;
                            self.described = true;
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// Returns the metadata of the list, once all of it was read.
    pub(super) fn finish(self) -> Result<ListMeta, WireError> {
        if !matches!(self.place, Place::Envelope | Place::List { left: 0 }) || !self.buffer.is_empty() {
            return Err(WireError::Truncated { what: WHAT });
        }
        if !self.described {
            return Err(self.malformed("it has no metadata"));
        }
        Ok(self.meta)
    }

    /// Fails if the rest of the list is shorter than the head of a field: then no more will come.
    fn more(&self, left: u64) -> Result<(), WireError> {
        if self.buffer.rest().len() as u64 >= left {
            return Err(self.malformed("a field longer than its message"));
        }
        Ok(())
    }

    /// Reads a field beside the list: its type, or its encoding. Returns whether it was there.
    fn envelope_field(&mut self, head: &Head) -> Result<bool, WireError> {
        let Some(body) = self.body(head)? else { return Ok(false) };
        if (head.number, head.kind) == (1, 2) {
            let (api_version, kind) = read_type(self.buffer.slice(body)).map_err(|problem| self.malformed(problem))?;
            self.expected.check_list(kind, api_version)?;
        }
        Ok(true)
    }

    /// Returns the head of the next field, if it is complete.
    fn head(&self) -> Result<Option<Head>, WireError> {
        let rest = self.buffer.rest();
        let read = |bytes| varint(bytes).map_err(|problem| self.malformed(problem));
        let Some((tag, tag_size)) = read(rest)? else { return Ok(None) };
        let number = tag >> 3;
        let kind = tag & 7;
        let behind = &rest[tag_size..];
        let (length, head) = match kind {
            0 => match read(behind)? {
                Some((_, size)) => (size as u64, tag_size),
                None => return Ok(None),
            },
            1 => (8, tag_size),
            2 => match read(behind)? {
                Some((length, size)) => (length, tag_size + size),
                None => return Ok(None),
            },
            5 => (4, tag_size),
            _ => return Err(self.malformed("an unknown wire type")),
        };
        Ok(Some(Head { number, kind, length, head }))
    }

    /// Takes a field; returns the range of its body, if it is complete.
    fn body(&mut self, head: &Head) -> Result<Option<Range<usize>>, WireError> {
        let Some(length) = usize::try_from(head.length).ok().filter(|length| *length <= OBJECT_BYTES_MAX) else {
            return Err(WireError::TooLarge { what: "an object of a list", limit: OBJECT_BYTES_MAX });
        };
        if self.buffer.rest().len() < head.head + length {
            return Ok(None);
        }
        self.buffer.take(head.head);
        Ok(Some(self.buffer.take(length)))
    }

    fn malformed(&self, problem: &str) -> WireError {
        WireError::Malformed { what: WHAT, problem: problem.to_owned(), offset: self.buffer.offset() }
    }
}

/// `ListMeta` of meta/v1: `{ resourceVersion 2, continue 3, remainingItemCount 4 }`.
fn read_meta(message: &[u8]) -> Result<ListMeta, &'static str> {
    let text = |bytes| std::str::from_utf8(bytes).map_err(|_| "text that is not UTF-8");
    let mut meta = ListMeta::default();
    for field in Fields::of(message) {
        match field? {
            (2, Value::Bytes(version)) => meta.resource_version = ResourceVersion::new(text(version)?),
            (3, Value::Bytes(token)) => text(token)?.clone_into(&mut meta.continue_token),
            (4, Value::Varint(count)) => meta.remaining_item_count = Some(count),
            _ => {}
        }
    }
    Ok(meta)
}
