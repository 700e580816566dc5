//! Read your own writes: a controller never acts on a cache that does not show its own writes for the same owner.
//!
//! Per owner uid, the book holds the writes that the caches may not show yet, its *debts*:
//!
//! 1. **Writes** ([`Book::wrote`]): the newest resourceVersion per resource; met when the unfiltered stores of that
//!    resource have reached it.
//! 2. **Deletions** ([`Book::deleted`]): met when the stores show the object as deleted or terminating. **Removals**
//!    ([`Book::removed`], by a write that takes the last finalizer off): met when the stores do not show the object. A store
//!    that has not reached the version in which the object was seen may not show it yet, and meets neither.
//! 3. **Unknown outcomes** ([`Book::unknown`]: sent, and no answer or one that does not show the outcome): the object, or the
//!    objects of the namespace if it has no name, are read from the server at once, in one consistent list. Differences
//!    between the answer and the stores become debts of the first two kinds. A resource without other changes is
//!    settled as fast as any other.
//! 4. **Waiting is not polling.** [`Book::check`] parks a key; the store wakes it.
//! 5. **Time meets no debt.** After [`WAIT_MAX`], a controller that can read live has to ([`Verdict::LiveRead`]): in
//!    every pass, at most once per [`LIVE_READ_EVERY`], until the stores show everything. A controller that cannot read
//!    live stays parked.
//! 6. **A store that lags for [`WAIT_MAX`] has a stale watch**, and the watch is restarted ([`Stores::restart`]): first
//!    from the version it has reached, then with a consistent list. So every wait ends.
//! 7. **Names are tried again.** A create whose outcome is unknown may still be in flight when the server is asked. Its
//!    name is kept for the owner and for what the object is for ([`Book::keep_name`]), and the next such create uses it,
//!    so that the server refuses the second.
//! 8. **A restored server blocks nothing.** A list that was requested after a write and shows an older version may lag:
//!    the debts stay. If all lists of a minute do, the server was restored from a backup, and the resource is cleared;
//!    so it is by a list that goes back behind what the store showed, which the reflector refuses for a minute itself.
//! 9. **What cannot be compared does not block**: versions that are not comparable, resources that no filled store shows
//!    completely.
//! 10. **Bounded.** A debt is dropped when it is met, so there are as many owners as have something pending; names are
//!     kept for [`NAMES_KEPT_FOR`], at most [`NAMES_MAX`] of them; all reads of all books of a manager are
//!     [rate-limited together](LiveReads).

mod live_reads;
mod names;
mod state;
mod tasks;
#[cfg(test)]
mod tests;
mod tracked;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use steersman_base::{Istr, Meta, ObjectKey, Resource, ResourceVersion, Uid};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;

pub use self::live_reads::{LIVE_READS_AT_ONCE, LIVE_READS_BURST, LIVE_READS_PER_SECOND, LiveReads, Turn};
use self::names::Names;
pub use self::names::{NAMES_KEPT_FOR, NAMES_MAX};
use self::state::{Debt, Found, State, Wake};
use self::tracked::Tracked;
use crate::factory::InformerFactory;
use crate::store::Ledger;
pub use crate::store::Shown;

/// The consistency book of a controller: see the module. Cheap to clone; clones are the same book.
#[derive(Clone)]
pub struct Book(Arc<Shared>);

/// Whether an owner may be reconciled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// The caches show all writes for this owner.
    Clear,
    /// The caches do not; the key is woken when they do.
    Parked,
    /// The caches have not for too long. Read from the server what must be right. The debts stay.
    LiveRead,
}

/// The stores and the server of a book.
pub trait Stores: Send + Sync + 'static {
    /// Returns a number that changes when a store comes or goes: they are looked for only then.
    fn changes(&self) -> u64;

    /// Returns the stores that show every object of a resource.
    fn ledgers(&self, resource: &Resource) -> Vec<Arc<dyn Ledger>>;

    /// Reads the object of this name from the server; without a name, all of the namespace; without a namespace, all.
    /// In one consistent list. `None` if the server does not serve the resource.
    fn read(&self, resource: &Resource, place: &ObjectKey) -> BoxFuture<'static, Result<Option<Snapshot>, ReadFailed>>;

    /// Restarts the watch of a store that has not shown a write for [`WAIT_MAX`], though the server has made it; unless
    /// that was done a moment ago.
    fn restart(&self, resource: &Resource, store: &Arc<dyn Ledger>);
}

/// The state of the server, in one consistent list.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The objects.
    pub objects: Vec<Arc<Meta>>,
    /// The version of the list.
    pub version: ResourceVersion,
}

/// A read that was to settle the outcome of a write failed; it is retried.
#[derive(Debug, thiserror::Error)]
#[error("{resource} {place} could not be read: {cause}")]
pub struct ReadFailed {
    /// The resource.
    pub resource: Resource,
    /// The object or namespace.
    pub place: ObjectKey,
    /// The cause.
    pub cause: Box<dyn std::error::Error + Send + Sync>,
}

struct Shared {
    stores: Arc<dyn Stores>,
    live_reads: LiveReads,
    can_read_live: bool,
    entries: Mutex<Entries>,
    /// Notified when the timer is to wake earlier.
    rearm: Arc<Notify>,
    runtime: Handle,
}

#[derive(Default)]
struct Entries {
    state: State,
    tracked: Tracked,
    names: Names,
    /// The time at which the timer wakes; `None` if it does not run.
    timer: Option<Instant>,
}

/// Longer than any healthy watch lags, short enough that people do not take the controller for dead.
pub const WAIT_MAX: Duration = Duration::from_secs(30);
/// The time between two live passes of one owner: soon enough for people, seldom enough for an overloaded server.
pub const LIVE_READ_EVERY: Duration = Duration::from_secs(1);
/// The time a pass waits to learn the outcome of a write; then the book keeps asking.
const LOOK_WITHIN: Duration = Duration::from_secs(5);

// === impl Book ===

impl Book {
    /// Creates a book for the stores of a factory, for controllers that cannot read live.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn new(informers: &InformerFactory) -> Self {
        Self::looking_into(informers.clone())
    }

    /// Creates a book for any stores.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn looking_into(stores: impl Stores) -> Self {
        Self::over(Arc::new(stores), LiveReads::default(), false, Handle::current())
    }

    /// Creates an empty book for the same stores: for another controller. Two controllers that write on behalf of one
    /// owner, as those of endpoints and of slices do for a Service, each wait for their own writes, and are each woken.
    #[must_use]
    pub fn another(&self) -> Self {
        self.another_with(false)
    }

    /// As [`another`](Self::another), for a controller that can read live.
    #[must_use]
    pub fn another_reading_live(&self) -> Self {
        self.another_with(true)
    }

    /// Records a write for an owner, and the version that the server returned.
    pub fn wrote(&self, owner: &Uid, resource: &Resource, version: ResourceVersion) {
        let now = Instant::now();
        self.add(owner, resource, Debt::Written { version, at: now, since: now });
    }

    /// Records the deletion of an object for an owner, with the version in which it was seen last.
    pub fn deleted(&self, owner: &Uid, resource: &Resource, object: Shown) {
        self.add(owner, resource, Debt::Deleted { object, at: Instant::now() });
    }

    /// Records the removal of an object for an owner: a write to a terminating object has removed it. Its response has the
    /// version before that, which the stores may have reached long ago.
    pub fn removed(&self, owner: &Uid, resource: &Resource, object: Shown) {
        self.add(owner, resource, Debt::Gone { object, at: Instant::now() });
    }

    /// Records a write for an owner with an unknown outcome: it may have been made or not, or may still be. It concerns
    /// the object with this key, or without a name, any object of the namespace.
    pub fn unknown(&self, owner: &Uid, resource: &Resource, place: &ObjectKey) {
        let mut entries = self.0.entries.lock();
        entries.tracked.track(&self.0, resource);
        if !entries.tracked.is_shown(resource) {
            return;
        }
        if entries.state.add_unknown(owner, resource, place) {
            tasks::ask(&self.0, resource, &place.namespace);
        }
    }

    /// Reads the object with this key from the server, to learn the outcome of a write at once. It is rate-limited, and
    /// gives up soon.
    ///
    /// # Errors
    /// The server does not answer: record the write as [`unknown`](Self::unknown).
    pub async fn look(&self, resource: &Resource, key: &ObjectKey) -> Result<Option<Arc<Meta>>, ReadFailed> {
        let reading = async {
            let _turn = self.0.live_reads.turn().await;
            self.0.stores.read(resource, key).await
        };
        let timed_out = |_| ReadFailed { resource: resource.clone(), place: key.clone(), cause: "no answer".into() };
        let read = tokio::time::timeout(LOOK_WITHIN, reading).await.map_err(timed_out)??;
        Ok(read.and_then(|read| read.objects.into_iter().find(|object| object.key() == *key)))
    }

    /// Keeps the name of an object whose create may still arrive: the next create of this owner with the same `purpose`
    /// is to use it. An owner whose objects are interchangeable has one purpose, the empty one.
    pub fn keep_name(&self, owner: &Uid, resource: &Resource, purpose: &str, name: &Istr) {
        self.0.entries.lock().names.keep(owner, resource, purpose, name, Instant::now());
    }

    /// Takes a name that was kept for this `purpose`, if it `fits`. Names of existing objects are forgotten.
    #[must_use]
    pub fn take_name(
        &self,
        owner: &Uid,
        resource: &Resource,
        purpose: &str,
        is_seen: &dyn Fn(&str) -> bool,
        fits: impl Fn(&str) -> bool,
    ) -> Option<Istr> {
        self.0.entries.lock().names.take(owner, resource, purpose, is_seen, fits, Instant::now())
    }

    /// Whether an owner may be reconciled now. If not, `wake` is called once when it may, or when it is time to read
    /// live; a later check replaces an earlier one. Also after [`Verdict::LiveRead`], when the stores show everything.
    pub fn check(&self, owner: &Uid, wake: impl FnOnce() + Send + 'static) -> Verdict {
        let mut entries = self.0.entries.lock();
        let Entries { state, tracked, .. } = &mut *entries;
        let found = state.check(owner, Instant::now(), self.0.can_read_live, tracked);
        if found != Found::Clear {
            state.park(owner, Box::new(wake));
        }
        match found {
            Found::Clear => Verdict::Clear,
            Found::ReadLive => Verdict::LiveRead,
            Found::Wait { until } => {
                if let Some(until) = until {
                    tasks::arm(&self.0, &mut entries, until);
                }
                Verdict::Parked
            }
        }
    }

    /// Forgets an owner, because it was deleted. Its key is woken if it was parked.
    pub fn forget(&self, owner: &Uid) {
        let wake = {
            let mut entries = self.0.entries.lock();
            entries.names.forget(owner);
            entries.state.forget(owner)
        };
        call(wake);
    }

    /// Returns the rate limit of live reads: one for all books of a manager.
    #[must_use]
    pub fn live_reads(&self) -> &LiveReads {
        &self.0.live_reads
    }

    /// Returns the number of owners with something pending.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.entries.lock().state.len()
    }

    /// Whether nothing is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn over(stores: Arc<dyn Stores>, live_reads: LiveReads, can_read_live: bool, runtime: Handle) -> Self {
        let entries = Mutex::default();
        let rearm = Arc::default();
        Self(Arc::new(Shared { stores, live_reads, can_read_live, entries, rearm, runtime }))
    }

    fn another_with(&self, can_read_live: bool) -> Self {
        let Shared { stores, live_reads, runtime, .. } = &*self.0;
        Self::over(Arc::clone(stores), live_reads.clone(), can_read_live, runtime.clone())
    }

    fn add(&self, owner: &Uid, resource: &Resource, debt: Debt) {
        let mut entries = self.0.entries.lock();
        let Entries { state, tracked, .. } = &mut *entries;
        tracked.track(&self.0, resource);
        if state::Shows::shows(tracked, resource, &debt) {
            return;
        }
        state.add(owner, resource, debt, tracked);
        tasks::arm(&self.0, &mut entries, Instant::now() + WAIT_MAX);
    }
}

impl fmt::Debug for Book {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Book").field("owners", &self.len()).finish_non_exhaustive()
    }
}

/// Calls the collected wakers with the lock released: a queue may call back.
fn call(wakes: impl IntoIterator<Item = Wake>) {
    wakes.into_iter().for_each(|wake| wake());
}

// === impl Stores ===

impl Stores for InformerFactory {
    fn changes(&self) -> u64 {
        InformerFactory::changes(self)
    }

    fn ledgers(&self, resource: &Resource) -> Vec<Arc<dyn Ledger>> {
        InformerFactory::ledgers(self, resource)
    }

    fn read(&self, resource: &Resource, place: &ObjectKey) -> BoxFuture<'static, Result<Option<Snapshot>, ReadFailed>> {
        let factory = self.clone();
        let resource = resource.clone();
        let place = place.clone();
        Box::pin(async move {
            let read = factory.read_now(&resource, &place).await;
            read.map_err(|cause| ReadFailed { resource, place, cause: Box::new(cause) })
        })
    }

    fn restart(&self, resource: &Resource, store: &Arc<dyn Ledger>) {
        self.restart_stale(resource, store);
    }
}
