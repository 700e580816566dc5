//! The API server of a world, and the recorder at its store: every write is observed when it is committed, with its
//! author.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use steersman_apiserver::aggregated::Aggregated;
use steersman_apiserver::store::memory::Memory;
use steersman_apiserver::store::{
    Change as StoreChange, Collection, Events, Expect, Object, Page, Range, Storage, Unavailable, Wanted, Write,
    WriteConflict,
};
use steersman_apiserver::{ApiServer, Options};
use steersman_base::watch;
use steersman_base::{Clock, Istr, ObjectKey};
use steersman_runtime::decisions::{Filter, Log};
use tokio::time::Instant;

use crate::invariants::{self, Count, GARBAGE, NAMESPACE, QUOTA, Suite, Violation};
use crate::record::{Actor, Change, Shown};
use crate::trace::{Trace, hash_of};
use crate::world::World;

mod tree;

use tree::tree_of;

tokio::task_local! {
    /// The author of the current request, and what it had been shown.
    pub(crate) static ASKED_BY: (Actor, Option<Arc<Shown>>);
}

/// A store that reports every write. Clones share the recorder.
#[derive(Clone)]
pub struct Recorder(Arc<Shared>);

struct Shared {
    inner: Memory,
    clock: Clock,
    start: Instant,
    state: Mutex<State>,
}

struct State {
    world: World,
    suite: Suite,
    trace: Trace,
    violations: Vec<Violation>,
    /// Told of the first violation.
    failed: watch::Sender<bool>,
    /// Objects as trees, with the revision at which they were so.
    trees: Objects,
    /// Which revision was reached when, one entry per instant.
    revisions: VecDeque<(Instant, u64)>,
    writes: u64,
    /// Writes that are not heartbeats, since the last check.
    restless: Vec<String>,
    /// What controllers wrote, by the number of their manager's life.
    written: BTreeMap<usize, BTreeSet<(Istr, Istr, ObjectKey)>>,
}

/// Objects as trees, by resource and key, with the revision at which they were so.
pub type Objects = BTreeMap<(Istr, ObjectKey), (u64, Arc<Value>)>;

/// What a recorder saw.
#[derive(Debug)]
pub struct Recorded {
    /// The trace.
    pub trace: Trace,
    /// What did not hold.
    pub violations: Vec<Violation>,
    /// How often each invariant was judged.
    pub counts: BTreeMap<&'static str, Count>,
    /// How many writes were checked.
    pub writes: u64,
    /// The objects that were there in the end, without events.
    pub objects: Objects,
}

/// The resource of the addresses of Services.
const ADDRESSES: &str = "ipaddresses.networking.k8s.io";
/// The resource of quotas.
const QUOTAS: &str = "resourcequotas";
/// The reasons of events that are sent again and again, as upstream: what a claim, a pod, an autoscaler or a StatefulSet
/// waits for (the last, for ever, if it has adopted a pod without the volumes of its claims: the server refuses to change them). A
/// budget with a pod whose owner has no scale, such as a Job, is tried again with back-off (docs/differences.md).
const REMINDERS: [&str; 14] = [
    "FailedBinding",
    "WaitForFirstConsumer",
    "WaitForPodScheduled",
    "ExternalProvisioning",
    "ProvisioningFailed",
    "FailedAttachVolume",
    "FailedGetScale",
    "FailedGetExternalMetric",
    "FailedGetResourceMetric",
    "FailedComputeMetricsReplicas",
    "AmbiguousSelector",
    "FailedScheduling",
    "FailedUpdate",
    "CalculateExpectedPodCountFailed",
];
/// More is not needed to see why a world is not quiet.
const RESTLESS_MAX: usize = 20;
/// How far back lists can go.
const REVISIONS_MAX: usize = 20_000;

// === impl Recorder ===

impl Recorder {
    /// A server whose store is recorded, with these APIs beside its own.
    #[must_use]
    pub fn server(
        clock: &Clock,
        options: invariants::Options,
        aggregated: Option<Arc<dyn Aggregated>>,
        trace_lines_max: usize,
    ) -> (ApiServer, Self) {
        let recorder = Self(Arc::new(Shared {
            inner: Memory::new(clock.clone()),
            clock: clock.clone(),
            start: Instant::now(),
            state: Mutex::new(State {
                world: World::default(),
                suite: Suite::new(options),
                trace: Trace::new(trace_lines_max),
                violations: Vec::new(),
                failed: watch::Sender::new(false),
                trees: BTreeMap::new(),
                revisions: VecDeque::new(),
                writes: 0,
                restless: Vec::new(),
                written: BTreeMap::new(),
            }),
        }));
        let storage: Arc<dyn Storage> = Arc::new(recorder.clone());
        let options = Options::default().clock(clock.clone()).storage(storage).aggregated(aggregated);
        let server = ApiServer::new(options);
        (server, recorder)
    }

    /// Adds a line to the trace.
    pub fn note(&self, text: std::fmt::Arguments<'_>) {
        let micros = self.0.start.elapsed().as_micros();
        self.0.state.lock().trace.line(micros, text);
    }

    /// Adds a line to the trace that does not count for its hash.
    pub fn aside(&self, text: std::fmt::Arguments<'_>) {
        let micros = self.0.start.elapsed().as_micros();
        self.0.state.lock().trace.aside(micros, text);
    }

    /// Adds a violation that no invariant found.
    pub fn fail(&self, invariant: &'static str, text: String) {
        let revision = self.0.inner.revision();
        self.0.state.lock().violated(vec![Violation { invariant, text, revision }]);
    }

    /// Waits until something does not hold.
    pub async fn failed(&self) {
        let mut failed = self.0.state.lock().failed.subscribe();
        // The sender lives as long as the recorder.
        drop(failed.wait_for(|failed| *failed).await);
    }

    /// Whether the world has healed. Nothing is counted.
    #[must_use]
    pub fn is_healed(&self) -> bool {
        let state = self.0.state.lock();
        state.suite.is_healed(&state.world)
    }

    /// Judges a world that should have healed.
    pub fn check_healed(&self) {
        let mut state = self.0.state.lock();
        let state = &mut *state;
        let found = state.suite.healed(&state.world);
        state.violated(found);
    }

    /// Judges whether all that the managers wrote is in their decision logs, with a reason.
    pub(crate) fn check_reasons(&self, logs: &BTreeMap<usize, Log>) {
        let mut state = self.0.state.lock();
        let state = &mut *state;
        let mut found = 0;
        let mut excused = 0;
        let mut missing = Vec::new();
        for (life, log) in logs {
            let entries = log.entries(&Filter::default());
            // By object: a controller with two queues has two names in the log.
            let mut decided = BTreeSet::new();
            let is_cut = log.dropped() > 0 || entries.iter().any(|entry| entry.more_decisions > 0);
            for entry in &entries {
                for decision in entry.decisions.iter().filter(|decision| !decision.why.is_empty()) {
                    let Some(write) = &decision.write else { continue };
                    let resource = write.resource.split('/').next().unwrap_or_default();
                    decided.insert((resource, write.object.as_str()));
                }
            }
            for (controller, resource, key) in state.written.get(life).into_iter().flatten() {
                let object = key.to_string();
                let all = format!("{}/*", key.namespace);
                let resource = resource.strip_prefix("custom/").unwrap_or(resource);
                let is_decided = |object: &str| decided.contains(&(resource, object));
                if is_decided(&object) || is_decided(&all) {
                    found += 1;
                } else if is_cut {
                    excused += 1;
                } else {
                    missing.push(format!("{life}/{controller} wrote {resource} {object}, and says nothing of it"));
                }
            }
        }
        let violations = state.suite.reasons(found, excused, missing, self.0.inner.revision());
        state.violated(violations);
    }

    /// Returns the writes since the last check that are not heartbeats.
    #[must_use]
    pub fn take_restless(&self) -> Vec<String> {
        std::mem::take(&mut self.0.state.lock().restless)
    }

    /// The revision that was the newest one at an instant, or the oldest one that is remembered.
    #[must_use]
    pub fn revision_at(&self, at: Instant) -> u64 {
        let state = self.0.state.lock();
        let behind = state.revisions.partition_point(|(when, _)| *when <= at);
        match behind.checked_sub(1).and_then(|index| state.revisions.get(index)) {
            Some((_, revision)) => *revision,
            None => state.revisions.front().map_or(1, |(_, revision)| *revision),
        }
    }

    /// All that was seen.
    #[must_use]
    pub fn finish(&self) -> Recorded {
        let mut state = self.0.state.lock();
        Recorded {
            trace: std::mem::replace(&mut state.trace, Trace::new(0)),
            violations: std::mem::take(&mut state.violations),
            counts: state.suite.counts().clone(),
            writes: state.writes,
            objects: std::mem::take(&mut state.trees),
        }
    }

    fn record(
        &self,
        collection: &Collection,
        key: &ObjectKey,
        before: Option<&Arc<Object>>,
        stages: &[(u64, Option<&Object>)],
    ) {
        let (by, shown) = match ASKED_BY.try_with(Clone::clone) {
            Ok(asked) if !is_servers_own(&collection.name, &asked.0) => asked,
            Ok(_) => (Actor::Server, None),
            Err(_) => (Actor::Server, None),
        };
        let at = self.0.clock.now();
        let micros = self.0.start.elapsed().as_micros();
        let mut state = self.0.state.lock();
        let state = &mut *state;
        let place = (collection.name.clone(), key.clone());
        let is_telling = is_telling(&collection.name);
        let mut held = before.filter(|_| !is_telling).and_then(|object| state.tree(&place, object));
        let mut exists = before.is_some();
        for (revision, after) in stages {
            let verb = match (exists, after) {
                (false, _) => "create",
                (true, Some(_)) => "update",
                (true, None) => "delete",
            };
            exists = after.is_some();
            let hash = after.map_or(0, |object| hash_in_trace(&collection.name, object));
            state.trace.line(micros, format_args!("r{revision} {by} {verb} {} {key} {hash:016x}", collection.name));
            state.writes += 1;
            if let Actor::Controller { manager, name } = &by
                && !is_telling
                && !is_heartbeat(&collection.name, &by)
            {
                let what = (name.clone(), collection.name.clone(), key.clone());
                state.written.entry(*manager).or_default().insert(what);
            }
            if !is_heartbeat(&collection.name, &by) {
                let event = after.filter(|_| is_telling);
                state.unrest(event, || format!("{by} {verb} {} {key}", collection.name));
            }
            if is_telling {
                continue;
            }
            let tree = after.and_then(tree_of);
            match &tree {
                Some(tree) => drop(state.trees.insert(place.clone(), (*revision, Arc::clone(tree)))),
                None => drop(state.trees.remove(&place)),
            }
            let change = Change {
                revision: *revision,
                at,
                resource: collection.name.clone(),
                key: key.clone(),
                before: std::mem::replace(&mut held, tree.clone()),
                after: tree,
                by: by.clone(),
                shown: shown.clone(),
            };
            state.world.apply(&change);
            let found = state.suite.check(&state.world, &change);
            state.violated(found);
        }
        if let Some((revision, _)) = stages.last() {
            state.reached(*revision);
        }
    }
}

impl Storage for Recorder {
    fn revision(&self) -> u64 {
        self.0.inner.revision()
    }

    fn get(&self, collection: &Collection, key: &ObjectKey) -> Option<Arc<Object>> {
        self.0.inner.get(collection, key)
    }

    fn list(
        &self,
        collection: &Collection,
        range: &Range<'_>,
        wanted: Option<&Wanted<'_>>,
    ) -> Result<Page, Unavailable> {
        self.0.inner.list(collection, range, wanted)
    }

    fn commit(
        &self,
        collection: &Collection,
        key: &ObjectKey,
        expect: Expect,
        change: StoreChange,
    ) -> Result<Arc<Object>, WriteConflict> {
        let before = self.0.inner.get(collection, key);
        let (is_deletion, has_last_state) = match &change {
            StoreChange::Put(_) => (false, false),
            StoreChange::Delete(last) => (true, last.is_some()),
        };
        let written = self.0.inner.commit(collection, key, expect, change)?;
        let revision = written.revision;
        match (is_deletion, has_last_state) {
            (false, _) => self.record(collection, key, before.as_ref(), &[(revision, Some(&written))]),
            (true, false) => self.record(collection, key, before.as_ref(), &[(revision, None)]),
            // One last state, and then none.
            (true, true) => {
                self.record(collection, key, before.as_ref(), &[(revision - 1, Some(&written)), (revision, None)]);
            }
        }
        Ok(written)
    }

    fn commit_all(&self, writes: Vec<Write>) -> Result<Vec<Arc<Object>>, (usize, WriteConflict)> {
        // A request stores several objects only to charge quotas: nothing is deleted by it.
        let places: Vec<_> = writes.iter().map(|write| (write.collection.clone(), write.key.clone())).collect();
        let before: Vec<_> = places.iter().map(|(collection, key)| self.0.inner.get(collection, key)).collect();
        let written = self.0.inner.commit_all(writes)?;
        for ((written, (collection, key)), before) in written.iter().zip(&places).zip(&before) {
            self.record(collection, key, before.as_ref(), &[(written.revision, Some(written))]);
        }
        Ok(written)
    }

    fn events(&self, collection: &Collection, after: u64, events_max: usize) -> Result<Events, Unavailable> {
        self.0.inner.events(collection, after, events_max)
    }

    fn changes(&self, collection: &Collection) -> watch::Receiver<u64> {
        self.0.inner.changes(collection)
    }

    fn compact(&self, revision: u64) {
        self.0.inner.compact(revision);
    }

    fn forget(&self, collection: &Collection) {
        self.0.inner.forget(collection);
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

// === impl State ===

impl State {
    /// Remembers a write that may be unexpected in a world at rest; events that remind of something are not.
    fn unrest(&mut self, event: Option<&Object>, what: impl FnOnce() -> String) {
        if self.restless.len() >= RESTLESS_MAX {
            return;
        }
        let event = event.and_then(|event| event.parse().ok()).unwrap_or_default();
        if !is_reminder(&event) {
            self.restless.push(format!("{} {}", what(), event["reason"].as_str().unwrap_or_default()));
        }
    }

    /// Remembers which revision is the newest one now.
    fn reached(&mut self, revision: u64) {
        let now = Instant::now();
        match self.revisions.back_mut() {
            Some((at, newest)) if *at == now => *newest = revision,
            _ => self.revisions.push_back((now, revision)),
        }
        if self.revisions.len() > REVISIONS_MAX {
            self.revisions.pop_front();
        }
    }

    fn tree(&self, place: &(Istr, ObjectKey), object: &Object) -> Option<Arc<Value>> {
        match self.trees.get(place) {
            Some((revision, tree)) if *revision == object.revision => Some(Arc::clone(tree)),
            _ => tree_of(object),
        }
    }

    fn violated(&mut self, found: Vec<Violation>) {
        if !found.is_empty() {
            // One is enough; what follows from it is of no interest.
            self.violations.extend(found);
            self.failed.send_replace(true);
        }
    }
}

/// Returns the hash of an object in the trace. What is signed with a random number differs from run to run.
fn hash_in_trace(resource: &str, object: &Object) -> u64 {
    match resource {
        "secrets" | "certificatesigningrequests.certificates.k8s.io" => hash_of(&object.metadata()),
        _ => hash_of(&object.bytes()),
    }
}

/// Whether the server itself makes a write, whoever sent the request: it keeps the addresses of Services, and charges quotas for
/// what it admits.
fn is_servers_own(resource: &str, by: &Actor) -> bool {
    match resource {
        ADDRESSES => true,
        QUOTAS => by.controller().is_some_and(|name| ![QUOTA, NAMESPACE, GARBAGE].contains(&name)),
        _ => false,
    }
}

/// Events are informational; no decision depends on them.
fn is_telling(resource: &str) -> bool {
    matches!(resource, "events" | "events.events.k8s.io")
}

/// Whether an event says what is waited for: as upstream, it is sent again while that is so.
fn is_reminder(event: &Value) -> bool {
    let text = |field: &str| event[field].as_str().unwrap_or_default();
    REMINDERS.contains(&text("reason"))
        // A StatefulSet waits for the end of a claim, which a pod of another owner may use for ever.
        || text("reason") == "FailedCreate" && text("message").ends_with("is being deleted")
}

/// Leases and node heartbeats are written forever. What nodes do is not checked.
fn is_heartbeat(resource: &str, by: &Actor) -> bool {
    resource == "leases.coordination.k8s.io" || *by == Actor::Node
}

#[cfg(test)]
mod tests;
