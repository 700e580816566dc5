//! Pure: what is to be sent, the next one first.
//!
//! 1. What changes an event that has not been sent yet, changes it here: one request less, and nothing lost.
//! 2. While it [is long](Backlog::is_long), the server is slower than the sources; alike events are then
//!    [joined at once](super::correlate), so that a flood is told of in few requests.

use std::collections::VecDeque;

use super::correlate::Verdict;

/// What is to be sent.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    verdicts: VecDeque<Verdict>,
}

/// From here on it is long. One object alone does not make it so: it has at most ten events of a sort before they are joined.
/// What people do by hand is told in full.
pub(super) const LONG: usize = 50;
/// How many are at hand at most; others wait in the queue of what was recorded. Beyond [`LONG`] there is room for fifty objects
/// in a flood, with one event of their own and a joined one each.
pub(super) const AT_HAND_MAX: usize = 150;

// === impl Backlog ===

impl Backlog {
    /// Whether the server is slower than the sources.
    pub(super) fn is_long(&self) -> bool {
        self.verdicts.len() > LONG
    }

    /// Whether no more should be taken in.
    pub(super) fn is_full(&self) -> bool {
        self.verdicts.len() >= AT_HAND_MAX
    }

    /// Takes in what is to be done about one more event.
    pub(super) fn push(&mut self, verdict: Verdict) {
        let Some(id) = verdict.id() else { return };
        let waiting = match &verdict {
            Verdict::Patch { .. } => self.verdicts.iter_mut().rev().find(|waiting| waiting.id() == Some(id)),
            _ => None,
        };
        match (waiting, verdict) {
            (Some(Verdict::Create { body: old, .. }), Verdict::Patch { body, .. }) => *old = body,
            (Some(waiting), verdict) => *waiting = verdict,
            (None, verdict) => self.verdicts.push_back(verdict),
        }
    }

    /// What is to be sent next.
    pub(super) fn pop(&mut self) -> Option<Verdict> {
        self.verdicts.pop_front()
    }
}
