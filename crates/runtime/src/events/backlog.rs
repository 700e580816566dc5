//! Pure: the events to send, in order.
//!
//! 1. A change of an event that has not been sent yet is merged into it: one request less, and nothing lost.
//! 2. While it [is long](Backlog::is_long), the server is slower than the sources; similar events are then [joined at
//!    once](super::correlate), so that a flood needs few requests.

use std::collections::VecDeque;

use super::correlate::Verdict;

/// The events to send.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    verdicts: VecDeque<Verdict>,
}

/// The length from which on it is long. One object alone does not reach it: it has at most ten events of a kind before
/// they are joined. The events of manual actions are sent in full.
pub(super) const LONG: usize = 50;
/// The maximum length; other events wait in the queue of recorded events. Beyond [`LONG`] there is room for fifty
/// objects in a flood, each with one event of its own and a joined one.
pub(super) const AT_HAND_MAX: usize = 150;

// === impl Backlog ===

impl Backlog {
    /// Whether the server is slower than the sources.
    pub(super) fn is_long(&self) -> bool {
        self.verdicts.len() > LONG
    }

    /// Whether no more events should be added.
    pub(super) fn is_full(&self) -> bool {
        self.verdicts.len() >= AT_HAND_MAX
    }

    /// Adds an event, or merges it with one that waits.
    pub(super) fn push(&mut self, verdict: Verdict) {
        let Some(id) = verdict.id() else { return };
        let waiting = match &verdict {
            Verdict::Patch(_) => self.verdicts.iter_mut().rev().find(|waiting| waiting.id() == Some(id)),
            _ => None,
        };
        match (waiting, verdict) {
            (Some(Verdict::Create(old)), Verdict::Patch(newer)) => *old = newer,
            (Some(waiting), verdict) => *waiting = verdict,
            (None, verdict) => self.verdicts.push_back(verdict),
        }
    }

    /// Returns the next event to send.
    pub(super) fn pop(&mut self) -> Option<Verdict> {
        self.verdicts.pop_front()
    }
}
