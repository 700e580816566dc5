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
    /// Appends a chunk. Taken bytes are dropped first, so the buffer holds no more than one incomplete item and one
    /// chunk.
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

    /// Returns the bytes that were not taken.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Takes `length` bytes; [`slice`](Self::slice) returns them until the next chunk is fed.
    pub(super) fn take(&mut self, length: usize) -> Range<usize> {
        let end = (self.start + length).min(self.bytes.len());
        let range = self.start..end;
        self.taken += (end - self.start) as u64;
        self.start = end;
        range
    }

    /// Returns bytes that were taken since the last chunk was fed.
    pub(super) fn slice(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// Takes JSON white space, and returns the first byte behind it.
    pub(super) fn skip_space(&mut self) -> Option<u8> {
        let rest = self.rest();
        let blank = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
        self.take(blank.unwrap_or(rest.len()));
        self.rest().first().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    /// Returns the number of bytes that were taken so far: the offset in errors.
    pub(super) fn offset(&self) -> u64 {
        self.taken
    }
}
