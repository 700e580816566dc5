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
mod certificates;
mod collection;
mod conditions;
mod creates;
mod cron;
mod daemons;
mod endpoints;
mod jobs;
mod leadership;
mod memory;
mod mirrors;
mod namespaces;
mod nodes;
mod ownership;
mod pod_gc;
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
pub(crate) const AGGREGATION: &str = "clusterrole-aggregation-controller";

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

type AtWrite = fn(&Case<'_>) -> Verdict;
type AtRest = fn(&Rest<'_>, &mut Findings);

macro_rules! rows {
    ($($judged:ident $module:ident :: $name:ident),* $(,)?) => {
        &[$((stringify!($name), Judged::$judged, $module::$name)),*]
    };
}

/// Returns the invariants that are checked after every write.
const AT_WRITE: &[(&str, Judged, AtWrite)] = rows![
    Shown availability::rolling_updates_keep_their_available_pods,
    Shown availability::scaling_down_stops_at_the_wanted_number,
    Shown availability::recreation_waits_for_the_end_of_old_pods,
    Shown surge::replica_sets_ask_for_no_more_than_the_surge,
    Shown surge::no_more_pods_than_wanted_are_created,
    Shown ranking::pods_that_are_missed_least_go_first,
    Shown creates::at_most_the_needed_pods_are_created,
    Shown creates::a_template_has_one_replica_set,
    Store collection::nothing_with_a_living_owner_is_collected,
    Store collection::nothing_without_owners_is_collected,
    Shown collection::orphans_are_let_go_before_their_owner_goes,
    Shown collection::foreground_owners_go_after_what_blocks_them,
    Store collection::the_collector_takes_off_its_own_finalizers_alone,
    Store collection::references_to_living_owners_stay,
    Store leadership::no_write_by_a_deposed_leader,
    Store leadership::controllers_write_only_what_is_theirs,
    Store conditions::availability_is_told_as_it_is_counted,
    Store conditions::a_roll_out_is_through_when_all_pods_are_new_and_available,
    Store conditions::a_deadline_is_exceeded_only_after_it,
    Shown conditions::a_failure_is_that_of_a_replica_set,
    Store conditions::a_failed_create_is_told_while_pods_are_missing,
    Store conditions::a_condition_stands_once_and_changes_its_time_with_its_status,
    Store statuses::observed_generation_is_never_ahead_and_never_goes_back,
    Shown statuses::a_replica_set_counts_its_pods,
    Shown statuses::a_deployment_adds_up_its_replica_sets,
    Store endpoints::slices_are_within_their_limits,
    Store endpoints::endpoints_stand_for_pods_that_existed,
    Shown endpoints::ready_endpoints_are_ready_pods,
    Store ownership::at_most_one_owner_controls,
    Shown ownership::adoption_is_of_matching_orphans_by_living_owners,
    Shown ownership::what_matches_is_not_released,
    Shown ownership::what_is_created_belongs_to_its_creator,
    Store namespaces::a_namespace_is_let_go_only_when_empty,
    Store namespaces::a_namespace_tells_what_is_left,
    Shown namespaces::nothing_is_published_into_a_namespace_that_goes,
    Shown accounts::tokens_go_only_with_their_account,
    Shown pod_gc::running_pods_on_living_nodes_are_left_alone,
    Shown pod_gc::ended_pods_are_kept_up_to_the_threshold,
    Store revisions::revisions_only_grow,
    Shown revisions::no_needed_replica_set_is_forgotten,
    Shown stateful::pods_start_in_the_order_of_their_ordinals,
    Shown stateful::ordinals_below_the_partition_keep_their_revision,
    Shown stateful::surplus_ordinals_go_from_the_highest_down,
    Shown stateful::stateful_updates_keep_their_available_pods,
    Shown daemons::a_node_has_one_pod_of_a_daemon_set,
    Shown daemons::daemons_start_where_they_should_run,
    Shown daemons::no_more_nodes_surge_than_may,
    Shown daemons::daemon_updates_keep_their_available_pods,
    Shown jobs::no_pod_is_created_for_a_completed_index,
    Shown jobs::no_more_pods_are_active_than_the_parallelism,
    Store jobs::counts_of_a_job_never_fall,
    Store jobs::no_pod_is_counted_twice,
    Store jobs::pods_are_let_go_after_they_are_counted,
    Shown jobs::a_job_ends_after_its_pods,
    Store jobs::a_finished_job_is_left_alone,
    Shown cron::jobs_do_not_run_beside_each_other,
    Shown cron::no_time_is_started_twice,
    Shown cron::running_jobs_and_the_history_are_kept,
    Shown budgets::no_eviction_is_granted_beyond_the_budget,
    Shown budgets::granted_evictions_are_not_forgotten,
    Store nodes::no_two_nodes_have_one_range,
    Shown nodes::only_nodes_that_are_not_ready_are_emptied,
    Shown nodes::only_pods_that_do_not_tolerate_are_evicted,
    Store nodes::no_zone_is_emptied_faster_than_its_rate,
    Store certificates::a_certificate_has_no_more_than_its_signer_may_give,
    Shown scaling::autoscalers_stay_within_their_bounds,
    Shown scaling::pods_are_added_as_fast_as_policies_allow,
    Store scaling::pods_of_two_autoscalers_are_scaled_by_neither,
    Shown storage::a_bound_claim_has_a_volume_of_its_own,
    Store storage::a_volume_with_data_is_not_given_to_another_claim,
    Shown storage::a_claim_in_use_stays,
    Shown storage::a_volume_of_one_writer_is_attached_once,
];

/// Returns the invariants that are checked once the world is quiet.
const AT_REST: &[(&str, Judged, AtRest)] = rows![
    Rest replicas::every_set_has_its_replicas,
    Rest replicas::statuses_of_sets_are_true_at_rest,
    Rest replicas::deployments_are_rolled_out,
    Rest replicas::statuses_of_deployments_are_true_at_rest,
    Rest ownership::orphans_that_match_are_adopted,
    Rest ownership::what_does_not_match_is_released,
    Rest revisions::history_is_kept_to_its_limit,
    Rest revisions::the_new_replica_set_has_the_highest_revision,
    Rest collection::all_garbage_is_collected,
    Rest collection::no_reference_leads_nowhere,
    Rest collection::finalizers_of_the_collector_are_taken_off,
    Rest endpoints::slices_are_those_of_the_pods,
    Rest endpoints::endpoints_are_those_of_the_pods,
    Rest endpoints::no_endpoints_without_a_service,
    Rest namespaces::deleted_namespaces_are_gone,
    Rest namespaces::nothing_is_left_of_a_namespace_that_is_gone,
    Rest accounts::every_namespace_has_its_default_account,
    Rest accounts::every_namespace_has_the_root_certificate,
    Rest accounts::tokens_follow_their_accounts,
    Rest pod_gc::no_pod_waits_for_a_node_that_is_gone,
    Rest stateful::every_ordinal_has_its_pod,
    Rest stateful::stateful_sets_are_rolled_out,
    Rest stateful::statuses_of_stateful_sets_are_true_at_rest,
    Rest stateful::claims_that_nobody_uses_are_let_go,
    Rest daemons::every_node_has_its_daemons,
    Rest daemons::statuses_of_daemon_sets_are_true_at_rest,
    Rest jobs::every_job_goes_on_or_has_finished,
    Rest jobs::statuses_of_jobs_are_true_at_rest,
    Rest jobs::finalizers_of_jobs_are_taken_off,
    Rest cron::cron_jobs_know_their_jobs,
    Rest budgets::budgets_are_true_at_rest,
    Rest mirrors::endpoints_are_mirrored,
    Rest mirrors::roles_are_the_sums_of_their_parts,
    Rest nodes::taints_are_those_of_the_conditions_at_rest,
    Rest nodes::every_node_has_a_range,
    Rest certificates::no_old_request_is_left,
    Rest scaling::replicas_are_what_the_load_asks_for,
    Rest storage::claims_and_volumes_fit_at_rest,
    Rest storage::no_attachment_is_left_without_a_pod,
];

/// What is asked of the managers themselves, once the world is quiet: each write that the store saw of a manager that lives
/// is in its decision log, with a reason. ("Every write has a reason": the design's own principle 4.)
pub(crate) const REASONS: &str = "every_write_has_a_reason_in_the_decision_log";

/// The name of every invariant, and against what it is judged.
pub fn catalogue() -> impl Iterator<Item = (&'static str, Judged)> {
    let at_write = AT_WRITE.iter().map(|(name, judged, _)| (*name, *judged));
    let at_rest = AT_REST.iter().map(|(name, judged, _)| (*name, *judged));
    at_write.chain(at_rest).chain([(REASONS, Judged::Rest)])
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
