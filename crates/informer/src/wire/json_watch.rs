//! A watch in JSON: one event per line, `{"type":…,"object":…}`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use steersman_base::ResourceVersion;
use steersman_model::Encoded;

use super::buffer::Buffer;
use super::json_walk::{Fields, text};
use super::watch::{Bookmark, INITIAL_EVENTS_END, RawEvent};
use super::{ApiStatus, Expected, OBJECT_BYTES_MAX, WireError};

#[derive(Debug)]
pub(super) struct JsonWatch {
    buffer: Buffer,
    expected: Expected,
    /// The length of the incomplete line that was searched for its end.
    searched: usize,
}

/// A bookmark's object: only its metadata counts.
#[derive(Deserialize)]
struct BookmarkJson<'a> {
    #[serde(borrow)]
    metadata: BookmarkMeta<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMeta<'a> {
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
}

const WHAT: &str = "a watch event";

// === impl JsonWatch ===

impl JsonWatch {
    pub(super) fn new(expected: Expected) -> Self {
        Self { buffer: Buffer::default(), expected, searched: 0 }
    }

    pub(super) fn feed(&mut self, chunk: &[u8]) {
        self.buffer.feed(chunk);
    }

    /// Returns the event of the next line, if it is complete.
    pub(super) fn next_event(&mut self) -> Result<Option<RawEvent<'_>>, WireError> {
        loop {
            let start = self.buffer.offset();
            let Some(line) = self.next_line()? else { return Ok(None) };
            // Blank lines keep a connection alive and mean nothing.
            if !self.buffer.slice(line.clone()).trim_ascii().is_empty() {
                return read_line(self.buffer.slice(line), &self.expected, start).map(Some);
            }
        }
    }

    pub(super) fn finish(&self) -> Result<(), WireError> {
        let rest = self.buffer.rest().trim_ascii();
        if rest.is_empty() { Ok(()) } else { Err(WireError::Truncated { what: WHAT }) }
    }

    fn next_line(&mut self) -> Result<Option<Range<usize>>, WireError> {
        let rest = self.buffer.rest();
        let end = memchr::memchr(b'\n', &rest[self.searched..]).map(|at| self.searched + at);
        if end.unwrap_or(rest.len()) > OBJECT_BYTES_MAX {
            return Err(WireError::TooLarge { what: "a line of a watch", limit: OBJECT_BYTES_MAX });
        }
        self.searched = if end.is_some() { 0 } else { rest.len() };
        Ok(end.map(|end| self.buffer.take(end + 1)))
    }
}

fn read_line<'a>(line: &'a [u8], expected: &Expected, start: u64) -> Result<RawEvent<'a>, WireError> {
    let malformed = |problem: &str, at: usize| WireError::Malformed {
        what: WHAT,
        problem: problem.to_owned(),
        offset: start + at as u64,
    };
    let walked = |(problem, at): (&'static str, usize)| malformed(problem, at);
    let mut event_type = None;
    let mut object = None;
    let mut fields = Fields::of(line).map_err(walked)?;
    while let Some((name, value)) = fields.next().map_err(walked)? {
        match name {
            b"type" => event_type = Some(value),
            b"object" => object = Some(value),
            _ => {}
        }
    }
    fields.end().map_err(walked)?;
    let event_type = event_type.ok_or_else(|| malformed("it has no type", 0))?;
    let object = object.ok_or_else(|| malformed("it has no object", 0))?;
    let json = |error: serde_json::Error| malformed(&error.to_string(), 0);
    Ok(match event_type {
        br#""ADDED""# => RawEvent::Added(checked(object, expected, start)?),
        br#""MODIFIED""# => RawEvent::Modified(checked(object, expected, start)?),
        br#""DELETED""# => RawEvent::Deleted(checked(object, expected, start)?),
        br#""BOOKMARK""# => {
            checked(object, expected, start)?;
            RawEvent::Bookmark(read_bookmark(object).map_err(json)?)
        }
        br#""ERROR""# => RawEvent::Error(ApiStatus::from_json(object).map_err(json)?),
        other => return Err(malformed(&format!("unknown type {}", String::from_utf8_lossy(other)), 0)),
    })
}

/// Returns the object, if it is of the requested kind. Both names come first; the walk stops behind them.
fn checked<'a>(object: &'a [u8], expected: &Expected, start: u64) -> Result<Encoded<'a>, WireError> {
    let malformed = |(problem, _): (&'static str, usize)| WireError::Malformed {
        what: WHAT,
        problem: problem.into(),
        offset: start,
    };
    let mut kind = None;
    let mut api_version = None;
    let mut fields = Fields::of(object).map_err(malformed)?;
    while let Some((name, value)) = fields.next().map_err(malformed)? {
        match name {
            b"kind" => kind = text(value),
            b"apiVersion" => api_version = text(value),
            _ => {}
        }
        if kind.is_some() && api_version.is_some() {
            break;
        }
    }
    expected.check_object(kind.as_deref(), api_version.as_deref())?;
    Ok(Encoded::Json(object))
}

fn read_bookmark(object: &[u8]) -> Result<Bookmark, serde_json::Error> {
    let BookmarkJson { metadata } = serde_json::from_slice(object)?;
    let ends = metadata.annotations.is_some_and(|all| all.get(INITIAL_EVENTS_END).is_some_and(|value| value == "true"));
    Ok(Bookmark { version: ResourceVersion::new(&metadata.resource_version), initial_events_end: ends })
}
