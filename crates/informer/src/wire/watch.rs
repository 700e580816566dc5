//! The events of one watch, in either encoding.

use steersman_base::ResourceVersion;
use steersman_model::Encoded;

use super::json_watch::JsonWatch;
use super::proto_watch::ProtoWatch;
use super::{ApiStatus, Expected, Format, WireError};

/// Reads a watch event by event, from chunks of any size.
///
/// Feed a chunk, take events until there is none, feed the next; at the end of the body, [`finish`](Self::finish).
#[derive(Debug)]
pub struct WatchDecoder(Repr);

#[derive(Debug)]
enum Repr {
    Json(JsonWatch),
    Protobuf(ProtoWatch),
}

/// One event, its object still encoded.
#[derive(Debug)]
pub enum RawEvent<'a> {
    /// The object is new to this watch.
    Added(Encoded<'a>),
    /// The object changed.
    Modified(Encoded<'a>),
    /// The object was deleted, or is no longer selected.
    Deleted(Encoded<'a>),
    /// Nothing else happened up to this version.
    Bookmark(Bookmark),
    /// The server ends the watch with this error.
    Error(ApiStatus),
}

/// The progress of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bookmark {
    /// The version reached.
    pub version: ResourceVersion,
    /// Whether the initial events of a streaming list end here.
    pub initial_events_end: bool,
}

/// The annotation of the bookmark that ends a streaming list (KEP 3157).
pub(super) const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

// === impl WatchDecoder ===

impl WatchDecoder {
    /// Creates a decoder for one response.
    #[must_use]
    pub fn new(format: Format, expected: Expected) -> Self {
        Self(match format {
            Format::Json => Repr::Json(JsonWatch::new(expected)),
            Format::Protobuf => Repr::Protobuf(ProtoWatch::new(expected)),
        })
    }

    /// Adds the next chunk of the body.
    pub fn feed(&mut self, chunk: &[u8]) {
        match &mut self.0 {
            Repr::Json(watch) => watch.feed(chunk),
            Repr::Protobuf(watch) => watch.feed(chunk),
        }
    }

    /// Returns the next event, or `None` until more is fed.
    ///
    /// # Errors
    /// The event is not of the requested kind, or too large. Nothing more can be read.
    pub fn next_event(&mut self) -> Result<Option<RawEvent<'_>>, WireError> {
        match &mut self.0 {
            Repr::Json(watch) => watch.next_event(),
            Repr::Protobuf(watch) => watch.next_event(),
        }
    }

    /// Checks the end of the body.
    ///
    /// # Errors
    /// The body ended in the middle of an event.
    pub fn finish(&self) -> Result<(), WireError> {
        match &self.0 {
            Repr::Json(watch) => watch.finish(),
            Repr::Protobuf(watch) => watch.finish(),
        }
    }
}
