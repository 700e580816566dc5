//! Where objects are kept: one revision for the whole store, compare-and-swap, history.
//!
//! 1. Every write gets the next revision; nobody sees a revision before everything written up to it.
//! 2. A write happens only if the object is at the revision the writer saw ([`Expect`]), and happens whole or not at all.
//! 3. A list shows one revision, however many pages it takes; one that is no longer known is [`Unavailable::Compacted`].
//! 4. The history of a collection is bounded by count and by bytes, and so is that of all collections together; who asks for what
//!    has gone hears so.
//! 5. An object is encoded once: what is stored, listed and watched are the same bytes.
//! 6. What is stored can be read: no object is nested deeper than [`DEPTH_MAX`].
//!
//! [`Storage`] is the seam: [`memory::Memory`] is the engine of an ephemeral server.

pub mod memory;
mod object;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use steersman_base::watch;
use steersman_base::{Istr, ObjectKey, StringMap};

pub use object::{Draft, EventKind, Object, is_too_deep};

/// How many events of one resource are remembered.
pub const HISTORY_EVENTS_MAX: usize = 8192;
/// How many events are remembered of resources that change all the time and that nobody replays.
pub const HISTORY_EVENTS_SHORT: usize = 512;
/// How many bytes the remembered events of one resource may hold, besides the objects that are there anyway.
pub const HISTORY_BYTES_MAX: usize = 32 << 20;
/// How many bytes the remembered events of all resources may hold; every definition brings a resource of its own.
pub const HISTORY_BYTES_TOTAL_MAX: usize = 128 << 20;
/// How deep an object may be nested. Parsers that recurse, ours among them, stop at 127; lists, tables and watches put an
/// object into others.
pub const DEPTH_MAX: usize = 120;

/// Where the objects of one resource are kept, whatever the version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Collection {
    /// Group and plural, as in etcd's keys: `pods`, `deployments.apps`.
    pub name: Istr,
    /// How many events are remembered.
    pub history_events_max: usize,
    /// After how many seconds an object goes by itself.
    pub ttl_seconds: Option<i64>,
}

/// What a writer saw, and what must still be so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// There is no such object.
    Absent,
    /// The object is at this revision.
    Revision(u64),
}

/// A new state of an object, encoded but for its revision, with what selectors look at.
#[derive(Clone, Debug)]
pub struct NewState {
    /// The object.
    pub draft: Draft,
    /// Its labels.
    pub labels: StringMap,
    /// The values of its resource's selectable fields.
    pub fields: Box<[Istr]>,
}

/// A change to one object.
#[derive(Debug)]
pub enum Change {
    /// The object is now so.
    Put(NewState),
    /// The object is gone, after one last state if there is one to be seen.
    Delete(Option<NewState>),
}

/// Why nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteConflict {
    /// There is an object already.
    Exists,
    /// There is no such object.
    Gone,
    /// The object is at another revision.
    Moved,
}

/// Why a revision cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// It is no longer known.
    Compacted {
        /// The oldest revision from which on everything is known.
        oldest: u64,
    },
    /// It has not been reached.
    Future {
        /// The revision that has been reached.
        current: u64,
    },
}

/// Which objects a list is about.
#[derive(Clone, Debug, Default)]
pub struct Range<'a> {
    /// Objects in this namespace; empty: in all of them.
    pub namespace: &'a str,
    /// Objects behind this key, or at it if it were there.
    pub from: Option<ObjectKey>,
    /// At which revision; unset: now.
    pub at: Option<u64>,
    /// At most so many; 0: all.
    pub limit: usize,
}

/// A page of a list.
#[derive(Debug)]
pub struct Page {
    /// The objects, by key.
    pub objects: Vec<Arc<Object>>,
    /// The revision at which they were so.
    pub revision: u64,
    /// How many objects are left behind the page; of a list with a filter: 1 if there are any.
    pub remaining: usize,
}

/// Something that happened to an object.
#[derive(Debug)]
pub struct Event {
    /// When.
    pub revision: u64,
    /// The state before; none if there was no object.
    pub before: Option<Arc<Object>>,
    /// The state after; of a deletion: the last state, at the revision of the deletion.
    pub object: Arc<Object>,
    /// What.
    pub kind: EventKind,
}

/// Events in order, and the revision up to which there are no others.
#[derive(Debug)]
pub struct Events {
    /// The events.
    pub events: Vec<Arc<Event>>,
    /// Up to here everything is among them (or before them).
    pub reached: u64,
}

/// Which objects of a range a list is about.
pub type Wanted<'a> = dyn Fn(&Object) -> bool + 'a;

/// An engine that keeps objects.
pub trait Storage: Send + Sync + 'static {
    /// The newest revision.
    fn revision(&self) -> u64;

    /// One object.
    fn get(&self, collection: &Collection, key: &ObjectKey) -> Option<Arc<Object>>;

    /// The objects in a range, or those among them that `wanted` accepts. Writers do not wait while it is asked.
    ///
    /// # Errors
    /// If the revision asked for is not known.
    fn list(
        &self,
        collection: &Collection,
        range: &Range<'_>,
        wanted: Option<&Wanted<'_>>,
    ) -> Result<Page, Unavailable>;

    /// Writes one object, and answers with the state that was written (or, for a deletion, the last state).
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

    /// What happened behind a revision, at most so many events at a time.
    ///
    /// # Errors
    /// If not everything behind that revision is known any more, or it has not been reached.
    fn events(&self, collection: &Collection, after: u64, events_max: usize) -> Result<Events, Unavailable>;

    /// A signal that changes with every event of a collection.
    fn changes(&self, collection: &Collection) -> watch::Receiver<u64>;

    /// Forgets what happened up to a revision.
    fn compact(&self, revision: u64);

    /// Forgets a collection that has no objects, with its history: its resource is no longer served.
    fn forget(&self, collection: &Collection);
}
