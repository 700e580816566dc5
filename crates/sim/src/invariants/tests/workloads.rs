//! StatefulSets, DaemonSets, Jobs, CronJobs, budgets and copies.

use serde_json::{Value, json};

use super::Stream;
use super::legal::{expect_checked, expect_stale};
use super::story::{Story, named, patch, pod, terminating, with};
use crate::invariants::{CRON_JOB, DAEMON_SET, DISRUPTION, JOB, STATEFUL_SET};

const LONG: i64 = 1000;

fn template() -> Value {
    json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "name": "main", "image": "a" }] } })
}

/// A StatefulSet `db`.
fn stateful_set(story: &mut Story, replicas: i64, strategy: &Value) {
    let spec = json!({ "replicas": replicas, "selector": { "matchLabels": { "app": "web" } }, "template": template(),
        "updateStrategy": strategy });
    let status = json!({ "currentRevision": "a", "updateRevision": "b" });
    story.user(with(named("StatefulSet", "db"), &json!({ "spec": spec, "status": status })));
}

/// A pod of the StatefulSet `db`.
fn member(story: &Story, ordinal: i64, revision: &str, ready: bool) -> Value {
    let made = pod(&format!("db-{ordinal}"), "a", ready.then(|| story.now()));
    let marks = json!({
        "metadata": { "labels": { "controller-revision-hash": revision } },
        "spec": { "containers": [{ "name": "main", "image": "a" }] },
    });
    story.owned(with(made, &marks), "StatefulSet", "db")
}

fn members(story: &mut Story, count: i64) {
    for ordinal in 0..count {
        let made = member(story, ordinal, "a", true);
        story.node(made);
    }
    story.wait(LONG);
}

/// A DaemonSet `agent`, and nodes.
fn daemon_set(story: &mut Story, nodes: i32, rolling: &Value) {
    let spec = json!({ "selector": { "matchLabels": { "app": "web" } }, "template": template(),
        "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": rolling } });
    story.user(with(named("DaemonSet", "agent"), &json!({ "spec": spec })));
    for number in 1..=nodes {
        story.node(named("Node", &format!("node-{number}")));
    }
}

fn daemon(story: &Story, name: &str, node: &str, ready: bool) -> Value {
    let made = pod(name, "a", ready.then(|| story.now()));
    story.owned(with(made, &json!({ "spec": { "nodeName": node } })), "DaemonSet", "agent")
}

fn daemons(story: &mut Story, nodes: i32) {
    for number in 1..=nodes {
        let made = daemon(story, &format!("agent-{number}"), &format!("node-{number}"), true);
        story.node(made);
    }
    story.wait(LONG);
}

/// A Job `sums`.
fn job(story: &mut Story, spec: &Value) {
    let rest = json!({ "selector": { "matchLabels": { "app": "web" } }, "template": template() });
    story.user(with(with(named("Job", "sums"), &json!({ "spec": rest })), &json!({ "spec": spec })));
}

fn worker(story: &Story, name: &str, phase: &str) -> Value {
    let marks = json!({
        "metadata": { "finalizers": ["batch.kubernetes.io/job-tracking"] }, "status": { "phase": phase },
    });
    story.owned(with(pod(name, "a", None), &marks), "Job", "sums")
}

fn says(status: &Value) -> Value {
    patch("Job", "sums", &json!({ "status": status }))
}

/// A CronJob `tick`.
fn cron_job(story: &mut Story, policy: &str, kept: i32) {
    let spec =
        json!({ "concurrencyPolicy": policy, "successfulJobsHistoryLimit": kept, "failedJobsHistoryLimit": kept });
    story.user(with(named("CronJob", "tick"), &json!({ "spec": spec })));
}

fn run(story: &Story, name: &str, finished: bool) -> Value {
    let marks = json!({ "metadata": { "annotations": { "batch.kubernetes.io/cronjob-scheduled-timestamp": name } } });
    let mut made = with(named("Job", name), &marks);
    if finished {
        made["status"]["conditions"] = json!([{ "type": "Complete", "status": "True" }]);
    }
    story.owned(made, "CronJob", "tick")
}

/// The Job of `run` is started, ends, and is deleted as history.
fn runs_and_is_forgotten(story: &mut Story, name: &str) {
    let made = run(story, name, false);
    story.write(CRON_JOB, made);
    let ended = json!({ "status": { "conditions": [{ "type": "Complete", "status": "True" }] } });
    story.write(CRON_JOB, with(named("Job", name), &ended));
    story.deletes(CRON_JOB, "Job", name);
}

fn budget(story: &mut Story, status: &Value) {
    let spec = json!({ "minAvailable": 1, "selector": { "matchLabels": { "app": "web" } } });
    story.user(with(named("PodDisruptionBudget", "floor"), &json!({ "spec": spec, "status": status })));
}

fn grants(status: &Value) -> Value {
    patch("PodDisruptionBudget", "floor", &json!({ "status": status }))
}

/// Streams that violate the invariant of that name.
pub(super) const VIOLATIONS: &[(&str, Stream)] = &[
    ("pods_start_in_the_order_of_their_ordinals", |story| {
        stateful_set(story, 3, &json!({}));
        story.wait(LONG);
        let made = member(story, 1, "a", false);
        story.write(STATEFUL_SET, made);
    }),
    ("ordinals_below_the_partition_keep_their_revision", |story| {
        stateful_set(story, 3, &json!({ "rollingUpdate": { "partition": 2 } }));
        story.wait(LONG);
        let made = member(story, 0, "b", false);
        story.write(STATEFUL_SET, made);
    }),
    ("surplus_ordinals_go_from_the_highest_down", |story| {
        stateful_set(story, 1, &json!({}));
        members(story, 3);
        story.deletes(STATEFUL_SET, "Pod", "db-1");
    }),
    ("stateful_updates_keep_their_available_pods", |story| {
        stateful_set(story, 3, &json!({}));
        members(story, 3);
        story.user_deletes("Pod", "db-2");
        story.wait(LONG);
        story.deletes(STATEFUL_SET, "Pod", "db-1");
    }),
    ("stateful_updates_keep_their_available_pods", |story| {
        stateful_set(story, 3, &json!({ "type": "OnDelete" }));
        members(story, 3);
        story.deletes(STATEFUL_SET, "Pod", "db-1");
    }),
    ("every_ordinal_has_its_pod", |story| {
        stateful_set(story, 2, &json!({}));
        members(story, 1);
        story.rest();
    }),
    ("stateful_sets_are_rolled_out", |story| {
        stateful_set(story, 1, &json!({}));
        members(story, 1);
        story.rest();
    }),
    ("statuses_of_stateful_sets_are_true_at_rest", |story| {
        stateful_set(story, 1, &json!({}));
        members(story, 1);
        story.rest();
    }),
    ("claims_that_nobody_uses_are_let_go", |story| {
        let claim = with(named("PersistentVolumeClaim", "data-db-0"), &terminating(story));
        story.user(claim);
        story.rest();
    }),
    ("a_node_has_one_pod_of_a_daemon_set", |story| {
        daemon_set(story, 1, &json!({ "maxUnavailable": 1 }));
        daemons(story, 1);
        let made = daemon(story, "agent-more", "node-1", false);
        story.write(DAEMON_SET, made);
    }),
    ("daemons_start_where_they_should_run", |story| {
        daemon_set(story, 1, &json!({ "maxUnavailable": 1 }));
        story.user(patch(
            "Node",
            "node-1",
            &json!({ "spec": { "taints": [{ "key": "mine", "effect": "NoExecute" }] } }),
        ));
        story.wait(LONG);
        let made = daemon(story, "agent-1", "node-1", false);
        story.write(DAEMON_SET, made);
    }),
    ("no_more_nodes_surge_than_may", |story| {
        daemon_set(story, 2, &json!({ "maxSurge": 1 }));
        daemons(story, 2);
        for number in 1..=2 {
            let made = daemon(story, &format!("new-{number}"), &format!("node-{number}"), false);
            story.write(DAEMON_SET, made);
            story.wait(LONG);
        }
    }),
    ("daemon_updates_keep_their_available_pods", |story| {
        daemon_set(story, 3, &json!({ "maxUnavailable": 1 }));
        daemons(story, 3);
        story.user_deletes("Pod", "agent-1");
        story.wait(LONG);
        story.deletes(DAEMON_SET, "Pod", "agent-2");
    }),
    ("every_node_has_its_daemons", |story| {
        daemon_set(story, 2, &json!({ "maxUnavailable": 1 }));
        daemons(story, 1);
        story.rest();
    }),
    ("statuses_of_daemon_sets_are_true_at_rest", |story| {
        daemon_set(story, 1, &json!({ "maxUnavailable": 1 }));
        daemons(story, 1);
        story.rest();
    }),
    ("no_pod_is_created_for_a_completed_index", |story| {
        job(story, &json!({ "parallelism": 3, "completions": 3, "completionMode": "Indexed" }));
        story.write(JOB, says(&json!({ "completedIndexes": "0-1", "succeeded": 2 })));
        story.wait(LONG);
        let index = json!({ "metadata": { "annotations": { "batch.kubernetes.io/job-completion-index": "1" } } });
        let made = with(worker(story, "sums-1-x", "Pending"), &index);
        story.write(JOB, made);
    }),
    ("no_more_pods_are_active_than_the_parallelism", |story| {
        job(story, &json!({ "parallelism": 1, "completions": 3 }));
        story.wait(LONG);
        for name in ["sums-a", "sums-b"] {
            let made = worker(story, name, "Pending");
            story.write(JOB, made);
        }
    }),
    ("counts_of_a_job_never_fall", |story| {
        job(story, &json!({ "parallelism": 1, "completions": 3 }));
        story.write(JOB, says(&json!({ "failed": 2 })));
        story.write(JOB, says(&json!({ "failed": 1 })));
    }),
    ("no_pod_is_counted_twice", |story| {
        job(story, &json!({ "parallelism": 1, "completions": 3 }));
        let made = worker(story, "sums-a", "Succeeded");
        story.node(made);
        story.write(JOB, says(&json!({ "succeeded": 2 })));
    }),
    ("pods_are_let_go_after_they_are_counted", |story| {
        job(story, &json!({ "parallelism": 1, "completions": 3 }));
        let made = worker(story, "sums-a", "Succeeded");
        story.node(made);
        story.wait(LONG);
        story.write(JOB, patch("Pod", "sums-a", &json!({ "metadata": { "finalizers": [] } })));
    }),
    ("a_job_ends_after_its_pods", |story| {
        job(story, &json!({ "parallelism": 1, "completions": 1 }));
        let made = worker(story, "sums-a", "Running");
        story.node(made);
        story.wait(LONG);
        let ends = json!([{ "type": "FailureTarget", "status": "True" }, { "type": "Failed", "status": "True" }]);
        story.write(JOB, says(&json!({ "conditions": ends })));
    }),
    ("a_finished_job_is_left_alone", |story| {
        job(story, &json!({ "parallelism": 1, "completions": 1 }));
        story.user(says(&json!({ "conditions": [{ "type": "Failed", "status": "True" }] })));
        story.write(JOB, says(&json!({ "active": 1 })));
    }),
    ("every_job_goes_on_or_has_finished", |story| {
        job(story, &json!({ "parallelism": 1, "completions": 1 }));
        story.rest();
    }),
    ("statuses_of_jobs_are_true_at_rest", |story| {
        job(story, &json!({ "parallelism": 1, "completions": 1 }));
        let made = worker(story, "sums-a", "Running");
        story.node(made);
        story.rest();
    }),
    ("finalizers_of_jobs_are_taken_off", |story| {
        job(story, &json!({ "parallelism": 1, "completions": 2 }));
        let made = worker(story, "sums-a", "Succeeded");
        story.node(made);
        story.rest();
    }),
    ("jobs_do_not_run_beside_each_other", |story| {
        cron_job(story, "Forbid", 1);
        for name in ["tick-1", "tick-2"] {
            let made = run(story, name, false);
            story.write(CRON_JOB, made);
            story.wait(LONG);
        }
    }),
    ("no_time_is_started_twice", |story| {
        cron_job(story, "Allow", 0);
        for _ in 0..2 {
            runs_and_is_forgotten(story, "tick-1");
        }
    }),
    ("no_time_is_started_twice", |story| {
        cron_job(story, "Allow", 0);
        runs_and_is_forgotten(story, "tick-1");
        story.wait(20);
        // Sent late, and the Job before was there by then.
        story.sent(story.now().plus_seconds(-9));
        let made = run(story, "tick-1", false);
        story.write(CRON_JOB, made);
    }),
    ("running_jobs_and_the_history_are_kept", |story| {
        cron_job(story, "Allow", 1);
        let made = run(story, "tick-1", true);
        story.user(made);
        story.wait(LONG);
        story.deletes(CRON_JOB, "Job", "tick-1");
    }),
    ("cron_jobs_know_their_jobs", |story| {
        cron_job(story, "Allow", 1);
        let made = run(story, "tick-1", false);
        story.user(made);
        story.rest();
    }),
    ("no_eviction_is_granted_beyond_the_budget", |story| {
        budget(story, &json!({}));
        let made = pod("web-1", "a", Some(story.now()));
        story.node(made);
        story.wait(LONG);
        story.write(DISRUPTION, grants(&json!({ "disruptionsAllowed": 1, "desiredHealthy": 1, "expectedPods": 2 })));
    }),
    ("granted_evictions_are_not_forgotten", |story| {
        let made = pod("web-1", "a", Some(story.now()));
        story.node(made);
        story.wait(LONG);
        let now = story.now();
        budget(story, &json!({ "disruptedPods": { "web-1": now } }));
        story.write(DISRUPTION, grants(&json!({ "disruptedPods": [] })));
    }),
    ("budgets_are_true_at_rest", |story| {
        budget(story, &json!({ "currentHealthy": 1, "observedGeneration": 1 }));
        story.rest();
    }),
    ("endpoints_are_mirrored", |story| {
        story.user(with(named("Service", "outside"), &json!({ "spec": { "ports": [{ "port": 80 }] } })));
        let subsets = json!([{ "addresses": [{ "ip": "192.0.2.1" }], "ports": [{ "port": 80 }] }]);
        story.user(with(named("Endpoints", "outside"), &json!({ "subsets": subsets })));
        story.rest();
    }),
    ("roles_are_the_sums_of_their_parts", |story| {
        let sum = json!({ "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": { "part": "yes" } }] } });
        story.user(with(named("ClusterRole", "sum"), &sum));
        let part = json!({ "metadata": { "labels": { "part": "yes" } }, "rules": [{ "verbs": ["get"] }] });
        story.user(with(named("ClusterRole", "part"), &part));
        story.rest();
    }),
];

/// Streams that violate nothing.
pub(super) const LEGAL: &[(&str, Stream)] = &[
    (
        "a Job is started again by a request that was answered with an error before the Job of the repeated one ran",
        |story| {
            cron_job(story, "Allow", 0);
            story.wait(LONG);
            let sent = story.now();
            story.wait(1);
            runs_and_is_forgotten(story, "tick-1");
            story.wait(8);
            story.sent(sent);
            let made = run(story, "tick-1", false);
            story.write(CRON_JOB, made);
            expect_stale(story, "no_time_is_started_twice");
        },
    ),
    ("a StatefulSet grows in order, and shrinks from the end", |story| {
        stateful_set(story, 2, &json!({}));
        for ordinal in 0..2 {
            let made = member(story, ordinal, "b", false);
            story.write(STATEFUL_SET, made);
            let up = member(story, ordinal, "b", true);
            story.node(up);
            story.wait(LONG);
        }
        stateful_set(story, 1, &json!({}));
        story.wait(LONG);
        story.deletes(STATEFUL_SET, "Pod", "db-1");
        expect_checked(story, "surplus_ordinals_go_from_the_highest_down");
    }),
    ("a pod in front is deleted by a user, and the manager was not shown", |story| {
        stateful_set(story, 2, &json!({}));
        members(story, 1);
        story.freeze("Pod");
        story.user_deletes("Pod", "db-0");
        let made = member(story, 1, "b", false);
        story.write(STATEFUL_SET, made);
        expect_stale(story, "pods_start_in_the_order_of_their_ordinals");
    }),
    ("a DaemonSet surges over its nodes one by one", |story| {
        daemon_set(story, 2, &json!({ "maxSurge": 1 }));
        daemons(story, 2);
        for number in 1..=2 {
            let name = format!("new-{number}");
            let node = format!("node-{number}");
            let made = daemon(story, &name, &node, false);
            story.write(DAEMON_SET, made);
            story.wait(LONG);
            let up = daemon(story, &name, &node, true);
            story.node(up);
            story.wait(LONG);
            story.deletes(DAEMON_SET, "Pod", &format!("agent-{number}"));
        }
        expect_checked(story, "no_more_nodes_surge_than_may");
        expect_checked(story, "daemon_updates_keep_their_available_pods");
    }),
    ("a Job counts its pod and completes", |story| {
        job(story, &json!({ "parallelism": 1, "completions": 1 }));
        let made = worker(story, "sums-a", "Pending");
        story.write(JOB, made);
        story.wait(LONG);
        story.node(patch("Pod", "sums-a", &json!({ "status": { "phase": "Succeeded" } })));
        let uid = story.uid("Pod", "sums-a");
        let met = json!({ "type": "SuccessCriteriaMet", "status": "True" });
        story.write(JOB, says(&json!({ "uncountedTerminatedPods": { "succeeded": [uid] }, "conditions": [met] })));
        story.write(JOB, patch("Pod", "sums-a", &json!({ "metadata": { "finalizers": [] } })));
        let done = json!([met, { "type": "Complete", "status": "True" }]);
        story.write(
            JOB,
            says(&json!({ "uncountedTerminatedPods": { "succeeded": [] }, "succeeded": 1, "conditions": done })),
        );
        expect_checked(story, "pods_are_let_go_after_they_are_counted");
        expect_checked(story, "a_job_ends_after_its_pods");
    }),
];
