//! One page of a list, in either encoding.

use steersman_base::ResourceVersion;
use steersman_model::Encoded;

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

/// What a list says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListMeta {
    /// The version of the whole list.
    pub resource_version: ResourceVersion,
    /// How to ask for the next page; empty if there is none.
    pub continue_token: String,
    /// How many items are on later pages, if the server knows.
    pub remaining_item_count: Option<u64>,
}

// === impl ListDecoder ===

impl ListDecoder {
    /// A decoder for one answer.
    #[must_use]
    pub fn new(format: Format, expected: Expected) -> Self {
        Self(match format {
            Format::Json => Repr::Json(JsonList::new(expected)),
            Format::Protobuf => Repr::Protobuf(ProtoList::new(expected)),
        })
    }

    /// Takes the next chunk of the body.
    pub fn feed(&mut self, chunk: &[u8]) {
        match &mut self.0 {
            Repr::Json(list) => list.feed(chunk),
            Repr::Protobuf(list) => list.feed(chunk),
        }
    }

    /// The next item, or `None` until more is fed.
    ///
    /// # Errors
    /// The body is not a list of what was asked for, or an item is too large. Nothing more can be read.
    pub fn next_item(&mut self) -> Result<Option<Encoded<'_>>, WireError> {
        Ok(match &mut self.0 {
            Repr::Json(list) => list.next_item()?.map(Encoded::Json),
            Repr::Protobuf(list) => list.next_item()?.map(Encoded::Protobuf),
        })
    }

    /// What the list says of itself; to be called at the end of the body.
    ///
    /// # Errors
    /// The body ended too early, or is not a list of what was asked for.
    pub fn finish(self) -> Result<ListMeta, WireError> {
        match self.0 {
            Repr::Json(list) => list.finish(),
            Repr::Protobuf(list) => list.finish(),
        }
    }
}
