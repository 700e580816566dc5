//! A JSON list, split into items as it arrives.

use std::ops::Range;

use memchr::memmem;
use serde::Deserialize;
use steersman_base::ResourceVersion;
use steersman_model::{Encoded, View};

use super::buffer::Buffer;
use super::expected::decode_guarded;
use super::json_scan::ValueEnd;
use super::json_walk::text;
use super::list::ListMeta;
use super::{Expected, OBJECT_BYTES_MAX, WireError};

/// Reads `{"kind":…,"apiVersion":…,"metadata":…,"items":[…]}`, its fields in any order.
#[derive(Debug)]
pub(super) struct JsonList {
    buffer: Buffer,
    expected: Expected,
    place: Place,
    value: ValueEnd,
    kind: Option<String>,
    api_version: Option<String>,
    meta: ListMeta,
    /// Whether the list had metadata: otherwise it is not a list.
    described: bool,
    /// Whether it is worth guessing where items end.
    guessing: bool,
}

/// The next part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Start,
    FirstName,
    Name,
    Colon(Field),
    Value(Field),
    AfterValue,
    FirstItem,
    Item,
    AfterItem,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Kind,
    ApiVersion,
    Metadata,
    Items,
    Other,
}

/// `ListMeta` of meta/v1.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ListMetaJson {
    resource_version: Option<String>,
    r#continue: Option<String>,
    remaining_item_count: Option<i64>,
}

const WHAT: &str = "a list";
/// The text between two items of a typed list; it is in no string, whose quotes are escaped.
const BETWEEN_ITEMS: &[u8] = br#"},{"metadata":{"#;
/// The bytes within which a typed item ends; if none does, these items begin in another way, and searching is in vain.
const GUESS_WITHIN: usize = 32 << 10;

// === impl JsonList ===

impl JsonList {
    pub(super) fn new(expected: Expected) -> Self {
        Self {
            buffer: Buffer::default(),
            expected,
            place: Place::Start,
            value: ValueEnd::default(),
            kind: None,
            api_version: None,
            meta: ListMeta::default(),
            described: false,
            guessing: true,
        }
    }

    /// Returns the number of bytes that wait to be read.
    pub(super) fn buffered(&self) -> usize {
        self.buffer.rest().len()
    }

    pub(super) fn feed(&mut self, chunk: &[u8]) {
        self.buffer.feed(chunk);
    }

    /// Returns the next item, if it is complete.
    pub(super) fn next_item(&mut self) -> Result<Option<&[u8]>, WireError> {
        if !self.seek_item()? {
            return Ok(None);
        }
        let Some(item) = self.whole_value()? else { return Ok(None) };
        self.place = Place::AfterItem;
        Ok(Some(self.buffer.slice(item)))
    }

    /// Returns the next item, decoded, if it is complete.
    ///
    /// Finding the end of an item costs a good part of decoding it. So the end is guessed first: where the next typed
    /// item seems to begin. That is safe: a text that is read as one whole JSON object ends where that object ends, so
    /// a wrong guess cannot be read. After a wrong guess, or where items begin in another way, ends are searched.
    pub(super) fn next_object<V: View>(&mut self) -> Result<Option<V>, WireError> {
        if !self.seek_item()? {
            return Ok(None);
        }
        let mut guessed = None;
        if self.guessing && self.value.is_fresh() {
            let rest = self.buffer.rest();
            match memmem::find(rest, BETWEEN_ITEMS).filter(|end| *end < OBJECT_BYTES_MAX) {
                Some(end) => match decode_guarded(Encoded::Json(&rest[..=end])) {
                    Ok(object) => {
                        self.buffer.take(end + 1);
                        self.place = Place::AfterItem;
                        return Ok(Some(object));
                    }
                    Err(_) => (self.guessing, guessed) = (false, Some(end + 1)),
                },
                None => self.guessing = rest.len() < GUESS_WITHIN,
            }
        }
        let Some(item) = self.whole_value()? else { return Ok(None) };
        self.place = Place::AfterItem;
        // The item is wrong, not the guess.
        self.guessing |= guessed == Some(item.len());
        self.expected.decode(Encoded::Json(self.buffer.slice(item))).map(Some)
    }

    /// Advances to the start of the next item; returns whether it is there.
    fn seek_item(&mut self) -> Result<bool, WireError> {
        loop {
            let Some(byte) = self.buffer.skip_space() else { return Ok(false) };
            self.place = match (self.place, byte) {
                (Place::FirstItem | Place::Item, b'{') => return Ok(true),
                (Place::Start, b'{') => self.step(Place::FirstName),
                (Place::FirstName | Place::AfterValue, b'}') => self.step(Place::End),
                (Place::FirstName | Place::Name, b'"') => {
                    let Some(name) = self.whole_value()? else { return Ok(false) };
                    Place::Colon(field(self.buffer.slice(name)))
                }
                (Place::Colon(field), b':') => self.step(Place::Value(field)),
                (Place::Value(Field::Items), b'[') => self.step(Place::FirstItem),
                (Place::Value(field), _) => {
                    let Some(value) = self.whole_value()? else { return Ok(false) };
                    self.read_field(field, value)?;
                    Place::AfterValue
                }
                (Place::AfterValue, b',') => self.step(Place::Name),
                (Place::FirstItem | Place::AfterItem, b']') => self.step(Place::AfterValue),
                (Place::AfterItem, b',') => self.step(Place::Item),
                (place, byte) => return Err(self.malformed(&format!("{} does not belong {place}", shown(byte)))),
            };
        }
    }

    /// Returns the metadata of the list, once all of it was read.
    pub(super) fn finish(self) -> Result<ListMeta, WireError> {
        if self.place != Place::End {
            return Err(WireError::Truncated { what: WHAT });
        }
        self.expected.check_list(self.kind.as_deref(), self.api_version.as_deref())?;
        if !self.described {
            return Err(self.malformed("it has no metadata"));
        }
        Ok(self.meta)
    }

    fn step(&mut self, next: Place) -> Place {
        self.buffer.take(1);
        next
    }

    /// Takes the value at the front of the buffer, if it is complete.
    fn whole_value(&mut self) -> Result<Option<Range<usize>>, WireError> {
        match self.value.find(self.buffer.rest()) {
            Some(length) if length <= OBJECT_BYTES_MAX => {
                self.value = ValueEnd::default();
                Ok(Some(self.buffer.take(length)))
            }
            None if self.buffer.rest().len() <= OBJECT_BYTES_MAX => Ok(None),
            _ => Err(WireError::TooLarge { what: "an object of a list", limit: OBJECT_BYTES_MAX }),
        }
    }

    fn read_field(&mut self, field: Field, value: Range<usize>) -> Result<(), WireError> {
        let value = self.buffer.slice(value);
        let read = match field {
            Field::Kind => {
                self.kind = text(value);
                // If the kind comes before the items, as servers send it, a wrong one is known before any item is
                // returned.
                return self.expected.check_list(self.kind.as_deref(), None);
            }
            Field::ApiVersion => {
                self.api_version = text(value);
                Ok(())
            }
            Field::Metadata => serde_json::from_slice(value).map(|meta: Option<ListMetaJson>| {
                let meta = meta.unwrap_or_default();
                self.described = true;
                self.meta = ListMeta {
                    resource_version: ResourceVersion::new(&meta.resource_version.unwrap_or_default()),
                    continue_token: meta.r#continue.unwrap_or_default(),
                    remaining_item_count: meta.remaining_item_count.and_then(|count| u64::try_from(count).ok()),
                };
            }),
            // `null` is an empty list, as Go writes it.
            Field::Items => serde_json::from_slice::<()>(value),
            Field::Other => serde_json::from_slice::<serde::de::IgnoredAny>(value).map(|_| ()),
        };
        read.map_err(|error| self.malformed(&error.to_string()))
    }

    fn malformed(&self, problem: &str) -> WireError {
        WireError::Malformed { what: WHAT, problem: problem.to_owned(), offset: self.buffer.offset() }
    }
}

fn field(quoted: &[u8]) -> Field {
    match quoted {
        br#""kind""# => Field::Kind,
        br#""apiVersion""# => Field::ApiVersion,
        br#""metadata""# => Field::Metadata,
        br#""items""# => Field::Items,
        _ => Field::Other,
    }
}

fn shown(byte: u8) -> String {
    if byte.is_ascii_graphic() { format!("`{}`", char::from(byte)) } else { format!("byte {byte:#04x}") }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Start => "at the start of a JSON object",
            Self::FirstName | Self::Name => "where a field's name should be",
            Self::Colon(_) => "behind a field's name",
            Self::Value(_) => "where a value should be",
            Self::AfterValue => "behind a field",
            Self::FirstItem | Self::Item => "where an object should be",
            Self::AfterItem => "behind an object",
            Self::End => "behind the list",
        })
    }
}
