//! Streams about statuses, conditions, ownership and leadership.

use serde_json::{Value, json};

use super::Stream;
use super::story::{Story, patch, pod, rolled_out, set, terminating, with};
use crate::invariants::{DEPLOYMENT, REPLICA_SET};

/// A status of the Deployment about its generation.
pub(super) fn status(counts: (i32, i32, i32), conditions: &Value) -> Value {
    let (replicas, updated, available) = counts;
    patch(
        "Deployment",
        "web",
        &json!({ "status": {
        "replicas": replicas, "updatedReplicas": updated, "readyReplicas": available, "availableReplicas": available,
        "observedGeneration": 1, "conditions": conditions,
    } }),
    )
}

pub(super) fn condition(story: &Story, type_: &str, status: &str, reason: &str) -> Value {
    json!({
        "type": type_, "status": status, "reason": reason,
        "lastUpdateTime": story.now(), "lastTransitionTime": story.now(),
    })
}

pub(super) fn lease(holder: &str) -> Value {
    json!({ "kind": "Lease", "metadata": { "name": "kube-controller-manager" }, "spec": { "holderIdentity": holder } })
}

pub(super) fn released() -> Value {
    json!({ "metadata": { "ownerReferences": [] } })
}

pub(super) const VIOLATIONS: &[(&str, Stream)] = &[
    ("availability_is_told_as_it_is_counted", |story| {
        rolled_out(story, 4, &[("a", 4)]);
        let told = json!([condition(story, "Available", "True", "MinimumReplicasAvailable")]);
        story.write(DEPLOYMENT, status((4, 4, 2), &told));
    }),
    ("a_roll_out_is_through_when_all_pods_are_new_and_available", |story| {
        rolled_out(story, 4, &[("a", 4)]);
        let told = json!([condition(story, "Progressing", "True", "NewReplicaSetAvailable")]);
        story.write(DEPLOYMENT, status((5, 4, 4), &told));
    }),
    ("a_deadline_is_exceeded_only_after_it", |story| {
        rolled_out(story, 4, &[("a", 4)]);
        let told = json!([condition(story, "Progressing", "True", "ReplicaSetUpdated")]);
        story.write(DEPLOYMENT, status((4, 4, 4), &told));
        story.wait(590);
        let told = json!([condition(story, "Progressing", "False", "ProgressDeadlineExceeded")]);
        story.write(DEPLOYMENT, status((4, 4, 4), &told));
    }),
    ("a_failure_is_that_of_a_replica_set", |story| {
        rolled_out(story, 4, &[("a", 4)]);
        let told = json!([condition(story, "ReplicaFailure", "True", "FailedCreate")]);
        story.write(DEPLOYMENT, status((4, 4, 4), &told));
    }),
    ("a_failed_create_is_told_while_pods_are_missing", |story| {
        rolled_out(story, 4, &[("a", 4)]);
        let told = json!([condition(story, "ReplicaFailure", "True", "FailedCreate")]);
        let said = json!({ "status": { "conditions": told, "observedGeneration": 1 } });
        story.write(REPLICA_SET, patch("ReplicaSet", "web-a", &said));
    }),
    ("a_condition_stands_once_and_changes_its_time_with_its_status", |story| {
        rolled_out(story, 4, &[("a", 4)]);
        let told = json!([condition(story, "Available", "True", "A"), condition(story, "Available", "True", "B")]);
        story.write(DEPLOYMENT, status((4, 4, 4), &told));
    }),
    ("a_condition_stands_once_and_changes_its_time_with_its_status", |story| {
        rolled_out(story, 4, &[("a", 4)]);
        let told = json!([condition(story, "Available", "True", "MinimumReplicasAvailable")]);
        story.write(DEPLOYMENT, status((4, 4, 4), &told));
        story.wait(10);
        let told = json!([condition(story, "Available", "True", "MinimumReplicasAvailable")]);
        story.write(DEPLOYMENT, status((4, 4, 4), &told));
    }),
    ("observed_generation_is_never_ahead_and_never_goes_back", |story| {
        rolled_out(story, 4, &[("a", 4)]);
        story.write(REPLICA_SET, patch("ReplicaSet", "web-a", &json!({ "status": { "observedGeneration": 2 } })));
    }),
    ("observed_generation_is_never_ahead_and_never_goes_back", |story| {
        rolled_out(story, 4, &[("a", 4)]);
        story.write(REPLICA_SET, patch("ReplicaSet", "web-a", &json!({ "status": { "observedGeneration": 1 } })));
        story.write(REPLICA_SET, patch("ReplicaSet", "web-a", &json!({ "status": { "observedGeneration": 0 } })));
    }),
    ("a_replica_set_counts_its_pods", |story| {
        rolled_out(story, 4, &[("a", 4)]);
        let said = json!({ "status": { "replicas": 5, "fullyLabeledReplicas": 5, "readyReplicas": 4, "availableReplicas": 4 } });
        story.write(REPLICA_SET, patch("ReplicaSet", "web-a", &said));
    }),
    ("a_replica_set_counts_its_pods", |story| {
        rolled_out(story, 4, &[("a", 4)]);
        story.write(REPLICA_SET, patch("ReplicaSet", "web-a", &json!({ "status": { "availableReplicas": 3 } })));
    }),
    ("a_deployment_adds_up_its_replica_sets", |story| {
        rolled_out(story, 4, &[("a", 4)]);
        story.write(DEPLOYMENT, status((4, 3, 4), &json!([])));
    }),
    ("at_most_one_owner_controls", |story| {
        rolled_out(story, 1, &[("a", 1)]);
        let owner = |uid: &str| json!({ "kind": "ReplicaSet", "name": "web-a", "uid": uid, "controller": true });
        story.user(patch("Pod", "web-a-0", &json!({ "metadata": { "ownerReferences": [owner("1"), owner("2")] } })));
    }),
    ("adoption_is_of_matching_orphans_by_living_owners", |story| {
        rolled_out(story, 1, &[("a", 1)]);
        let stray = with(pod("stray", "a", None), &json!({ "metadata": { "labels": { "app": "other" } } }));
        story.user(stray);
        story.wait(1000);
        let taken = story.owned(patch("Pod", "stray", &json!({})), "ReplicaSet", "web-a");
        story.write(REPLICA_SET, taken);
    }),
    ("adoption_is_of_matching_orphans_by_living_owners", |story| {
        rolled_out(story, 1, &[("a", 1)]);
        story.user(pod("stray", "a", None));
        let going = patch("ReplicaSet", "web-a", &terminating(story));
        story.user(going);
        story.wait(1000);
        let taken = story.owned(patch("Pod", "stray", &json!({})), "ReplicaSet", "web-a");
        story.write(REPLICA_SET, taken);
    }),
    ("adoption_is_of_matching_orphans_by_living_owners", |story| {
        rolled_out(story, 1, &[("a", 1), ("b", 0)]);
        let taken = story.owned(patch("Pod", "web-a-0", &json!({})), "ReplicaSet", "web-b");
        story.write(REPLICA_SET, taken);
    }),
    ("what_matches_is_not_released", |story| {
        rolled_out(story, 1, &[("a", 1)]);
        story.write(REPLICA_SET, patch("Pod", "web-a-0", &released()));
    }),
    ("what_is_created_belongs_to_its_creator", |story| {
        rolled_out(story, 1, &[("a", 1)]);
        story.write(REPLICA_SET, pod("nobody's", "a", None));
    }),
    ("what_is_created_belongs_to_its_creator", |story| {
        rolled_out(story, 1, &[("a", 0)]);
        let made = story.owned(set("web-b", 0, "b"), "Deployment", "web");
        story.user_deletes("Deployment", "web");
        story.wait(1000);
        story.write(DEPLOYMENT, made);
    }),
    ("no_write_by_a_deposed_leader", |story| {
        rolled_out(story, 4, &[("a", 4)]);
        story.write("leader-election", lease("one"));
        story.manager(1);
        story.write("leader-election", lease("two"));
        story.manager(0);
        story.write(DEPLOYMENT, status((4, 4, 4), &json!([])));
    }),
    // It was never the leader.
    ("no_write_by_a_deposed_leader", |story| {
        rolled_out(story, 4, &[("a", 4)]);
        story.write("leader-election", lease("one"));
        story.manager(1);
        story.write(DEPLOYMENT, status((4, 4, 4), &json!([])));
    }),
    // It has released the lease.
    ("no_write_by_a_deposed_leader", |story| {
        rolled_out(story, 4, &[("a", 4)]);
        story.write("leader-election", lease("one"));
        story.write("leader-election", lease(""));
        story.write(DEPLOYMENT, status((4, 4, 4), &json!([])));
    }),
    ("controllers_write_only_what_is_theirs", |story| {
        rolled_out(story, 1, &[("a", 1)]);
        story.deletes(DEPLOYMENT, "Pod", "web-a-0");
    }),
    ("controllers_write_only_what_is_theirs", |story| {
        rolled_out(story, 1, &[("a", 1)]);
        story.write(REPLICA_SET, patch("ReplicaSet", "web-a", &json!({ "spec": { "replicas": 2 } })));
    }),
];
