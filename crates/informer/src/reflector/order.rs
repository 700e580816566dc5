//! Which events come too late to say anything.
//!
//! Pure: what is known and what comes in, a verdict out.

use std::collections::VecDeque;

use std::cmp::Ordering;

use steersman_base::{Meta, ResourceVersion, Uid};

/// Whether an event brings an object or takes it away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Here,
    Gone,
}

/// The objects that went last, so that a late event does not bring one back.
#[derive(Debug, Default)]
pub(super) struct Departed(VecDeque<(Uid, ResourceVersion)>);

/// Enough for what a server might repeat around a reconnect; a uid and a version are some 40 bytes.
const DEPARTED_MAX: usize = 256;

/// Whether what is known is as new as the event, or newer. Versions that cannot be compared are never stale.
pub(super) fn is_stale(direction: Direction, event: &Meta, known: &Meta) -> bool {
    match event.resource_version.compare(&known.resource_version) {
        Some(Ordering::Less) => true,
        // The same state again. A deletion may carry the version of the state that it ends (an object that left a
        // selector); that is news.
        Some(Ordering::Equal) => direction == Direction::Here && event.uid == known.uid,
        Some(Ordering::Greater) | None => false,
    }
}

// === impl Departed ===

impl Departed {
    /// Remembers that an object went with this event.
    pub(super) fn note(&mut self, event: &Meta) {
        if self.0.len() == DEPARTED_MAX {
            self.0.pop_front();
        }
        self.0.push_back((event.uid.clone(), event.resource_version.clone()));
    }

    /// Whether an event is of a time before its object went.
    pub(super) fn is_stale(&self, event: &Meta) -> bool {
        self.0.iter().any(|(uid, gone)| {
            *uid == event.uid && matches!(event.resource_version.compare(gone), Some(Ordering::Less | Ordering::Equal))
        })
    }

    /// A list says what is there; what went before no longer matters.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(uid: &str, version: &str) -> Meta {
        Meta { uid: uid.into(), resource_version: version.into(), ..Meta::default() }
    }

    #[test]
    fn an_event_no_newer_than_what_is_known_is_stale() {
        use Direction::{Gone, Here};
        let check = |direction, event: (&str, &str), known: (&str, &str), want: bool| {
            let verdict = is_stale(direction, &meta(event.0, event.1), &meta(known.0, known.1));
            assert_eq!(verdict, want, "{direction:?} {event:?} against {known:?}");
        };
        check(Here, ("a", "5"), ("a", "4"), false);
        check(Here, ("a", "5"), ("a", "5"), true);
        check(Here, ("a", "5"), ("a", "10"), true);
        check(Gone, ("a", "5"), ("a", "10"), true);
        check(Gone, ("a", "5"), ("a", "5"), false);
        check(Here, ("b", "5"), ("a", "5"), false);
        check(Gone, ("b", "5"), ("a", "6"), true);
        check(Here, ("a", "x"), ("a", "y"), false);
        check(Here, ("a", "x"), ("a", "x"), true);
        check(Here, ("a", ""), ("a", "5"), false);
    }

    #[test]
    fn what_went_does_not_come_back_by_a_late_event() {
        let mut departed = Departed::default();
        departed.note(&meta("a", "7"));
        assert!(departed.is_stale(&meta("a", "6")));
        assert!(departed.is_stale(&meta("a", "7")));
        assert!(!departed.is_stale(&meta("a", "8")), "it fits the selector again");
        assert!(!departed.is_stale(&meta("b", "6")));
        for version in 0..DEPARTED_MAX {
            departed.note(&meta("c", &(100 + version).to_string()));
        }
        assert!(!departed.is_stale(&meta("a", "6")), "the memory is bounded");
        departed.clear();
        assert!(!departed.is_stale(&meta("c", "100")));
    }
}
