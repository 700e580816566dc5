//! The bytes of a body that were received and not yet used.

use std::ops::Range;

/// A queue of bytes: chunks go in at the end, decoders take from the front.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    taken: u64,
}

/// A watch lives for minutes; one large object should not keep its memory that long.
const KEPT_WHEN_EMPTY: usize = 1 << 20;

// === impl Buffer ===

impl Buffer {
    /// Appends a chunk. What was taken is forgotten first, so the buffer holds no more than one unfinished thing and one chunk.
    pub(super) fn feed(&mut self, chunk: &[u8]) {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT_WHEN_EMPTY {
            self.bytes = Vec::new();
        }
        self.bytes.extend_from_slice(chunk);
    }

    /// What is there and not taken.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Takes `length` bytes; where they are says [`slice`](Self::slice) until the next chunk is fed.
    pub(super) fn take(&mut self, length: usize) -> Range<usize> {
        let end = (self.start + length).min(self.bytes.len());
        let range = self.start..end;
        self.taken += (end - self.start) as u64;
        self.start = end;
        range
    }

    /// Bytes that were taken since the last chunk was fed.
    pub(super) fn slice(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// Takes the bytes up to the first that is not JSON white space, and tells that one.
    pub(super) fn skip_space(&mut self) -> Option<u8> {
        let rest = self.rest();
        let blank = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
        self.take(blank.unwrap_or(rest.len()));
        self.rest().first().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    /// How many bytes of the body were taken so far: the offset that errors name.
    pub(super) fn offset(&self) -> u64 {
        self.taken
    }
}
