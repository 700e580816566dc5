//! A watch in protobuf: frames of a 4-byte big-endian length and a `WatchEvent { type 1, object 2 { raw 1 } }`, whose
//! raw object has the `k8s\0` envelope of its own.

use std::ops::Range;

use steersman_base::ResourceVersion;
use steersman_model::Encoded;

use super::buffer::Buffer;
use super::protobuf::{Fields, MAGIC, Unknown, Value};
use super::watch::{Bookmark, INITIAL_EVENTS_END, RawEvent};
use super::{ApiStatus, Expected, OBJECT_BYTES_MAX, WireError};

#[derive(Debug)]
pub(super) struct ProtoWatch {
    buffer: Buffer,
    expected: Expected,
}

const WHAT: &str = "a watch event";
const LENGTH_BYTES: usize = 4;

// === impl ProtoWatch ===

impl ProtoWatch {
    pub(super) fn new(expected: Expected) -> Self {
        Self { buffer: Buffer::default(), expected }
    }

    pub(super) fn feed(&mut self, chunk: &[u8]) {
        self.buffer.feed(chunk);
    }

    /// Returns the event of the next frame, if it is complete.
    pub(super) fn next_event(&mut self) -> Result<Option<RawEvent<'_>>, WireError> {
        let start = self.buffer.offset();
        let Some(frame) = self.next_frame()? else { return Ok(None) };
        let malformed = |problem: String| WireError::Malformed { what: WHAT, problem, offset: start };
        let (event_type, object) =
            read_event(self.buffer.slice(frame)).map_err(|problem| malformed(problem.to_owned()))?;
        let unknown = Unknown::open(object).map_err(|problem| malformed(problem.to_owned()))?;
        if event_type == b"ERROR" {
            return ApiStatus::from_protobuf(unknown.raw)
                .map(|status| Some(RawEvent::Error(status)))
                .map_err(|problem| malformed(problem.to_owned()));
        }
        self.expected.check_object(unknown.kind, unknown.api_version)?;
        let object = Encoded::Protobuf(unknown.raw);
        Ok(Some(match event_type {
            b"ADDED" => RawEvent::Added(object),
            b"MODIFIED" => RawEvent::Modified(object),
            b"DELETED" => RawEvent::Deleted(object),
            b"BOOKMARK" => {
                RawEvent::Bookmark(read_bookmark(unknown.raw).map_err(|problem| malformed(problem.to_owned()))?)
            }
            other => return Err(malformed(format!("unknown type {}", String::from_utf8_lossy(other)))),
        }))
    }

    pub(super) fn finish(&self) -> Result<(), WireError> {
        if self.buffer.is_empty() { Ok(()) } else { Err(WireError::Truncated { what: WHAT }) }
    }

    fn next_frame(&mut self) -> Result<Option<Range<usize>>, WireError> {
        let rest = self.buffer.rest();
        let Some(length) = rest.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > OBJECT_BYTES_MAX {
            return Err(WireError::TooLarge { what: "a frame of a watch", limit: OBJECT_BYTES_MAX });
        }
        if rest.len() < LENGTH_BYTES + length {
            return Ok(None);
        }
        self.buffer.take(LENGTH_BYTES);
        Ok(Some(self.buffer.take(length)))
    }
}

/// Returns type and object of a `WatchEvent`. kube-apiserver sends the bare message; one in the usual envelope is
/// accepted too.
fn read_event(frame: &[u8]) -> Result<(&[u8], &[u8]), &'static str> {
    let message = if frame.starts_with(MAGIC) { Unknown::open(frame)?.raw } else { frame };
    let mut event_type: &[u8] = &[];
    let mut object: &[u8] = &[];
    for field in Fields::of(message) {
        match field? {
            (1, Value::Bytes(text)) => event_type = text,
            (2, Value::Bytes(extension)) => {
                for field in Fields::of(extension) {
                    if let (1, Value::Bytes(raw)) = field? {
                        object = raw;
                    }
                }
            }
            _ => {}
        }
    }
    Ok((event_type, object))
}

/// `metadata 1 { resourceVersion 6, annotations 12 { key 1, value 2 } }` of any object.
fn read_bookmark(object: &[u8]) -> Result<Bookmark, &'static str> {
    let mut bookmark = Bookmark { version: ResourceVersion::default(), initial_events_end: false };
    for field in Fields::of(object) {
        let (1, Value::Bytes(metadata)) = field? else { continue };
        for field in Fields::of(metadata) {
            match field? {
                (6, Value::Bytes(version)) => {
                    let text = std::str::from_utf8(version).map_err(|_| "a version that is not UTF-8")?;
                    bookmark.version = ResourceVersion::new(text);
                }
                (12, Value::Bytes(annotation)) => bookmark.initial_events_end |= ends_initial_events(annotation)?,
                _ => {}
            }
        }
    }
    if bookmark.version.is_empty() { Err("a bookmark without a version") } else { Ok(bookmark) }
}

fn ends_initial_events(annotation: &[u8]) -> Result<bool, &'static str> {
    let mut key: &[u8] = &[];
    let mut value: &[u8] = &[];
    for field in Fields::of(annotation) {
        match field? {
            (1, Value::Bytes(text)) => key = text,
            (2, Value::Bytes(text)) => value = text,
            _ => {}
        }
    }
    Ok(key == INITIAL_EVENTS_END.as_bytes() && value == b"true")
}
