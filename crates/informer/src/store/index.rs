//! Indexes: objects by the keys that a function returns for them.
//!
//! Readers wait while an index changes, and users choose the size of objects: a pod may have 50,000 labels. So the keys
//! of one object are sorted, and never compared pairwise. An index function over data of any number should still bound
//! it: see `service_pods` of the controllers.

use std::any::Any;
use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use foldhash::fast::{FixedState, RandomState};
use hashbrown::{HashMap, HashTable};
use steersman_model::View;

use super::Store;

/// A handle to one index of a store; cheap to clone.
pub struct Index<K, V> {
    store: Arc<Store<V>>,
    at: usize,
    of: PhantomData<fn() -> K>,
}

/// One index, whatever its keys are.
pub(crate) trait AnyIndex<V>: Send + Sync {
    /// Replaces the object `old` in this slot by `new`.
    fn put(&mut self, slot: u32, old: Option<&V>, new: &V);
    fn remove(&mut self, slot: u32, old: &V);
    /// Returns an empty index of the same kind.
    fn fresh(&self) -> Box<dyn AnyIndex<V>>;
    fn as_any(&self) -> &dyn Any;
    #[cfg(test)]
    fn bytes(&self) -> usize;
}

type KeysOf<K, V> = Arc<dyn Fn(&V, &mut Vec<K>) + Send + Sync>;

pub(crate) struct IndexTable<K, V> {
    keys_of: KeysOf<K, V>,
    /// Users choose keys: the seed differs in each process. The order is never visible.
    buckets: HashMap<K, Bucket, RandomState>,
    /// Kept so that computing the keys of an object does not allocate.
    scratch: (Vec<K>, Vec<K>),
}

/// The slots under one key. Many keys have one object (a pod of a Job), few have very many (a namespace).
pub(crate) enum Bucket {
    One(u32),
    Few(Vec<u32>),
    /// Removal from a long list would be a search through all of it.
    Many(Box<HashTable<u32>>),
}

/// Up to this length a bucket is searched linearly.
const FEW_MAX: usize = 64;
/// More capacity than this is freed: an object with very many keys is rare.
const SCRATCH_KEYS_KEPT: usize = 64;
/// Slots are our own numbers, and the order of a long bucket is visible: the same history gives the same order.
const SLOT_HASHER: FixedState = FixedState::with_seed(1);

// === impl Index ===

impl<K: Hash + Eq + Send + Sync + 'static, V: View> Index<K, V> {
    pub(super) fn new(store: Arc<Store<V>>, at: usize) -> Self {
        Self { store, at, of: PhantomData }
    }

    pub(super) fn place(&self) -> usize {
        self.at
    }

    /// Returns the objects under this key, in no particular order.
    #[must_use]
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Vec<Arc<V>>
    where
        K: Borrow<Q>,
    {
        let inner = self.store.read();
        let Some(bucket) = self.table(&inner).and_then(|table| table.buckets.get(key)) else {
            return Vec::new();
        };
        let mut found = Vec::with_capacity(bucket.len());
        bucket.each(|slot| found.extend(inner.slots().get(slot).cloned()));
        found
    }

    /// Returns the number of objects under this key.
    #[must_use]
    pub fn count<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        let inner = self.store.read();
        self.table(&inner).and_then(|table| table.buckets.get(key)).map_or(0, Bucket::len)
    }

    /// Returns every key with an object, sorted.
    #[must_use]
    pub fn keys(&self) -> Vec<K>
    where
        K: Clone + Ord,
    {
        let mut keys: Vec<K> = {
            let inner = self.store.read();
            self.table(&inner).map_or_else(Vec::new, |table| table.buckets.keys().cloned().collect())
        };
        keys.sort_unstable();
        keys
    }

    fn table<'a>(&self, inner: &'a super::Inner<V>) -> Option<&'a IndexTable<K, V>> {
        inner.index(self.at)?.as_any().downcast_ref()
    }
}

impl<K, V> Clone for Index<K, V> {
    fn clone(&self) -> Self {
        Self { store: Arc::clone(&self.store), at: self.at, of: PhantomData }
    }
}

impl<K, V> fmt::Debug for Index<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("at", &self.at).finish_non_exhaustive()
    }
}

// === impl IndexTable ===

impl<K: Hash + Ord + Send + Sync + 'static, V: View> IndexTable<K, V> {
    pub(super) fn new(keys_of: KeysOf<K, V>) -> Self {
        Self { keys_of, buckets: HashMap::default(), scratch: (Vec::new(), Vec::new()) }
    }

    fn read_keys(keys_of: &KeysOf<K, V>, object: &V, into: &mut Vec<K>) {
        into.clear();
        if catch_unwind(AssertUnwindSafe(|| keys_of(object, into))).is_err() {
            tracing::error!(object = %object.meta().key(), "an index function panicked; the object is not indexed");
            into.clear();
        }
        // A function may return a key twice; the object is found once.
        into.sort_unstable();
        into.dedup();
    }

    /// Keeps capacity for the keys of the next object, and none of the keys.
    fn keep_room(&mut self, mut before: Vec<K>, mut after: Vec<K>) {
        for keys in [&mut before, &mut after] {
            keys.clear();
            keys.shrink_to(SCRATCH_KEYS_KEPT);
        }
        self.scratch = (before, after);
    }

    fn insert(&mut self, key: K, slot: u32) {
        match self.buckets.entry(key) {
            hashbrown::hash_map::Entry::Occupied(mut bucket) => bucket.get_mut().insert(slot),
            hashbrown::hash_map::Entry::Vacant(place) => {
                place.insert(Bucket::One(slot));
            }
        }
    }

    fn take(&mut self, key: &K, slot: u32) {
        if self.buckets.get_mut(key).is_some_and(|bucket| bucket.remove(slot)) {
            self.buckets.remove(key);
        }
    }
}

impl<K: Hash + Ord + Send + Sync + 'static, V: View> AnyIndex<V> for IndexTable<K, V> {
    fn put(&mut self, slot: u32, old: Option<&V>, new: &V) {
        let (mut before, mut after) = std::mem::take(&mut self.scratch);
        before.clear();
        if let Some(old) = old {
            Self::read_keys(&self.keys_of, old, &mut before);
        }
        Self::read_keys(&self.keys_of, new, &mut after);
        if before != after {
            let is_in = |keys: &[K], key: &K| keys.binary_search(key).is_ok();
            before.iter().filter(|key| !is_in(&after, key)).for_each(|key| self.take(key, slot));
            after.drain(..).filter(|key| !is_in(&before, key)).for_each(|key| self.insert(key, slot));
        }
        self.keep_room(before, after);
    }

    fn remove(&mut self, slot: u32, old: &V) {
        let (mut before, after) = std::mem::take(&mut self.scratch);
        Self::read_keys(&self.keys_of, old, &mut before);
        before.drain(..).for_each(|key| self.take(&key, slot));
        self.keep_room(before, after);
    }

    fn fresh(&self) -> Box<dyn AnyIndex<V>> {
        Box::new(Self::new(Arc::clone(&self.keys_of)))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.buckets.allocation_size() + self.buckets.values().map(Bucket::bytes).sum::<usize>()
    }
}

// === impl Bucket ===

impl Bucket {
    fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Few(slots) => slots.len(),
            Self::Many(slots) => slots.len(),
        }
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        match self {
            Self::One(_) => 0,
            Self::Few(slots) => slots.capacity() * size_of::<u32>(),
            Self::Many(slots) => size_of::<HashTable<u32>>() + slots.allocation_size(),
        }
    }

    fn each(&self, mut look: impl FnMut(u32)) {
        match self {
            Self::One(slot) => look(*slot),
            Self::Few(slots) => slots.iter().for_each(|&slot| look(slot)),
            Self::Many(slots) => slots.iter().for_each(|&slot| look(slot)),
        }
    }

    /// Adds a slot that is not in the bucket.
    fn insert(&mut self, slot: u32) {
        match self {
            Self::One(first) => *self = Self::Few(vec![*first, slot]),
            Self::Few(slots) if slots.len() < FEW_MAX => slots.push(slot),
            Self::Few(slots) => {
                let mut many = HashTable::with_capacity(slots.len() + 1);
                slots.iter().chain([&slot]).for_each(|&slot| {
                    many.insert_unique(hash_slot(slot), slot, |&slot| hash_slot(slot));
                });
                *self = Self::Many(Box::new(many));
            }
            Self::Many(slots) => {
                slots.insert_unique(hash_slot(slot), slot, |&slot| hash_slot(slot));
            }
        }
    }

    /// Removes a slot; returns whether the bucket is empty now.
    fn remove(&mut self, slot: u32) -> bool {
        match self {
            Self::One(held) => *held == slot,
            Self::Few(slots) => {
                if let Some(at) = slots.iter().position(|&held| held == slot) {
                    slots.swap_remove(at);
                }
                if let [only] = slots[..] {
                    *self = Self::One(only);
                }
                false
            }
            Self::Many(slots) => {
                if let Ok(held) = slots.find_entry(hash_slot(slot), |&held| held == slot) {
                    held.remove();
                }
                if slots.len() <= FEW_MAX / 2 {
                    *self = Self::Few(slots.iter().copied().collect());
                }
                false
            }
        }
    }
}

fn hash_slot(slot: u32) -> u64 {
    SLOT_HASHER.hash_one(slot)
}
