//! Read your own writes: a controller never acts on a cache that does not yet show what it did to the same owner.
//!
//! Per owner uid, the book holds what was done and may not be seen yet:
//!
//! 1. **Writes** ([`Book::wrote`]): the newest resourceVersion per resource; met when the unfiltered stores of that
//!    resource have reached it.
//! 2. **Deletions** ([`Book::deleted`]): met when the stores show the uid gone or terminating.
//! 3. **Unknown outcomes** ([`Book::unknown`]; sent, no answer): met when the stores have reached the version of a
//!    consistent list of one item, made after the failure.
//! 4. **Waiting is not polling.** [`Book::check`] parks a key; the store wakes it. After 30 seconds the wait ends in
//!    [`Verdict::LiveRead`].
//! 5. **A restored server blocks nobody.** A list that was asked for after a write and shows an older version, or that
//!    goes back behind what the store showed before, clears its resource.
//! 6. **Who cannot tell does not block**: versions that are not comparable, resources that no filled store shows whole.
//! 7. **Bounded.** An entry goes when it is met, so there are as many owners as have something pending.

mod state;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use steersman_base::{ObjectKey, Resource, ResourceVersion, Uid};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, sleep_until};

use self::state::{Debt, Found, Shows, State, Wake};
use crate::factory::InformerFactory;
use crate::store::{Advance, Ledger, Watcher};

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
    /// They did not for too long. Read from the server what must be right; the book has forgotten this owner.
    LiveRead,
}

/// Where a book looks: stores, and the server.
pub trait Stores: Send + Sync + 'static {
    /// The stores that show every object of a resource.
    fn ledgers(&self, resource: &Resource) -> Vec<Arc<dyn Ledger>>;

    /// The version of a resource now, as a consistent list of one item tells it.
    fn latest_version(&self, resource: &Resource) -> BoxFuture<'static, Result<ResourceVersion, BarrierFailed>>;
}

/// The list that was to tell the version of a resource failed; it is made again.
#[derive(Debug, thiserror::Error)]
#[error("the version of {resource} could not be asked for: {cause}")]
pub struct BarrierFailed {
    /// What was to be listed.
    pub resource: Resource,
    /// Why it failed.
    pub cause: Box<dyn std::error::Error + Send + Sync>,
}

struct Shared {
    stores: Arc<dyn Stores>,
    entries: Mutex<Entries>,
    runtime: Handle,
}

#[derive(Default)]
struct Entries {
    state: State,
    tracked: Tracked,
    /// Whether a task is there to end waits that last too long.
    timer_runs: bool,
}

/// The stores of each resource that was written to.
#[derive(Default)]
struct Tracked(BTreeMap<Resource, Vec<TrackedStore>>);

struct TrackedStore {
    ledger: Arc<dyn Ledger>,
    /// Listens as long as it is here.
    _hook: Arc<Hook>,
}

/// Hears of the batches of one store. The store holds it weakly.
struct Hook {
    book: Weak<Shared>,
    resource: Resource,
}

/// Longer than any healthy watch lags, short enough that people do not take the controller for dead.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// Waits that end close together end at once.
const TIMER_STEP: Duration = Duration::from_millis(100);
/// A list that failed is made again after this, doubling to the maximum.
const BARRIER_RETRY_MIN: Duration = Duration::from_millis(200);
const BARRIER_RETRY_MAX: Duration = Duration::from_secs(5);

// === impl Book ===

impl Book {
    /// A book that looks into the stores of a factory.
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
        Self(Arc::new(Shared { stores: Arc::new(stores), entries: Mutex::default(), runtime: Handle::current() }))
    }

    /// An empty book that looks into the same stores: for another controller. Two that write on behalf of one owner, as
    /// those of endpoints and of slices do for a Service, wait for their own writes each, and are woken each.
    #[must_use]
    pub fn another(&self) -> Self {
        let Shared { stores, runtime, .. } = &*self.0;
        Self(Arc::new(Shared { stores: Arc::clone(stores), entries: Mutex::default(), runtime: runtime.clone() }))
    }

    /// Something was written for an owner, and the server answered with this version.
    pub fn wrote(&self, owner: &Uid, resource: &Resource, version: ResourceVersion) {
        self.add(owner, resource, Debt::Written { version, at: Instant::now() });
    }

    /// An object was deleted for an owner, or asked to go.
    pub fn deleted(&self, owner: &Uid, resource: &Resource, key: ObjectKey, uid: Uid) {
        self.add(owner, resource, Debt::Deleted { key, uid });
    }

    /// Something was sent for an owner, and no answer came: it may have happened or not, or may happen yet.
    pub fn unknown(&self, owner: &Uid, resource: &Resource) {
        let mut entries = self.0.entries.lock();
        self.0.track(&mut entries.tracked, resource);
        if !entries.tracked.is_told(resource) {
            return;
        }
        if entries.state.add_unknown(owner, resource) {
            self.0.runtime.spawn(barrier(Arc::downgrade(&self.0), resource.clone()));
        }
    }

    /// Whether an owner may be worked on now. If not, `wake` is called once when it may, or when the wait has lasted too
    /// long; a later check takes the place of an earlier one.
    pub fn check(&self, owner: &Uid, wake: impl FnOnce() + Send + 'static) -> Verdict {
        let mut entries = self.0.entries.lock();
        let Entries { state, tracked, timer_runs } = &mut *entries;
        match state.check(owner, Instant::now(), WAIT_MAX, tracked) {
            Found::Clear => Verdict::Clear,
            Found::TimedOut => Verdict::LiveRead,
            Found::Wait { until } => {
                state.park(owner, Box::new(wake));
                if !std::mem::replace(timer_runs, true) {
                    self.0.runtime.spawn(end_long_waits(Arc::downgrade(&self.0), until));
                }
                Verdict::Parked
            }
        }
    }

    /// Forgets an owner, because it is gone or was read from the server. Its key is woken if it was parked.
    pub fn forget(&self, owner: &Uid) {
        let wake = self.0.entries.lock().state.forget(owner);
        call(wake);
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

    fn add(&self, owner: &Uid, resource: &Resource, debt: Debt) {
        let mut entries = self.0.entries.lock();
        let Entries { state, tracked, .. } = &mut *entries;
        self.0.track(tracked, resource);
        if !tracked.shows(resource, &debt) {
            state.add(owner, resource, debt);
        }
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

/// Makes the lists that unknown outcomes of a resource wait for, until none does.
async fn barrier(book: Weak<Shared>, resource: Resource) {
    let mut retry = BARRIER_RETRY_MIN;
    loop {
        let Some(shared) = book.upgrade() else { return };
        let number = shared.entries.lock().state.list_begins(&resource);
        let listing = shared.stores.latest_version(&resource);
        drop(shared);
        let answer = listing.await;
        let Some(shared) = book.upgrade() else { return };
        match answer {
            Ok(version) => {
                retry = BARRIER_RETRY_MIN;
                let more = shared.entries.lock().state.list_ends(&resource, number, &version);
                // The store may have reached that version already.
                shared.advanced(&resource, None);
                if !more {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "an outcome is unknown, and the server does not tell; trying again");
                if !shared.entries.lock().state.needs_list(&resource) {
                    return;
                }
                drop(shared);
                sleep(retry).await;
                retry = (retry * 2).min(BARRIER_RETRY_MAX);
            }
        }
    }
}

/// Wakes whoever has waited too long, until nobody waits.
async fn end_long_waits(book: Weak<Shared>, first: Instant) {
    let mut next = first;
    loop {
        sleep_until(next.max(Instant::now() + TIMER_STEP)).await;
        let Some(shared) = book.upgrade() else { return };
        let mut entries = shared.entries.lock();
        let (wakes, later) = entries.state.overdue(Instant::now(), WAIT_MAX);
        entries.timer_runs = later.is_some();
        drop(entries);
        call(wakes);
        match later {
            Some(later) => next = later,
            None => return,
        }
    }
}

// === impl Shared ===

impl Shared {
    /// Looks up the stores of a resource and listens to those that are new.
    fn track(self: &Arc<Self>, tracked: &mut Tracked, resource: &Resource) {
        let held = tracked.0.entry(resource.clone()).or_default();
        let current = self.stores.ledgers(resource);
        held.retain(|store| current.iter().any(|other| same(&store.ledger, other)));
        for ledger in current {
            if held.iter().all(|store| !same(&ledger, &store.ledger)) {
                let hook = Arc::new(Hook { book: Arc::downgrade(self), resource: resource.clone() });
                let weak: Weak<Hook> = Arc::downgrade(&hook);
                ledger.watch(weak);
                held.push(TrackedStore { ledger, _hook: hook });
            }
        }
    }

    /// A store of this resource has moved on, or a list for unknown outcomes has told a version.
    fn advanced(&self, resource: &Resource, advance: Option<&Advance<'_>>) {
        let mut entries = self.entries.lock();
        let Entries { state, tracked, .. } = &mut *entries;
        let mut wakes = Vec::new();
        if let Some(list) = advance.and_then(|advance| advance.list) {
            let went_back = advance.is_some_and(|advance| advance.went_back);
            if went_back {
                wakes.extend(state.restored(resource, None));
            } else if let Some(begun) = list.begun {
                wakes.extend(state.restored(resource, Some((&list.version, begun))));
            }
        }
        let (reached, ended) = match advance {
            Some(advance) => (advance.reached.cloned(), advance.ended),
            None => (tracked.reached(resource), Some(&[] as &[Uid])),
        };
        wakes.extend(state.advanced(resource, reached.as_ref(), ended, tracked));
        drop(entries);
        call(wakes);
    }
}

fn same(left: &Arc<dyn Ledger>, right: &Arc<dyn Ledger>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(left), Arc::as_ptr(right))
}

// === impl Tracked ===

impl Tracked {
    fn ledgers(&self, resource: &Resource) -> impl Iterator<Item = &Arc<dyn Ledger>> {
        self.0.get(resource).into_iter().flatten().map(|store| &store.ledger)
    }

    /// Whether a filled store shows this resource whole.
    fn is_told(&self, resource: &Resource) -> bool {
        self.ledgers(resource).any(|ledger| ledger.reached().is_some())
    }

    /// The newest version that a store of this resource shows.
    fn reached(&self, resource: &Resource) -> Option<ResourceVersion> {
        let versions = self.ledgers(resource).filter_map(|ledger| ledger.reached());
        versions.reduce(|newest, other| if other.is_newer_than(&newest) { other } else { newest })
    }
}

impl Shows for Tracked {
    fn shows(&self, resource: &Resource, debt: &Debt) -> bool {
        // A store that is not filled blocks nobody: nobody reads it yet.
        self.ledgers(resource).all(|ledger| {
            let Some(reached) = ledger.reached() else { return true };
            match debt {
                Debt::Written { version, .. } => reached.has_reached(version),
                Debt::Deleted { key, uid } => !ledger.shows_alive(key, uid),
                Debt::Unknown { version: Some(version), .. } => reached.has_reached(version),
                Debt::Unknown { version: None, .. } => false,
            }
        })
    }
}

// === impl Hook ===

impl Watcher for Hook {
    fn advanced(&self, advance: &Advance<'_>) {
        if let Some(book) = self.book.upgrade() {
            book.advanced(&self.resource, Some(advance));
        }
    }
}

// === impl Stores ===

impl Stores for InformerFactory {
    fn ledgers(&self, resource: &Resource) -> Vec<Arc<dyn Ledger>> {
        InformerFactory::ledgers(self, resource)
    }

    fn latest_version(&self, resource: &Resource) -> BoxFuture<'static, Result<ResourceVersion, BarrierFailed>> {
        let (factory, resource) = (self.clone(), resource.clone());
        Box::pin(async move {
            let answer = InformerFactory::latest_version(&factory, &resource).await;
            answer.map_err(|cause| BarrierFailed { resource, cause: Box::new(cause) })
        })
    }
}
