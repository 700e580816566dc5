//! The engine of an ephemeral server: everything in memory, behind one lock.
//!
//! 1. Under the lock, a list copies pointers and counts; what a filter says, it says afterwards.
//! 2. Past revisions are not kept as copies: a list at a revision is the present, with what the history says undone.
//! 3. History costs what it keeps alive: the states before, and the last states of what is gone. What is there anyway is
//!    not counted.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use parking_lot::RwLock;
use steersman_base::watch;
use steersman_base::{Clock, Istr, ObjectKey};

use super::{
    Change, Collection, Event, EventKind, Events, Expect, HISTORY_BYTES_MAX, HISTORY_BYTES_TOTAL_MAX, Object, Page,
    Range, Storage, Unavailable, Wanted, Write, WriteConflict,
};

/// A [`Storage`] that is gone with the process.
#[derive(Debug)]
pub struct Memory {
    clock: Clock,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    revision: u64,
    collections: BTreeMap<Istr, Contents>,
    /// The bytes that the histories of all collections hold.
    history_bytes: usize,
    /// Up to here there may have been collections that nobody knows any more.
    forgotten: u64,
}

#[derive(Debug)]
struct Contents {
    objects: BTreeSet<Slot>,
    /// The number of objects in each namespace.
    counts: BTreeMap<Istr, usize>,
    history: VecDeque<Arc<Event>>,
    history_bytes: usize,
    /// Up to here the history may lack events.
    compacted: u64,
    /// The times at which objects expire: one entry for each, moved whenever it is written.
    expiries: BTreeSet<(i64, ObjectKey)>,
    expiry_of: BTreeMap<ObjectKey, i64>,
    signal: watch::Sender<u64>,
}

/// An object at its key: the key is the object's own, so that it is kept once.
#[derive(Debug)]
struct Slot(Arc<Object>);

// === impl Memory ===

impl Memory {
    /// An empty store. Revision 1 is the empty store, as in etcd.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, state: RwLock::new(State { revision: 1, ..State::default() }) }
    }

    /// Returns the number of expiries, the bytes of history, and the number of collections.
    #[cfg(test)]
    pub(super) fn held(&self) -> (usize, usize, usize) {
        let state = self.state.read();
        let expiries = state.collections.values().map(|contents| contents.expiries.len()).sum();
        (expiries, state.history_bytes, state.collections.len())
    }

    /// Lets objects go whose time is over.
    fn expire(&self, collection: &Collection) {
        if collection.ttl_seconds.is_none() {
            return;
        }
        let now = self.clock.now().unix();
        let is_due = |contents: &Contents| contents.due(now).is_some();
        if !self.state.read().collections.get(&collection.name).is_some_and(is_due) {
            return;
        }
        let mut state = self.state.write();
        while let Some(contents) = state.collections.get_mut(&collection.name)
            && let Some(key) = contents.due(now)
        {
            let held = contents.get(&key);
            contents.disarm(&key);
            if let Some(held) = held {
                let _ = state.commit(collection, &key, Expect::Revision(held.revision), Change::Delete(None), None);
            }
        }
    }
}

impl Storage for Memory {
    fn revision(&self) -> u64 {
        self.state.read().revision
    }

    fn get(&self, collection: &Collection, key: &ObjectKey) -> Option<Arc<Object>> {
        self.expire(collection);
        self.state.read().collections.get(&collection.name)?.get(key)
    }

    fn list(
        &self,
        collection: &Collection,
        range: &Range<'_>,
        wanted: Option<&Wanted<'_>>,
    ) -> Result<Page, Unavailable> {
        self.expire(collection);
        // A filter is asked when writers can go on again, so its limit counts later.
        let limit = if wanted.is_some() { 0 } else { range.limit };
        let mut page = self.state.read().page(collection, range, limit)?;
        if let Some(wanted) = wanted {
            let limit = if range.limit == 0 { usize::MAX } else { range.limit };
            let mut matching = page.objects.into_iter().filter(|object| wanted(object));
            page.objects = matching.by_ref().take(limit).collect();
            page.remaining = usize::from(matching.next().is_some());
        }
        Ok(page)
    }

    fn commit(
        &self,
        collection: &Collection,
        key: &ObjectKey,
        expect: Expect,
        change: Change,
    ) -> Result<Arc<Object>, WriteConflict> {
        self.expire(collection);
        let now = self.clock.now().unix();
        let expiry = collection.ttl_seconds.map(|seconds| now + seconds);
        self.state.write().commit(collection, key, expect, change, expiry)
    }

    fn commit_all(&self, writes: Vec<Write>) -> Result<Vec<Arc<Object>>, (usize, WriteConflict)> {
        writes.iter().for_each(|write| self.expire(&write.collection));
        let now = self.clock.now().unix();
        let mut state = self.state.write();
        for (at, write) in writes.iter().enumerate() {
            let held = state.collections.get(&write.collection.name).and_then(|contents| contents.get(&write.key));
            check(held.as_ref(), write.expect).map_err(|conflict| (at, conflict))?;
        }
        let commit = |(at, write): (usize, Write)| {
            let Write { collection, key, expect, change } = write;
            let expiry = collection.ttl_seconds.map(|seconds| now + seconds);
            state.commit(&collection, &key, expect, change, expiry).map_err(|conflict| (at, conflict))
        };
        writes.into_iter().enumerate().map(commit).collect()
    }

    fn events(&self, collection: &Collection, after: u64, events_max: usize) -> Result<Events, Unavailable> {
        self.expire(collection);
        let state = self.state.read();
        if after > state.revision {
            return Err(Unavailable::Future { current: state.revision });
        }
        let Some(contents) = state.collections.get(&collection.name) else {
            return if after < state.forgotten {
                Err(Unavailable::Compacted { oldest: state.forgotten })
            } else {
                Ok(Events { events: Vec::new(), reached: state.revision })
            };
        };
        if after < contents.compacted {
            return Err(Unavailable::Compacted { oldest: contents.compacted });
        }
        let from = contents.history.partition_point(|event| event.revision <= after);
        let events: Vec<_> = contents.history.range(from..).take(events_max).cloned().collect();
        let reached = if from + events.len() < contents.history.len() {
            events.last().map_or(after, |event| event.revision)
        } else {
            state.revision
        };
        Ok(Events { events, reached })
    }

    fn changes(&self, collection: &Collection) -> watch::Receiver<u64> {
        self.state.write().collection(collection).signal.subscribe()
    }

    fn compact(&self, revision: u64) {
        let mut state = self.state.write();
        for contents in state.collections.values_mut() {
            while contents.history.front().is_some_and(|event| event.revision <= revision) {
                contents.forget_oldest();
            }
            contents.compacted = contents.compacted.max(revision);
        }
        state.history_bytes = state.collections.values().map(|contents| contents.history_bytes).sum();
    }

    fn forget(&self, collection: &Collection) {
        let mut state = self.state.write();
        if state.collections.get(&collection.name).is_some_and(|contents| contents.objects.is_empty())
            && let Some(contents) = state.collections.remove(&collection.name)
        {
            state.history_bytes -= contents.history_bytes;
            // Whoever still watches it gets the end of the stream.
            contents.signal.send_replace(state.revision);
            state.forgotten = state.revision;
        }
    }
}

// === impl State ===

impl State {
    fn collection(&mut self, collection: &Collection) -> &mut Contents {
        let compacted = self.forgotten;
        self.collections.entry(collection.name.clone()).or_insert_with(|| Contents::new(compacted))
    }

    /// The objects of a range, at most `limit` unless that is 0, and how many are left.
    fn page(&self, collection: &Collection, range: &Range<'_>, limit: usize) -> Result<Page, Unavailable> {
        let at = range.at.unwrap_or(self.revision);
        if at > self.revision {
            return Err(Unavailable::Future { current: self.revision });
        }
        let mut page = Page { objects: Vec::new(), revision: at, remaining: 0 };
        let Some(contents) = self.collections.get(&collection.name) else {
            let is_forgotten = at < self.forgotten;
            return if is_forgotten { Err(Unavailable::Compacted { oldest: self.forgotten }) } else { Ok(page) };
        };
        if at < contents.compacted {
            return Err(Unavailable::Compacted { oldest: contents.compacted });
        }
        let undone = contents.undone(at);
        // Of the first page, what is left is known without a look at it.
        let total = (range.from.is_none() && undone.is_empty()).then(|| contents.count(range.namespace));
        contents.walk(range, undone, &mut |object| {
            if limit == 0 || page.objects.len() < limit {
                page.objects.push(Arc::clone(object));
            } else if total.is_some() {
                return ControlFlow::Break(());
            } else {
                page.remaining += 1;
            }
            ControlFlow::Continue(())
        });
        if let Some(total) = total {
            page.remaining = total - page.objects.len();
        }
        Ok(page)
    }

    fn commit(
        &mut self,
        collection: &Collection,
        key: &ObjectKey,
        expect: Expect,
        change: Change,
        expiry: Option<i64>,
    ) -> Result<Arc<Object>, WriteConflict> {
        let mut revision = self.revision;
        let contents = self.collection(collection);
        let history_bytes = contents.history_bytes;
        let mut before = contents.get(key);
        check(before.as_ref(), expect)?;
        let (last, is_deletion) = match change {
            Change::Put(state) => (Some(state), false),
            Change::Delete(last) => (last, true),
        };
        if let Some(state) = last {
            revision += 1;
            let kind = if before.is_some() { EventKind::Modified } else { EventKind::Added };
            let object = Arc::new(Object::seal(key.clone(), state, kind, revision));
            contents.put(&object);
            contents
                .remember(Event { revision, before, object: Arc::clone(&object), kind }, collection.history_events_max);
            if let Some(at) = expiry {
                contents.disarm(key);
                contents.expiries.insert((at, key.clone()));
                contents.expiry_of.insert(key.clone(), at);
            }
            before = Some(object);
        }
        if is_deletion && let Some(held) = &before {
            revision += 1;
            let object = Arc::new(held.deleted_at(revision));
            contents.remove(key);
            let event =
                Event { revision, before: before.clone(), object: Arc::clone(&object), kind: EventKind::Deleted };
            contents.remember(event, collection.history_events_max);
            before = Some(object);
        }
        contents.signal.send_replace(revision);
        let history_bytes_now = contents.history_bytes;
        self.revision = revision;
        self.history_bytes = self.history_bytes - history_bytes + history_bytes_now;
        self.forget_too_much();
        before.ok_or(WriteConflict::Gone)
    }

    /// Forgets the oldest events of whoever has the longest history, until all together are short enough.
    fn forget_too_much(&mut self) {
        while self.history_bytes > HISTORY_BYTES_TOTAL_MAX {
            let Some(longest) = self.collections.values_mut().max_by_key(|contents| contents.history_bytes) else {
                return;
            };
            let before = longest.history_bytes;
            longest.forget_oldest();
            self.history_bytes -= before - longest.history_bytes;
            if longest.history.is_empty() {
                return;
            }
        }
    }
}

/// Whether an object is as a writer expects it.
fn check(held: Option<&Arc<Object>>, expect: Expect) -> Result<(), WriteConflict> {
    match (held, expect) {
        (Some(_), Expect::Absent) => Err(WriteConflict::Exists),
        (None, Expect::Revision(_)) => Err(WriteConflict::Gone),
        (Some(held), Expect::Revision(seen)) if held.revision != seen => Err(WriteConflict::Moved),
        _ => Ok(()),
    }
}

// === impl Contents ===

impl Contents {
    fn new(compacted: u64) -> Self {
        Self {
            objects: BTreeSet::new(),
            counts: BTreeMap::new(),
            history: VecDeque::new(),
            history_bytes: 0,
            compacted,
            expiries: BTreeSet::new(),
            expiry_of: BTreeMap::new(),
            signal: watch::Sender::new(0),
        }
    }

    fn get(&self, key: &ObjectKey) -> Option<Arc<Object>> {
        self.objects.get(key).map(|slot| Arc::clone(&slot.0))
    }

    /// Returns the number of objects in a namespace, or in all of them.
    fn count(&self, namespace: &str) -> usize {
        if namespace.is_empty() { self.objects.len() } else { self.counts.get(namespace).copied().unwrap_or(0) }
    }

    fn put(&mut self, object: &Arc<Object>) {
        if self.objects.replace(Slot(Arc::clone(object))).is_none() {
            *self.counts.entry(object.key.namespace.clone()).or_default() += 1;
        }
    }

    fn remove(&mut self, key: &ObjectKey) {
        self.disarm(key);
        if self.objects.remove(key)
            && let Some(count) = self.counts.get_mut(&key.namespace)
        {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&key.namespace);
            }
        }
    }

    /// Takes back when an object goes by itself.
    fn disarm(&mut self, key: &ObjectKey) {
        if let Some(at) = self.expiry_of.remove(key) {
            self.expiries.remove(&(at, key.clone()));
        }
    }

    /// Goes through a range, with what has changed since undone.
    fn walk(
        &self,
        range: &Range<'_>,
        mut undone: BTreeMap<ObjectKey, Option<Arc<Object>>>,
        see: &mut dyn FnMut(&Arc<Object>) -> ControlFlow<()>,
    ) {
        let mut take = |object: &Arc<Object>| {
            if range.namespace.is_empty() || object.key.namespace == range.namespace {
                see(object)
            } else {
                ControlFlow::Continue(())
            }
        };
        let from = range.from.clone().unwrap_or_else(|| ObjectKey::new(range.namespace, ""));
        let behind = (Bound::Included(&from), Bound::Unbounded);
        for Slot(object) in self.objects.range::<ObjectKey, _>(behind) {
            let key = &object.key;
            if !range.namespace.is_empty() && key.namespace != range.namespace {
                break;
            }
            while let Some(entry) = undone.first_entry().filter(|entry| entry.key() < key) {
                let (gone, before) = entry.remove_entry();
                if gone >= from && before.iter().try_for_each(&mut take).is_break() {
                    return;
                }
            }
            let taken = match undone.remove(key) {
                Some(before) => before.iter().try_for_each(&mut take),
                None => take(object),
            };
            if taken.is_break() {
                return;
            }
        }
        for (_, before) in undone.into_iter().filter(|(key, _)| *key >= from) {
            if before.iter().try_for_each(&mut take).is_break() {
                return;
            }
        }
    }

    fn remember(&mut self, event: Event, events_max: usize) {
        self.history_bytes += kept_alive(&event);
        self.history.push_back(Arc::new(event));
        while self.history.len() > events_max || (self.history_bytes > HISTORY_BYTES_MAX && self.history.len() > 1) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(event) = self.history.pop_front() {
            self.history_bytes -= kept_alive(&event);
            self.compacted = self.compacted.max(event.revision);
        }
    }

    /// Returns the state at a revision of the objects that changed after it.
    fn undone(&self, at: u64) -> BTreeMap<ObjectKey, Option<Arc<Object>>> {
        let mut undone = BTreeMap::new();
        let from = self.history.partition_point(|event| event.revision <= at);
        for event in self.history.range(from..) {
            undone.entry(event.object.key.clone()).or_insert_with(|| event.before.clone());
        }
        undone
    }

    /// An object whose time is over.
    fn due(&self, now: i64) -> Option<ObjectKey> {
        self.expiries.first().filter(|(at, _)| *at <= now).map(|(_, key)| key.clone())
    }
}

/// Returns the bytes that an event keeps and that would be freed without it. The state after is there anyway, or is the
/// state before of the next event.
fn kept_alive(event: &Event) -> usize {
    let before = event.before.as_ref().map_or(0, |before| before.len());
    before + if event.kind == EventKind::Deleted { event.object.len() } else { 0 }
}

// === impl Slot ===

impl Borrow<ObjectKey> for Slot {
    fn borrow(&self) -> &ObjectKey {
        &self.0.key
    }
}

impl PartialEq for Slot {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for Slot {}

impl PartialOrd for Slot {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Slot {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key.cmp(&other.0.key)
    }
}
