//! The rule for stale watch events.
//!
//! Pure: the known object and the event in, a verdict out.

use std::cmp::Ordering;
use std::collections::VecDeque;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use steersman_base::{Meta, ResourceVersion, Uid};

/// Whether an event shows an object or deletes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Here,
    Gone,
}

/// The objects that were deleted last, so that a late event does not bring one back.
#[derive(Debug, Default)]
pub(super) struct Departed {
    /// The version of each deletion, and its number. Only looked up, so the order of the hash table is never seen.
    versions: HashMap<Uid, (ResourceVersion, u64), RandomState>,
    /// Uids with the number of their deletion, oldest first.
    order: VecDeque<(Uid, u64)>,
    next: u64,
}

/// Enough for what a server may repeat around a reconnect; a uid and a version are some 40 bytes.
const DEPARTED_MAX: usize = 256;

/// Whether the event is older than the known object of this name, or the same state again. Versions that cannot be
/// compared are never stale.
pub(super) fn is_stale(direction: Direction, uid: &Uid, version: &ResourceVersion, known: &Meta) -> bool {
    match version.compare(&known.resource_version) {
        Some(Ordering::Less) => true,
        // The same state again. A deletion may have the version of the state that it ends (an object that left a
        // selector); that is news.
        Some(Ordering::Equal) => direction == Direction::Here && *uid == known.uid && !version.is_empty(),
        Some(Ordering::Greater) | None => false,
    }
}

// === impl Departed ===

impl Departed {
    /// Remembers the deletion of an object.
    pub(super) fn note(&mut self, uid: &Uid, version: &ResourceVersion) {
        if self.order.len() == DEPARTED_MAX
            && let Some((oldest, number)) = self.order.pop_front()
            && self.versions.get(&oldest).is_some_and(|(_, last)| *last == number)
        {
            self.versions.remove(&oldest);
        }
        self.versions.insert(uid.clone(), (version.clone(), self.next));
        self.order.push_back((uid.clone(), self.next));
        self.next += 1;
    }

    /// Whether an event is no newer than the deletion of its object.
    pub(super) fn is_stale(&self, uid: &Uid, version: &ResourceVersion) -> bool {
        let is_late = |(gone, _): &(ResourceVersion, u64)| {
            matches!(version.compare(gone), Some(Ordering::Less | Ordering::Equal))
        };
        self.versions.get(uid).is_some_and(is_late)
    }

    /// Forgets all deletions: a list shows what exists.
    pub(super) fn clear(&mut self) {
        self.versions.clear();
        self.order.clear();
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
            let verdict = is_stale(direction, &event.0.into(), &event.1.into(), &meta(known.0, known.1));
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
    fn a_late_event_does_not_bring_a_deleted_object_back() {
        let mut departed = Departed::default();
        departed.note(&"a".into(), &"7".into());
        assert!(departed.is_stale(&"a".into(), &"6".into()));
        assert!(departed.is_stale(&"a".into(), &"7".into()));
        assert!(!departed.is_stale(&"a".into(), &"8".into()), "it fits the selector again");
        assert!(!departed.is_stale(&"b".into(), &"6".into()));
        for version in 0..DEPARTED_MAX {
            departed.note(&"c".into(), &(100 + version).to_string().as_str().into());
        }
        assert!(!departed.is_stale(&"a".into(), &"6".into()), "the memory is bounded");
        departed.clear();
        assert!(!departed.is_stale(&"c".into(), &"100".into()));
    }

    #[test]
    fn a_second_deletion_of_a_uid_is_remembered_when_the_first_is_dropped() {
        let mut departed = Departed::default();
        departed.note(&"a".into(), &"7".into());
        departed.note(&"a".into(), &"300".into());
        for other in 0..DEPARTED_MAX - 1 {
            departed.note(&format!("u-{other}").as_str().into(), &"400".into());
        }
        assert!(departed.is_stale(&"a".into(), &"299".into()));
    }
}
