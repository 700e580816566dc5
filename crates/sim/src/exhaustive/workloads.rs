//! The small workloads, one per controller that writes: selinux-warning-controller sends events alone.

mod apis;
mod nodes;
mod storage;

use serde_json::{Value, json};

use super::{SETTLES, Workload};
use crate::plan::{Concurrency, Edit, How, Millis, Operation, Propagation, Share, Step, minutes};

/// The workloads, one per controller.
#[must_use]
pub fn workloads() -> Vec<Workload> {
    let mut all = replicas();
    all.extend(services());
    all.extend(namespaces());
    all.extend(sets());
    all.extend(jobs());
    all.extend(others());
    all.extend(nodes::workloads());
    all.extend(storage::workloads());
    all.extend(apis::workloads());
    all
}

fn work(controller: &'static str, watches: &'static [&'static str], operations: Vec<Operation>) -> Workload {
    let steps = (1..).zip(operations).map(|(number, operation)| Step { at: minutes(number), operation });
    Workload { controller, watches, results: &[], operations: steps.collect(), settles: SETTLES }
}

// === impl Workload ===

impl Workload {
    /// Objects of these resources are the same in the end.
    fn ends_with(mut self, results: &'static [&'static str]) -> Self {
        self.results = results;
        self
    }

    /// Faults may act for so long after the last operation.
    fn settling_for(mut self, settles: Millis) -> Self {
        self.settles = settles;
        self
    }
}

fn post(path: &str, body: Value) -> Operation {
    Operation::Request { how: How::Create, path: path.to_owned(), body }
}

fn patch(path: &str, body: Value) -> Operation {
    Operation::Request { how: How::Patch, path: path.to_owned(), body }
}

fn remove(path: &str) -> Operation {
    Operation::Request { how: How::Delete, path: path.to_owned(), body: Value::Null }
}

/// The collections of the first namespace.
fn here(plural: &str) -> String {
    format!("/api/v1/namespaces/alpha/{plural}")
}

/// A pod without owner, with more in its spec.
fn pod(name: &str, more: &Value) -> Operation {
    let mut spec = json!({"containers": [{"name": "main", "image": "image:0"}]});
    if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
        spec.extend(more.clone());
    }
    post(&here("pods"), json!({"metadata": {"name": name}, "spec": spec}))
}

fn create(owner: usize, changes: Vec<Edit>) -> Operation {
    Operation::Create { owner, changes }
}

fn edit(owner: usize, changes: Vec<Edit>) -> Operation {
    Operation::Edit { owner, changes }
}

fn delete(owner: usize, policy: Propagation) -> Operation {
    Operation::Delete { owner, policy }
}

fn pods(count: u32) -> Vec<Edit> {
    vec![Edit::Replicas(count), Edit::ReadyDelay(2)]
}

/// Those for Deployments, what is like ReplicaSets, and garbage.
fn replicas() -> Vec<Workload> {
    let rolling = Edit::Strategy { recreate: false, surge: Share::Count(1), unavailable: Share::Count(1) };
    vec![
        work(
            "deployment-controller",
            &["deployments.apps", "replicasets.apps", "pods"],
            vec![
                create(0, vec![Edit::Replicas(3), rolling]),
                edit(0, vec![Edit::Image(1)]),
                edit(0, vec![Edit::Replicas(2), Edit::Image(2)]),
                delete(0, Propagation::Background),
            ],
        ),
        work(
            "replicaset-controller",
            &["replicasets.apps", "pods"],
            vec![
                create(7, pods(3)),
                Operation::Relabel { owner: 7, pick: 0 },
                edit(7, vec![Edit::Replicas(1)]),
                Operation::DeletePod { owner: 7, pick: 0, now: false },
                delete(7, Propagation::Orphan),
            ],
        ),
        work(
            "replicationcontroller-controller",
            &["replicationcontrollers", "pods"],
            vec![
                create(10, pods(2)),
                Operation::DeletePod { owner: 10, pick: 1, now: true },
                edit(10, vec![Edit::Replicas(1)]),
                delete(10, Propagation::Foreground),
            ],
        ),
        work(
            "garbage-collector-controller",
            &["configmaps", "cakes.garbage.example.com"],
            vec![
                create(17, vec![Edit::Children(2)]),
                create(19, vec![Edit::Children(1)]),
                edit(17, vec![Edit::SharedWith(19)]),
                delete(17, Propagation::Foreground),
                delete(19, Propagation::Background),
            ],
        ),
    ]
}

/// Those for Services.
fn services() -> Vec<Workload> {
    vec![
        work(
            "endpointslice-controller",
            &["services", "pods", "endpointslices.discovery.k8s.io"],
            vec![
                create(7, pods(2)),
                create(12, vec![Edit::Selects(7)]),
                edit(7, vec![Edit::Replicas(3)]),
                edit(12, vec![Edit::Port(8001)]),
                delete(12, Propagation::Background),
            ],
        ),
        work(
            "endpoints-controller",
            &["services", "pods", "endpoints"],
            vec![
                create(7, pods(2)),
                create(12, vec![Edit::Selects(7)]),
                edit(7, vec![Edit::Replicas(1)]),
                delete(12, Propagation::Background),
            ],
        ),
    ]
}

/// Those for namespaces, what each of them has, and pods that nobody needs.
fn namespaces() -> Vec<Workload> {
    vec![
        work(
            "namespace-controller",
            &["namespaces"],
            vec![
                create(8, pods(1)),
                Operation::DeleteNamespace { namespace: 1 },
                Operation::CreateNamespace { namespace: 1 },
            ],
        ),
        work(
            "serviceaccount-controller",
            &["namespaces", "serviceaccounts"],
            vec![
                Operation::DeleteKept { namespace: 0, account: true },
                Operation::DeleteNamespace { namespace: 2 },
                Operation::CreateNamespace { namespace: 2 },
            ],
        ),
        work(
            "root-ca-certificate-publisher-controller",
            &["namespaces", "configmaps"],
            vec![
                Operation::DeleteKept { namespace: 0, account: false },
                Operation::DeleteNamespace { namespace: 2 },
                Operation::CreateNamespace { namespace: 2 },
            ],
        ),
        work(
            "serviceaccount-token-controller",
            &["secrets", "serviceaccounts"],
            vec![create(15, Vec::new()), delete(15, Propagation::Background), create(15, Vec::new())],
        ),
        work(
            "pod-garbage-collector-controller",
            &["pods", "nodes"],
            vec![create(7, pods(3)), Operation::RemoveNode { node: 0 }, Operation::ResumeNode { node: 0 }],
        ),
    ]
}

/// Those for StatefulSets, their claims, and DaemonSets.
fn sets() -> Vec<Workload> {
    let claims = [Edit::Claims, Edit::Retention { deleted: true, scaled: true }];
    let with_claims = |count| pods(count).into_iter().chain(claims.clone()).collect::<Vec<_>>();
    let surging = Edit::Strategy { recreate: false, surge: Share::Count(1), unavailable: Share::Count(0) };
    vec![
        work(
            "statefulset-controller",
            &["statefulsets.apps", "pods", "controllerrevisions.apps", "persistentvolumeclaims"],
            vec![
                create(20, with_claims(3)),
                edit(20, vec![Edit::Image(1)]),
                Operation::DeletePod { owner: 20, pick: 1, now: false },
                edit(20, vec![Edit::Replicas(1)]),
                delete(20, Propagation::Background),
            ],
        ),
        work(
            "persistentvolumeclaim-protection-controller",
            &["persistentvolumeclaims", "pods"],
            vec![create(20, with_claims(2)), edit(20, vec![Edit::Replicas(1)]), delete(20, Propagation::Background)],
        ),
        work(
            "daemonset-controller",
            &["daemonsets.apps", "pods", "controllerrevisions.apps"],
            vec![
                create(22, vec![surging, Edit::ReadyDelay(2)]),
                edit(22, vec![Edit::Image(1)]),
                Operation::TaintNode { node: 0, ends_pods: Some(true) },
                Operation::TaintNode { node: 0, ends_pods: None },
                Operation::FailPod { owner: 22, pick: 0 },
                delete(22, Propagation::Orphan),
            ],
        ),
    ]
}

/// Those for Jobs and CronJobs.
fn jobs() -> Vec<Workload> {
    let ends = |seconds| Edit::Ends { seconds, code: 0 };
    let forbid = Edit::Concurrency(Concurrency::Forbid);
    let replace = Edit::Concurrency(Concurrency::Replace);
    vec![
        work(
            "job-controller",
            &["jobs.batch", "pods"],
            vec![
                create(
                    24,
                    vec![Edit::Parallelism(2), Edit::Completions(3), Edit::Indexed, ends(70), Edit::FailuresMax(3)],
                ),
                Operation::FailPod { owner: 24, pick: 0 },
                create(25, vec![Edit::Parallelism(2), Edit::Completions(2), ends(20), Edit::FailuresMax(1)]),
                edit(24, vec![Edit::Suspended(true)]),
                edit(24, vec![Edit::Suspended(false)]),
                edit(24, vec![Edit::Parallelism(1)]),
                delete(25, Propagation::Foreground),
            ],
        ),
        work(
            "cronjob-controller",
            &["cronjobs.batch", "jobs.batch"],
            vec![
                create(27, vec![Edit::EveryMinutes(1), forbid, ends(30), Edit::Kept { succeeded: 0, failed: 0 }]),
                edit(27, vec![ends(90)]),
                edit(27, vec![replace]),
                edit(27, vec![Edit::Kept { succeeded: 1, failed: 1 }]),
                edit(27, vec![Edit::Suspended(true)]),
            ],
        ),
    ]
}

/// Those for budgets, autoscalers, mirrored Endpoints and sums of roles.
fn others() -> Vec<Workload> {
    vec![
        work(
            "disruption-controller",
            &["poddisruptionbudgets.policy", "pods", "replicasets.apps"],
            vec![
                create(7, pods(3)),
                create(29, vec![Edit::Selects(7), Edit::AvailableMin(Share::Count(2))]),
                Operation::Evict { owner: 7, pick: 0 },
                edit(29, vec![Edit::UnavailableMax(Share::Percent(50))]),
                Operation::Evict { owner: 7, pick: 1 },
                edit(7, vec![Edit::Replicas(1)]),
            ],
        ),
        work(
            "horizontal-pod-autoscaler-controller",
            &["horizontalpodautoscalers.autoscaling", "deployments.apps", "pods"],
            vec![
                create(0, pods(2)),
                create(33, vec![Edit::Bounds { min: 1, max: 6 }, Edit::Demand(45)]),
                edit(33, vec![Edit::AddsAtMost(Some(1))]),
                edit(33, vec![Edit::Demand(60)]),
                edit(33, vec![Edit::Bounds { min: 1, max: 3 }]),
                edit(33, vec![Edit::Demand(10)]),
            ],
        )
        .ends_with(&["horizontalpodautoscalers.autoscaling"])
        .settling_for(minutes(6)),
        work(
            "endpointslice-mirroring-controller",
            &["endpoints", "services", "endpointslices.discovery.k8s.io"],
            vec![
                create(31, vec![Edit::Addresses(2)]),
                edit(31, vec![Edit::Addresses(3)]),
                edit(31, vec![Edit::Addresses(0)]),
                edit(31, vec![Edit::Addresses(1)]),
                delete(31, Propagation::Background),
            ],
        ),
        work(
            "clusterrole-aggregation-controller",
            &["clusterroles.rbac.authorization.k8s.io"],
            vec![
                create(32, Vec::new()),
                edit(32, vec![Edit::Rules(0)]),
                edit(32, vec![Edit::Rules(1)]),
                edit(32, vec![Edit::Rules(3)]),
                edit(32, vec![Edit::Rules(6)]),
            ],
        ),
    ]
}
