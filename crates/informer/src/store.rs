//! The local copy of the cluster's state: objects by key, and indexes over them.
//!
//! Guarantees:
//! 1. **One batch, one step.** Readers see a batch (a whole list, for instance) either not at all or complete, in
//!    objects and in every index.
//! 2. **Readers hold no lock.** Every answer is a value of its own; a snapshot costs one pointer per 128 objects, and
//!    can be kept for any time.
//! 3. **Unchanged objects stay.** An object that comes again with the same uid and resourceVersion keeps its `Arc`.
//! 4. **Small.** Keys are not stored beside the objects: 8 bytes for the slot, about 8 for the key table, and 4 to 10
//!    per index in which the object is found.
//! 5. **It knows its version**: [`reached`](Store::reached), bookmarks included. Waiters for a version, or for the
//!    deletion of an object, are woken by the store.

pub mod index;
mod slots;
#[cfg(test)]
mod tests;
mod wait;

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

use hashbrown::HashTable;
use parking_lot::{Mutex, RwLock};
use steersman_base::watch;
use steersman_base::{ObjectKey, ResourceVersion, Uid};
use steersman_model::View;
use tokio::time::Instant;

pub use self::index::Index;
use self::index::{AnyIndex, IndexTable};
use self::slots::Slots;
pub use self::slots::Snapshot;
pub use self::wait::{Advance, Ledger, Shown, Waited, Watcher};
use crate::change::Change;
use crate::delta_fifo::{Delta, Deltas, End, Known, ListInfo, Popped};
use crate::keyed_queue::KeyRef;

/// An indexed store: see the module. Written by one task only, read by any.
pub struct Store<V> {
    inner: RwLock<Inner<V>>,
    /// Locked while objects change or an index is added, so that a list can be built beside what readers see. Contains
    /// the shared indexes.
    writer: Mutex<Vec<SharedIndex>>,
    /// Incremented with every batch: what waiters wait on.
    batches: watch::Sender<u64>,
    watchers: Mutex<Vec<std::sync::Weak<dyn Watcher>>>,
}

/// A shared index: the type of its function, and its position among the indexes.
type SharedIndex = (TypeId, usize);

/// The part that readers see.
pub(crate) struct Inner<V> {
    slots: Slots<V>,
    /// Slots by the hash of their object's key.
    table: HashTable<u32>,
    indexes: Vec<Box<dyn AnyIndex<V>>>,
    /// `None` before the first list.
    reached: Option<ResourceVersion>,
    /// The number of times a list went back to an older version: the server was restored.
    restored: u64,
    /// The time at which the last list was requested.
    listed_since: Option<Instant>,
}

// === impl Store ===

impl<V: View> Store<V> {
    /// Creates an empty store without a list.
    #[must_use]
    pub fn new() -> Self {
        Self {
            inner: RwLock::new(Inner::new(Vec::new(), 0)),
            writer: Mutex::new(Vec::new()),
            batches: watch::Sender::new(0),
            watchers: Mutex::new(Vec::new()),
        }
    }

    /// Returns the object with this key.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<V>> {
        self.get_ref(key.into())
    }

    pub(crate) fn get_ref(&self, key: KeyRef<'_>) -> Option<Arc<V>> {
        let inner = self.inner.read();
        inner.find(key).and_then(|slot| inner.slots.get(slot)).cloned()
    }

    /// Returns a snapshot of all objects, which holds no lock.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<V> {
        self.inner.read().slots.snapshot()
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.read().slots.len()
    }

    /// Whether the store has no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the resourceVersion that the store has reached, bookmarks included; `None` before the first list.
    #[must_use]
    pub fn reached(&self) -> Option<ResourceVersion> {
        self.inner.read().reached.clone()
    }

    /// See [`SharedInformer::index`](crate::SharedInformer::index).
    pub fn index<K, I>(self: &Arc<Self>, keys: impl Fn(&V) -> I + Send + Sync + 'static) -> Index<K, V>
    where
        K: std::hash::Hash + Ord + Send + Sync + 'static,
        I: IntoIterator<Item = K>,
    {
        let _writer = self.writer.lock();
        self.add_index(keys)
    }

    /// See [`SharedInformer::shared_index`](crate::SharedInformer::shared_index).
    pub fn shared_index<K, I, F>(self: &Arc<Self>, keys: F) -> Index<K, V>
    where
        K: std::hash::Hash + Ord + Send + Sync + 'static,
        I: IntoIterator<Item = K>,
        F: Fn(&V) -> I + Send + Sync + 'static,
    {
        // A function pointer or a closure with captured values is not identified by its type.
        const { assert!(size_of::<F>() == 0, "a shared index is identified by its function, which must capture nothing") }
        let mut shared = self.writer.lock();
        let id = TypeId::of::<F>();
        if let Some((_, at)) = shared.iter().find(|(other, _)| *other == id) {
            return Index::new(Arc::clone(self), *at);
        }
        let index = self.add_index(keys);
        shared.push((id, index.place()));
        index
    }

    /// The caller holds the writer's lock.
    fn add_index<K, I>(self: &Arc<Self>, keys: impl Fn(&V) -> I + Send + Sync + 'static) -> Index<K, V>
    where
        K: std::hash::Hash + Ord + Send + Sync + 'static,
        I: IntoIterator<Item = K>,
    {
        let mut table = IndexTable::new(Arc::new(move |object: &V, into: &mut Vec<K>| into.extend(keys(object))));
        let snapshot = self.inner.read().slots.clone();
        snapshot.each(|slot, object| table.put(slot, None, object));
        let mut inner = self.inner.write();
        inner.indexes.push(Box::new(table));
        Index::new(Arc::clone(self), inner.indexes.len() - 1)
    }

    pub(crate) fn read(&self) -> parking_lot::RwLockReadGuard<'_, Inner<V>> {
        self.inner.read()
    }

    /// Applies a batch in one step and returns its changes, if they are `wanted`, and whether a list in it went back to an
    /// older version.
    pub(crate) fn apply(&self, popped: &mut Popped<V>, wanted: bool) -> (Vec<Change<V>>, bool) {
        let _writer = self.writer.lock();
        let mut changes = Changes { changes: Vec::new(), wanted };
        let went_back = if self.is_empty() {
            // The first list is long: build it beside what readers see, and exchange the two.
            let current = self.inner.read();
            let mut inner = Inner::new(current.indexes.iter().map(|index| index.fresh()).collect(), popped.len());
            inner.reached.clone_from(&current.reached);
            inner.restored = current.restored;
            inner.listed_since = current.listed_since;
            drop(current);
            inner.apply(popped.drain(), &mut changes);
            let went_back = inner.finish(popped.reached.as_ref(), popped.list.as_ref());
            *self.inner.write() = inner;
            went_back
        } else {
            // A relist is long too, but little of it is new: only that is done while readers wait.
            let news: Vec<Deltas<V>> = {
                let inner = self.inner.read();
                popped.drain().filter(|deltas| !inner.shows(deltas)).collect()
            };
            let mut inner = self.inner.write();
            inner.apply(news.into_iter(), &mut changes);
            inner.finish(popped.reached.as_ref(), popped.list.as_ref())
        };
        self.batches.send_modify(|batches| *batches += 1);
        (changes.changes, went_back)
    }
}

impl<V: View> Default for Store<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: View> Known<V> for Store<V> {
    fn known(&self, key: &ObjectKey) -> Option<Arc<V>> {
        self.get(key)
    }

    fn each_known(&self, look: &mut dyn FnMut(&Arc<V>)) {
        self.snapshot().iter().for_each(look);
    }
}

impl<V> fmt::Debug for Store<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

// === impl Inner ===

impl<V: View> Inner<V> {
    fn new(indexes: Vec<Box<dyn AnyIndex<V>>>, capacity: usize) -> Self {
        let table = HashTable::with_capacity(capacity);
        Self { slots: Slots::new(), table, indexes, reached: None, restored: 0, listed_since: None }
    }

    pub(crate) fn slots(&self) -> &Slots<V> {
        &self.slots
    }

    /// Returns the memory of the store beside the objects.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        let indexes: usize = self.indexes.iter().map(|index| index.bytes()).sum();
        self.slots.bytes() + self.table.allocation_size() + indexes
    }

    pub(crate) fn index(&self, at: usize) -> Option<&dyn AnyIndex<V>> {
        self.indexes.get(at).map(|index| &**index)
    }

    fn find(&self, key: KeyRef<'_>) -> Option<u32> {
        let is_key = |&slot: &u32| self.slots.get(slot).is_some_and(|held| KeyRef::from(held.meta()) == key);
        self.table.find(key.hash(), is_key).copied()
    }

    /// Whether the store shows the state of these deltas already.
    fn shows(&self, deltas: &Deltas<V>) -> bool {
        let [Delta::Added(new) | Delta::Updated(new) | Delta::Replaced(new)] = deltas.as_slice() else { return false };
        self.find(new.meta().into()).and_then(|slot| self.slots.get(slot)).is_some_and(|held| same_state(held, new))
    }

    fn apply(&mut self, news: impl Iterator<Item = Deltas<V>>, changes: &mut Changes<V>) {
        for delta in news.flatten() {
            match delta {
                Delta::Added(new) | Delta::Updated(new) | Delta::Replaced(new) => self.put(new, changes),
                Delta::Deleted { last, end } => self.remove(last, end, changes),
                Delta::Sync(object) => {
                    if let Some(held) = self.find(object.meta().into()).and_then(|slot| self.slots.get(slot)) {
                        changes.push(|| Change::Updated { old: Arc::clone(held), new: Arc::clone(held) });
                    }
                }
            }
        }
    }

    fn put(&mut self, new: Arc<V>, changes: &mut Changes<V>) {
        let Some(slot) = self.find(new.meta().into()) else {
            let slot = self.slots.insert(Arc::clone(&new));
            let Self { slots, table, indexes, .. } = self;
            table.insert_unique(KeyRef::from(new.meta()).hash(), slot, |&slot| hash_of(slots, slot));
            indexes.iter_mut().for_each(|index| index.put(slot, None, &new));
            return changes.push(|| Change::Added { new, initial: false });
        };
        let Some(held) = self.slots.get(slot) else { return };
        if same_state(held, &new) {
            return;
        }
        let old = self.slots.replace(slot, Arc::clone(&new));
        for index in &mut self.indexes {
            index.put(slot, old.as_deref(), &new);
        }
        match old {
            Some(old) if old.meta().uid == new.meta().uid => changes.push(|| Change::Updated { old, new }),
            Some(last) => {
                // Another object took the name, and the deletion of the first was missed.
                changes.push(|| Change::Deleted { last, end: End::Missed });
                changes.push(|| Change::Added { new, initial: false });
            }
            None => changes.push(|| Change::Added { new, initial: false }),
        }
    }

    fn remove(&mut self, last: Arc<V>, end: End, changes: &mut Changes<V>) {
        let key = KeyRef::from(last.meta());
        let Some(slot) = self.find(key) else { return };
        let is_same = self.slots.get(slot).is_some_and(|held| held.meta().uid == last.meta().uid);
        if !is_same {
            return;
        }
        if let Ok(entry) = self.table.find_entry(key.hash(), |&held| held == slot) {
            entry.remove();
        }
        if let Some(old) = self.slots.remove(slot) {
            self.indexes.iter_mut().for_each(|index| index.remove(slot, &old));
        }
        changes.push(|| Change::Deleted { last, end });
    }

    /// Records the version of a batch; returns whether a list in it went back to an older one.
    fn finish(&mut self, reached: Option<&ResourceVersion>, list: Option<&ListInfo>) -> bool {
        let before = self.reached.as_ref();
        let went_back = list.zip(before).is_some_and(|(list, before)| before.is_newer_than(&list.version));
        self.restored += u64::from(went_back);
        self.listed_since = list.map_or(self.listed_since, |list| list.begun);
        if let Some(reached) = reached {
            self.reached = Some(reached.clone());
        }
        went_back
    }
}

fn hash_of<V: View>(slots: &Slots<V>, slot: u32) -> u64 {
    slots.get(slot).map_or(0, |held| KeyRef::from(held.meta()).hash())
}

/// Whether both are the same state of the same object. Without a version this is unknown.
fn same_state<V: View>(held: &Arc<V>, new: &Arc<V>) -> bool {
    let old = held.meta();
    let new_meta = new.meta();
    Arc::ptr_eq(held, new)
        || (old.uid == new_meta.uid
            && old.resource_version == new_meta.resource_version
            && !new_meta.resource_version.is_empty())
}

// === impl Changes ===

/// Collects the changes of a batch, if they are wanted.
struct Changes<V> {
    changes: Vec<Change<V>>,
    wanted: bool,
}

impl<V> Changes<V> {
    fn push(&mut self, what: impl FnOnce() -> Change<V>) {
        if self.wanted {
            self.changes.push(what());
        }
    }
}

/// Returns the uid that a change shows as deleted or terminating.
pub(crate) fn ended<V: View>(change: &Change<V>) -> Option<&Uid> {
    let meta = change.object().meta();
    (matches!(change, Change::Deleted { .. }) || meta.is_terminating()).then_some(&meta.uid)
}
