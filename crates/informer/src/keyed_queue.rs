//! A first-in, first-out queue with at most one entry per object key.
//!
//! The delta FIFO and every subscriber's backlog use it. Entries know their key, so it is not stored twice: beside the
//! entry, an object costs five bytes of hash table.
//!
//! 1. Order is that of the first push of a key; changing an entry in place does not move it.
//! 2. Memory follows the current length: gaps left by [`remove`](KeyedQueue::remove) are closed before they outnumber
//!    the entries, and an emptied queue frees its space.

use std::collections::VecDeque;
use std::collections::vec_deque;
use std::fmt;
use std::hash::BuildHasher;
use std::iter::Flatten;
use std::sync::LazyLock;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use steersman_base::{Meta, ObjectKey};

/// Namespace and name, borrowed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KeyRef<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

/// An entry that knows the key of its object.
pub(crate) trait Keyed {
    fn key(&self) -> KeyRef<'_>;
}

/// A queue with at most one entry per key: see the [module](self).
pub(crate) struct KeyedQueue<E> {
    slots: VecDeque<Option<E>>,
    /// The number of the first slot. Numbers wrap: only their distance to this one counts.
    first: u32,
    /// The numbers of the slots that hold an entry, by the hash of its key.
    table: HashTable<u32>,
}

/// Users choose names: the seed differs in each process, or names could be made that all collide. Tables are only
/// looked up, so no order depends on it, and a simulation replays. (A seed from the simulation's own random numbers, at
/// the first use in a process, would make the first world differ from later ones.)
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::default);
/// A queue that once was longer than this frees its space when it is empty.
const KEEP_CAPACITY_MAX: usize = 1024;
/// Fewer gaps than this are not worth closing.
const GAPS_MIN: usize = 64;

// === impl KeyRef ===

impl KeyRef<'_> {
    pub(crate) fn hash(self) -> u64 {
        HASHER.hash_one(self)
    }
}

impl<'a> From<&'a ObjectKey> for KeyRef<'a> {
    fn from(key: &'a ObjectKey) -> Self {
        Self { namespace: &key.namespace, name: &key.name }
    }
}

impl<'a> From<&'a Meta> for KeyRef<'a> {
    fn from(meta: &'a Meta) -> Self {
        Self { namespace: &meta.namespace, name: &meta.name }
    }
}

// === impl KeyedQueue ===

impl<E: Keyed> KeyedQueue<E> {
    pub(crate) fn new() -> Self {
        Self::with_capacity(0)
    }

    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { slots: VecDeque::with_capacity(capacity), first: 0, table: HashTable::with_capacity(capacity) }
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    pub(crate) fn contains(&self, key: KeyRef<'_>) -> bool {
        self.find(key).is_some()
    }

    pub(crate) fn get(&self, key: KeyRef<'_>) -> Option<&E> {
        self.slots[self.find(key)?].as_ref()
    }

    /// Returns the entry, to be changed in place. Its key must not change.
    pub(crate) fn get_mut(&mut self, key: KeyRef<'_>) -> Option<&mut E> {
        let at = self.find(key)?;
        self.slots[at].as_mut()
    }

    /// Appends an entry whose key is not queued yet.
    pub(crate) fn push_back(&mut self, entry: E) {
        debug_assert!(!self.contains(entry.key()), "a key is queued once");
        let Self { slots, first, table } = self;
        let number = first.wrapping_add(u32::try_from(slots.len()).unwrap_or(u32::MAX));
        let hash = entry.key().hash();
        slots.push_back(Some(entry));
        table.insert_unique(hash, number, |&number| hash_of(slots, *first, number));
    }

    pub(crate) fn pop_front(&mut self) -> Option<E> {
        loop {
            let front = self.slots.pop_front()?;
            let number = self.first;
            self.first = self.first.wrapping_add(1);
            let Some(entry) = front else { continue };
            if let Ok(held) = self.table.find_entry(entry.key().hash(), |&held| held == number) {
                held.remove();
            }
            self.settle();
            return Some(entry);
        }
    }

    pub(crate) fn remove(&mut self, key: KeyRef<'_>) -> Option<E> {
        let at = self.find(key)?;
        let number = self.number(at);
        if let Ok(held) = self.table.find_entry(key.hash(), |&held| held == number) {
            held.remove();
        }
        let entry = self.slots[at].take();
        self.settle();
        entry
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &E> {
        self.slots.iter().flatten()
    }

    /// Returns all entries, first to last; the queue is empty afterwards.
    pub(crate) fn drain(&mut self) -> Flatten<vec_deque::IntoIter<Option<E>>> {
        std::mem::take(self).slots.into_iter().flatten()
    }

    fn find(&self, key: KeyRef<'_>) -> Option<usize> {
        if self.table.is_empty() {
            return None;
        }
        let is_key = |&number: &u32| {
            self.slots[number.wrapping_sub(self.first) as usize].as_ref().is_some_and(|entry| entry.key() == key)
        };
        self.table.find(key.hash(), is_key).map(|number| number.wrapping_sub(self.first) as usize)
    }

    fn number(&self, at: usize) -> u32 {
        self.first.wrapping_add(u32::try_from(at).unwrap_or(u32::MAX))
    }

    /// Keeps guarantee 2 after an entry was removed.
    fn settle(&mut self) {
        if self.table.is_empty() {
            self.slots.clear();
            if self.slots.capacity() > KEEP_CAPACITY_MAX {
                *self = Self::new();
            }
            return;
        }
        let gaps = self.slots.len() - self.table.len();
        if gaps > GAPS_MIN && gaps > self.table.len() {
            let mut closed = Self::with_capacity(self.table.len());
            self.drain().for_each(|entry| closed.push_back(entry));
            *self = closed;
        }
    }
}

fn hash_of<E: Keyed>(slots: &VecDeque<Option<E>>, first: u32, number: u32) -> u64 {
    slots[number.wrapping_sub(first) as usize].as_ref().map_or(0, |entry| entry.key().hash())
}

impl<E: Keyed> Default for KeyedQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Keyed + fmt::Debug> fmt::Debug for KeyedQueue<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Entry(String, u32);

    impl Keyed for Entry {
        fn key(&self) -> KeyRef<'_> {
            KeyRef { namespace: "ns", name: &self.0 }
        }
    }

    #[test]
    fn gaps_never_outnumber_the_entries_for_long() {
        let mut queue = KeyedQueue::new();
        queue.push_back(Entry("stays".into(), 0));
        for n in 0..10_000 {
            let name = format!("n{n}");
            queue.push_back(Entry(name.clone(), n));
            assert_eq!(queue.remove(KeyRef { namespace: "ns", name: &name }).unwrap().1, n);
            assert!(queue.slots.len() <= GAPS_MIN + 2, "{} slots for one entry", queue.slots.len());
        }
        assert_eq!(queue.pop_front().unwrap().0, "stays");
    }

    proptest! {
        #[test]
        fn it_behaves_like_a_plain_list(steps in prop::collection::vec((0u8..4, 0u8..20, any::<u32>()), 1..400)) {
            let mut queue = KeyedQueue { first: u32::MAX - 50, ..KeyedQueue::new() };
            let mut model: VecDeque<Entry> = VecDeque::new();
            for (what, name, value) in steps {
                let name = name.to_string();
                let key = KeyRef { namespace: "ns", name: &name };
                let at = model.iter().position(|entry| entry.0 == name);
                match (what, at) {
                    (0, None) => {
                        queue.push_back(Entry(name.clone(), value));
                        model.push_back(Entry(name.clone(), value));
                    }
                    (0, Some(at)) => {
                        queue.get_mut(key).unwrap().1 = value;
                        model[at].1 = value;
                    }
                    (1, at) => prop_assert_eq!(queue.remove(key), at.and_then(|at| model.remove(at))),
                    (2, _) => prop_assert_eq!(queue.pop_front(), model.pop_front()),
                    (_, at) => prop_assert_eq!(queue.get(key), at.map(|at| &model[at])),
                }
                prop_assert_eq!(queue.len(), model.len());
                prop_assert!(queue.iter().eq(&model));
            }
            prop_assert!(queue.drain().eq(model));
            prop_assert!(queue.is_empty());
        }
    }
}
