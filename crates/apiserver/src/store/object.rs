//! One state of one object, as bytes that serve every reader.
//!
//! The bytes are a whole line of a watch, `{"type":"ADDED","object":{"kind":…,"apiVersion":…,…}}`. A get answers with a
//! slice of it, a list with a slice that starts behind the kind, a metadata reader with the slice of `metadata`. The
//! resource version is known only when the store takes the object, so it is spliced in then: nothing is encoded twice.

use std::io::Write;

use bytes::Bytes;
use serde_json::Value;
use steersman_base::{Istr, ObjectKey, StringMap};

use super::{DEPTH_MAX, NewState, json};

/// The type of an event, as a watch reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The object is new.
    Added,
    /// The object has changed.
    Modified,
    /// The object is gone.
    Deleted,
}

/// An encoded object that lacks its resource version.
#[derive(Clone, Debug)]
pub struct Draft {
    text: Vec<u8>,
    /// The position behind `apiVersion` and `kind`.
    head: usize,
    /// The start and the end of the value of `metadata`.
    meta: (usize, usize),
    /// The position of the digits of the resource version.
    version_at: usize,
}

/// One state of one object.
#[derive(Debug)]
pub struct Object {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The revision that wrote this state.
    pub revision: u64,
    /// The labels.
    pub labels: StringMap,
    /// The values of the selectable fields, in the order of the strategy.
    pub fields: Box<[Istr]>,
    line: Bytes,
    start: u32,
    head: u32,
    meta: (u32, u32),
    version: (u32, u32),
}

const LINE_END: &[u8] = b"}\n";

// === impl EventKind ===

impl EventKind {
    /// Returns the text before the object in a watch event.
    #[must_use]
    pub(crate) const fn opening(self) -> &'static str {
        match self {
            Self::Added => "{\"type\":\"ADDED\",\"object\":",
            Self::Modified => "{\"type\":\"MODIFIED\",\"object\":",
            Self::Deleted => "{\"type\":\"DELETED\",\"object\":",
        }
    }
}

// === impl Draft ===

impl Draft {
    /// Encodes an object: a map with `apiVersion`, `kind` and `metadata`. The resource version it holds is left out. Upstream
    /// writes the kind first if it knows the Go type of the object (`is_typed`), and sorted keys otherwise.
    #[must_use]
    pub(crate) fn encode(object: &Value, is_typed: bool) -> Self {
        let mut draft = Self { text: Vec::with_capacity(1024), head: 0, meta: (0, 0), version_at: 0 };
        draft.text.extend_from_slice(b"{");
        for name in if is_typed { ["kind", "apiVersion"] } else { ["apiVersion", "kind"] } {
            draft.entry(name, &object[name]);
            draft.text.extend_from_slice(b",");
        }
        draft.head = draft.text.len();
        draft.text.extend_from_slice(b"\"metadata\":");
        draft.meta.0 = draft.text.len();
        draft.metadata(&object["metadata"]);
        draft.meta.1 = draft.text.len();
        for (key, value) in object.as_object().into_iter().flatten() {
            if !matches!(key.as_str(), "apiVersion" | "kind" | "metadata") {
                draft.text.extend_from_slice(b",");
                draft.entry(key, value);
            }
        }
        draft.text.extend_from_slice(b"}");
        draft
    }

    fn metadata(&mut self, metadata: &Value) {
        self.text.extend_from_slice(b"{");
        for (key, value) in metadata.as_object().into_iter().flatten() {
            if key != "resourceVersion" {
                self.entry(key, value);
                self.text.extend_from_slice(b",");
            }
        }
        self.text.extend_from_slice(b"\"resourceVersion\":\"");
        self.version_at = self.text.len();
        self.text.extend_from_slice(b"\"}");
    }

    fn entry(&mut self, key: &str, value: &Value) {
        json::string(key, &mut self.text);
        self.text.extend_from_slice(b":");
        json::write(value, &mut self.text);
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether there are no bytes, which never happens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether a stored state has the same content: then there is nothing to write.
    #[must_use]
    pub fn is_unchanged_from(&self, stored: &Object) -> bool {
        let bytes = stored.bytes();
        let from = stored.version.0 as usize;
        let to = stored.version.1 as usize;
        bytes.len() == self.text.len() + (to - from)
            && bytes[..from] == self.text[..self.version_at]
            && bytes[to..] == self.text[self.version_at..]
    }
}

// === impl Object ===

impl Object {
    /// Returns the state with its revision.
    #[must_use]
    pub fn seal(key: ObjectKey, state: NewState, kind: EventKind, revision: u64) -> Self {
        let NewState { draft, labels, fields } = state;
        let (before, after) = draft.text.split_at(draft.version_at);
        let (line, version_end) = assemble(kind, before, revision, after);
        let shift = version_end - draft.version_at;
        Self {
            key,
            revision,
            labels,
            fields,
            line,
            start: offset(kind.opening().len()),
            head: offset(draft.head),
            meta: (offset(draft.meta.0), offset(draft.meta.1 + shift)),
            version: (offset(draft.version_at), offset(version_end)),
        }
    }

    /// Returns this state as the last one, at the revision of the deletion.
    #[must_use]
    pub fn deleted_at(&self, revision: u64) -> Self {
        let bytes = self.bytes();
        let from = self.version.0 as usize;
        let to = self.version.1 as usize;
        let (line, version_end) = assemble(EventKind::Deleted, &bytes[..from], revision, &bytes[to..]);
        Self {
            key: self.key.clone(),
            revision,
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            line,
            start: offset(EventKind::Deleted.opening().len()),
            head: self.head,
            meta: (self.meta.0, offset(self.meta.1 as usize + version_end - to)),
            version: (self.version.0, offset(version_end)),
        }
    }

    /// Returns the encoded object.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.line.slice(self.start as usize..self.line.len() - LINE_END.len())
    }

    /// Returns the object as an item of a list: without `apiVersion` and `kind`, and without the opening brace.
    #[must_use]
    pub(crate) fn item(&self) -> Bytes {
        self.line.slice((self.start + self.head) as usize..self.line.len() - LINE_END.len())
    }

    /// Returns the encoded metadata.
    #[must_use]
    pub fn metadata(&self) -> Bytes {
        self.line.slice((self.start + self.meta.0) as usize..(self.start + self.meta.1) as usize)
    }

    /// Returns the watch event of this state, if it was encoded for this kind of event.
    #[must_use]
    pub(crate) fn line(&self, kind: EventKind) -> Option<Bytes> {
        self.line.starts_with(kind.opening().as_bytes()).then(|| self.line.clone())
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.line.len()
    }

    /// Whether there are no bytes, which never happens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// Returns the object as a tree.
    ///
    /// # Errors
    /// Never, unless the engine lost bytes.
    pub fn parse(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_slice(&self.bytes())
    }
}

/// Whether an object is nested deeper than [`DEPTH_MAX`]: it could be stored, and not be parsed again.
#[must_use]
pub(crate) fn is_too_deep(object: &Value) -> bool {
    fn exceeds(value: &Value, levels: usize) -> bool {
        let is_inner_too_deep = |inner: &Value| exceeds(inner, levels.saturating_sub(1));
        match value {
            Value::Array(_) | Value::Object(_) if levels == 0 => true,
            Value::Array(elements) => elements.iter().any(is_inner_too_deep),
            Value::Object(entries) => entries.values().any(is_inner_too_deep),
            _ => false,
        }
    }
    exceeds(object, DEPTH_MAX)
}

/// The line of a watch, and where the digits of the revision end within the object.
fn assemble(kind: EventKind, before: &[u8], revision: u64, after: &[u8]) -> (Bytes, usize) {
    let opening = kind.opening().as_bytes();
    let digits = revision.checked_ilog10().map_or(1, |digits| digits as usize + 1);
    // Of the right size: a `Vec` that is larger than what it holds would be kept as it is.
    let mut line = Vec::with_capacity(opening.len() + before.len() + digits + after.len() + LINE_END.len());
    line.extend_from_slice(opening);
    line.extend_from_slice(before);
    let _ = write!(line, "{revision}");
    let version_end = line.len() - opening.len();
    line.extend_from_slice(after);
    line.extend_from_slice(LINE_END);
    (line.into(), version_end)
}

/// Bodies are limited to a few MiB, so offsets fit.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
