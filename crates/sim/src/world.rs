//! The world as a recorder of the store knows it: rebuilt from [`Change`]s, indexed, with a bounded past.
//!
//! 1. Each object is parsed once, when its change comes in. Invariants ask for what is parsed, and for the raw value where
//!    that is not enough.
//! 2. What a manager had been shown is a question about the past: [`World::as_shown`] answers it from the versions that are
//!    kept for an hour of the world's time.
//! 3. What a controller wrote in a pass was decided before, and nobody recorded when. [`World::window`] is the time in which
//!    it can have been.
//!
//! Pure: no clock, no client, no order that hangs on a hasher.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use steersman_base::{Istr, ObjectKey, Time, Uid};

use crate::record::{Change, Shown};

mod history;
mod object;
mod others;
mod parse;
mod quotas;
#[cfg(test)]
mod tests;
mod workloads;

pub use history::{History, Since, Version};
pub use object::{
    Body, Deployment, DeploymentStatus, Endpoint, Endpoints, Namespace, Node, Object, Owner, Phase, Pod, Secret,
    Service, Set, SetStatus, Slice, Taint, Toleration,
};
pub use others::{Attachment, Autoscaler, Claim, Metric, Request, Volume, zone_of};
pub(crate) use parse::conditions;
pub use quotas::{DeviceClaim, Quota};
pub use workloads::{
    Budget, BudgetStatus, CronJob, DaemonSet, DaemonSetStatus, Indexes, Job, JobStatus, Place, StatefulSet,
    StatefulSetStatus,
};

/// How long a pass may take from what it read to its last write, in seconds: a request that is tried again after 429, a
/// response that is waited for, which managers do for 65 s, and the reads that follow.
pub const PASS_SECONDS: i64 = 75;
/// The assumed maximum lag of a manager's caches where it was not recorded, in seconds.
pub const ASSUMED_LAG_SECONDS: i64 = 10;

/// Resource, namespace and name.
pub type Address = (Istr, ObjectKey);

/// The world.
#[derive(Debug, Default)]
pub struct World {
    revision: u64,
    now: Option<Time>,
    objects: BTreeMap<Istr, BTreeMap<ObjectKey, Entry>>,
    /// The objects that exist, by uid.
    by_uid: BTreeMap<Uid, Address>,
    /// The objects that exist, by the uids of their owners.
    dependents: BTreeMap<Uid, BTreeSet<Address>>,
    /// The objects whose remembered versions name a controller, by its uid.
    controlled: BTreeMap<Uid, BTreeSet<Address>>,
    /// The objects that exist, by namespace.
    contents: BTreeMap<Istr, BTreeSet<Address>>,
    /// Kinds of which there was an object.
    kinds: BTreeSet<Istr>,
    /// How many pods have ended and are still there.
    ended_pods: usize,
    /// Revisions and their times, for as long as versions are kept; all, and by resource.
    times: VecDeque<(u64, Time)>,
    times_of: BTreeMap<Istr, VecDeque<(u64, Time)>>,
    /// Deleted objects, and since when: they are dropped with their versions.
    gone: VecDeque<(Time, Address)>,
    last: Step,
}

#[derive(Debug, Default)]
struct Entry {
    history: History,
    raw: Option<Arc<Value>>,
}

/// The last change, parsed.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// The object before the write; none if it was created.
    pub before: Option<Arc<Object>>,
    /// The object after the write; none if it is deleted.
    pub after: Option<Arc<Object>>,
}

/// A time in the past up to now, as one manager saw it: what it wrote may have been decided at any moment in it.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    world: &'a World,
    change: &'a Change,
}

/// The world as it was shown to a manager.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    world: &'a World,
    shown: &'a Shown,
}

// === impl World ===

impl World {
    /// Takes in a change. Changes come in the order of their revisions.
    pub fn apply(&mut self, change: &Change) {
        self.revision = self.revision.max(change.revision);
        self.now = self.now.max(Some(change.at));
        self.times.push_back((change.revision, change.at));
        self.times_of.entry(change.resource.clone()).or_default().push_back((change.revision, change.at));
        let parse = |value: &Arc<Value>| Arc::new(Object::parse(&change.resource, &change.key, value));
        let address: Address = (change.resource.clone(), change.key.clone());
        let entry = self.objects.entry(address.0.clone()).or_default().entry(address.1.clone()).or_default();
        let is_known = entry.history.last().is_some();
        if let Some(before) = change.before.as_ref().filter(|_| !is_known) {
            // The recorder began later than the object.
            let object = Some(parse(before));
            entry.history.begin(Version { revision: 0, at: change.at, by: crate::record::Actor::Server, object });
        }
        let before = entry.history.now().cloned();
        let after = change.after.as_ref().map(parse);
        let revision = change.revision;
        let at = change.at;
        let by = change.by.clone();
        entry.history.push(Version { revision, at, by, object: after.clone() });
        entry.raw = change.after.clone();
        if let Some(before) = &before {
            self.unindex(before, &address);
        }
        match &after {
            Some(after) => self.index(after, &address),
            None => self.gone.push_back((change.at, address)),
        }
        self.last = Step { before, after };
        self.forget(change.at.plus_seconds(-history::SECONDS_MAX));
    }

    fn index(&mut self, object: &Arc<Object>, address: &Address) {
        self.by_uid.insert(object.uid.clone(), address.clone());
        if !self.kinds.contains(&object.kind) {
            self.kinds.insert(object.kind.clone());
        }
        for owner in &object.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(address.clone());
        }
        if let Some(owner) = object.controller() {
            self.controlled.entry(owner.uid.clone()).or_default().insert(address.clone());
        }
        if !object.key.namespace.is_empty() {
            self.contents.entry(object.key.namespace.clone()).or_default().insert(address.clone());
        }
        self.ended_pods += usize::from(is_ended_pod(object));
    }

    fn unindex(&mut self, object: &Arc<Object>, address: &Address) {
        if self.by_uid.get(&object.uid) == Some(address) {
            self.by_uid.remove(&object.uid);
        }
        for owner in &object.owners {
            remove(&mut self.dependents, &owner.uid, address);
        }
        if !object.key.namespace.is_empty() {
            remove(&mut self.contents, &object.key.namespace, address);
        }
        self.ended_pods -= usize::from(is_ended_pod(object));
    }

    /// Forgets what happened before `oldest`.
    fn forget(&mut self, oldest: Time) {
        for times in self.times_of.values_mut().chain([&mut self.times]) {
            while times.front().is_some_and(|(_, at)| *at < oldest) {
                times.pop_front();
            }
        }
        while let Some((_, address)) = self.gone.front().filter(|(at, _)| *at < oldest).cloned() {
            self.gone.pop_front();
            let Some(entries) = self.objects.get_mut(&address.0) else { continue };
            let is_gone =
                |entry: &Entry| entry.history.last().is_none_or(|last| last.object.is_none() && last.at < oldest);
            let Some(entry) = entries.get(&address.1).filter(|entry| is_gone(entry)) else { continue };
            let owners: BTreeSet<Uid> =
                entry.history.since(0, None).objects().flatten().filter_map(controller).collect();
            entries.remove(&address.1);
            for owner in &owners {
                remove(&mut self.controlled, owner, &address);
            }
        }
    }

    /// The revision of the newest change.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The time of the newest change.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now.unwrap_or(Time::from_unix(0))
    }

    /// The newest change, parsed.
    #[must_use]
    pub fn last(&self) -> &Step {
        &self.last
    }

    /// An object as it is.
    #[must_use]
    pub fn get(&self, resource: &str, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.history(resource, key)?.now()
    }

    /// An object as it is, as it was sent.
    #[must_use]
    pub fn raw(&self, resource: &str, key: &ObjectKey) -> Option<&Arc<Value>> {
        self.objects.get(resource)?.get(key)?.raw.as_ref()
    }

    /// The versions of an object.
    #[must_use]
    pub fn history(&self, resource: &str, key: &ObjectKey) -> Option<&History> {
        self.objects.get(resource)?.get(key).map(|entry| &entry.history)
    }

    /// The object with this uid, if it exists.
    #[must_use]
    pub fn by_uid(&self, uid: &Uid) -> Option<&Arc<Object>> {
        let (resource, key) = self.by_uid.get(uid)?;
        self.get(resource, key)
    }

    /// All objects of a resource that exist, by key. For the end of a run: it walks.
    pub fn all(&self, resource: &str) -> impl Iterator<Item = &Arc<Object>> {
        self.objects.get(resource).into_iter().flat_map(BTreeMap::values).filter_map(|entry| entry.history.now())
    }

    /// All objects that exist. For the end of a run: it walks.
    pub fn everything(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.objects.values().flat_map(BTreeMap::values).filter_map(|entry| entry.history.now())
    }

    /// The objects of a resource that the owner with this uid controls.
    pub fn controlled(&self, resource: &str, uid: &Uid) -> impl Iterator<Item = &Arc<Object>> {
        let addresses = self.dependents.get(uid).into_iter().flatten().filter(move |(of, _)| of == resource);
        addresses
            .filter_map(|(resource, key)| self.get(resource, key))
            .filter(move |object| object.is_controlled_by(uid))
    }

    /// The objects that name the owner with this uid.
    pub fn dependents(&self, uid: &Uid) -> impl Iterator<Item = &Arc<Object>> {
        let addresses = self.dependents.get(uid).into_iter().flatten();
        addresses.filter_map(|(resource, key)| self.get(resource, key))
    }

    /// The objects in a namespace.
    pub fn content(&self, namespace: &str) -> impl Iterator<Item = &Arc<Object>> {
        let addresses = self.contents.get(namespace).into_iter().flatten();
        addresses.filter_map(|(resource, key)| self.get(resource, key))
    }

    /// Whether there ever was an object of this kind.
    #[must_use]
    pub fn knows_kind(&self, kind: &str) -> bool {
        self.kinds.contains(kind)
    }

    /// How many pods have ended and are still there.
    #[must_use]
    pub fn ended_pods(&self) -> usize {
        self.ended_pods
    }

    /// Returns the versions of all objects of a resource. It iterates.
    pub fn all_histories(&self, resource: &str) -> impl Iterator<Item = &History> {
        self.objects.get(resource).into_iter().flat_map(BTreeMap::values).map(|entry| &entry.history)
    }

    /// The versions of all objects of a resource that the owner with this uid controls or controlled.
    pub fn histories(&self, resource: &str, uid: &Uid) -> impl Iterator<Item = &History> {
        let addresses = self.controlled.get(uid).into_iter().flatten();
        let addresses = addresses.filter(move |(of, _)| of == resource);
        addresses.filter_map(|(resource, key)| self.history(resource, key))
    }

    /// The world as it was shown to a manager.
    #[must_use]
    pub fn as_shown<'a>(&'a self, shown: &'a Shown) -> Sight<'a> {
        Sight { world: self, shown }
    }

    /// The time in which the change can have been decided.
    #[must_use]
    pub fn window<'a>(&'a self, change: &'a Change) -> Window<'a> {
        Window { world: self, change }
    }

    /// The versions of an object from the one that was valid at the beginning of a second.
    #[must_use]
    pub fn since_time<'a>(&self, history: &'a History, time: Time) -> Since<'a> {
        history.since(self.revision_before(time), None)
    }

    /// The time up to which the state of a resource at a revision was the newest: none if it still is.
    fn newest_until(&self, resource: &str, revision: u64) -> Option<Time> {
        let times = self.times_of.get(resource)?;
        let after = times.partition_point(|(known, _)| *known <= revision);
        times.get(after).map(|(_, at)| *at)
    }

    /// The newest revision before a time; zero if none is known.
    fn revision_before(&self, time: Time) -> u64 {
        let first = self.times.partition_point(|(_, at)| *at < time);
        if first == 0 { 0 } else { self.times[first - 1].0 }
    }
}

fn remove<K: Ord>(index: &mut BTreeMap<K, BTreeSet<Address>>, key: &K, address: &Address) {
    if let Some(addresses) = index.get_mut(key) {
        addresses.remove(address);
        if addresses.is_empty() {
            index.remove(key);
        }
    }
}

fn is_ended_pod(object: &Object) -> bool {
    object.pod().is_some_and(|pod| pod.phase == Phase::Ended)
}

fn controller(object: &Arc<Object>) -> Option<Uid> {
    object.controller().map(|owner| owner.uid.clone())
}

// === impl Sight ===

impl<'a> Sight<'a> {
    /// An object as it was shown.
    #[must_use]
    pub fn get(&self, resource: &str, key: &ObjectKey) -> Option<&'a Arc<Object>> {
        let revision = *self.shown.revisions.get(resource)?;
        self.world.history(resource, key)?.at(revision, self.shown.hidden.get(resource))
    }

    /// The objects of a resource that the owner with this uid controlled, as they were shown.
    pub fn controlled(&self, resource: &str, uid: &Uid) -> impl Iterator<Item = &'a Arc<Object>> {
        let revision = self.shown.revisions.get(resource).copied().unwrap_or(0);
        let hidden = self.shown.hidden.get(resource);
        let shown = self.world.histories(resource, uid).filter_map(move |history| history.at(revision, hidden));
        shown.filter(move |object| object.is_controlled_by(uid))
    }
}

// === impl Window ===

impl<'a> Window<'a> {
    /// The first revision of the window, for one resource.
    #[must_use]
    pub fn begin(&self, resource: &str) -> u64 {
        let Some(shown) = &self.change.shown else {
            return self.world.revision_before(self.change.at.plus_seconds(-ASSUMED_LAG_SECONDS - PASS_SECONDS));
        };
        let revision = shown.revisions.get(resource).copied().unwrap_or(0);
        let newest = self.world.newest_until(resource, revision).unwrap_or(self.change.at);
        let begin = self.world.revision_before(newest.plus_seconds(-PASS_SECONDS));
        // A cache may have made up for much within the pass.
        shown.since.get(resource).map_or(begin, |since| begin.min(*since))
    }

    fn hidden(&self, resource: &str) -> Option<&'a BTreeSet<u64>> {
        self.change.shown.as_ref()?.hidden.get(resource)
    }

    /// The newest revision that there can have been when the request was sent.
    fn sent(&self) -> u64 {
        let sent = self.change.shown.as_ref().and_then(|shown| shown.sent);
        sent.map_or(u64::MAX, |sent| self.world.revision_before(sent))
    }

    /// Returns the versions of an object in the window, without those before the last write that its author had made when the
    /// request was sent.
    #[must_use]
    pub fn of(&self, resource: &str, history: &'a History) -> Since<'a> {
        history.since(self.begin(resource), self.hidden(resource)).known_to(&self.change.by, self.sent())
    }

    /// Returns the versions of an object in the window, of any author, without those that were written after the request was
    /// sent.
    #[must_use]
    pub fn until_sent(&self, resource: &str, history: &'a History) -> Since<'a> {
        self.all_of(resource, history).until(self.sent())
    }

    /// Returns the versions of an object in the window, of any author.
    #[must_use]
    pub fn of_key(&self, resource: &str, key: &ObjectKey) -> Option<Since<'a>> {
        Some(self.all_of(resource, self.world.history(resource, key)?))
    }

    /// Returns the versions of an object in the window, of any author.
    #[must_use]
    pub fn all_of(&self, resource: &str, history: &'a History) -> Since<'a> {
        history.since(self.begin(resource), self.hidden(resource))
    }

    /// The moments of the window at which objects of a resource that the owner with this uid controls changed, newest first;
    /// none if there are more than `max`. At each, [`Moment::controlled`] tells what they were.
    #[must_use]
    pub fn moments(&self, resource: &'a str, uid: &'a Uid, max: usize) -> Option<Vec<Moment<'a>>> {
        let begin = self.begin(resource);
        let mut revisions = BTreeSet::from([begin]);
        for history in self.world.histories(resource, uid) {
            revisions.extend(history.revisions_after(begin));
        }
        // A moment is the time right before a change, too.
        revisions.remove(&self.change.revision);
        revisions.insert(self.change.revision.saturating_sub(1));
        let hidden = self.hidden(resource);
        let moment = |revision, hidden| Moment { world: self.world, resource, uid, revision, hidden };
        if revisions.len() > max {
            return None;
        }
        let of = |revision: &u64| {
            let seen = moment(*revision, hidden);
            let live = hidden.map(|_| moment(*revision, None));
            [Some(seen), live].into_iter().flatten()
        };
        Some(revisions.iter().rev().flat_map(of).collect())
    }
}

/// One moment, as far as the objects of one owner go.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    world: &'a World,
    resource: &'a str,
    uid: &'a Uid,
    revision: u64,
    hidden: Option<&'a BTreeSet<u64>>,
}

// === impl Moment ===

impl<'a> Moment<'a> {
    /// The objects that were there at the moment: those that the owner controlled then, and those that nobody controlled then
    /// and that it adopted later.
    pub fn controlled(self) -> impl Iterator<Item = &'a Arc<Object>> {
        let histories = self.world.histories(self.resource, self.uid);
        histories.filter_map(move |history| {
            let object = history.at(self.revision, self.hidden)?;
            let is_adopted = || history.since(self.revision, None).ever(|later| later.is_controlled_by(self.uid));
            match object.controller() {
                Some(owner) => owner.uid == *self.uid,
                None => is_adopted(),
            }
            .then_some(object)
        })
    }
}
