//! The storage of objects: one revision for the whole store, compare-and-swap, history.
//!
//! 1. Every write gets the next revision; no reader sees a revision before all writes up to it.
//! 2. A write happens only if the object is at the revision the writer saw ([`Expect`]), and happens whole or not at all. So do
//!    several that are done together ([`Storage::commit_all`]).
//! 3. A list shows one revision, however many pages it takes; one that is no longer known is [`Unavailable::Compacted`].
//! 4. The history of a collection is bounded by count and by bytes, and so is that of all collections together; a reader of
//!    dropped history gets [`Unavailable::Compacted`].
//! 5. An object is encoded once: what is stored, listed and watched are the same bytes.
//! 6. What is stored can be read: no object is nested deeper than [`DEPTH_MAX`].
//!
//! [`Storage`] is the seam: [`memory::Memory`] is the engine of an ephemeral server.

mod json;
pub mod memory;
mod object;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use steersman_base::watch;
use steersman_base::{Istr, ObjectKey, StringMap};

pub(crate) use object::is_too_deep;
pub use object::{Draft, EventKind, Object};

/// The number of events of one resource that are kept.
pub(crate) const HISTORY_EVENTS_MAX: usize = 8192;
/// The number of events that are kept of resources that change all the time and are not replayed.
pub(crate) const HISTORY_EVENTS_SHORT: usize = 512;
/// The bytes that the kept events of one resource may hold, besides the present objects.
pub(crate) const HISTORY_BYTES_MAX: usize = 32 << 20;
/// The bytes that the kept events of all resources may hold; every definition adds a resource.
pub(crate) const HISTORY_BYTES_TOTAL_MAX: usize = 128 << 20;
/// The deepest nesting of an object. Parsers that recurse, ours among them, stop at 127; lists, tables and watches put an
/// object into others.
pub const DEPTH_MAX: usize = 120;

/// The stored objects of one resource, in all its versions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Collection {
    /// The plural and the group: `pods`, `deployments.apps`.
    pub name: Istr,
    /// The number of events that are kept.
    pub history_events_max: usize,
    /// The seconds after which an object expires.
    pub ttl_seconds: Option<i64>,
}

/// The state that a write expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No object of this key.
    Absent,
    /// The object is at this revision.
    Revision(u64),
}

/// A new state of an object: encoded except for its revision, with the values that selectors compare.
#[derive(Clone, Debug)]
pub struct NewState {
    /// The object.
    pub draft: Draft,
    /// The labels.
    pub labels: StringMap,
    /// The values of the selectable fields.
    pub fields: Box<[Istr]>,
}

/// A change to one object.
#[derive(Debug)]
pub enum Change {
    /// Stores this state.
    Put(NewState),
    /// Deletes the object, after one last state if watches are to see one.
    Delete(Option<NewState>),
}

/// One of several writes that are done together.
#[derive(Debug)]
pub struct Write {
    /// The resource.
    pub collection: Collection,
    /// The object.
    pub key: ObjectKey,
    /// The state that it must have.
    pub expect: Expect,
    /// The change.
    pub change: Change,
}

/// Why a write was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteConflict {
    /// The object exists.
    Exists,
    /// The object does not exist.
    Gone,
    /// The object is at another revision.
    Moved,
}

/// Why a revision cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// The revision is no longer known.
    Compacted {
        /// The oldest revision since which all events are known.
        oldest: u64,
    },
    /// The revision has not been reached.
    Future {
        /// The current revision.
        current: u64,
    },
}

/// The objects of a list.
#[derive(Clone, Debug, Default)]
pub struct Range<'a> {
    /// The namespace; empty for all.
    pub namespace: &'a str,
    /// The key from which on objects are listed.
    pub from: Option<ObjectKey>,
    /// The revision; the current one if unset.
    pub at: Option<u64>,
    /// The most objects; 0 for all.
    pub limit: usize,
}

/// A page of a list.
#[derive(Debug)]
pub struct Page {
    /// The objects, ordered by key.
    pub objects: Vec<Arc<Object>>,
    /// The revision of the list.
    pub revision: u64,
    /// The number of objects behind the page; with a filter, 1 if there are any.
    pub remaining: usize,
}

/// A change of an object.
#[derive(Debug)]
pub struct Event {
    /// The revision of the change.
    pub revision: u64,
    /// The state before; none for a new object.
    pub before: Option<Arc<Object>>,
    /// The state after; for a deletion, the last state at the revision of the deletion.
    pub object: Arc<Object>,
    /// The kind of change.
    pub kind: EventKind,
}

/// Events in order, and the revision up to which there are no others.
#[derive(Debug)]
pub struct Events {
    /// The events.
    pub events: Vec<Arc<Event>>,
    /// The revision up to which there are no other events.
    pub reached: u64,
}

/// A filter of the objects of a list.
pub type Wanted<'a> = dyn Fn(&Object) -> bool + 'a;

/// A storage engine.
pub trait Storage: Send + Sync + 'static {
    /// Returns the current revision.
    fn revision(&self) -> u64;

    /// Returns one object.
    fn get(&self, collection: &Collection, key: &ObjectKey) -> Option<Arc<Object>>;

    /// Returns the objects in a range that `wanted` accepts. Writers do not wait while it runs.
    ///
    /// # Errors
    /// If the revision asked for is not known.
    fn list(
        &self,
        collection: &Collection,
        range: &Range<'_>,
        wanted: Option<&Wanted<'_>>,
    ) -> Result<Page, Unavailable>;

    /// Writes one object, and returns the written state, or the last state for a deletion.
    ///
    /// # Errors
    /// If the object is not as expected; nothing is written then.
    fn commit(
        &self,
        collection: &Collection,
        key: &ObjectKey,
        expect: Expect,
        change: Change,
    ) -> Result<Arc<Object>, WriteConflict>;

    /// Writes several objects, in this order, each at a revision of its own; returns what [`commit`](Self::commit) would.
    ///
    /// # Errors
    /// The first object that is not as expected, by its place; nothing is written then.
    fn commit_all(&self, writes: Vec<Write>) -> Result<Vec<Arc<Object>>, (usize, WriteConflict)>;

    /// Returns the events after a revision, at most `events_max`.
    ///
    /// # Errors
    /// If not all events after that revision are known any more, or it has not been reached.
    fn events(&self, collection: &Collection, after: u64, events_max: usize) -> Result<Events, Unavailable>;

    /// Returns a signal that changes with every event of a collection.
    fn changes(&self, collection: &Collection) -> watch::Receiver<u64>;

    /// Drops the history up to a revision.
    fn compact(&self, revision: u64);

    /// Drops an empty collection with its history, because its resource is no longer served.
    fn forget(&self, collection: &Collection);
}
