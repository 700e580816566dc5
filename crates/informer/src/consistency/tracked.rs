//! The stores of each written resource, and what they show.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use steersman_base::{ObjectKey, Resource, ResourceVersion};
use tokio::time::Instant;

use super::state::{Debt, Shows};
use super::{Shared, Snapshot, call};
use crate::consistency::Entries;
use crate::store::{Advance, Ledger, Watcher};

/// The stores of each written resource.
#[derive(Default)]
pub(super) struct Tracked(BTreeMap<Resource, TrackedStores>);

/// The stores of one resource.
#[derive(Default)]
struct TrackedStores {
    stores: Vec<TrackedStore>,
    /// [`Stores::changes`](super::Stores::changes) when they were looked for; `None` before that.
    found_at: Option<u64>,
}

struct TrackedStore {
    ledger: Arc<dyn Ledger>,
    /// Subscribed while it exists.
    _hook: Arc<Hook>,
}

/// A subscriber to the batches of one store, which holds it weakly.
struct Hook {
    book: Weak<Shared>,
    resource: Resource,
}

// === impl Tracked ===

impl Tracked {
    /// Finds the stores of a resource, subscribes to new ones, and drops retired ones.
    pub(super) fn track(&mut self, book: &Arc<Shared>, resource: &Resource) {
        let changes = Some(book.stores.changes());
        if self.0.get(resource).is_some_and(|held| held.found_at == changes) {
            return;
        }
        let TrackedStores { stores: held, found_at } = self.0.entry(resource.clone()).or_default();
        *found_at = changes;
        let current = book.stores.ledgers(resource);
        held.retain(|store| current.iter().any(|other| same(&store.ledger, other)));
        for ledger in current {
            if held.iter().all(|store| !same(&ledger, &store.ledger)) {
                let hook = Arc::new(Hook { book: Arc::downgrade(book), resource: resource.clone() });
                let weak: Weak<Hook> = Arc::downgrade(&hook);
                ledger.watch(weak);
                held.push(TrackedStore { ledger, _hook: hook });
            }
        }
    }

    /// Whether a filled store shows this resource completely.
    pub(super) fn is_shown(&self, resource: &Resource) -> bool {
        self.ledgers(resource).any(|ledger| ledger.reached().is_some())
    }

    /// Returns the stores that do not show one of these debts.
    pub(super) fn behind(&self, resource: &Resource, debts: &[Debt]) -> Vec<Arc<dyn Ledger>> {
        let is_behind = |ledger: &&Arc<dyn Ledger>| debts.iter().any(|debt| !shows(&***ledger, debt));
        self.ledgers(resource).filter(is_behind).cloned().collect()
    }

    fn ledgers(&self, resource: &Resource) -> impl Iterator<Item = &Arc<dyn Ledger>> {
        self.0.get(resource).into_iter().flat_map(|held| &held.stores).map(|store| &store.ledger)
    }
}

impl Shows for Tracked {
    fn shows(&self, resource: &Resource, debt: &Debt) -> bool {
        self.ledgers(resource).all(|ledger| shows(&**ledger, debt))
    }

    fn have_reached(&self, resource: &Resource, version: &ResourceVersion) -> bool {
        self.ledgers(resource).filter_map(|ledger| ledger.reached()).all(|reached| reached.has_reached(version))
    }

    fn differences(&self, resource: &Resource, place: &ObjectKey, snapshot: &Snapshot, at: Instant) -> Vec<Debt> {
        let is_meant = |key: &ObjectKey| {
            (place.namespace.is_empty() || key.namespace == place.namespace)
                && (place.name.is_empty() || key.name == place.name)
        };
        let meant = snapshot.objects.iter().filter(|object| is_meant(&object.key()));
        let versions = meant.clone().map(|object| &object.resource_version);
        let newest = versions.reduce(|newest, other| if other.is_newer_than(newest) { other } else { newest });
        let mut debts: Vec<_> =
            newest.map(|version| Debt::Written { version: version.clone(), at, since: at }).into_iter().collect();
        for ledger in self.ledgers(resource).filter(|ledger| ledger.reached().is_some()) {
            for shown in ledger.shown_in(place) {
                let is_there = meant.clone().any(|object| object.uid == shown.uid && object.key() == shown.key);
                // The object may have been created after the list.
                if !is_there && !shown.version.is_newer_than(&snapshot.version) {
                    debts.push(Debt::Gone { object: shown, at });
                }
            }
        }
        debts.retain(|debt| !self.shows(resource, debt));
        debts
    }
}

fn shows(ledger: &dyn Ledger, debt: &Debt) -> bool {
    // A store that is not filled blocks nothing: it is not read yet.
    let Some(reached) = ledger.reached() else { return true };
    match debt {
        Debt::Written { version, .. } => reached.has_reached(version),
        Debt::Deleted { object, .. } => {
            reached.has_reached(&object.version) && !ledger.shows_alive(&object.key, &object.uid)
        }
        Debt::Gone { object, .. } => reached.has_reached(&object.version) && !ledger.shows(&object.key, &object.uid),
        Debt::Unknown { .. } => false,
    }
}

fn same(left: &Arc<dyn Ledger>, right: &Arc<dyn Ledger>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(left), Arc::as_ptr(right))
}

// === impl Hook ===

impl Watcher for Hook {
    fn advanced(&self, advance: &Advance<'_>) {
        if let Some(book) = self.book.upgrade() {
            book.advanced(&self.resource, advance);
        }
    }
}

// === impl Shared ===

impl Shared {
    /// Called when a store of this resource has advanced.
    fn advanced(&self, resource: &Resource, advance: &Advance<'_>) {
        let mut entries = self.entries.lock();
        let Entries { state, tracked, .. } = &mut *entries;
        let mut wakes = Vec::new();
        if let Some(list) = advance.list {
            if advance.went_back {
                wakes.extend(state.restored(resource));
            } else if let Some(begun) = list.begun {
                wakes.extend(state.listed(resource, &list.version, begun));
            }
        }
        let reached: Option<ResourceVersion> = advance.reached.cloned();
        wakes.extend(state.advanced(resource, reached.as_ref(), advance.ended, tracked));
        drop(entries);
        call(wakes);
    }
}
