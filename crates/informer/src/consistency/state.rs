//! The consistency book as a plain state machine: no lock, no task, no clock of its own.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use steersman_base::{ObjectKey, Resource, ResourceVersion, Uid};
use tokio::time::Instant;

/// Something that was done for an owner, and that the store of a resource may not show yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Debt {
    /// A write: the store is to reach its version.
    Written { version: ResourceVersion, at: Instant },
    /// A deletion: the store is to show the object gone or terminating.
    Deleted { key: ObjectKey, uid: Uid },
    /// Nobody knows whether something was written: the store is to reach the version of a list made after it. Lists
    /// are counted per resource; the first that began after the failure, or a later one, gives the version.
    Unknown { after_list: u64, version: Option<ResourceVersion> },
}

/// How a resource's stores look at a debt.
pub(super) trait Shows {
    /// Whether every store shows what the debt is about.
    fn shows(&self, resource: &Resource, debt: &Debt) -> bool;
}

/// Called once, to put a parked key back into its queue.
pub(super) type Wake = Box<dyn FnOnce() + Send>;

/// What a check finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Clear,
    /// Not before the store moves on, or this time comes.
    Wait {
        until: Instant,
    },
    TimedOut,
}

#[derive(Default)]
pub(super) struct State {
    owners: HashMap<Uid, Owner, FixedState>,
    resources: BTreeMap<Resource, Pending>,
}

#[derive(Default)]
struct Owner {
    debts: Vec<(Resource, Debt)>,
    /// When its key was first turned away.
    since: Option<Instant>,
    wake: Option<Wake>,
}

/// Which owners are to be looked at when the store of a resource moves on. May name some for whom nothing is left.
#[derive(Default)]
struct Pending {
    by_version: BTreeMap<Ordered, BTreeSet<Uid>>,
    by_deleted: HashMap<Uid, Vec<Uid>, FixedState>,
    lists: Lists,
}

/// The lists made for unknown outcomes.
#[derive(Default)]
struct Lists {
    begun: u64,
    waiting: BTreeSet<Uid>,
}

/// Versions in their order. Only comparable ones get here: for any other, "cannot tell" is as good as met.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ordered(ResourceVersion);

// === impl State ===

impl State {
    /// Adds a debt, and drops an older write to the same resource, which the newer one implies.
    pub(super) fn add(&mut self, owner: &Uid, resource: &Resource, debt: Debt) {
        let held = self.owners.entry(owner.clone()).or_default();
        if let Debt::Written { version, .. } = &debt {
            let newer = |old: &Debt| matches!(old, Debt::Written { version: old, .. } if old.is_newer_than(version));
            if held.debts.iter().any(|(held, old)| held == resource && newer(old)) {
                return;
            }
            held.debts.retain(|(held, old)| held != resource || !matches!(old, Debt::Written { .. }));
        }
        self.resources.entry(resource.clone()).or_default().expect(owner, &debt);
        held.debts.push((resource.clone(), debt));
    }

    /// An unknown outcome; the answer is whether somebody must make a list.
    pub(super) fn add_unknown(&mut self, owner: &Uid, resource: &Resource) -> bool {
        let lists = &mut self.resources.entry(resource.clone()).or_default().lists;
        let (after_list, is_first) = (lists.begun, lists.waiting.is_empty());
        lists.waiting.insert(owner.clone());
        self.add(owner, resource, Debt::Unknown { after_list, version: None });
        is_first
    }

    /// A list for unknown outcomes begins; the answer is its number.
    pub(super) fn list_begins(&mut self, resource: &Resource) -> u64 {
        let lists = &mut self.resources.entry(resource.clone()).or_default().lists;
        lists.begun += 1;
        lists.begun
    }

    /// A list for unknown outcomes has answered; the answer is whether another is needed, because an outcome became
    /// unknown after this one began.
    pub(super) fn list_ends(&mut self, resource: &Resource, number: u64, found: &ResourceVersion) -> bool {
        let Some(pending) = self.resources.get_mut(resource) else { return false };
        let waiting = std::mem::take(&mut pending.lists.waiting);
        for owner in waiting {
            let Some(held) = self.owners.get_mut(&owner) else { continue };
            for (_, debt) in held.debts.iter_mut().filter(|(held, _)| held == resource) {
                let Debt::Unknown { after_list, version: version @ None } = debt else { continue };
                if *after_list < number {
                    *version = Some(found.clone());
                    pending.expect(&owner, debt);
                } else {
                    pending.lists.waiting.insert(owner.clone());
                }
            }
        }
        !pending.lists.waiting.is_empty()
    }

    /// Whether an unknown outcome still waits for a list of this resource.
    pub(super) fn needs_list(&mut self, resource: &Resource) -> bool {
        let Some(pending) = self.resources.get_mut(resource) else { return false };
        pending.lists.waiting.retain(|owner| self.owners.contains_key(owner));
        !pending.lists.waiting.is_empty()
    }

    /// Whether an owner may be worked on. What the stores show is dropped; when the wait has lasted too long, all is.
    pub(super) fn check(&mut self, owner: &Uid, now: Instant, wait_max: Duration, stores: &impl Shows) -> Found {
        if self.settle(owner, stores) {
            self.owners.remove(owner);
            return Found::Clear;
        }
        let Some(held) = self.owners.get_mut(owner) else { return Found::Clear };
        let until = *held.since.get_or_insert(now) + wait_max;
        if now < until {
            return Found::Wait { until };
        }
        self.owners.remove(owner);
        Found::TimedOut
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
            (Debt::Written { version, at }, Some((shown, begun))) => *at < begun && version.is_newer_than(shown),
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
            pending.lists.waiting.clear();
        }
        woken
    }

    /// Takes the wakes of those who have waited too long, and says when the next one will have.
    pub(super) fn overdue(&mut self, now: Instant, wait_max: Duration) -> (Vec<Wake>, Option<Instant>) {
        let mut next: Option<Instant> = None;
        let mut woken = Vec::new();
        for held in self.owners.values_mut().filter(|held| held.wake.is_some()) {
            let Some(until) = held.since.map(|since| since + wait_max) else { continue };
            if until <= now {
                woken.extend(held.wake.take());
            } else {
                next = Some(next.map_or(until, |next| next.min(until)));
            }
        }
        (woken, next)
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

// === impl Pending ===

impl Pending {
    /// Notes when to look at an owner again.
    fn expect(&mut self, owner: &Uid, debt: &Debt) {
        match debt {
            Debt::Written { version, .. } | Debt::Unknown { version: Some(version), .. } => {
                self.by_version.entry(Ordered(version.clone())).or_default().insert(owner.clone());
            }
            Debt::Deleted { uid, .. } => {
                let owners = self.by_deleted.entry(uid.clone()).or_default();
                if !owners.contains(owner) {
                    owners.push(owner.clone());
                }
            }
            Debt::Unknown { version: None, .. } => {
                self.lists.waiting.insert(owner.clone());
            }
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
