//! Pure: a description of what happens to the workloads of the demo's second act, one line for each change.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use super::act::State;
use super::story::Line;

/// A change of an object of the second act.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Pod(Box<Pod>),
    PodGone(Box<Pod>),
    Claim(Box<PersistentVolumeClaim>),
    Deployment(Box<Deployment>),
    Job(Box<Job>),
    Budget(Box<PodDisruptionBudget>),
}

/// The state of the workloads that the second act follows.
#[derive(Clone, Debug, Default)]
pub(super) struct Workloads {
    pods: BTreeMap<String, Life>,
    bound: BTreeSet<String>,
    replicas: Option<i32>,
    is_job_complete: bool,
    allowed: Option<i32>,
    /// The component that deletes pods, if it is not the one that created them.
    deleter: Option<&'static str>,
    /// Pods whose deletion has been reported.
    shown: BTreeSet<String>,
}

/// The state of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Life {
    app: String,
    node: String,
    image: String,
    phase: String,
    is_ready: bool,
    is_leaving: bool,
}

/// The annotation with a pod's index in its Job.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";

// === impl Workloads ===

impl Workloads {
    /// Sets the component that deletes pods from now on.
    pub(super) fn deleted_by(&mut self, who: &'static str) {
        self.deleter = Some(who);
    }

    /// The deletion of this pod is reported by the one who requested it.
    pub(super) fn shown(&mut self, pod: &str) {
        self.shown.insert(pod.to_owned());
    }

    /// The pods of an application, by name.
    pub(super) fn pods(&self, app: &str) -> Vec<String> {
        self.pods.iter().filter(|(_, life)| life.app == app).map(|(name, _)| name.clone()).collect()
    }

    /// Whether an application has exactly this many pods, all ready, all with this image.
    pub(super) fn is_ready(&self, app: &str, pods: usize, image: &str) -> bool {
        let is_well = |life: &Life| life.is_ready && !life.is_leaving && life.image == image;
        let own: Vec<&Life> = self.pods.values().filter(|life| life.app == app).collect();
        own.len() == pods && own.into_iter().all(is_well)
    }

    /// The pods of an application that are on a node, and do not leave it, by name.
    pub(super) fn on(&self, app: &str, node: &str) -> Vec<String> {
        let there = |life: &Life| life.app == app && life.node == node && !life.is_leaving;
        self.pods.iter().filter(|(_, life)| there(life)).map(|(name, _)| name.clone()).collect()
    }

    /// Whether an application has exactly this many pods, all ready, beside those that leave, and none of them on these nodes.
    pub(super) fn has_moved(&self, app: &str, pods: usize, away_from: &[String]) -> bool {
        let stay: Vec<&Life> = self.pods.values().filter(|life| life.app == app && !life.is_leaving).collect();
        stay.len() == pods && stay.into_iter().all(|life| life.is_ready && !away_from.contains(&life.node))
    }

    /// Whether this many claims are bound.
    pub(super) fn are_bound(&self, claims: usize) -> bool {
        self.bound.len() == claims
    }

    /// Whether the Job is complete.
    pub(super) fn is_job_complete(&self) -> bool {
        self.is_job_complete
    }

    /// Whether the budget allows this many evictions.
    pub(super) fn allows(&self, evictions: i32) -> bool {
        self.allowed == Some(evictions)
    }

    /// Whether all pods are deleted.
    pub(super) fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// Applies a change; returns the line to print.
    pub(super) fn take(&mut self, change: &Change) -> Option<Line> {
        match change {
            Change::Pod(pod) => self.pod(pod),
            Change::PodGone(pod) => {
                let name = name(&pod.metadata);
                self.pods.remove(&name);
                let line = self.leaves(pod, &name);
                // The pods of a StatefulSet have the names of those before them.
                self.shown.remove(&name);
                line
            }
            Change::Claim(claim) => {
                let name = name(&claim.metadata);
                let status = claim.status.as_ref().filter(|status| status.phase.as_deref() == Some("Bound"))?;
                let size = status.capacity.as_ref().and_then(|capacity| capacity.get("storage"));
                let size = size.map_or("", |size| size.0.as_str());
                let is_new = self.bound.insert(name.clone());
                is_new.then(|| Line::new("binder", format!("bound pvc/{name} to a new volume of {size}")))
            }
            Change::Deployment(deployment) => {
                let wanted = deployment.spec.replicas.unwrap_or(1);
                let before = self.replicas.replace(wanted)?;
                let name = name(&deployment.metadata);
                let what = format!("scaled deployment/{name} from {before} to {wanted}");
                (before != wanted).then(|| Line::new("autoscaler", what))
            }
            Change::Job(job) => self.job(job),
            Change::Budget(budget) => {
                let allowed = budget.status.as_ref()?.disruptions_allowed.unwrap_or_default();
                let before = self.allowed.replace(allowed);
                let name = name(&budget.metadata);
                let what = match allowed {
                    0 => format!("budget/{name} allows no eviction"),
                    1 => format!("budget/{name} allows one eviction"),
                    more => format!("budget/{name} allows {more} evictions"),
                };
                (before != Some(allowed)).then(|| Line::new("disruption", what))
            }
        }
    }

    fn pod(&mut self, pod: &Pod) -> Option<Line> {
        let name = name(&pod.metadata);
        let container = pod.spec.as_ref().and_then(|spec| spec.containers.first());
        let status = pod.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
        let now = Life {
            node: node.clone(),
            app: pod.metadata.labels.as_ref().and_then(|labels| labels.get("app").cloned()).unwrap_or_default(),
            image: container.and_then(|container| container.image.clone()).unwrap_or_default(),
            phase: status.and_then(|status| status.phase.clone()).unwrap_or_default(),
            is_ready: conditions.into_iter().any(|it| it.type_ == "Ready" && it.status == "True"),
            is_leaving: pod.metadata.deletion_timestamp.is_some(),
        };
        let Some(before) = self.pods.insert(name.clone(), now.clone()) else {
            return Some(Line::new(&owner(pod), format!("created pod/{name}{}", index(pod))));
        };
        if now.is_leaving {
            return self.leaves(pod, &name);
        }
        match now.phase.as_str() {
            "Failed" if before.phase != now.phase => Some(Line::new(&node, format!("says that pod/{name} has failed"))),
            "Succeeded" if before.phase != now.phase => Some(Line::new(&node, format!("says that pod/{name} is done"))),
            _ if now.is_ready && !before.is_ready => Some(Line::new(&node, format!("runs pod/{name}"))),
            _ => None,
        }
    }

    fn job(&mut self, job: &Job) -> Option<Line> {
        let status = job.status.as_ref()?;
        let conditions = status.conditions.iter().flatten();
        let is_complete = conditions.clone().any(|it| it.type_ == "Complete" && it.status == "True");
        let was_complete = std::mem::replace(&mut self.is_job_complete, is_complete);
        let indexes = status.completed_indexes.as_deref().unwrap_or("none");
        let failed = status.failed.unwrap_or_default();
        let what = format!("job/{} is complete: indexes {indexes}, failed pods: {failed}", name(&job.metadata));
        (is_complete && !was_complete).then(|| Line::new("job", what))
    }

    fn leaves(&mut self, pod: &Pod, name: &str) -> Option<Line> {
        let who = match (self.deleter, is_evicted(pod)) {
            (_, true) => "taint-eviction".to_owned(),
            (Some(who), false) => who.to_owned(),
            (None, false) => owner(pod),
        };
        self.shown.insert(name.to_owned()).then(|| Line::new(&who, format!("deleted pod/{name}")))
    }
}

impl State for Workloads {
    type Change = Change;

    fn apply(&mut self, change: &Change) -> Vec<Line> {
        self.take(change).into_iter().collect()
    }

    fn so_far(&self) -> String {
        let pod = |(name, life): (&String, &Life)| {
            let ready = if life.is_ready { ", ready" } else { "" };
            format!("{name} ({}{ready})", life.phase)
        };
        let pods: Vec<_> = self.pods.iter().map(pod).collect();
        if pods.is_empty() { "no pods".to_owned() } else { pods.join(", ") }
    }
}

fn name(metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> String {
    metadata.name.clone().unwrap_or_default()
}

/// The controller of a pod, as its owner shows.
fn owner(pod: &Pod) -> String {
    let owner = pod.metadata.owner_references.iter().flatten().next();
    owner.map_or_else(|| "somebody".to_owned(), |owner| owner.kind.to_lowercase())
}

/// Whether a taint of its node is why a pod leaves.
fn is_evicted(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| &status.conditions).flatten();
    conditions
        .into_iter()
        .any(|it| it.type_ == "DisruptionTarget" && it.reason.as_deref() == Some("DeletionByTaintManager"))
}

fn index(pod: &Pod) -> String {
    let index = pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(INDEX));
    index.map_or_else(String::new, |index| format!(" for index {index}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn typed<T: serde::de::DeserializeOwned>(value: Value) -> Box<T> {
        Box::new(serde_json::from_value(value).unwrap())
    }

    fn pod(name: &str, kind: &str, phase: &str, ready: &str) -> Box<Pod> {
        typed(json!({
            "metadata": {
                "name": name, "labels": { "app": "db" }, "annotations": { INDEX: "1" },
                "ownerReferences": [{ "apiVersion": "v1", "kind": kind, "name": "x", "uid": "x" }],
            },
            "spec": { "nodeName": "node-1", "containers": [{ "name": "main", "image": "db:1" }] },
            "status": { "phase": phase, "conditions": [{ "type": "Ready", "status": ready }] },
        }))
    }

    #[test]
    fn every_change_is_shown_once_with_the_one_who_made_it() {
        let mut workloads = Workloads::default();
        let mut check = |change: Change, want: Option<(&str, &str)>| {
            let shown = workloads.take(&change);
            assert_eq!(shown, want.map(|(who, what)| Line::new(who, what)), "{change:?}");
        };
        check(Change::Pod(pod("a", "Job", "Pending", "False")), Some(("job", "created pod/a for index 1")));
        check(Change::Pod(pod("a", "Job", "Running", "True")), Some(("node-1", "runs pod/a")));
        check(Change::Pod(pod("a", "Job", "Running", "True")), None);
        check(Change::Pod(pod("a", "Job", "Failed", "False")), Some(("node-1", "says that pod/a has failed")));
        check(Change::PodGone(pod("a", "Job", "Failed", "False")), Some(("job", "deleted pod/a")));
        let claim = json!({
            "metadata": { "name": "data" }, "status": { "phase": "Bound", "capacity": { "storage": "1Gi" } },
        });
        check(Change::Claim(typed(claim.clone())), Some(("binder", "bound pvc/data to a new volume of 1Gi")));
        check(Change::Claim(typed(claim)), None);
        let deployment = |replicas: i32| {
            typed(json!({ "metadata": { "name": "shop" }, "spec": {
                "replicas": replicas, "selector": {}, "template": { "metadata": {}, "spec": { "containers": [] } },
            } }))
        };
        check(Change::Deployment(deployment(1)), None);
        check(Change::Deployment(deployment(4)), Some(("autoscaler", "scaled deployment/shop from 1 to 4")));
        let budget = |allowed: i32| {
            typed(json!({ "metadata": { "name": "shop" }, "status": {
                "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
            } }))
        };
        check(Change::Budget(budget(0)), Some(("disruption", "budget/shop allows no eviction")));
        check(Change::Budget(budget(0)), None);
        check(Change::Budget(budget(1)), Some(("disruption", "budget/shop allows one eviction")));
        let job = json!({ "metadata": { "name": "batch" }, "status": {
            "completedIndexes": "0-2", "failed": 1, "conditions": [{ "type": "Complete", "status": "True" }],
        } });
        let complete = "job/batch is complete: indexes 0-2, failed pods: 1";
        check(Change::Job(typed(job.clone())), Some(("job", complete)));
        check(Change::Job(typed(job)), None);
        assert!(workloads.is_job_complete() && workloads.are_bound(1) && workloads.allows(1) && workloads.is_empty());
    }

    #[test]
    fn ready_means_all_pods_with_the_image() {
        let mut workloads = Workloads::default();
        workloads.take(&Change::Pod(pod("a", "StatefulSet", "Running", "True")));
        assert!(workloads.is_ready("db", 1, "db:1") && !workloads.is_ready("db", 1, "db:2"));
        assert!(!workloads.is_ready("db", 2, "db:1") && workloads.is_ready("other", 0, "db:1"));
        workloads.take(&Change::Pod(pod("b", "StatefulSet", "Pending", "False")));
        assert!(!workloads.is_ready("db", 2, "db:1"));
        assert_eq!(workloads.so_far(), "a (Running, ready), b (Pending)");
        assert_eq!(workloads.pods("db"), ["a", "b"]);
    }
}
