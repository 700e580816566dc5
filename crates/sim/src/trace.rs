//! What happened in a world, in lines: two runs of one plan have the same ones.

use std::fmt::Write as _;
use std::hash::{BuildHasher as _, Hasher as _};

use foldhash::quality::FixedState;

/// What happened in a world. All of it counts for the hash; the lines are kept up to a bound.
#[derive(Debug)]
pub struct Trace {
    hash: u64,
    lines: Vec<String>,
    count: u64,
    /// How many lines are kept.
    kept_max: usize,
}

/// Enough for a world; what comes behind counts for the hash alone.
pub const LINES_MAX: usize = 200_000;

static HASHES: FixedState = FixedState::with_seed(0);

// === impl Trace ===

impl Trace {
    /// Returns an empty trace that keeps at most this many lines.
    #[must_use]
    pub fn new(kept_max: usize) -> Self {
        Self { hash: 0, lines: Vec::new(), count: 0, kept_max }
    }

    /// Adds a line; `micros` is the time since the world began.
    pub fn line(&mut self, micros: u128, text: std::fmt::Arguments<'_>) {
        let mut line = String::new();
        // Writing to a string cannot fail.
        let _ = write!(line, "{}.{:06} {text}", micros / 1_000_000, micros % 1_000_000);
        self.hash = HASHES.hash_one((self.hash, line.as_bytes()));
        self.count += 1;
        if self.lines.len() < self.kept_max {
            self.lines.push(line);
        }
    }

    /// Adds a line for people that does not count for the hash.
    pub fn aside(&mut self, micros: u128, text: std::fmt::Arguments<'_>) {
        if self.lines.len() < self.kept_max {
            self.lines.push(format!("{}.{:06} {text}", micros / 1_000_000, micros % 1_000_000));
        }
    }

    /// The lines that were kept.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// How many lines there were.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// A number that two traces share only if they are the same.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }
}

/// A number for some bytes.
pub(crate) fn hash_of(bytes: &[u8]) -> u64 {
    let mut hasher = HASHES.build_hasher();
    hasher.write(bytes);
    hasher.finish()
}
