//! The objects that cannot be decoded, so that each is logged once.
//!
//! Pure: an undecodable object goes in, whether it is news comes out.

use std::collections::BTreeMap;

use steersman_base::{ObjectKey, Uid};

use crate::wire::Peeked;

/// The objects that cannot be decoded, as of the last event or list that showed them.
#[derive(Debug, Default)]
pub(super) struct Unreadable {
    /// With the number of the list that showed them last, or that was the last when an event did.
    shown_in: BTreeMap<(ObjectKey, Uid), u64>,
    lists: u64,
}

/// The number of remembered objects. Those beyond are counted and not logged: a thousand lines are enough.
pub(super) const REMEMBERED_MAX: usize = 1024;

// === impl Unreadable ===

impl Unreadable {
    /// Records that a list begins.
    pub(super) fn list_begins(&mut self) {
        self.lists += 1;
    }

    /// Records that a list is complete: objects that it did not show as undecodable were deleted, or can be decoded.
    pub(super) fn list_is_complete(&mut self) {
        let list = self.lists;
        self.shown_in.retain(|_, shown_in| *shown_in == list);
    }

    /// Records an object that cannot be decoded; returns whether it is news.
    pub(super) fn note(&mut self, object: &Peeked) -> bool {
        let id = (object.key.clone(), object.uid.clone());
        if let Some(shown_in) = self.shown_in.get_mut(&id) {
            *shown_in = self.lists;
            return false;
        }
        let has_room = self.shown_in.len() < REMEMBERED_MAX;
        if has_room {
            self.shown_in.insert(id, self.lists);
        }
        has_room
    }

    /// Records that an object can be decoded, or was deleted.
    pub(super) fn forget(&mut self, key: ObjectKey, uid: Uid) {
        if !self.shown_in.is_empty() {
            self.shown_in.remove(&(key, uid));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str) -> Peeked {
        Peeked { key: ObjectKey::new("a", name), uid: name.into(), resource_version: "1".into() }
    }

    #[test]
    fn an_object_is_news_once_until_it_can_be_read_or_is_gone() {
        let mut unreadable = Unreadable::default();
        assert!(unreadable.note(&object("x")));
        assert!(!unreadable.note(&object("x")));
        assert!(unreadable.note(&Peeked { uid: "another".into(), ..object("x") }), "made again");
        unreadable.forget(ObjectKey::new("a", "x"), "x".into());
        assert!(unreadable.note(&object("x")));
        unreadable.list_begins();
        assert!(!unreadable.note(&object("x")));
        unreadable.list_is_complete();
        assert!(!unreadable.note(&object("x")), "the list showed it");
        unreadable.list_begins();
        unreadable.list_is_complete();
        assert!(unreadable.note(&object("x")), "the list did not");
    }

    #[test]
    fn the_memory_is_bounded() {
        let mut unreadable = Unreadable::default();
        let news = (0..REMEMBERED_MAX + 10).filter(|at| unreadable.note(&object(&at.to_string()))).count();
        assert_eq!((news, unreadable.shown_in.len()), (REMEMBERED_MAX, REMEMBERED_MAX));
    }
}
