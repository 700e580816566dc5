//! Pure: the keys a queue knows, each in one place.
//!
//! A slab of entries, an index from key to slot, and three intrusive lines through the slab: waiting live, waiting in
//! the background, held. An entry is in at most one line, so moving it costs no look-up and no allocation; the
//! one hash look-up of an operation is the one that finds the slot.

use std::ops::{Index, IndexMut};

use hashbrown::HashTable;

use super::backoff::Backoff;
use crate::{Instant, terms::Priority};

/// A queue that has become empty gives its memory back if it has room for more entries than this: the burst of an
/// initial list does not stay. Large enough that steady work never allocates.
const KEPT_WHEN_EMPTY: usize = 1024;

/// The place of an entry in the slab. Valid until the entry is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

/// The result of a look-up: the slot, if the key is known, and the hash, so that it is computed once.
#[derive(Clone, Copy)]
pub(crate) struct Spot {
    pub(super) hash: u64,
    pub(super) slot: Option<Slot>,
}

/// The state of one key.
pub(super) struct Entry<K> {
    /// Absent while the cell is free.
    key: Option<K>,
    /// The lane the key waits in, or will wait in when its time comes.
    pub(super) lane: Priority,
    /// Held, and added again meanwhile: it waits again, in this lane, as soon as it is released.
    pub(super) added_again: Option<Priority>,
    /// Since when it waits; for a key added again while held, since that add.
    pub(super) waits_since: Instant,
    /// The time at which it was last handed out.
    pub(super) started: Option<Instant>,
    pub(super) backoff: Backoff,
    place: Place,
    hash: u64,
    before: Slot,
    behind: Slot,
}

/// The place of a key. A delayed key is idle and has a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Idle,
    Waiting(Priority),
    Held,
}

/// All entries of a queue.
pub(super) struct Entries<K> {
    cells: Vec<Entry<K>>,
    free: Vec<Slot>,
    index: HashTable<Slot>,
    lines: [Line; 3],
}

/// A doubly linked line through the slab.
#[derive(Clone, Copy)]
struct Line {
    first: Slot,
    last: Slot,
    len: usize,
}

const NONE: Slot = Slot(u32::MAX);

// === impl Slot ===

impl Slot {
    #[cfg(test)]
    pub(super) fn new(index: u32) -> Self {
        Self(index)
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

// === impl Place ===

impl Place {
    fn line(self) -> Option<usize> {
        match self {
            Place::Idle => None,
            Place::Waiting(Priority::Live) => Some(0),
            Place::Waiting(Priority::Background) => Some(1),
            Place::Held => Some(2),
        }
    }
}

// === impl Entry ===

impl<K> Entry<K> {
    pub(super) fn key(&self) -> &K {
        match &self.key {
            Some(key) => key,
            None => unreachable!("a slot is used only while its entry lives"),
        }
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }
}

// === impl Line ===

impl Line {
    const EMPTY: Self = Self { first: NONE, last: NONE, len: 0 };
}

// === impl Entries ===

impl<K> Entries<K> {
    pub(super) fn new() -> Self {
        Self { cells: Vec::new(), free: Vec::new(), index: HashTable::new(), lines: [Line::EMPTY; 3] }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.cells.capacity()
    }

    /// Returns the number of entries in a place other than [`Place::Idle`].
    pub(super) fn count(&self, place: Place) -> usize {
        place.line().map_or(0, |line| self.lines[line].len)
    }

    /// The entry that has stood longest in a place other than [`Place::Idle`].
    pub(super) fn first(&self, place: Place) -> Option<Slot> {
        place.line().map(|line| self.lines[line].first).filter(|&slot| slot != NONE)
    }

    /// The slots of all entries in a place other than [`Place::Idle`], in order.
    pub(super) fn slots(&self, place: Place) -> impl Iterator<Item = Slot> {
        std::iter::successors(self.first(place), |&slot| Some(self[slot].behind).filter(|&slot| slot != NONE))
    }

    /// Adds an idle entry for a key that [`find`](Self::find) did not find.
    pub(super) fn insert(&mut self, key: K, hash: u64, lane: Priority, now: Instant) -> Slot {
        let entry = Entry {
            key: Some(key),
            lane,
            added_again: None,
            waits_since: now,
            started: None,
            backoff: Backoff::default(),
            place: Place::Idle,
            hash,
            before: NONE,
            behind: NONE,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self[slot] = entry;
                slot
            }
            None => {
                let next = u32::try_from(self.cells.len()).unwrap_or(u32::MAX);
                assert!(next < u32::MAX, "a work queue holds fewer than 2^32 keys");
                self.cells.push(entry);
                Slot(next)
            }
        };
        let cells = &self.cells;
        self.index.insert_unique(hash, slot, |slot| cells[slot.index()].hash);
        slot
    }

    /// Removes an idle entry, and gives its key back.
    pub(super) fn remove(&mut self, slot: Slot) -> Option<K> {
        let entry = &mut self[slot];
        debug_assert_eq!(entry.place, Place::Idle, "an entry that stands in a line is not removed");
        let hash = entry.hash;
        let key = entry.key.take();
        if let Ok(found) = self.index.find_entry(hash, |&other| other == slot) {
            found.remove();
            self.free.push(slot);
        }
        key
    }

    /// Whether nothing is left in a slab that has grown large.
    pub(super) fn is_oversized(&self) -> bool {
        self.index.is_empty() && self.cells.capacity() > KEPT_WHEN_EMPTY
    }

    /// Moves an entry to the end of another line, or out of all of them.
    pub(super) fn move_to(&mut self, slot: Slot, place: Place) {
        let Entry { place: old, before, behind, .. } = self[slot];
        if let Some(line) = old.line() {
            match before {
                NONE => self.lines[line].first = behind,
                before => self[before].behind = behind,
            }
            match behind {
                NONE => self.lines[line].last = before,
                behind => self[behind].before = before,
            }
            self.lines[line].len -= 1;
        }
        let mut last = NONE;
        if let Some(line) = place.line() {
            last = std::mem::replace(&mut self.lines[line].last, slot);
            match last {
                NONE => self.lines[line].first = slot,
                last => self[last].behind = slot,
            }
            self.lines[line].len += 1;
        }
        let entry = &mut self[slot];
        entry.place = place;
        entry.before = last;
        entry.behind = NONE;
    }
}

impl<K: Eq> Entries<K> {
    /// Looks a key up.
    pub(super) fn find(&self, hash: u64, key: &K) -> Spot {
        let same = |slot: &Slot| {
            let entry = &self[*slot];
            entry.hash == hash && entry.key.as_ref() == Some(key)
        };
        Spot { hash, slot: self.index.find(hash, same).copied() }
    }
}

impl<K> Index<Slot> for Entries<K> {
    type Output = Entry<K>;

    fn index(&self, slot: Slot) -> &Entry<K> {
        &self.cells[slot.index()]
    }
}

impl<K> IndexMut<Slot> for Entries<K> {
    fn index_mut(&mut self, slot: Slot) -> &mut Entry<K> {
        &mut self.cells[slot.index()]
    }
}
