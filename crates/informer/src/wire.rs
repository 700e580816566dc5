//! Lists and watches on the wire: requests, and the decoding of responses.
//!
//! 1. **No body is held whole.** A list is returned item by item and a watch event by event, as the bytes arrive; a
//!    decoder keeps the incomplete part, and nothing else.
//! 2. **Whole or not at all.** An item, a line or a frame is returned when its last byte is there. A body that ends in
//!    the middle of one is [`WireError::Truncated`].
//! 3. **Bounded.** One object of more than [`OBJECT_BYTES_MAX`] is [`WireError::TooLarge`], not a full memory.
//! 4. **The response decides.** Protobuf is requested where the view can read it, JSON is accepted where the server has
//!    nothing else; the `Content-Type` of the response says which it is.
//! 5. **Any chunking gives the same.** The decoders do not depend on the borders of chunks, frames or lines. Each byte
//!    is scanned once, however small the chunks are.
//! 6. **No input panics.** Whatever the bytes are, the result is an event, an item, a request for more, or an error.
//!
//! Requests go through [`kube::Client::send`], never `Client::request`, which collects the body and logs it on errors.

mod buffer;
mod error;
mod expected;
mod json_list;
mod json_scan;
mod json_walk;
mod json_watch;
mod list;
mod peek;
mod proto_list;
mod proto_watch;
mod protobuf;
mod read;
mod request;
mod response;
mod watch;

pub use error::{ApiStatus, UnreadableObject, WireError};
pub use expected::Expected;
pub use list::{BATCH_BYTES, ListDecoder, ListMeta};
pub use peek::{Peeked, identify, peek};
pub use read::read_list;
pub use request::{Accept, ListQuery, WatchQuery, list_request, watch_request};
pub use response::{Answer, Format, latest_version, send};
pub use watch::{Bookmark, RawEvent, WatchDecoder};

/// The maximum size of an object: etcd stops at 1.5 MiB by default, and an endless body is not an object.
pub const OBJECT_BYTES_MAX: usize = 64 << 20;

#[cfg(test)]
mod tests;
