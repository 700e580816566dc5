//! What must hold, each a small named function with the sentence of Kubernetes' documentation that it holds us to.
//!
//! Sentences are quoted as they are in Kubernetes 1.37, without links and emphasis: from the API's field descriptions
//! (the type and the field are named), or from a page of kubernetes.io ("website:" and the title of the page). Where no
//! sentence says it, the upstream source file that behaves so is named.
//!
//! 1. Those *at a write* are asked after every committed write, those *at rest* once when the faults are over and the world
//!    is quiet.
//! 2. Every write is judged against the store first. If it is wrong there, it is judged against what the manager that asked
//!    for it had been shown, taking into account what it had written itself: if it was right by that, staleness excuses it,
//!    and this is counted. What is wrong by both is a violation.
//! 3. A pass decides, and writes a moment later. So "what had been shown" is a window ([`World::window`]): the write is wrong
//!    only if it was wrong at each moment of it.
//! 4. A write whose author nobody knows (`Actor::Server`, as a recorder of a real API server without an audit log reports)
//!    is nobody's: only what is about the object alone is judged. Where the author is known and what it was shown is not, the
//!    last [`ASSUMED_LAG_SECONDS`](crate::world::ASSUMED_LAG_SECONDS) before the write count as shown.
//!
//! Pure: no clock, no client, and nothing per write that walks the world.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use steersman_base::{Istr, ObjectKey, Time};

use crate::record::Change;
use crate::world::{Object, PASS_SECONDS, Step, Window, World};

mod accounts;
mod availability;
mod budgets;
mod catalogue;
mod certificates;
mod collection;
mod conditions;
mod creates;
mod cron;
mod daemons;
mod devices;
mod endpoints;
mod ephemeral;
mod jobs;
mod leadership;
mod lifetimes;
mod memory;
mod mirrors;
mod namespaces;
mod nodes;
mod ownership;
mod pod_gc;
mod policies;
mod quotas;
mod ranges;
mod ranking;
mod replicas;
mod revisions;
mod scaling;
mod stateful;
mod statuses;
mod storage;
mod surge;
#[cfg(test)]
mod tests;
mod tokens;

pub(crate) use catalogue::REASONS;
pub use catalogue::catalogue;
use catalogue::{AT_REST, AT_WRITE};
use memory::Memory;

pub(crate) const DEPLOYMENT: &str = "deployment-controller";
pub(crate) const REPLICA_SET: &str = "replicaset-controller";
pub(crate) const REPLICATION: &str = "replicationcontroller-controller";
pub(crate) const SLICES: &str = "endpointslice-controller";
pub(crate) const ENDPOINTS: &str = "endpoints-controller";
pub(crate) const GARBAGE: &str = "garbage-collector-controller";
pub(crate) const NAMESPACE: &str = "namespace-controller";
pub(crate) const POD_GC: &str = "pod-garbage-collector-controller";
pub(crate) const ROOT_CA: &str = "root-ca-certificate-publisher-controller";
pub(crate) const ACCOUNT: &str = "serviceaccount-controller";
pub(crate) const TOKEN: &str = "serviceaccount-token-controller";
pub(crate) const STATEFUL_SET: &str = "statefulset-controller";
pub(crate) const DAEMON_SET: &str = "daemonset-controller";
pub(crate) const JOB: &str = "job-controller";
pub(crate) const CRON_JOB: &str = "cronjob-controller";
pub(crate) const DISRUPTION: &str = "disruption-controller";
pub(crate) const MIRRORING: &str = "endpointslice-mirroring-controller";
pub(crate) const NODE_IPAM: &str = "node-ipam-controller";
pub(crate) const NODE_LIFECYCLE: &str = "node-lifecycle-controller";
pub(crate) const TAINT_EVICTION: &str = "taint-eviction-controller";
pub(crate) const AUTOSCALER: &str = "horizontal-pod-autoscaler-controller";
pub(crate) const SIGNING: &str = "certificatesigningrequest-signing-controller";
pub(crate) const VOLUME_BINDER: &str = "persistentvolume-binder-controller";
pub(crate) const ATTACH_DETACH: &str = "persistentvolume-attach-detach-controller";
pub(crate) const QUOTA: &str = "resourcequota-controller";
pub(crate) const TTL_AFTER_FINISHED: &str = "ttl-after-finished-controller";
pub(crate) const RESOURCE_CLAIM: &str = "resourceclaim-controller";
pub(crate) const AGGREGATION: &str = "clusterrole-aggregation-controller";
pub(crate) const EPHEMERAL: &str = "ephemeral-volume-controller";
pub(crate) const SERVICE_CIDR: &str = "service-cidr-controller";
pub(crate) const BOOTSTRAP_SIGNER: &str = "bootstrap-signer-controller";
pub(crate) const TOKEN_CLEANER: &str = "token-cleaner-controller";
pub(crate) const DEVICE_TAINT_EVICTION: &str = "device-taint-eviction-controller";
pub(crate) const POLICY_STATUS: &str = "validatingadmissionpolicy-status-controller";
pub(crate) const CLASS_PROTECTION: &str = "volumeattributesclass-protection-controller";

/// Facts about the world that invariants need.
#[derive(Clone, Debug)]
pub struct Options {
    /// The lease of the managers; none if they run without one.
    pub lease: Option<ObjectKey>,
    /// The controllers that run; the results of others are not expected at rest. None means all.
    pub controllers: Option<BTreeSet<Istr>>,
    /// `--max-endpoints-per-slice`.
    pub endpoints_per_slice_max: usize,
    /// `--terminated-pod-gc-threshold`.
    pub ended_pods_max: usize,
    /// By how many seconds clocks of managers and nodes may be wrong.
    pub clock_skew_seconds: i64,
    /// How many seconds there are between two nodes of a zone that are emptied: one by `--node-eviction-rate`.
    pub eviction_seconds: i64,
    /// Whether there is a provisioner of volumes, for which pods wait.
    pub provisions: bool,
}

/// How often an invariant was checked, and what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How often it applied.
    pub checked: u64,
    /// How often only staleness excused what was written.
    pub stale: u64,
    /// How often it was excused for another reason, such as a user's own action.
    pub excused: u64,
    /// How often it was violated.
    pub violated: u64,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The name of the invariant.
    pub invariant: &'static str,
    /// The objects, the numbers, and what was expected.
    pub text: String,
    /// The store's revision of the write; at rest, of the newest one.
    pub revision: u64,
}

/// When an invariant is checked, and against what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judged {
    /// At a write, against the store.
    Store,
    /// At a write, against the store, and where that fails, against what the manager was shown.
    Shown,
    /// At rest, against the store.
    Rest,
}

/// All invariants, with what they remember and how often each was checked.
#[derive(Debug)]
pub struct Suite {
    options: Options,
    memory: Memory,
    counts: BTreeMap<&'static str, Count>,
}

/// The result of an invariant for a write.
#[derive(Debug)]
enum Verdict {
    /// It does not apply.
    NotMine,
    /// The write is right.
    Holds,
    /// The write is wrong, and right by what the manager was shown.
    Stale,
    /// The write is wrong, and something else excuses it.
    Excused,
    /// The write is wrong.
    Violated(String),
}

/// A write, with what is needed to judge it.
#[derive(Clone, Copy)]
struct Case<'a> {
    world: &'a World,
    change: &'a Change,
    step: &'a Step,
    memory: &'a Memory,
    options: &'a Options,
}

/// The world at rest, with what is needed to judge it.
#[derive(Clone, Copy)]
struct Rest<'a> {
    world: &'a World,
    options: &'a Options,
}

/// What an invariant finds at rest.
#[derive(Debug, Default)]
struct Findings {
    count: Count,
    violations: Vec<String>,
}

// === impl Options ===

impl Default for Options {
    fn default() -> Self {
        Self {
            lease: Some(ObjectKey::new("kube-system", "kube-controller-manager")),
            controllers: None,
            endpoints_per_slice_max: 100,
            ended_pods_max: 12_500,
            clock_skew_seconds: 0,
            eviction_seconds: 10,
            provisions: false,
        }
    }
}

impl Options {
    fn runs(&self, controller: &str) -> bool {
        self.controllers.as_ref().is_none_or(|controllers| controllers.contains(controller))
    }
}

// === impl Suite ===

impl Suite {
    /// The suite for a new world.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let counts = catalogue().map(|(name, _)| (name, Count::default())).collect();
        Self { options, memory: Memory::default(), counts }
    }

    /// Judges a write. The world has taken it in already, and nothing after it.
    pub fn check(&mut self, world: &World, change: &Change) -> Vec<Violation> {
        let step = world.last();
        self.memory.note(world, change, step, &self.options);
        let case = Case { world, change, step, memory: &self.memory, options: &self.options };
        let mut violations = Vec::new();
        for (name, _, check) in AT_WRITE {
            let verdict = check(&case);
            if matches!(verdict, Verdict::NotMine) {
                continue;
            }
            let count = self.counts.entry(name).or_default();
            count.checked += 1;
            match verdict {
                Verdict::NotMine | Verdict::Holds => {}
                Verdict::Stale => count.stale += 1,
                Verdict::Excused => count.excused += 1,
                Verdict::Violated(text) => {
                    count.violated += 1;
                    let text = format!("{text} (by {})", Author(change));
                    violations.push(Violation { invariant: name, text, revision: change.revision });
                }
            }
        }
        violations
    }

    /// Whether a quiet world is as it should be. Nothing is counted.
    #[must_use]
    pub fn is_healed(&self, world: &World) -> bool {
        let rest = Rest { world, options: &self.options };
        AT_REST.iter().all(|(_, _, check)| {
            let mut found = Findings::default();
            check(&rest, &mut found);
            found.violations.is_empty()
        })
    }

    /// Judges the world when it is quiet.
    pub fn healed(&mut self, world: &World) -> Vec<Violation> {
        let rest = Rest { world, options: &self.options };
        let mut violations = Vec::new();
        for (name, _, check) in AT_REST {
            let mut found = Findings::default();
            check(&rest, &mut found);
            let count = self.counts.entry(name).or_default();
            count.checked += found.count.checked;
            count.excused += found.count.excused;
            count.violated += found.count.violated;
            let revision = world.revision();
            violations.extend(found.violations.into_iter().map(|text| Violation { invariant: name, text, revision }));
        }
        violations
    }

    /// Checks whether each write has a reason: the number that have one, the number that cannot be checked, and those
    /// without.
    pub fn reasons(&mut self, found: u64, excused: u64, missing: Vec<String>, revision: u64) -> Vec<Violation> {
        let count = self.counts.entry(REASONS).or_default();
        let violated = u64::try_from(missing.len()).unwrap_or(u64::MAX);
        count.checked += found + excused + violated;
        count.excused += excused;
        count.violated += violated;
        missing.into_iter().map(|text| Violation { invariant: REASONS, text, revision }).collect()
    }

    /// Returns how often each invariant was checked, and the results; those that were never checked are included.
    #[must_use]
    pub fn counts(&self) -> &BTreeMap<&'static str, Count> {
        &self.counts
    }
}

/// Formats the author of a change.
struct Author<'a>(&'a Change);

impl std::fmt::Display for Author<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.0.by.controller(), self.0.by.manager()) {
            (Some(name), Some(manager)) => write!(f, "{name} of manager {manager}"),
            _ => write!(f, "{:?}", self.0.by),
        }
    }
}

// === impl Verdict ===

impl Verdict {
    /// Right if it is right at the store; else excused if it is right by what was shown.
    fn judge(at_store: bool, as_shown: impl FnOnce() -> bool, text: impl FnOnce() -> String) -> Self {
        if at_store {
            Self::Holds
        } else if as_shown() {
            Self::Stale
        } else {
            Self::Violated(text())
        }
    }

    /// Right if it is right at the store.
    fn at_store(holds: bool, text: impl FnOnce() -> String) -> Self {
        Self::judge(holds, || false, text)
    }
}

// === impl Case ===

impl<'a> Case<'a> {
    /// Whether one of these controllers made the write.
    fn by(&self, controllers: &[&str]) -> bool {
        self.change.by.controller().is_some_and(|name| controllers.contains(&name))
    }

    fn is(&self, resource: &str) -> bool {
        self.change.resource == *resource
    }

    /// The object that was created.
    fn created(&self) -> Option<&'a Arc<Object>> {
        self.step.after.as_ref().filter(|_| self.step.before.is_none())
    }

    /// The object before and after it was changed.
    fn updated(&self) -> Option<(&'a Arc<Object>, &'a Arc<Object>)> {
        self.step.before.as_ref().zip(self.step.after.as_ref())
    }

    /// Returns the object whose deletion was requested with this write: it is terminating now, or deleted, and was not
    /// before.
    fn deleted(&self) -> Option<&'a Arc<Object>> {
        let before = self.step.before.as_ref().filter(|before| !before.is_terminating())?;
        self.step.after.as_ref().is_none_or(|after| after.is_terminating()).then_some(before)
    }

    fn window(&self) -> Window<'a> {
        self.world.window(self.change)
    }

    /// The latest time that the author's clock may have shown.
    fn latest(&self) -> Time {
        self.change.at.plus_seconds(self.options.clock_skew_seconds)
    }

    /// The earliest time that the author's clock may have shown when it decided.
    fn earliest(&self) -> Time {
        self.change.at.plus_seconds(-self.options.clock_skew_seconds - PASS_SECONDS)
    }
}

// === impl Findings ===

impl Findings {
    /// Records one check; `text` describes the violation, if there is one.
    fn expect(&mut self, holds: bool, text: impl FnOnce() -> String) {
        self.count.checked += 1;
        if !holds {
            self.count.violated += 1;
            self.violations.push(text());
        }
    }

    /// Records a violation that no controller can prevent.
    fn excuse(&mut self) {
        self.count.checked += 1;
        self.count.excused += 1;
    }
}
