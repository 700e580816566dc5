//! StatefulSets, DaemonSets, Jobs, CronJobs and budgets as invariants read them.

use serde::Deserialize;
use serde_json::Value;
use steersman_base::int_or_string::Rounding;
use steersman_base::names::{annotations, taints};
use steersman_base::{Condition, IntOrString, Istr, Selector, StringMap, Time, Uid, condition};

use super::Object;
use super::parse::{annotation, conditions, declared_selector, int, list, map, text, time, usable};

/// Spec and status of a StatefulSet.
#[derive(Clone, Debug)]
pub struct StatefulSet {
    /// `spec.replicas`.
    pub replicas: i64,
    /// The first ordinal.
    pub start: i64,
    /// Whether pods do not wait for each other.
    pub parallel: bool,
    /// Whether the strategy is `RollingUpdate`.
    pub rolling: bool,
    /// How many ordinals, from the first, are not updated.
    pub partition: i64,
    /// How many pods may be unavailable in an update.
    pub unavailable: i64,
    /// `spec.minReadySeconds`.
    pub min_ready: i64,
    /// The selector; none if it is invalid, matches everything or not even the template.
    pub selector: Option<Selector>,
    /// The image of the template's first container.
    pub image: Istr,
    /// The names of the claim templates.
    pub claims: Vec<Istr>,
    /// The status.
    pub status: StatefulSetStatus,
}

/// The status of a StatefulSet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatefulSetStatus {
    /// `status.replicas`.
    pub replicas: i32,
    /// `status.readyReplicas`.
    pub ready: i32,
    /// `status.updatedReplicas`.
    pub updated: i32,
    /// `status.observedGeneration`.
    pub observed: i64,
    /// `status.currentRevision`.
    pub current_revision: Istr,
    /// `status.updateRevision`.
    pub update_revision: Istr,
}

/// Spec and status of a DaemonSet.
#[derive(Clone, Debug)]
pub struct DaemonSet {
    /// Whether the strategy is `RollingUpdate`.
    pub rolling: bool,
    /// `maxSurge`.
    surge: Option<IntOrString>,
    /// `maxUnavailable`.
    unavailable: Option<IntOrString>,
    /// `spec.minReadySeconds`.
    pub min_ready: i64,
    /// The node selector of the template.
    pub node_selector: StringMap,
    /// The selector; none if it is invalid, matches everything or not even the template.
    pub selector: Option<Selector>,
    /// The image of the template's first container.
    pub image: Istr,
    /// The status.
    pub status: DaemonSetStatus,
}

/// The status of a DaemonSet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DaemonSetStatus {
    /// `status.desiredNumberScheduled`.
    pub desired: i32,
    /// `status.currentNumberScheduled`.
    pub current: i32,
    /// `status.numberReady`.
    pub ready: i32,
    /// `status.updatedNumberScheduled`.
    pub updated: i32,
    /// `status.numberMisscheduled`.
    pub misplaced: i32,
    /// `status.observedGeneration`.
    pub observed: i64,
}

/// Whether a DaemonSet has a pod on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// One should run there.
    Run,
    /// One that runs there may go on.
    GoOn,
    /// None should run there.
    Leave,
}

/// Spec and status of a Job.
#[derive(Clone, Debug)]
pub struct Job {
    /// `spec.parallelism`.
    pub parallelism: i32,
    /// `spec.completions`.
    pub completions: Option<i32>,
    /// Whether its pods have indexes.
    pub indexed: bool,
    /// Whether each index fails by itself.
    pub has_limit_per_index: bool,
    /// Whether a policy says which failures count.
    pub has_policy: bool,
    /// `spec.suspend`.
    pub suspended: bool,
    /// `spec.ttlSecondsAfterFinished`.
    pub time_to_live: Option<i64>,
    /// The selector; none if it is invalid, matches everything or not even the template.
    pub selector: Option<Selector>,
    /// The time for which a CronJob made it; empty if none did.
    pub scheduled: Istr,
    /// The status.
    pub status: JobStatus,
}

/// The status of a Job.
#[derive(Clone, Debug, Default)]
pub struct JobStatus {
    /// `status.active`.
    pub active: i32,
    /// `status.ready`.
    pub ready: i32,
    /// `status.terminating`.
    pub terminating: i32,
    /// `status.succeeded`.
    pub succeeded: i32,
    /// `status.failed`.
    pub failed: i32,
    /// `status.completedIndexes`.
    pub completed: Indexes,
    /// `status.failedIndexes`.
    pub failed_indexes: Indexes,
    /// The pods of `status.uncountedTerminatedPods`.
    pub uncounted: Vec<Uid>,
    /// `status.conditions`.
    pub conditions: Vec<Condition>,
}

/// A set of indexes, as ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexes(Vec<(i32, i32)>);

/// Spec and status of a CronJob.
#[derive(Clone, Debug)]
pub struct CronJob {
    /// `spec.concurrencyPolicy`.
    pub policy: Istr,
    /// How many Jobs that have succeeded are kept.
    pub succeeded_kept: usize,
    /// How many Jobs that have failed are kept.
    pub failed_kept: usize,
    /// The Jobs of `status.active`.
    pub active: Vec<Uid>,
}

/// Spec and status of a PodDisruptionBudget.
#[derive(Clone, Debug)]
pub struct Budget {
    /// The selector; none if it is invalid.
    pub selector: Option<Selector>,
    /// `spec.minAvailable`, if it is a number.
    pub available_min: Option<i32>,
    /// The status.
    pub status: BudgetStatus,
}

/// The status of a PodDisruptionBudget.
#[derive(Clone, Debug, Default)]
pub struct BudgetStatus {
    /// `status.disruptionsAllowed`.
    pub allowed: i32,
    /// `status.currentHealthy`.
    pub healthy: i32,
    /// `status.desiredHealthy`.
    pub desired: i32,
    /// `status.expectedPods`.
    pub expected: i32,
    /// `status.observedGeneration`.
    pub observed: i64,
    /// The pods whose eviction was granted, and when.
    pub disrupted: Vec<(Istr, Option<Time>)>,
    /// `status.conditions`.
    pub conditions: Vec<Condition>,
}

/// Taints that all pods of DaemonSets bear.
const BORNE: [(&str, &str); 6] = [
    (taints::NOT_READY, "NoExecute"),
    (taints::UNREACHABLE, "NoExecute"),
    (taints::DISK_PRESSURE, "NoSchedule"),
    (taints::MEMORY_PRESSURE, "NoSchedule"),
    (taints::PID_PRESSURE, "NoSchedule"),
    (taints::UNSCHEDULABLE, "NoSchedule"),
];

/// How many finished Jobs are kept if the CronJob does not say.
const SUCCEEDED_KEPT: usize = 3;
const FAILED_KEPT: usize = 1;

fn number_or_share(value: &Value) -> Option<IntOrString> {
    match value {
        Value::Number(_) => int(value).map(IntOrString::Int),
        Value::String(text) => Some(IntOrString::from(text.as_str())),
        _ => None,
    }
}

fn is_rolling(spec: &Value) -> bool {
    matches!(spec["updateStrategy"]["type"].as_str(), None | Some("" | "RollingUpdate"))
}

fn selector_of(spec: &Value) -> Option<Selector> {
    usable(declared_selector(&spec["selector"]), &map(&spec["template"]["metadata"]["labels"]))
}

fn image_of(template: &Value) -> Istr {
    text(&template["spec"]["containers"][0]["image"])
}

// === impl StatefulSet ===

impl StatefulSet {
    pub(super) fn parse(value: &Value) -> Self {
        let spec = &value["spec"];
        let status = &value["status"];
        let replicas = int(&spec["replicas"]).unwrap_or(1);
        let rolling = &spec["updateStrategy"]["rollingUpdate"];
        let unavailable = number_or_share(&rolling["maxUnavailable"]);
        let unavailable = unavailable.and_then(|share| share.scaled(replicas, Rounding::Down).ok());
        Self {
            replicas: replicas.into(),
            start: spec["ordinals"]["start"].as_i64().unwrap_or(0),
            parallel: spec["podManagementPolicy"] == "Parallel",
            rolling: is_rolling(spec),
            partition: rolling["partition"].as_i64().unwrap_or(0),
            unavailable: unavailable.unwrap_or(1).max(1).into(),
            min_ready: spec["minReadySeconds"].as_i64().unwrap_or(0),
            selector: selector_of(spec),
            image: image_of(&spec["template"]),
            claims: list(&spec["volumeClaimTemplates"]).map(|claim| text(&claim["metadata"]["name"])).collect(),
            status: StatefulSetStatus {
                replicas: int(&status["replicas"]).unwrap_or(0),
                ready: int(&status["readyReplicas"]).unwrap_or(0),
                updated: int(&status["updatedReplicas"]).unwrap_or(0),
                observed: status["observedGeneration"].as_i64().unwrap_or(0),
                current_revision: text(&status["currentRevision"]),
                update_revision: text(&status["updateRevision"]),
            },
        }
    }

    /// Whether a pod of this ordinal is wanted.
    #[must_use]
    pub fn wants(&self, ordinal: i64) -> bool {
        (self.start..self.start + self.replicas).contains(&ordinal)
    }

    /// Whether a pod of this ordinal is updated.
    #[must_use]
    pub fn updates(&self, ordinal: i64) -> bool {
        self.rolling && ordinal >= self.start + self.partition
    }
}

// === impl DaemonSet ===

impl DaemonSet {
    pub(super) fn parse(value: &Value) -> Self {
        let spec = &value["spec"];
        let status = &value["status"];
        let rolling = &spec["updateStrategy"]["rollingUpdate"];
        let number = |field: &str| int(&status[field]).unwrap_or(0);
        Self {
            rolling: is_rolling(spec),
            surge: number_or_share(&rolling["maxSurge"]),
            unavailable: number_or_share(&rolling["maxUnavailable"]),
            min_ready: spec["minReadySeconds"].as_i64().unwrap_or(0),
            node_selector: map(&spec["template"]["spec"]["nodeSelector"]),
            selector: selector_of(spec),
            image: image_of(&spec["template"]),
            status: DaemonSetStatus {
                desired: number("desiredNumberScheduled"),
                current: number("currentNumberScheduled"),
                ready: number("numberReady"),
                updated: number("updatedNumberScheduled"),
                misplaced: number("numberMisscheduled"),
                observed: status["observedGeneration"].as_i64().unwrap_or(0),
            },
        }
    }

    /// How many nodes may have a second pod.
    #[must_use]
    pub fn surge(&self, nodes: i32) -> i32 {
        if self.rolling { scaled(self.surge.as_ref(), nodes) } else { 0 }
    }

    /// On how many nodes the pod may be unavailable in an update.
    #[must_use]
    pub fn unavailable(&self, nodes: i32) -> i32 {
        let unavailable = scaled(self.unavailable.as_ref(), nodes);
        if self.surge(nodes) == 0 { unavailable.max(1) } else { unavailable }
    }

    /// Whether a node has a pod of it.
    #[must_use]
    pub fn place(&self, node: &Object) -> Place {
        let has = |(key, value): (&Istr, &Istr)| node.labels.get(key) == Some(value);
        if !self.node_selector.iter().all(has) {
            return Place::Leave;
        }
        let taints = node.node().map(|node| &*node.taints).unwrap_or_default();
        let repels = |effect: &str| {
            let borne = |key: &str| BORNE.contains(&(key, effect));
            taints.iter().any(|taint| taint.effect == *effect && !borne(&taint.key))
        };
        match (repels("NoSchedule"), repels("NoExecute")) {
            (_, true) => Place::Leave,
            (true, false) => Place::GoOn,
            (false, false) => Place::Run,
        }
    }
}

fn scaled(share: Option<&IntOrString>, nodes: i32) -> i32 {
    share.and_then(|share| share.scaled(nodes, Rounding::Up).ok()).unwrap_or(0).max(0)
}

// === impl Job ===

impl Job {
    pub(super) fn parse(value: &Value) -> Self {
        let spec = &value["spec"];
        let status = &value["status"];
        let number = |field: &str| int(&status[field]).unwrap_or(0);
        let uncounted = &status["uncountedTerminatedPods"];
        let uncounted = list(&uncounted["succeeded"]).chain(list(&uncounted["failed"]));
        Self {
            parallelism: int(&spec["parallelism"]).unwrap_or(1),
            completions: int(&spec["completions"]),
            indexed: spec["completionMode"] == "Indexed",
            has_limit_per_index: !spec["backoffLimitPerIndex"].is_null(),
            has_policy: !spec["podFailurePolicy"].is_null(),
            suspended: spec["suspend"] == true,
            time_to_live: spec["ttlSecondsAfterFinished"].as_i64(),
            selector: selector_of(spec),
            scheduled: annotation(value, annotations::CRONJOB_SCHEDULED_TIMESTAMP).map(Istr::new).unwrap_or_default(),
            status: JobStatus {
                active: number("active"),
                ready: number("ready"),
                terminating: number("terminating"),
                succeeded: number("succeeded"),
                failed: number("failed"),
                completed: Indexes::parse(&status["completedIndexes"]),
                failed_indexes: Indexes::parse(&status["failedIndexes"]),
                uncounted: uncounted.filter_map(Value::as_str).map(Uid::new).collect(),
                conditions: conditions(value),
            },
        }
    }

    /// Whether it is complete or has failed.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.has_succeeded() || condition::is_true(&self.status.conditions, "Failed")
    }

    /// Whether it is complete.
    #[must_use]
    pub fn has_succeeded(&self) -> bool {
        condition::is_true(&self.status.conditions, "Complete")
    }

    /// Whether its end is announced.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        let is = |type_: &str| condition::is_true(&self.status.conditions, type_);
        self.is_finished() || is("SuccessCriteriaMet") || is("FailureTarget")
    }

    /// The maximum number of active pods; none if there is no limit but the parallelism, which may have been lower before.
    #[must_use]
    pub fn active_max(&self) -> i32 {
        let left = self.completions.map_or(i32::MAX, |completions| completions - self.status.succeeded);
        if self.suspended { 0 } else { self.parallelism.min(left).max(0) }
    }
}

// === impl Indexes ===

impl Indexes {
    fn parse(value: &Value) -> Self {
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
        };
        Self(value.as_str().unwrap_or_default().split(',').filter_map(range).collect())
    }

    /// Whether an index is among them.
    #[must_use]
    pub fn contains(&self, index: i32) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&index))
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> i32 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }
}

// === impl CronJob ===

impl CronJob {
    pub(super) fn parse(value: &Value) -> Self {
        let spec = &value["spec"];
        let limit = |field: &str, default: usize| {
            spec[field].as_u64().map_or(default, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
        };
        Self {
            policy: text(&spec["concurrencyPolicy"]),
            succeeded_kept: limit("successfulJobsHistoryLimit", SUCCEEDED_KEPT),
            failed_kept: limit("failedJobsHistoryLimit", FAILED_KEPT),
            active: list(&value["status"]["active"]).filter_map(|job| job["uid"].as_str()).map(Uid::new).collect(),
        }
    }
}

// === impl Budget ===

impl Budget {
    pub(super) fn parse(value: &Value) -> Self {
        let spec = &value["spec"];
        let status = &value["status"];
        let number = |field: &str| int(&status[field]).unwrap_or(0);
        let disrupted = status["disruptedPods"].as_object().into_iter().flatten();
        Self {
            selector: declared_selector(&spec["selector"]),
            available_min: int(&spec["minAvailable"]),
            status: BudgetStatus {
                allowed: number("disruptionsAllowed"),
                healthy: number("currentHealthy"),
                desired: number("desiredHealthy"),
                expected: number("expectedPods"),
                observed: status["observedGeneration"].as_i64().unwrap_or(0),
                disrupted: disrupted.map(|(pod, since)| (Istr::new(pod), time(since))).collect(),
                conditions: list(&status["conditions"])
                    .filter_map(|condition| Condition::deserialize(condition).ok())
                    .collect(),
            },
        }
    }

    /// Whether it selects a pod, and the pod is ready and stays.
    #[must_use]
    pub fn counts(&self, pod: &Object) -> bool {
        let is_ready = pod.pod().is_some_and(|pod| pod.ready);
        let selects = || self.selector.as_ref().is_some_and(|selector| selector.matches(&pod.labels));
        is_ready && !pod.is_terminating() && selects()
    }
}
