//! The decision log: what controllers did, what they refused to do, and why.
//!
//! 1. One entry per pass that wrote, tried to write, refused or failed. A pass that found nothing to do leaves no entry.
//! 2. An entry has the time, controller, key, number of the pass, its trigger, what it saw, each decision with its rule
//!    and the fate of its write, the duration, and the outcome.
//! 3. Bounded in bytes: the oldest entries are dropped first. A pass with many equal writes keeps the first 32
//!    decisions and counts the others; long texts are cut.
//! 4. Writing to it never waits for a reader: entries are shared, and a reader copies pointers.
//!
//! ```
//! use steersman_base::{Clock, ObjectKey};
//! use steersman_runtime::decisions::{Filter, Log, Outcome};
//!
//! let log = Log::new(Clock::system());
//! let pass = log.begin("bakery", &ObjectKey::new("default", "cake"), "Oven default/hot-1 deleted".into());
//! pass.saw("ovens", 0);
//! pass.refused("NoFlour", "the flour is not there yet");
//! pass.end(Outcome::Done);
//!
//! let entries = log.entries(&Filter::default());
//! assert_eq!(entries[0].decisions[0].rule, "NoFlour");
//! assert!(entries[0].to_string().contains("the flour is not there yet"));
//! ```

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use steersman_base::{Clock, Istr, MicroTime, ObjectKey};
use tokio::time::Instant;

mod entry;
#[cfg(test)]
mod tests;

pub use entry::{Decision, Entry, Fate, Outcome, Seen, Write};

/// The decision log. Cheap to clone; clones are the same log.
#[derive(Clone)]
pub struct Log(Arc<Shared>);

struct Shared {
    clock: Clock,
    bytes_max: usize,
    next_pass: AtomicU64,
    ring: Mutex<Ring>,
}

/// The entries, oldest first, and their size.
#[derive(Default)]
struct Ring {
    entries: VecDeque<(usize, Arc<Entry>)>,
    bytes: usize,
    dropped: u64,
}

/// One pass of a controller over one key. Cheap to clone; clones are the same pass.
///
/// It becomes an entry when it ends, or when the last clone is dropped (a panic, a reconcile that was cancelled).
#[derive(Clone)]
pub struct Pass(Arc<Begun>);

struct Begun {
    log: Log,
    id: u64,
    controller: &'static str,
    key: ObjectKey,
    trigger: Istr,
    time: MicroTime,
    started: Instant,
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    seen: Vec<Seen>,
    decisions: Vec<Decision>,
    more: usize,
    ended: bool,
}

/// A selection of entries. The default selects all.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Filter {
    /// The controller.
    pub controller: Option<String>,
    /// The key, as `namespace/name` or `name`.
    pub key: Option<String>,
    /// Whether only failed passes are selected, or those with a failed write.
    pub failed_only: bool,
    /// The number of entries, the newest first.
    pub newest: Option<usize>,
}

/// The number of bytes that a log keeps by default: about a thousand passes that wrote something, which is enough to
/// answer "what happened in the last minutes", and small beside any cache.
pub(crate) const BYTES_MAX: usize = 512 << 10;
/// The number of decisions of one pass that are kept: a pass that creates 500 pods says nothing new with the 33rd.
const DECISIONS_MAX: usize = 32;
/// The number of observations of one pass that are kept.
const SEEN_MAX: usize = 32;
/// The length at which a text is cut: an admission webhook may say anything.
const TEXT_MAX: usize = 1024;

// === impl Log ===

impl Log {
    /// Creates a log of the default size.
    #[doc(hidden)]
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self::with_bytes_max(clock, BYTES_MAX)
    }

    /// Creates a log of at most this many bytes; an empty one, if it is zero.
    #[must_use]
    pub(crate) fn with_bytes_max(clock: Clock, bytes_max: usize) -> Self {
        Self(Arc::new(Shared { clock, bytes_max, next_pass: AtomicU64::new(1), ring: Mutex::default() }))
    }

    /// Begins a pass. `trigger` names what enqueued the key, such as `Pod default/web-1 deleted`; empty if unknown.
    #[doc(hidden)]
    #[must_use]
    pub fn begin(&self, controller: &'static str, key: &ObjectKey, trigger: Istr) -> Pass {
        Pass(Arc::new(Begun {
            log: self.clone(),
            id: self.0.next_pass.fetch_add(1, Ordering::Relaxed),
            controller,
            key: key.clone(),
            trigger,
            time: self.0.clock.now_micros(),
            started: Instant::now(),
            notes: Mutex::default(),
        }))
    }

    /// Returns the selected entries, oldest first.
    #[must_use]
    pub fn entries(&self, filter: &Filter) -> Vec<Arc<Entry>> {
        let ring = self.0.ring.lock();
        let newest = ring.entries.iter().rev().map(|(_, entry)| entry).filter(|entry| filter.shows(entry));
        let mut entries: Vec<_> = newest.take(filter.newest.unwrap_or(usize::MAX)).cloned().collect();
        entries.reverse();
        entries
    }

    /// Returns the entries of one key of one controller, oldest first.
    #[must_use]
    pub fn for_key(&self, controller: &str, key: &ObjectKey) -> Vec<Arc<Entry>> {
        let controller = Some(controller.to_owned());
        let key = Some(key.to_string());
        self.entries(&Filter { controller, key, ..Filter::default() })
    }

    /// Returns the approximate size of the entries in bytes.
    #[must_use]
    pub(crate) fn bytes(&self) -> usize {
        self.0.ring.lock().bytes
    }

    /// Returns how many entries were dropped to make room.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.0.ring.lock().dropped
    }

    fn push(&self, entry: Entry) {
        let bytes = entry.bytes();
        let mut ring = self.0.ring.lock();
        while ring.bytes + bytes > self.0.bytes_max {
            let Some((gone, _)) = ring.entries.pop_front() else {
                // An entry larger than the whole log.
                ring.dropped += 1;
                return;
            };
            ring.bytes -= gone;
            ring.dropped += 1;
        }
        ring.bytes += bytes;
        ring.entries.push_back((bytes, Arc::new(entry)));
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("bytes", &self.bytes()).field("bytes_max", &self.0.bytes_max).finish()
    }
}

// === impl Filter ===

impl Filter {
    fn shows(&self, entry: &Entry) -> bool {
        self.controller.as_ref().is_none_or(|controller| controller == entry.controller)
            && self.key.as_ref().is_none_or(|key| *key == entry.key)
            && (!self.failed_only || entry.has_failed())
    }
}

// === impl Pass ===

impl Pass {
    /// Returns the number of this pass, unique in its log.
    #[must_use]
    pub(crate) fn id(&self) -> u64 {
        self.0.id
    }

    /// Records an observation that the decision is based on.
    pub fn saw(&self, what: &'static str, value: impl fmt::Display) {
        let mut notes = self.0.notes.lock();
        if notes.seen.len() < SEEN_MAX {
            notes.seen.push(Seen { what, value: cut(value) });
        }
    }

    /// Records that something was not done: the rule, and the reason.
    pub fn refused(&self, rule: &'static str, why: impl fmt::Display) {
        self.note(Decision { rule, why: cut(why), write: None, fate: Fate::Refused });
    }

    /// Ends the pass. Later notes of clones are lost.
    #[doc(hidden)]
    pub fn end(&self, outcome: Outcome) {
        self.0.end(outcome);
    }

    /// Records a decision.
    pub(crate) fn note(&self, decision: Decision) {
        let mut notes = self.0.notes.lock();
        if notes.decisions.len() < DECISIONS_MAX {
            notes.decisions.push(decision);
        } else {
            notes.more += 1;
        }
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pass({} #{} {})", self.0.controller, self.0.id, self.0.key)
    }
}

// === impl Begun ===

impl Begun {
    fn end(&self, outcome: Outcome) {
        let mut notes = self.notes.lock();
        if std::mem::replace(&mut notes.ended, true) {
            return;
        }
        // Nothing was done, refused or failed.
        if notes.decisions.is_empty() && !outcome.is_failure() {
            return;
        }
        let mut seen = std::mem::take(&mut notes.seen);
        let mut decisions = std::mem::take(&mut notes.decisions);
        let more = notes.more;
        drop(notes);
        // Most passes have one decision, in room for four, which would be half of an entry's size.
        seen.shrink_to_fit();
        decisions.shrink_to_fit();
        self.log.push(Entry {
            pass: self.id,
            time: self.time,
            controller: self.controller,
            key: self.key.to_string(),
            trigger: self.trigger.clone(),
            seen,
            decisions,
            more_decisions: more,
            took: self.started.elapsed(),
            outcome,
        });
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.end(Outcome::Abandoned);
    }
}

/// Returns the text, cut to at most [`TEXT_MAX`] bytes.
pub(crate) fn cut(text: impl fmt::Display) -> String {
    struct Cut(String);
    impl fmt::Write for Cut {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            let fits = beginning(part, TEXT_MAX.saturating_sub(self.0.len()));
            self.0.push_str(fits);
            if fits.len() < part.len() { Err(fmt::Error) } else { Ok(()) }
        }
    }
    let mut cut = Cut(String::new());
    if write!(cut, "{text}").is_err() {
        cut.0.push('…');
    }
    cut.0
}

/// Returns the beginning of a text that fits into this many bytes, without splitting a character.
pub(crate) fn beginning(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Serializes a duration as seconds, with fractions.
fn seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}
