//! The consistency book as a plain state machine: no lock, no task, no clock of its own.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use steersman_base::{Istr, ObjectKey, Resource, ResourceVersion, Uid};
use tokio::time::Instant;

use super::{LIVE_READ_EVERY, Snapshot, WAIT_MAX};
use crate::PAST_FOR;
use crate::store::Shown;

/// A write for an owner that the store of a resource may not show yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Debt {
    /// A write, made `at` this time: the store must reach its version. The store has been behind since `since`, for
    /// this write or an earlier one.
    Written { version: ResourceVersion, at: Instant, since: Instant },
    /// A deletion: the store must show the object as deleted or terminating. One that has not reached the version in which
    /// the object was deleted may not show it yet.
    Deleted { object: Shown, at: Instant },
    /// The removal of an object, which may have been terminating before: the store must not show it any more.
    Gone { object: Shown, at: Instant },
    /// A write with an unknown outcome, to this object, or without a name, to any object of the namespace. Reads are
    /// numbered; the first of the namespace that begins after the failure, or a later one, settles it.
    Unknown { place: ObjectKey, after_read: u64 },
}

/// The state of a resource's stores.
pub(super) trait Shows {
    /// Whether every store shows the write.
    fn shows(&self, resource: &Resource, debt: &Debt) -> bool;

    /// Whether every store has reached this version.
    fn have_reached(&self, resource: &Resource, version: &ResourceVersion) -> bool;

    /// Returns the differences between a snapshot and the stores, at this place.
    fn differences(&self, resource: &Resource, place: &ObjectKey, snapshot: &Snapshot, at: Instant) -> Vec<Debt>;
}

/// Called once, to put a parked key back into its queue.
pub(super) type Wake = Box<dyn FnOnce() + Send>;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Clear,
    /// Wait until the store advances, or until this time.
    Wait {
        until: Option<Instant>,
    },
    ReadLive,
}

#[derive(Default)]
pub(super) struct State {
    owners: HashMap<Uid, Owner, FixedState>,
    resources: BTreeMap<Resource, Pending>,
    /// The number of reads for unknown outcomes that have begun, over all resources.
    reads_begun: u64,
    /// Since when the lists of a resource lack what was written before they began.
    lagging_since: BTreeMap<Resource, Instant>,
}

/// The result of a read about unknown outcomes.
#[derive(Default)]
pub(super) struct Settled {
    pub(super) wakes: Vec<Wake>,
    /// The requested names that exist.
    pub(super) found: Vec<(Uid, Istr)>,
    /// Whether an outcome became unknown after the read began.
    pub(super) needs_another: bool,
}

/// The work that is due.
#[derive(Default)]
pub(super) struct Due {
    pub(super) wakes: Vec<Wake>,
    /// The debts that the stores have not met for too long.
    pub(super) unmet: BTreeMap<Resource, Vec<Debt>>,
}

#[derive(Default)]
struct Owner {
    debts: Vec<(Resource, Debt)>,
    /// The time at which its key was first parked.
    since: Option<Instant>,
    /// The time of its last live read.
    live_read: Option<Instant>,
    /// The time at which its key is woken, whatever the stores show.
    wake_at: Option<Instant>,
    /// The time at which its debts were last reported as unmet for too long.
    reported: Option<Instant>,
    wake: Option<Wake>,
}

/// The owners to check when the store of a resource advances. Some of them may have nothing left.
#[derive(Default)]
struct Pending {
    by_version: BTreeMap<Ordered, BTreeSet<Uid>>,
    by_deleted: HashMap<Uid, Vec<Uid>, FixedState>,
    /// The owners with unknown outcomes, by namespace.
    unknown: BTreeMap<Istr, BTreeSet<Uid>>,
}

/// Versions in their order. Only comparable ones get here: any other counts as met.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ordered(ResourceVersion);

// === impl State ===

impl State {
    /// Adds a debt, and drops an older write to the same resource, which the newer one implies.
    pub(super) fn add(&mut self, owner: &Uid, resource: &Resource, mut debt: Debt, stores: &impl Shows) {
        let held = self.owners.entry(owner.clone()).or_default();
        if let Debt::Written { version, since, .. } = &mut debt {
            let same = |(other, old): &(Resource, Debt)| match old {
                Debt::Written { version, since, .. } if other == resource => Some((version.clone(), *since)),
                _ => None,
            };
            if let Some((old, behind_since)) = held.debts.iter().find_map(same) {
                if old.is_newer_than(version) {
                    return;
                }
                *since = behind_since;
                held.debts.retain(|(held, old)| held != resource || !matches!(old, Debt::Written { .. }));
            }
        }
        self.resources.entry(resource.clone()).or_default().expect(owner, resource, &debt, stores);
        held.debts.push((resource.clone(), debt));
    }

    /// Adds an unknown outcome; returns whether a read must be started.
    pub(super) fn add_unknown(&mut self, owner: &Uid, resource: &Resource, place: &ObjectKey) -> bool {
        let after_read = self.reads_begun;
        let pending = self.resources.entry(resource.clone()).or_default();
        let waiting = pending.unknown.entry(place.namespace.clone()).or_default();
        let is_first = waiting.is_empty();
        waiting.insert(owner.clone());
        let held = self.owners.entry(owner.clone()).or_default();
        // The later failure counts: an earlier read does not settle it.
        let is_same = |debt: &Debt| matches!(debt, Debt::Unknown { place: other, .. } if other == place);
        held.debts.retain(|(other, debt)| other != resource || !is_same(debt));
        held.debts.push((resource.clone(), Debt::Unknown { place: place.clone(), after_read }));
        is_first
    }

    /// Begins a read for the unknown outcomes of a namespace; returns its number, and the name of the one object to
    /// read, or an empty one for all. `None` if no read is needed.
    pub(super) fn read_begins(&mut self, resource: &Resource, namespace: &Istr) -> Option<(u64, Istr)> {
        let pending = self.resources.get_mut(resource)?;
        let waiting = pending.unknown.get_mut(namespace)?;
        let mut names = BTreeSet::new();
        waiting.retain(|owner| {
            let debts = self.owners.get(owner).map_or(&[] as &[_], |held| &held.debts);
            let places = debts.iter().filter(|(other, _)| other == resource).filter_map(|(_, debt)| debt.place());
            let mut is_waiting = false;
            for place in places.filter(|place| place.namespace == *namespace) {
                names.insert(place.name.clone());
                is_waiting = true;
            }
            is_waiting
        });
        if waiting.is_empty() {
            pending.unknown.remove(namespace);
            return None;
        }
        self.reads_begun += 1;
        let only = names.pop_first().filter(|_| names.is_empty());
        Some((self.reads_begun, only.unwrap_or_default()))
    }

    /// Ends a read for unknown outcomes: its differences to the stores become debts. Without a snapshot, the resource
    /// is not served, and there is nothing to wait for.
    pub(super) fn read_ends(
        &mut self,
        resource: &Resource,
        namespace: &Istr,
        number: u64,
        snapshot: Option<&Snapshot>,
        now: Instant,
        stores: &impl Shows,
    ) -> Settled {
        let mut settled = Settled::default();
        let waiting = self.resources.get_mut(resource).and_then(|pending| pending.unknown.remove(namespace));
        let Some(waiting) = waiting else { return settled };
        let mut later = BTreeSet::new();
        for owner in waiting {
            let Some(held) = self.owners.get_mut(&owner) else { continue };
            let mut places = Vec::new();
            held.debts.retain(|(other, debt)| match debt {
                Debt::Unknown { place, after_read } if other == resource && place.namespace == *namespace => {
                    let is_settled = *after_read < number;
                    if is_settled {
                        places.push(place.clone());
                    } else {
                        later.insert(owner.clone());
                    }
                    !is_settled
                }
                _ => true,
            });
            for place in places {
                let Some(snapshot) = snapshot else { continue };
                if snapshot.objects.iter().any(|object| object.key() == place) {
                    settled.found.push((owner.clone(), place.name.clone()));
                }
                for debt in stores.differences(resource, &place, snapshot, now) {
                    self.add(&owner, resource, debt, stores);
                }
            }
            if self.settle(&owner, stores) {
                settled.wakes.extend(self.forget(&owner));
            }
        }
        settled.needs_another = !later.is_empty();
        if settled.needs_another {
            self.resources.entry(resource.clone()).or_default().unknown.insert(namespace.clone(), later);
        }
        settled
    }

    /// Whether an owner may be reconciled. Debts that the stores show are dropped, and no others.
    pub(super) fn check(&mut self, owner: &Uid, now: Instant, can_read_live: bool, stores: &impl Shows) -> Found {
        if self.settle(owner, stores) {
            self.owners.remove(owner);
            return Found::Clear;
        }
        let Some(held) = self.owners.get_mut(owner) else { return Found::Clear };
        let since = *held.since.get_or_insert(now);
        if !can_read_live {
            return Found::Wait { until: None };
        }
        let again = held.live_read.map(|last| last + LIVE_READ_EVERY);
        let until = again.map_or(since + WAIT_MAX, |again| again.max(since + WAIT_MAX));
        if now < until {
            held.wake_at = Some(until);
            return Found::Wait { until: Some(until) };
        }
        held.live_read = Some(now);
        held.wake_at = None;
        Found::ReadLive
    }

    /// Keeps the waker of an owner's key; one key waits per owner, so the last counts.
    pub(super) fn park(&mut self, owner: &Uid, wake: Wake) {
        if let Some(held) = self.owners.get_mut(owner) {
            held.wake = Some(wake);
        }
    }

    /// Forgets an owner. Returns the waker of its key, if parked, because nothing else would wake it.
    pub(super) fn forget(&mut self, owner: &Uid) -> Option<Wake> {
        self.owners.remove(owner)?.wake
    }

    /// The store of a resource has advanced to this version, and shows these uids as deleted or terminating; without
    /// them, all deletions are checked. Returns the wakers.
    pub(super) fn advanced(
        &mut self,
        resource: &Resource,
        reached: Option<&ResourceVersion>,
        ended: Option<&[Uid]>,
        stores: &impl Shows,
    ) -> Vec<Wake> {
        let Some(pending) = self.resources.get_mut(resource) else { return Vec::new() };
        let mut owners = BTreeSet::new();
        while let Some(first) = pending.by_version.first_entry() {
            if !reached.is_some_and(|reached| reached.has_reached(&first.key().0)) {
                break;
            }
            owners.extend(first.remove());
        }
        match ended {
            Some(ended) => owners.extend(ended.iter().filter_map(|uid| pending.by_deleted.remove(uid)).flatten()),
            None => owners.extend(pending.by_deleted.drain().flat_map(|(_, owners)| owners)),
        }
        owners.iter().filter_map(|owner| self.settle(owner, stores).then(|| self.forget(owner))?).collect()
    }

    /// A list is complete that began at this time. A list that lacks an earlier write lags, or the server was restored
    /// from a backup: lists that lag catch up, so the debts are kept until all lists of [`PAST_FOR`] lack it. Old debts
    /// restart the watch, so there are such lists. Returns the wakers.
    pub(super) fn listed(&mut self, resource: &Resource, shown: &ResourceVersion, begun: Instant) -> Vec<Wake> {
        let is_lacking = |debt: &Debt| match debt {
            Debt::Written { version, at, .. }
            | Debt::Deleted { object: Shown { version, .. }, at }
            | Debt::Gone { object: Shown { version, .. }, at } => *at < begun && version.is_newer_than(shown),
            Debt::Unknown { .. } => false,
        };
        let owes = |held: &Owner| held.debts.iter().any(|(held, debt)| held == resource && is_lacking(debt));
        if !self.owners.values().any(owes) {
            self.lagging_since.remove(resource);
            return Vec::new();
        }
        let since = *self.lagging_since.entry(resource.clone()).or_insert(begun);
        if begun < since + PAST_FOR {
            return Vec::new();
        }
        self.restored(resource)
    }

    /// The server was restored from a backup: writes to this resource may never be shown. Returns the wakers.
    pub(super) fn restored(&mut self, resource: &Resource) -> Vec<Wake> {
        self.lagging_since.remove(resource);
        let mut woken = Vec::new();
        self.owners.retain(|_, held| {
            held.debts.retain(|(held, _)| held != resource);
            if held.debts.is_empty() {
                woken.extend(held.wake.take());
            }
            !held.debts.is_empty()
        });
        if let Some(pending) = self.resources.get_mut(resource) {
            pending.by_version.clear();
            pending.by_deleted.clear();
            pending.unknown.clear();
        }
        woken
    }

    /// Returns the work that is due now: keys to wake, and debts that are unmet for too long. Those are reported again
    /// after the same time.
    pub(super) fn due(&mut self, now: Instant) -> Due {
        let mut due = Due::default();
        for held in self.owners.values_mut() {
            if held.wake_at.is_some_and(|at| at <= now) {
                held.wake_at = None;
                due.wakes.extend(held.wake.take());
            }
            if held.reported.is_some_and(|reported| now < reported + WAIT_MAX) {
                continue;
            }
            for (resource, debt) in &held.debts {
                if debt.made_at().is_some_and(|at| at + WAIT_MAX <= now) {
                    held.reported = Some(now);
                    due.unmet.entry(resource.clone()).or_default().push(debt.clone());
                }
            }
        }
        due
    }

    /// Returns when something is due next.
    pub(super) fn next_due(&self, now: Instant) -> Option<Instant> {
        let of_owner = |held: &Owner| {
            let oldest = held.debts.iter().filter_map(|(_, debt)| debt.made_at()).min();
            let unmet = oldest.map(|at| held.reported.map_or(at, |reported| reported.max(at)) + WAIT_MAX);
            let wake = held.wake_at.filter(|_| held.wake.is_some());
            unmet.into_iter().chain(wake).min()
        };
        self.owners.values().filter_map(of_owner).min().map(|next| next.max(now))
    }

    /// Drops the debts that the stores of a resource show, of all owners; returns the wakers.
    pub(super) fn settle_all(&mut self, resource: &Resource, stores: &impl Shows) -> Vec<Wake> {
        let owes = |held: &Owner| held.debts.iter().any(|(other, _)| other == resource);
        let owners: BTreeSet<Uid> =
            self.owners.iter().filter(|(_, held)| owes(held)).map(|(owner, _)| owner.clone()).collect();
        owners.iter().filter_map(|owner| self.settle(owner, stores).then(|| self.forget(owner))?).collect()
    }

    /// Returns the number of owners with something pending.
    pub(super) fn len(&self) -> usize {
        self.owners.len()
    }

    /// Drops the debts that the stores show; returns whether none is left.
    fn settle(&mut self, owner: &Uid, stores: &impl Shows) -> bool {
        let Some(held) = self.owners.get_mut(owner) else { return true };
        held.debts.retain(|(resource, debt)| !stores.shows(resource, debt));
        for (resource, debt) in &held.debts {
            self.resources.entry(resource.clone()).or_default().expect(owner, resource, debt, stores);
        }
        held.debts.is_empty()
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("owners", &self.owners.len()).finish_non_exhaustive()
    }
}

// === impl Debt ===

impl Debt {
    /// Returns the place of a write with an unknown outcome.
    fn place(&self) -> Option<&ObjectKey> {
        match self {
            Self::Unknown { place, .. } => Some(place),
            Self::Written { .. } | Self::Deleted { .. } | Self::Gone { .. } => None,
        }
    }

    /// Returns since when the stores must show it; `None` if the server has to be asked first.
    fn made_at(&self) -> Option<Instant> {
        match self {
            Self::Written { since: at, .. } | Self::Deleted { at, .. } | Self::Gone { at, .. } => Some(*at),
            Self::Unknown { .. } => None,
        }
    }
}

// === impl Pending ===

impl Pending {
    /// Records when to check an owner again.
    fn expect(&mut self, owner: &Uid, resource: &Resource, debt: &Debt, stores: &impl Shows) {
        match debt {
            Debt::Written { version, .. } => self.expect_version(owner, version),
            Debt::Deleted { object, .. } | Debt::Gone { object, .. } => {
                let owners = self.by_deleted.entry(object.uid.clone()).or_default();
                if !owners.contains(owner) {
                    owners.push(owner.clone());
                }
                // A list may show the end of an object that the store has never shown.
                if !stores.have_reached(resource, &object.version) {
                    self.expect_version(owner, &object.version);
                }
            }
            // The reads know their owners.
            Debt::Unknown { .. } => {}
        }
    }

    fn expect_version(&mut self, owner: &Uid, version: &ResourceVersion) {
        self.by_version.entry(Ordered(version.clone())).or_default().insert(owner.clone());
    }
}

// === impl Ordered ===

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Ordering {
        let left = self.0.as_str();
        let right = other.0.as_str();
        left.len().cmp(&right.len()).then_with(|| left.cmp(right))
    }
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
