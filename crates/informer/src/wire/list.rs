//! One page of a list, in either encoding.

use steersman_base::ResourceVersion;
use steersman_model::{Encoded, View};

use super::json_list::JsonList;
use super::proto_list::ProtoList;
use super::{Expected, Format, WireError};

/// Reads a list item by item, from chunks of any size.
///
/// Feed a chunk, take items until there is none, feed the next; at the end of the body, [`finish`](Self::finish).
#[derive(Debug)]
pub struct ListDecoder(Repr);

#[derive(Debug)]
enum Repr {
    Json(JsonList),
    Protobuf(ProtoList),
}

/// The metadata of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListMeta {
    /// The version of the whole list.
    pub resource_version: ResourceVersion,
    /// The token of the next page; empty if there is none.
    pub continue_token: String,
    /// The number of items on later pages, if the server knows it.
    pub remaining_item_count: Option<u64>,
}

/// An item across the end of the fed bytes costs double; in this many bytes there are few of them.
pub const BATCH_BYTES: usize = 128 << 10;

// === impl ListDecoder ===

impl ListDecoder {
    /// Creates a decoder for one response.
    #[must_use]
    pub fn new(format: Format, expected: Expected) -> Self {
        Self(match format {
            Format::Json => Repr::Json(JsonList::new(expected)),
            Format::Protobuf => Repr::Protobuf(ProtoList::new(expected)),
        })
    }

    /// Adds the next chunk of the body.
    pub fn feed(&mut self, chunk: &[u8]) {
        match &mut self.0 {
            Repr::Json(list) => list.feed(chunk),
            Repr::Protobuf(list) => list.feed(chunk),
        }
    }

    /// Returns the next item, or `None` until more is fed.
    ///
    /// # Errors
    /// The body is not a list of the requested kind, or an item is too large. Nothing more can be read.
    pub fn next_item(&mut self) -> Result<Option<Encoded<'_>>, WireError> {
        Ok(match &mut self.0 {
            Repr::Json(list) => list.next_item()?.map(Encoded::Json),
            Repr::Protobuf(list) => list.next_item()?.map(Encoded::Protobuf),
        })
    }

    /// Returns the next item, decoded, or `None` until more is fed. Faster than [`next_item`](Self::next_item) and
    /// [`View::decode`], the more so the more was fed: [`BATCH_BYTES`] are enough.
    ///
    /// # Errors
    /// As [`next_item`](Self::next_item); or the view cannot decode the item ([`WireError::Object`]), and the next call
    /// continues behind it.
    pub fn next_object<V: View>(&mut self) -> Result<Option<V>, WireError> {
        match &mut self.0 {
            Repr::Json(list) => list.next_object(),
            Repr::Protobuf(list) => list.next_object(),
        }
    }

    /// Returns the number of bytes that were fed and not read.
    #[must_use]
    pub fn buffered(&self) -> usize {
        match &self.0 {
            Repr::Json(list) => list.buffered(),
            Repr::Protobuf(list) => list.buffered(),
        }
    }

    /// Returns the metadata of the list; to be called at the end of the body.
    ///
    /// # Errors
    /// The body ended too early, or is not a list of the requested kind.
    pub fn finish(self) -> Result<ListMeta, WireError> {
        match self.0 {
            Repr::Json(list) => list.finish(),
            Repr::Protobuf(list) => list.finish(),
        }
    }
}
