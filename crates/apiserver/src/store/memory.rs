//! The engine of an ephemeral server: everything in memory, behind one lock that is held for microseconds.
//!
//! Past revisions are not kept as copies: a list at a revision is the present, with what the history says undone.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::RwLock;
use steersman_base::watch;
use steersman_base::{Clock, Istr, ObjectKey};

use super::{
    Change, Event, EventKind, Events, Expect, HISTORY_BYTES_MAX, Object, Page, Range, Shelf, Storage, Unavailable,
    WriteConflict,
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
    shelves: BTreeMap<Istr, Contents>,
}

#[derive(Debug)]
struct Contents {
    objects: BTreeSet<Slot>,
    history: VecDeque<Arc<Event>>,
    history_bytes: usize,
    /// Up to here the history may lack events.
    compacted: u64,
    /// When which object goes by itself, if it is still at that revision; in order, because all live equally long.
    expiries: VecDeque<(i64, ObjectKey, u64)>,
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
        Self { clock, state: RwLock::new(State { revision: 1, shelves: BTreeMap::new() }) }
    }

    /// Lets objects go whose time is over.
    fn expire(&self, shelf: &Shelf) {
        if shelf.ttl_seconds.is_none() {
            return;
        }
        let now = self.clock.now().unix();
        let is_due = |contents: &Contents| contents.expiries.front().is_some_and(|(at, ..)| *at <= now);
        if !self.state.read().shelves.get(&shelf.name).is_some_and(is_due) {
            return;
        }
        let mut state = self.state.write();
        while let Some((key, revision)) = state.shelves.get_mut(&shelf.name).and_then(|contents| contents.due(now)) {
            // A newer state has an expiry of its own.
            let _ = state.commit(shelf, &key, Expect::Revision(revision), Change::Delete(None), None);
        }
    }
}

impl Storage for Memory {
    fn revision(&self) -> u64 {
        self.state.read().revision
    }

    fn get(&self, shelf: &Shelf, key: &ObjectKey) -> Option<Arc<Object>> {
        self.expire(shelf);
        self.state.read().shelves.get(&shelf.name)?.get(key)
    }

    fn list(&self, shelf: &Shelf, range: &Range<'_>, wanted: &dyn Fn(&Object) -> bool) -> Result<Page, Unavailable> {
        self.expire(shelf);
        let state = self.state.read();
        let at = range.at.unwrap_or(state.revision);
        if at > state.revision {
            return Err(Unavailable::Future { current: state.revision });
        }
        let mut page = Page { objects: Vec::new(), revision: at, remaining: 0 };
        let Some(contents) = state.shelves.get(&shelf.name) else { return Ok(page) };
        if at < contents.compacted {
            return Err(Unavailable::Compacted { oldest: contents.compacted });
        }
        let mut take = |object: &Arc<Object>| {
            if !range.namespace.is_empty() && object.key.namespace != range.namespace || !wanted(object) {
                return;
            }
            if range.limit > 0 && page.objects.len() >= range.limit {
                page.remaining += 1;
            } else {
                page.objects.push(Arc::clone(object));
            }
        };
        let from = range.from.clone().unwrap_or_else(|| ObjectKey::new(range.namespace, ""));
        let mut undone = contents.undone(at);
        let behind = (Bound::Included(&from), Bound::Unbounded);
        for Slot(object) in contents.objects.range::<ObjectKey, _>(behind) {
            let key = &object.key;
            if !range.namespace.is_empty() && key.namespace != range.namespace {
                break;
            }
            while let Some(entry) = undone.first_entry().filter(|entry| entry.key() < key) {
                let (gone, before) = entry.remove_entry();
                if gone >= from {
                    before.iter().for_each(&mut take);
                }
            }
            match undone.remove(key) {
                Some(before) => before.iter().for_each(&mut take),
                None => take(object),
            }
        }
        for (_, before) in undone.into_iter().filter(|(key, _)| *key >= from) {
            before.iter().for_each(&mut take);
        }
        Ok(page)
    }

    fn commit(
        &self,
        shelf: &Shelf,
        key: &ObjectKey,
        expect: Expect,
        change: Change,
    ) -> Result<Arc<Object>, WriteConflict> {
        self.expire(shelf);
        let now = self.clock.now().unix();
        let expiry = shelf.ttl_seconds.map(|seconds| now + seconds);
        self.state.write().commit(shelf, key, expect, change, expiry)
    }

    fn events(&self, shelf: &Shelf, after: u64, events_max: usize) -> Result<Events, Unavailable> {
        self.expire(shelf);
        let state = self.state.read();
        if after > state.revision {
            return Err(Unavailable::Future { current: state.revision });
        }
        let Some(contents) = state.shelves.get(&shelf.name) else {
            return Ok(Events { events: Vec::new(), reached: state.revision });
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

    fn changes(&self, shelf: &Shelf) -> watch::Receiver<u64> {
        self.state.write().shelf(shelf).signal.subscribe()
    }

    fn compact(&self, revision: u64) {
        for contents in self.state.write().shelves.values_mut() {
            while contents.history.front().is_some_and(|event| event.revision <= revision) {
                contents.forget_oldest();
            }
            contents.compacted = contents.compacted.max(revision);
        }
    }
}

// === impl State ===

impl State {
    fn shelf(&mut self, shelf: &Shelf) -> &mut Contents {
        self.shelves.entry(shelf.name.clone()).or_insert_with(Contents::new)
    }

    fn commit(
        &mut self,
        shelf: &Shelf,
        key: &ObjectKey,
        expect: Expect,
        change: Change,
        expiry: Option<i64>,
    ) -> Result<Arc<Object>, WriteConflict> {
        let mut revision = self.revision;
        let contents = self.shelf(shelf);
        let mut before = contents.get(key);
        match (&before, expect) {
            (Some(_), Expect::Absent) => return Err(WriteConflict::Exists),
            (None, Expect::Revision(_)) => return Err(WriteConflict::Gone),
            (Some(held), Expect::Revision(seen)) if held.revision != seen => return Err(WriteConflict::Moved),
            _ => {}
        }
        let (last, is_deletion) = match change {
            Change::Put(state) => (Some(state), false),
            Change::Delete(last) => (last, true),
        };
        if let Some(state) = last {
            revision += 1;
            let kind = if before.is_some() { EventKind::Modified } else { EventKind::Added };
            let object = Arc::new(Object::seal(key.clone(), state, kind, revision));
            contents.objects.replace(Slot(Arc::clone(&object)));
            contents.remember(Event { revision, before, object: Arc::clone(&object), kind }, shelf.history_events_max);
            if let Some(at) = expiry {
                contents.expiries.push_back((at, key.clone(), revision));
            }
            before = Some(object);
        }
        if is_deletion && let Some(held) = &before {
            revision += 1;
            let object = Arc::new(held.buried(revision));
            contents.objects.remove(key);
            let event =
                Event { revision, before: before.clone(), object: Arc::clone(&object), kind: EventKind::Deleted };
            contents.remember(event, shelf.history_events_max);
            before = Some(object);
        }
        contents.signal.send_replace(revision);
        self.revision = revision;
        before.ok_or(WriteConflict::Gone)
    }
}

// === impl Contents ===

impl Contents {
    fn new() -> Self {
        Self {
            objects: BTreeSet::new(),
            history: VecDeque::new(),
            history_bytes: 0,
            compacted: 0,
            expiries: VecDeque::new(),
            signal: watch::Sender::new(0),
        }
    }

    fn get(&self, key: &ObjectKey) -> Option<Arc<Object>> {
        self.objects.get(key).map(|slot| Arc::clone(&slot.0))
    }

    fn remember(&mut self, event: Event, events_max: usize) {
        self.history_bytes += event.object.len();
        self.history.push_back(Arc::new(event));
        while self.history.len() > events_max || (self.history_bytes > HISTORY_BYTES_MAX && self.history.len() > 1) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(event) = self.history.pop_front() {
            self.history_bytes -= event.object.len();
            self.compacted = self.compacted.max(event.revision);
        }
    }

    /// What the objects that changed behind a revision were at it.
    fn undone(&self, at: u64) -> BTreeMap<ObjectKey, Option<Arc<Object>>> {
        let mut undone = BTreeMap::new();
        let from = self.history.partition_point(|event| event.revision <= at);
        for event in self.history.range(from..) {
            undone.entry(event.object.key.clone()).or_insert_with(|| event.before.clone());
        }
        undone
    }

    fn due(&mut self, now: i64) -> Option<(ObjectKey, u64)> {
        if self.expiries.front().is_none_or(|(at, ..)| *at > now) {
            return None;
        }
        self.expiries.pop_front().map(|(_, key, revision)| (key, revision))
    }
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
