//! Read your own writes: a controller never acts on a cache that does not yet show what it did to the same owner.
//!
//! Per owner uid, the book holds what was done and may not be seen yet, its *debts*:
//!
//! 1. **Writes** ([`Book::wrote`]): the newest resourceVersion per resource; met when the unfiltered stores of that
//!    resource have reached it.
//! 2. **Deletions** ([`Book::deleted`]): met when the stores show the uid gone or terminating.
//! 3. **Unknown outcomes** ([`Book::unknown`]; sent, and no answer or one that does not tell): the server is asked at once
//!    for the object, or for the objects of its namespace if it has no name, in one consistent list. What the stores do not
//!    show of the answer becomes a debt of the first two kinds. A resource on which nothing else happens is settled as fast
//!    as any other.
//! 4. **Waiting is not polling.** [`Book::check`] parks a key; the store wakes it.
//! 5. **Time meets no debt.** After [`WAIT_MAX`], a controller that can read live is told to ([`Verdict::LiveRead`]): in
//!    every pass, at most once per [`LIVE_READ_EVERY`], until the stores show all of it. Who cannot read live stays parked.
//! 6. **A store that lags for [`WAIT_MAX`] has a stale watch**, and the watch is restarted ([`Stores::restart`]): first from
//!    where it was, then with a consistent list. So every wait ends.
//! 7. **Names are tried again.** A create whose outcome is unknown may still be under way when the server is asked. Its name
//!    is kept for the owner ([`Book::keep_name`]), and the next create takes it, so that the server refuses the second.
//! 8. **A restored server blocks nobody.** A list that was asked for after a write and shows an older version, or that
//!    goes back behind what the store showed before, clears its resource.
//! 9. **Who cannot tell does not block**: versions that are not comparable, resources that no filled store shows whole.
//! 10. **Bounded.** A debt goes when it is met, so there are as many owners as have something pending; names are kept for
//!     [`NAMES_KEPT_FOR`], [`NAMES_MAX`] of them at most; all reads of all books of a manager take [turns](LiveReads).

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

/// See the module. Cheap to clone; clones are the same book.
#[derive(Clone)]
pub struct Book(Arc<Shared>);

/// Whether an owner may be worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// The caches show all that was done for this owner.
    Clear,
    /// They do not; the key is woken when they do.
    Parked,
    /// They did not for too long, and still do not. Read from the server what must be right. The debts stay.
    LiveRead,
}

/// Where a book looks: stores, and the server.
pub trait Stores: Send + Sync + 'static {
    /// The stores that show every object of a resource.
    fn ledgers(&self, resource: &Resource) -> Vec<Arc<dyn Ledger>>;

    /// The object of this name as the server has it now; without a name, all of the namespace; without a namespace, all.
    /// In one consistent list. `None` if the server does not serve the resource.
    fn read(&self, resource: &Resource, place: &ObjectKey) -> BoxFuture<'static, Result<Option<Snapshot>, ReadFailed>>;

    /// A store has not shown a write for [`WAIT_MAX`], though the server has made it: its watch is stale, and is to be
    /// restarted, unless that was done a moment ago.
    fn restart(&self, resource: &Resource, store: &Arc<dyn Ledger>);
}

/// What the server has, in one consistent list.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The objects.
    pub objects: Vec<Arc<Meta>>,
    /// The version of the list.
    pub version: ResourceVersion,
}

/// The read that was to tell what became of a write failed; it is made again.
#[derive(Debug, thiserror::Error)]
#[error("{resource} {place} could not be read: {cause}")]
pub struct ReadFailed {
    /// What was to be read.
    pub resource: Resource,
    /// Which of it.
    pub place: ObjectKey,
    /// Why it failed.
    pub cause: Box<dyn std::error::Error + Send + Sync>,
}

struct Shared {
    stores: Arc<dyn Stores>,
    live_reads: LiveReads,
    can_read_live: bool,
    entries: Mutex<Entries>,
    /// Told when the timer is to end its sleep sooner.
    rearm: Arc<Notify>,
    runtime: Handle,
}

#[derive(Default)]
struct Entries {
    state: State,
    tracked: Tracked,
    names: Names,
    /// When the timer will look; none if it does not run.
    timer: Option<Instant>,
}

/// Longer than any healthy watch lags, short enough that people do not take the controller for dead.
pub const WAIT_MAX: Duration = Duration::from_secs(30);
/// Between two live passes of one owner: soon enough for people, seldom enough for a server in trouble.
pub const LIVE_READ_EVERY: Duration = Duration::from_secs(1);
/// How long a pass waits to learn what became of a write; then the book goes on asking.
const LOOK_WITHIN: Duration = Duration::from_secs(5);

// === impl Book ===

impl Book {
    /// A book that looks into the stores of a factory, for controllers that cannot read live.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn new(informers: &InformerFactory) -> Self {
        Self::looking_into(informers.clone())
    }

    /// A book that looks into any stores.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn looking_into(stores: impl Stores) -> Self {
        Self::over(Arc::new(stores), LiveReads::default(), false, Handle::current())
    }

    /// An empty book that looks into the same stores: for another controller. Two that write on behalf of one owner, as
    /// those of endpoints and of slices do for a Service, wait for their own writes each, and are woken each.
    #[must_use]
    pub fn another(&self) -> Self {
        self.another_with(false)
    }

    /// As [`another`](Self::another), for a controller that reads from the server when it is told to.
    #[must_use]
    pub fn another_reading_live(&self) -> Self {
        self.another_with(true)
    }

    /// Something was written for an owner, and the server answered with this version.
    pub fn wrote(&self, owner: &Uid, resource: &Resource, version: ResourceVersion) {
        let now = Instant::now();
        self.add(owner, resource, Debt::Written { version, at: now, since: now });
    }

    /// An object was deleted for an owner, or asked to go.
    pub fn deleted(&self, owner: &Uid, resource: &Resource, key: ObjectKey, uid: Uid) {
        self.add(owner, resource, Debt::Deleted { key, uid, at: Instant::now() });
    }

    /// Something was sent for an owner, and nobody knows what became of it: it may have happened or not, or may happen yet.
    /// It concerns the object with this key, or without a name, any object of the namespace.
    pub fn unknown(&self, owner: &Uid, resource: &Resource, place: &ObjectKey) {
        let mut entries = self.0.entries.lock();
        entries.tracked.track(&self.0, resource);
        if !entries.tracked.is_told(resource) {
            return;
        }
        if entries.state.add_unknown(owner, resource, place) {
            tasks::ask(&self.0, resource, &place.namespace);
        }
    }

    /// The object with this key, as the server has it now: for who must know at once what became of a write. It takes its
    /// turn, and gives up soon.
    ///
    /// # Errors
    /// The server does not answer: enter the write as [`unknown`](Self::unknown).
    pub async fn look(&self, resource: &Resource, key: &ObjectKey) -> Result<Option<Arc<Meta>>, ReadFailed> {
        let reading = async {
            let _turn = self.0.live_reads.turn().await;
            self.0.stores.read(resource, key).await
        };
        let timed_out = |_| ReadFailed { resource: resource.clone(), place: key.clone(), cause: "no answer".into() };
        let read = tokio::time::timeout(LOOK_WITHIN, reading).await.map_err(timed_out)??;
        Ok(read.and_then(|read| read.objects.into_iter().find(|object| object.key() == *key)))
    }

    /// Keeps the name of an object that may be made yet: the next create of this owner is to use it.
    pub fn keep_name(&self, owner: &Uid, resource: &Resource, name: &Istr) {
        self.0.entries.lock().names.keep(owner, resource, name, Instant::now());
    }

    /// Takes a name that was kept, if it `fits`. Names of objects that are seen to be there are forgotten.
    #[must_use]
    pub fn take_name(
        &self,
        owner: &Uid,
        resource: &Resource,
        is_seen: &dyn Fn(&str) -> bool,
        fits: impl Fn(&str) -> bool,
    ) -> Option<Istr> {
        self.0.entries.lock().names.take(owner, resource, is_seen, fits, Instant::now())
    }

    /// Whether an owner may be worked on now. If not, `wake` is called once when it may, or when it is time to read live; a
    /// later check takes the place of an earlier one. Also after [`Verdict::LiveRead`], when the stores show everything.
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

    /// Forgets an owner, because it is gone. Its key is woken if it was parked.
    pub fn forget(&self, owner: &Uid) {
        let wake = {
            let mut entries = self.0.entries.lock();
            entries.names.forget(owner);
            entries.state.forget(owner)
        };
        call(wake);
    }

    /// The turns of those who read from the server because a cache lags: one for all books of a manager.
    #[must_use]
    pub fn live_reads(&self) -> &LiveReads {
        &self.0.live_reads
    }

    /// How many owners have something pending.
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
        let (entries, rearm) = (Mutex::default(), Arc::default());
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
        state.add(owner, resource, debt);
        tasks::arm(&self.0, &mut entries, Instant::now() + WAIT_MAX);
    }
}

impl fmt::Debug for Book {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Book").field("owners", &self.len()).finish_non_exhaustive()
    }
}

/// Calls what was collected, once the book is not held any more: a queue may call back.
fn call(wakes: impl IntoIterator<Item = Wake>) {
    wakes.into_iter().for_each(|wake| wake());
}

// === impl Stores ===

impl Stores for InformerFactory {
    fn ledgers(&self, resource: &Resource) -> Vec<Arc<dyn Ledger>> {
        InformerFactory::ledgers(self, resource)
    }

    fn read(&self, resource: &Resource, place: &ObjectKey) -> BoxFuture<'static, Result<Option<Snapshot>, ReadFailed>> {
        let (factory, resource, place) = (self.clone(), resource.clone(), place.clone());
        Box::pin(async move {
            let read = factory.read_now(&resource, &place).await;
            read.map_err(|cause| ReadFailed { resource, place, cause: Box::new(cause) })
        })
    }

    fn restart(&self, resource: &Resource, store: &Arc<dyn Ledger>) {
        self.restart_stale(resource, store);
    }
}
