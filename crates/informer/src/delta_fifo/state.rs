//! The delta FIFO as a plain state machine: no lock, no waiting.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use steersman_base::{ObjectKey, ResourceVersion, Uid};
use steersman_model::View;
use tokio::time::Instant;

use super::staleness::{Departed, Direction, is_stale};
use crate::keyed_queue::{KeyRef, Keyed, KeyedQueue};
use crate::sink::{Verdict, WatchEvent};
use crate::wire::Peeked;

/// One entry of an object in the queue.
pub enum Delta<V> {
    /// The object is new.
    Added(Arc<V>),
    /// The object changed.
    Updated(Arc<V>),
    /// The object was deleted.
    Deleted {
        /// The last known state.
        last: Arc<V>,
        /// Whether the deletion was observed or inferred from a list.
        end: End,
    },
    /// The object is in a list.
    Replaced(Arc<V>),
    /// Nothing happened: the object is delivered again.
    Sync(Arc<V>),
}

/// The way in which a deletion became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// By a watch event: the last state is the one in which the object was deleted.
    Observed,
    /// By a list without the object: it was deleted while no watch was open, and its last known state may be outdated.
    Missed,
}

/// The deltas of one object, first to last. Never empty.
pub struct Deltas<V>(Few<V>);

/// Nearly always one delta: a list of half a million objects should not allocate half a million vectors.
enum Few<V> {
    One(Delta<V>),
    #[allow(clippy::box_collection, reason = "keeps an entry at 16 bytes")]
    More(Box<Vec<Delta<V>>>),
}

/// A batch of deltas.
pub struct Popped<V> {
    items: KeyedQueue<Deltas<V>>,
    /// The version the store has reached once all of this is applied.
    pub reached: Option<ResourceVersion>,
    /// The list, if one is in the batch.
    pub list: Option<ListInfo>,
    /// Whether it is the first list.
    pub first_list: bool,
}

/// A list, without its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListInfo {
    /// The version of the list.
    pub version: ResourceVersion,
    /// The time of its request, if known: it shows all earlier writes.
    pub begun: Option<Instant>,
}

/// The objects of a store, as the queue needs them.
pub trait Known<V> {
    /// Returns the object with this key.
    fn known(&self, key: &ObjectKey) -> Option<Arc<V>>;
    /// Calls a function with every object.
    fn each_known(&self, look: &mut dyn FnMut(&Arc<V>));
}

/// The state machine behind [`DeltaFifo`](super::DeltaFifo).
pub struct State<V> {
    items: KeyedQueue<Deltas<V>>,
    /// The newest known version, and whether a pop has yet to hand it over.
    reached: Option<ResourceVersion>,
    reached_is_news: bool,
    /// The waiting list; while there is one, everything is handed over together.
    list: Option<ListInfo>,
    has_synced: bool,
    departed: Departed,
}

// === impl State ===

impl<V: View> State<V> {
    /// Creates an empty state, not synced.
    #[must_use]
    pub fn new() -> Self {
        Self {
            items: KeyedQueue::new(),
            reached: None,
            reached_is_news: false,
            list: None,
            has_synced: false,
            departed: Departed::default(),
        }
    }

    /// Returns the number of waiting keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether no key waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether the first list has been taken.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.has_synced
    }

    /// Returns the newest state of an object, pending or in the store; `None` if it was deleted or is unknown.
    pub fn newest(&self, key: &ObjectKey, store: &(impl Known<V> + ?Sized)) -> Option<Arc<V>> {
        match self.items.get(key.into()) {
            Some(deltas) => deltas.newest().state().cloned(),
            None => store.known(key),
        }
    }

    /// See [`DeltaFifo::replace`](super::DeltaFifo::replace).
    pub fn replace(&mut self, objects: Vec<Arc<V>>, list: ListInfo, store: &(impl Known<V> + ?Sized)) {
        let mut before = std::mem::replace(&mut self.items, KeyedQueue::with_capacity(objects.len()));
        for object in objects {
            let key = KeyRef::from(object.meta());
            let queued = self.items.get_mut(key);
            let pending = before.remove(key);
            match (queued, pending) {
                // A list with a key twice: pages that overlap. The later object counts.
                (Some(deltas), _) => deltas.push(Delta::Replaced(object)),
                (None, Some(mut deltas)) => {
                    deltas.push(Delta::Replaced(object));
                    self.items.push_back(deltas);
                }
                (None, None) => self.items.push_back(Deltas::new(Delta::Replaced(object))),
            }
        }
        for mut deltas in before.drain() {
            if let Some(last) = deltas.newest().state().cloned() {
                deltas.push(Delta::Deleted { last, end: End::Missed });
            }
            self.items.push_back(deltas);
        }
        store.each_known(&mut |held| {
            if !self.items.contains(held.meta().into()) {
                self.items.push_back(Deltas::new(Delta::Deleted { last: Arc::clone(held), end: End::Missed }));
            }
        });
        self.departed.clear();
        // A list counts even if it is older than the store: then the server was restored from a backup.
        self.reached = Some(list.version.clone());
        self.reached_is_news = true;
        self.list = Some(list);
    }

    /// See [`DeltaFifo::apply`](super::DeltaFifo::apply).
    pub fn apply(&mut self, event: WatchEvent<V>, store: &(impl Known<V> + ?Sized)) -> Verdict {
        let Peeked { key, uid, resource_version: version } = event.identity();
        let known = self.newest(&key, store);
        let deleted = matches!(event, WatchEvent::Deleted(_) | WatchEvent::Unreadable { deleted: true, .. });
        let direction = if deleted { Direction::Gone } else { Direction::Here };
        let is_stale = match &known {
            Some(known) => is_stale(direction, &uid, &version, known.meta()),
            // A change of an unknown object that is not even new: the object was deleted meanwhile.
            None => matches!(event, WatchEvent::Modified(_)) && self.has_passed(&version),
        };
        if is_stale || self.departed.is_stale(&uid, &version) {
            return Verdict::Stale;
        }
        if deleted {
            self.departed.note(&uid, &version);
        }
        let delta = delta_of(event, known);
        let verdict = if delta.is_some() { Verdict::News } else { Verdict::NoNews };
        if let Some(delta) = delta {
            self.push(delta);
        }
        self.advance(version);
        verdict
    }

    /// Whether everything up to this version was seen.
    fn has_passed(&self, version: &ResourceVersion) -> bool {
        let at = |reached| matches!(version.compare(reached), Some(Ordering::Less | Ordering::Equal));
        self.reached.as_ref().is_some_and(at)
    }

    /// See [`DeltaFifo::advance`](super::DeltaFifo::advance).
    pub fn advance(&mut self, version: ResourceVersion) {
        let goes_back = self.reached.as_ref().is_some_and(|reached| version.compare(reached) == Some(Ordering::Less));
        if version.is_empty() || goes_back || self.reached.as_ref() == Some(&version) {
            return;
        }
        self.reached = Some(version);
        self.reached_is_news = true;
    }

    /// See [`DeltaFifo::resync`](super::DeltaFifo::resync).
    pub fn resync(&mut self, store: &(impl Known<V> + ?Sized)) {
        store.each_known(&mut |held| {
            if !self.items.contains(held.meta().into()) {
                self.items.push_back(Deltas::new(Delta::Sync(Arc::clone(held))));
            }
        });
    }

    /// Adds a delta to those of its key.
    pub fn push(&mut self, delta: Delta<V>) {
        match self.items.get_mut(delta.object().meta().into()) {
            Some(deltas) => deltas.push(delta),
            None => self.items.push_back(Deltas::new(delta)),
        }
    }

    /// Returns the batch to hand over now, if there is one.
    pub fn take(&mut self, keys_max: usize) -> Option<Popped<V>> {
        let whole = self.list.is_some() || self.items.len() <= keys_max;
        if self.items.is_empty() && self.list.is_none() && !self.reached_is_news {
            return None;
        }
        let items = if whole {
            std::mem::take(&mut self.items)
        } else {
            let mut items = KeyedQueue::with_capacity(keys_max);
            while items.len() < keys_max.max(1)
                && let Some(deltas) = self.items.pop_front()
            {
                items.push_back(deltas);
            }
            items
        };
        let mut popped = Popped { items, reached: None, list: self.list.take(), first_list: false };
        if self.items.is_empty() && std::mem::take(&mut self.reached_is_news) {
            popped.reached.clone_from(&self.reached);
        }
        if popped.list.is_some() {
            popped.first_list = !self.has_synced;
            self.has_synced = true;
        }
        Some(popped)
    }

    /// Takes back a batch that could not be applied. Nothing was pushed since it was taken.
    pub fn put_back(&mut self, mut popped: Popped<V>) {
        for deltas in popped.items.drain() {
            match self.items.get_mut(deltas.key()) {
                Some(_) => debug_assert!(false, "the queue is held while it hands over"),
                None => self.items.push_back(deltas),
            }
        }
        self.reached_is_news |= popped.reached.is_some();
        self.list = popped.list;
        self.has_synced &= !popped.first_list;
    }
}

/// Returns the delta of a watch event that is not stale.
fn delta_of<V: View>(event: WatchEvent<V>, known: Option<Arc<V>>) -> Option<Delta<V>> {
    let is_known = |uid: &Uid| known.as_ref().is_some_and(|known| known.meta().uid == *uid);
    match event {
        WatchEvent::Added(new) | WatchEvent::Modified(new) if is_known(&new.meta().uid) => Some(Delta::Updated(new)),
        WatchEvent::Added(new) | WatchEvent::Modified(new) => Some(Delta::Added(new)),
        WatchEvent::Deleted(last) => is_known(&last.meta().uid).then_some(Delta::Deleted { last, end: End::Observed }),
        WatchEvent::Unreadable { object, deleted } => {
            // If its uid cannot be read either, the name decides which object it is. Another existing object of the
            // same name means that the known one was deleted.
            let is_gone = |known: &Arc<V>| object.is_of(known.meta()) == deleted;
            known.filter(is_gone).map(|last| Delta::Deleted { last, end: End::Observed })
        }
    }
}

impl<V: View> Default for State<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> fmt::Debug for State<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("list", &self.list).field("reached", &self.reached).finish_non_exhaustive()
    }
}

// === impl Delta ===

impl<V> Delta<V> {
    /// Returns the object, in the state of the delta.
    #[must_use]
    pub fn object(&self) -> &Arc<V> {
        match self {
            Self::Added(object) | Self::Updated(object) | Self::Replaced(object) | Self::Sync(object) => object,
            Self::Deleted { last, .. } => last,
        }
    }

    /// Returns the state of the object afterwards; `None` if it was deleted.
    #[must_use]
    pub fn state(&self) -> Option<&Arc<V>> {
        match self {
            Self::Deleted { .. } => None,
            other => Some(other.object()),
        }
    }
}

impl<V: View> fmt::Debug for Delta<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let meta = self.object().meta();
        let what = match self {
            Self::Added(_) => "Added",
            Self::Updated(_) => "Updated",
            Self::Deleted { end: End::Observed, .. } => "Deleted",
            Self::Deleted { end: End::Missed, .. } => "Deleted(missed)",
            Self::Replaced(_) => "Replaced",
            Self::Sync(_) => "Sync",
        };
        write!(f, "{what} {}#{}@{}", meta.key(), meta.uid, meta.resource_version)
    }
}

// === impl Deltas ===

impl<V: View> Deltas<V> {
    fn new(delta: Delta<V>) -> Self {
        Self(Few::One(delta))
    }

    /// Returns the deltas, first to last.
    #[must_use]
    pub fn as_slice(&self) -> &[Delta<V>] {
        match &self.0 {
            Few::One(delta) => std::slice::from_ref(delta),
            Few::More(deltas) => deltas,
        }
    }

    /// Returns the key of the object.
    #[must_use]
    pub fn object_key(&self) -> ObjectKey {
        self.newest().object().meta().key()
    }

    /// Returns the last delta.
    #[must_use]
    pub fn newest(&self) -> &Delta<V> {
        match &self.0 {
            Few::One(delta) => delta,
            // Never empty, so there is a last one.
            Few::More(deltas) => &deltas[deltas.len() - 1],
        }
    }

    fn uid(delta: &Delta<V>) -> &Uid {
        &delta.object().meta().uid
    }

    /// Adds a delta, and compresses (guarantee 2).
    fn push(&mut self, delta: Delta<V>) {
        let Some(delta) = self.merge_into_newest(delta) else { return };
        if self.drop_passing_uid(Self::uid(&delta)) {
            return self.push(delta);
        }
        self.0 = match std::mem::replace(&mut self.0, Few::More(Box::default())) {
            Few::One(only) => Few::More(Box::new(vec![only, delta])),
            Few::More(mut deltas) => {
                deltas.push(delta);
                Few::More(deltas)
            }
        };
    }

    /// Drops the newest uid if it is neither the first nor the next one: it was added and deleted between two pops.
    fn drop_passing_uid(&mut self, next: &Uid) -> bool {
        let Few::More(deltas) = &mut self.0 else { return false };
        let (Some(first), Some(newest)) = (deltas.first(), deltas.last()) else { return false };
        let passing = Self::uid(newest).clone();
        if passing == *Self::uid(first) || passing == *next {
            return false;
        }
        deltas.retain(|held| *Self::uid(held) != passing);
        true
    }

    /// Merges a delta into the newest one if they may be merged; else returns it.
    fn merge_into_newest(&mut self, delta: Delta<V>) -> Option<Delta<V>> {
        let newest = match &mut self.0 {
            Few::One(newest) => newest,
            Few::More(deltas) => deltas.last_mut()?,
        };
        if Self::uid(newest) != Self::uid(&delta) {
            return Some(delta);
        }
        match (&*newest, delta) {
            (Delta::Added(_), Delta::Added(new) | Delta::Updated(new) | Delta::Replaced(new) | Delta::Sync(new)) => {
                *newest = Delta::Added(new);
            }
            (Delta::Deleted { last: held, end: held_end }, Delta::Deleted { last, end }) => {
                let is_newer = last.meta().resource_version.has_reached(&held.meta().resource_version);
                if end < *held_end || (end == *held_end && is_newer) {
                    *newest = Delta::Deleted { last, end };
                }
            }
            (
                Delta::Updated(_) | Delta::Replaced(_) | Delta::Sync(_),
                delta @ (Delta::Updated(_) | Delta::Replaced(_) | Delta::Sync(_)),
            ) => {
                *newest = delta;
            }
            (_, delta) => return Some(delta),
        }
        None
    }
}

impl<V: View> IntoIterator for Deltas<V> {
    type Item = Delta<V>;
    type IntoIter = std::iter::Chain<std::option::IntoIter<Delta<V>>, std::vec::IntoIter<Delta<V>>>;
    fn into_iter(self) -> Self::IntoIter {
        match self.0 {
            Few::One(delta) => Some(delta).into_iter().chain(Vec::new()),
            Few::More(deltas) => None.into_iter().chain(*deltas),
        }
    }
}

impl<V: View> Keyed for Deltas<V> {
    fn key(&self) -> KeyRef<'_> {
        self.newest().object().meta().into()
    }
}

impl<V: View> fmt::Debug for Deltas<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

// === impl Popped ===

impl<V: View> Popped<V> {
    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is no key; a list may be empty, and a bookmark has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the deltas of each key, first to last.
    pub fn iter(&self) -> impl Iterator<Item = &Deltas<V>> {
        self.items.iter()
    }

    /// Takes the deltas out; they are not queued again if processing fails.
    pub fn drain(&mut self) -> impl Iterator<Item = Deltas<V>> + use<V> {
        self.items.drain()
    }

    /// Takes out the deltas of the first key.
    pub fn next_key(&mut self) -> Option<Deltas<V>> {
        self.items.pop_front()
    }
}

impl<V: View> fmt::Debug for Popped<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Popped")
            .field("items", &self.items)
            .field("reached", &self.reached)
            .field("list", &self.list)
            .finish()
    }
}
