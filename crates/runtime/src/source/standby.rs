//! The keys that a controller remembers while it may not work yet.
//!
//! A standby may wait for months. If its queue took every key, it would hold the keys of everything that ever existed.
//! So:
//!
//! 1. While the queue is closed, sources put nothing into it. When it opens, each source delivers the contents of its
//!    cache, as at a start: every existing object is reconciled.
//! 2. The last [`RECENT_MAX`] keys that events named are remembered, and reconciled first. They are for objects that
//!    were deleted between the last moment of the leader before and the first of this one, and are in no cache.
//! 3. No event is lost in between: a cache shows a change before its event is delivered, so a change that was not taken
//!    is in the state, and later ones are in the queue.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use steersman_base::ObjectKey;

/// Whether a controller works, and the recent keys if it does not.
#[derive(Debug)]
pub(crate) struct Standby {
    is_closed: AtomicBool,
    recent: Mutex<Recent>,
}

/// The recent keys.
#[derive(Debug, Default)]
struct Recent {
    named_at: BTreeMap<ObjectKey, u64>,
    by_time: BTreeMap<u64, ObjectKey>,
    next: u64,
}

/// A lease is lost for 15 seconds at most. In that time 2,048 keys are 130 changes of different objects per second, and
/// never more than 300 kB for a controller.
pub(crate) const RECENT_MAX: usize = 2048;

// === impl Standby ===

impl Standby {
    pub(crate) fn new(is_closed: bool) -> Self {
        Self { is_closed: AtomicBool::new(is_closed), recent: Mutex::default() }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Remembers keys, if the controller does not work yet. Returns whether they need not be enqueued.
    pub(crate) fn keeps<'a>(&self, keys: impl Iterator<Item = &'a ObjectKey>) -> bool {
        if !self.is_closed() {
            return false;
        }
        let mut recent = self.recent.lock();
        // Checked again: it is opened under this lock.
        if !self.is_closed() {
            return false;
        }
        keys.for_each(|key| recent.note(key));
        true
    }

    /// Lets the controller work; returns the recent keys, in order.
    pub(crate) fn open(&self) -> Vec<ObjectKey> {
        let mut recent = self.recent.lock();
        self.is_closed.store(false, Ordering::Release);
        std::mem::take(&mut *recent).by_time.into_values().collect()
    }
}

// === impl Recent ===

impl Recent {
    fn note(&mut self, key: &ObjectKey) {
        let now = self.next;
        self.next += 1;
        if let Some(before) = self.named_at.insert(key.clone(), now) {
            self.by_time.remove(&before);
        }
        self.by_time.insert(now, key.clone());
        if self.by_time.len() > RECENT_MAX
            && let Some((_, oldest)) = self.by_time.pop_first()
        {
            self.named_at.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> ObjectKey {
        ObjectKey::new("a", &number.to_string())
    }

    #[test]
    fn the_last_keys_are_remembered_in_order_and_no_more_than_so_many() {
        let standby = Standby::new(true);
        for number in (0..10_000).chain([9_000]) {
            assert!(standby.keeps([key(number)].iter()));
        }
        let kept = standby.open();
        assert_eq!(kept.len(), RECENT_MAX);
        assert_eq!((&kept[0], &kept[RECENT_MAX - 1]), (&key(10_000 - RECENT_MAX), &key(9_000)));
        assert!(!standby.keeps([key(1)].iter()), "who works takes keys");
        assert!(standby.open().is_empty());
    }
}
