//! The decision log: what controllers did, what they refused to do, and why.
//!
//! 1. One entry per pass that wrote, tried to write, refused or failed. A pass that found nothing to do leaves no entry.
//! 2. An entry tells time, controller, key, number of the pass, what woke it, what it saw, each decision with its rule and
//!    what became of its write, how long it took, and how it ended.
//! 3. Bounded in bytes ([`BYTES_MAX`]): the oldest entries go first. A pass with many equal writes keeps the first
//!    [`DECISIONS_MAX`] decisions and counts the others; long texts are cut.
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

/// Entries, oldest first, and what they weigh.
#[derive(Default)]
struct Ring {
    entries: VecDeque<(usize, Arc<Entry>)>,
    bytes: usize,
    dropped: u64,
}

/// One pass of a controller over one key. Cheap to clone; clones are the same pass.
///
/// It becomes an entry when it [ends](Pass::end), or when the last clone goes (a panic, a reconcile that was given up).
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

/// Which entries to show. The default shows all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only of this controller.
    pub controller: Option<String>,
    /// Only of this key, as `namespace/name` or `name`.
    pub key: Option<String>,
    /// Only passes that failed, or in which a write did.
    pub failed_only: bool,
    /// Only the newest so many.
    pub newest: Option<usize>,
}

/// How many bytes a log keeps unless told otherwise: about a thousand passes that wrote something, which is enough to answer
/// "what happened in the last minutes", and small beside any cache.
pub const BYTES_MAX: usize = 512 << 10;
/// How many decisions of one pass are kept: a pass that creates 500 pods says nothing new with the 33rd.
pub const DECISIONS_MAX: usize = 32;
/// How many things seen in one pass are kept.
pub const SEEN_MAX: usize = 32;
/// How long a text may be before it is cut: an admission webhook may say anything.
pub const TEXT_MAX: usize = 1024;

// === impl Log ===

impl Log {
    /// A log of [`BYTES_MAX`].
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self::with_bytes_max(clock, BYTES_MAX)
    }

    /// A log that keeps this many bytes at most; none, if it is zero.
    #[must_use]
    pub fn with_bytes_max(clock: Clock, bytes_max: usize) -> Self {
        Self(Arc::new(Shared { clock, bytes_max, next_pass: AtomicU64::new(1), ring: Mutex::default() }))
    }

    /// Begins a pass. `trigger` says what woke the key, such as `Pod default/web-1 deleted`; empty if nobody knows.
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

    /// The entries that pass the filter, oldest first.
    #[must_use]
    pub fn entries(&self, filter: &Filter) -> Vec<Arc<Entry>> {
        let ring = self.0.ring.lock();
        let newest = ring.entries.iter().rev().map(|(_, entry)| entry).filter(|entry| filter.shows(entry));
        let mut entries: Vec<_> = newest.take(filter.newest.unwrap_or(usize::MAX)).cloned().collect();
        entries.reverse();
        entries
    }

    /// The entries of one key of one controller, oldest first.
    #[must_use]
    pub fn for_key(&self, controller: &str, key: &ObjectKey) -> Vec<Arc<Entry>> {
        let (controller, key) = (Some(controller.to_owned()), Some(key.to_string()));
        self.entries(&Filter { controller, key, ..Filter::default() })
    }

    /// How many bytes the entries take, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.ring.lock().bytes
    }

    /// How many entries have gone to make room.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.0.ring.lock().dropped
    }

    fn push(&self, entry: Entry) {
        let bytes = entry.bytes();
        let mut ring = self.0.ring.lock();
        while ring.bytes + bytes > self.0.bytes_max {
            let Some((gone, _)) = ring.entries.pop_front() else {
                // Larger than the whole log.
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
    /// The number of this pass: unique in its log.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// Which controller's pass it is.
    #[must_use]
    pub fn controller(&self) -> &'static str {
        self.0.controller
    }

    /// Notes something that the decision rests on.
    pub fn saw(&self, what: &'static str, value: impl fmt::Display) {
        let mut notes = self.0.notes.lock();
        if notes.seen.len() < SEEN_MAX {
            notes.seen.push(Seen { what, value: cut(value) });
        }
    }

    /// Notes that something was not done, by which rule, and why not.
    pub fn refused(&self, rule: &'static str, why: impl fmt::Display) {
        self.note(Decision { rule, why: cut(why), write: None, fate: Fate::Refused });
    }

    /// Ends the pass. What later clones note is lost.
    pub fn end(&self, outcome: Outcome) {
        self.0.end(outcome);
    }

    /// Notes a decision.
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
        // Nothing was done, nothing was refused, nothing went wrong.
        if notes.decisions.is_empty() && !outcome.is_failure() {
            return;
        }
        let (mut seen, mut decisions, more) =
            (std::mem::take(&mut notes.seen), std::mem::take(&mut notes.decisions), notes.more);
        drop(notes);
        // Most have one decision, in room for four: half of what an entry would weigh.
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

/// The text, at most [`TEXT_MAX`] bytes of it.
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

/// As much of a text as fits into this many bytes, no character cut in two.
pub(crate) fn beginning(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A duration as JSON has it: seconds, with fractions.
fn seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}
