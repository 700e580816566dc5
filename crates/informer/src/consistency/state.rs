//! The consistency book as a plain state machine: no lock, no task, no clock of its own.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use steersman_base::{Istr, ObjectKey, Resource, ResourceVersion, Uid};
use tokio::time::Instant;

use super::{LIVE_READ_EVERY, Snapshot, WAIT_MAX};

/// Something that was done for an owner, and that the store of a resource may not show yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Debt {
    /// A write, made `at` this time: the store is to reach its version. It has been behind `since` then, for this write or one
    /// before it.
    Written { version: ResourceVersion, at: Instant, since: Instant },
    /// A deletion: the store is to show the object gone or terminating.
    Deleted { key: ObjectKey, uid: Uid, at: Instant },
    /// Nobody knows whether something was written to this object, or without a name, to which object of the namespace. Reads
    /// are counted; the first of the namespace that begins after the failure, or a later one, tells.
    Unknown { place: ObjectKey, after_read: u64 },
}

/// How a resource's stores look at what was done.
pub(super) trait Shows {
    /// Whether every store shows what the debt is about.
    fn shows(&self, resource: &Resource, debt: &Debt) -> bool;

    /// What of a snapshot the stores do not show, at this place.
    fn differences(&self, resource: &Resource, place: &ObjectKey, snapshot: &Snapshot, at: Instant) -> Vec<Debt>;
}

/// Called once, to put a parked key back into its queue.
pub(super) type Wake = Box<dyn FnOnce() + Send>;

/// What a check finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Clear,
    /// Not before the store moves on, or this time comes.
    Wait {
        until: Option<Instant>,
    },
    ReadLive,
}

#[derive(Default)]
pub(super) struct State {
    owners: HashMap<Uid, Owner, FixedState>,
    resources: BTreeMap<Resource, Pending>,
    /// How many reads for unknown outcomes have begun, over all resources.
    reads_begun: u64,
}

/// What a read about unknown outcomes has settled.
#[derive(Default)]
pub(super) struct Settled {
    pub(super) wakes: Vec<Wake>,
    /// The names that were asked for and are there.
    pub(super) found: Vec<(Uid, Istr)>,
    /// Whether an outcome became unknown after the read began.
    pub(super) needs_another: bool,
}

/// What is due.
#[derive(Default)]
pub(super) struct Due {
    pub(super) wakes: Vec<Wake>,
    /// What the stores have not shown for too long.
    pub(super) unmet: BTreeMap<Resource, Vec<Debt>>,
}

#[derive(Default)]
struct Owner {
    debts: Vec<(Resource, Debt)>,
    /// When its key was first turned away.
    since: Option<Instant>,
    /// When it was last told to read live.
    live_read: Option<Instant>,
    /// When its key is to be woken, whatever the stores show.
    wake_at: Option<Instant>,
    /// When its debts were last told to be unmet for too long.
    told: Option<Instant>,
    wake: Option<Wake>,
}

/// Which owners are to be looked at when the store of a resource moves on. May name some for whom nothing is left.
#[derive(Default)]
struct Pending {
    by_version: BTreeMap<Ordered, BTreeSet<Uid>>,
    by_deleted: HashMap<Uid, Vec<Uid>, FixedState>,
    /// Whose outcomes are unknown, by namespace.
    unknown: BTreeMap<Istr, BTreeSet<Uid>>,
}

/// Versions in their order. Only comparable ones get here: for any other, "cannot tell" is as good as met.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ordered(ResourceVersion);

// === impl State ===

impl State {
    /// Adds a debt, and drops an older write to the same resource, which the newer one implies.
    pub(super) fn add(&mut self, owner: &Uid, resource: &Resource, mut debt: Debt) {
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
        self.resources.entry(resource.clone()).or_default().expect(owner, &debt);
        held.debts.push((resource.clone(), debt));
    }

    /// An unknown outcome; the answer is whether somebody must begin to read.
    pub(super) fn add_unknown(&mut self, owner: &Uid, resource: &Resource, place: &ObjectKey) -> bool {
        let after_read = self.reads_begun;
        let pending = self.resources.entry(resource.clone()).or_default();
        let waiting = pending.unknown.entry(place.namespace.clone()).or_default();
        let is_first = waiting.is_empty();
        waiting.insert(owner.clone());
        let held = self.owners.entry(owner.clone()).or_default();
        // The later failure counts: an earlier read does not tell of it.
        let is_same = |debt: &Debt| matches!(debt, Debt::Unknown { place: other, .. } if other == place);
        held.debts.retain(|(other, debt)| other != resource || !is_same(debt));
        held.debts.push((resource.clone(), Debt::Unknown { place: place.clone(), after_read }));
        is_first
    }

    /// A read for the unknown outcomes of a namespace begins; the answer is its number, and the name of the one object that is
    /// asked for, or none for all. No read is needed if nobody waits for one.
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

    /// A read for unknown outcomes has answered: what it shows and the stores do not, they are to show. Without a snapshot,
    /// the resource is not served, and nothing can be waited for.
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
            let mut told = Vec::new();
            held.debts.retain(|(other, debt)| match debt {
                Debt::Unknown { place, after_read } if other == resource && place.namespace == *namespace => {
                    let is_told = *after_read < number;
                    if is_told {
                        told.push(place.clone());
                    } else {
                        later.insert(owner.clone());
                    }
                    !is_told
                }
                _ => true,
            });
            for place in told {
                let Some(snapshot) = snapshot else { continue };
                if snapshot.objects.iter().any(|object| object.key() == place) {
                    settled.found.push((owner.clone(), place.name.clone()));
                }
                for debt in stores.differences(resource, &place, snapshot, now) {
                    self.add(&owner, resource, debt);
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

    /// Whether an owner may be worked on. What the stores show is dropped, and nothing else.
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
        (held.live_read, held.wake_at) = (Some(now), None);
        Found::ReadLive
    }

    /// Keeps what is to be called when the owner may be worked on; one key waits per owner, so the last counts.
    pub(super) fn park(&mut self, owner: &Uid, wake: Wake) {
        if let Some(held) = self.owners.get_mut(owner) {
            held.wake = Some(wake);
        }
    }

    /// Forgets an owner. Its key, if parked, is to be woken: nobody else would.
    pub(super) fn forget(&mut self, owner: &Uid) -> Option<Wake> {
        self.owners.remove(owner)?.wake
    }

    /// The store of a resource has moved on to this version, and shows these uids gone or terminating; without them, all
    /// deletions are looked at. The answer is who is to be woken.
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

    /// The server was restored: what was written to this resource may never be seen. With a time, only if something was
    /// written before it that is newer than the version of the list that began then.
    pub(super) fn restored(&mut self, resource: &Resource, list: Option<(&ResourceVersion, Instant)>) -> Vec<Wake> {
        let is_proof = |debt: &Debt| match (debt, list) {
            (Debt::Written { version, at, .. }, Some((shown, begun))) => *at < begun && version.is_newer_than(shown),
            _ => false,
        };
        let owes = |held: &Owner| held.debts.iter().any(|(held, debt)| held == resource && is_proof(debt));
        if list.is_some() && !self.owners.values().any(owes) {
            return Vec::new();
        }
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

    /// What is due now: keys that are to be woken, and debts that are unmet for too long. Those are told again after as long.
    pub(super) fn due(&mut self, now: Instant) -> Due {
        let mut due = Due::default();
        for held in self.owners.values_mut() {
            if held.wake_at.is_some_and(|at| at <= now) {
                held.wake_at = None;
                due.wakes.extend(held.wake.take());
            }
            if held.told.is_some_and(|told| now < told + WAIT_MAX) {
                continue;
            }
            for (resource, debt) in &held.debts {
                if debt.made_at().is_some_and(|at| at + WAIT_MAX <= now) {
                    held.told = Some(now);
                    due.unmet.entry(resource.clone()).or_default().push(debt.clone());
                }
            }
        }
        due
    }

    /// When something is due next.
    pub(super) fn next_due(&self, now: Instant) -> Option<Instant> {
        let of_owner = |held: &Owner| {
            let oldest = held.debts.iter().filter_map(|(_, debt)| debt.made_at()).min();
            let unmet = oldest.map(|at| held.told.map_or(at, |told| told.max(at)) + WAIT_MAX);
            let wake = held.wake_at.filter(|_| held.wake.is_some());
            unmet.into_iter().chain(wake).min()
        };
        self.owners.values().filter_map(of_owner).min().map(|next| next.max(now))
    }

    /// Drops what the stores of a resource show, whoever it concerns; the answer is who is to be woken.
    pub(super) fn settle_all(&mut self, resource: &Resource, stores: &impl Shows) -> Vec<Wake> {
        let owes = |held: &Owner| held.debts.iter().any(|(other, _)| other == resource);
        let owners: BTreeSet<Uid> =
            self.owners.iter().filter(|(_, held)| owes(held)).map(|(owner, _)| owner.clone()).collect();
        owners.iter().filter_map(|owner| self.settle(owner, stores).then(|| self.forget(owner))?).collect()
    }

    /// How many owners have something pending.
    pub(super) fn len(&self) -> usize {
        self.owners.len()
    }

    /// Drops what the stores show; the answer is whether nothing is left.
    fn settle(&mut self, owner: &Uid, stores: &impl Shows) -> bool {
        let Some(held) = self.owners.get_mut(owner) else { return true };
        held.debts.retain(|(resource, debt)| !stores.shows(resource, debt));
        for (resource, debt) in &held.debts {
            self.resources.entry(resource.clone()).or_default().expect(owner, debt);
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
    /// Where something may have been written, if nobody knows.
    fn place(&self) -> Option<&ObjectKey> {
        match self {
            Self::Unknown { place, .. } => Some(place),
            Self::Written { .. } | Self::Deleted { .. } => None,
        }
    }

    /// Since when the stores are to show it; none if the server has to be asked first.
    fn made_at(&self) -> Option<Instant> {
        match self {
            Self::Written { since: at, .. } | Self::Deleted { at, .. } => Some(*at),
            Self::Unknown { .. } => None,
        }
    }
}

// === impl Pending ===

impl Pending {
    /// Notes when to look at an owner again.
    fn expect(&mut self, owner: &Uid, debt: &Debt) {
        match debt {
            Debt::Written { version, .. } => {
                self.by_version.entry(Ordered(version.clone())).or_default().insert(owner.clone());
            }
            Debt::Deleted { uid, .. } => {
                let owners = self.by_deleted.entry(uid.clone()).or_default();
                if !owners.contains(owner) {
                    owners.push(owner.clone());
                }
            }
            // The reads know whom they are for.
            Debt::Unknown { .. } => {}
        }
    }
}

// === impl Ordered ===

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Ordering {
        let (left, right) = (self.0.as_str(), other.0.as_str());
        left.len().cmp(&right.len()).then_with(|| left.cmp(right))
    }
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
