//! Streams about Deployments and ReplicaSets.

use serde_json::{Value, json};

use super::Stream;
use super::story::{Story, deployment, patch, pod, pods, rolled_out, said, set, terminating, with};
use crate::invariants::{DEPLOYMENT, REPLICA_SET};

pub(super) fn replicas(count: i32) -> Value {
    json!({ "spec": { "replicas": count } })
}

pub(super) const VIOLATIONS: &[(&str, Stream)] = &[
    // `replicas: 20 -> 8` and a new image in one patch: the old ReplicaSet was scaled to 8 and still says 20.
    ("rolling_updates_keep_their_available_pods", |story| {
        rolled_out(story, 20, &[("old", 20)]);
        story.user(deployment("web", 8, "new"));
        story.write(DEPLOYMENT, patch("ReplicaSet", "web-old", &with(replicas(8), &sized_for(8))));
        let made = story.owned(set("web-new", 2, "new"), "Deployment", "web");
        story.write(DEPLOYMENT, made);
        story.write(DEPLOYMENT, patch("ReplicaSet", "web-old", &replicas(0)));
    }),
    // New image only, nothing may be unavailable, and the status of the old ReplicaSet is slow.
    ("rolling_updates_keep_their_available_pods", |story| {
        rolled_out(story, 4, &[("old", 4), ("new", 1)]);
        let none = json!({ "spec": { "strategy": { "rollingUpdate": { "maxUnavailable": 0 } } } });
        story.user(patch("Deployment", "web", &none));
        story.wait(1000);
        story.write(DEPLOYMENT, patch("ReplicaSet", "web-old", &replicas(3)));
        story.write(DEPLOYMENT, patch("ReplicaSet", "web-old", &replicas(2)));
    }),
    ("scaling_down_stops_at_the_wanted_number", |story| {
        rolled_out(story, 3, &[("a", 3)]);
        story.deletes(REPLICA_SET, "Pod", "web-a-0");
    }),
    // Two were too many, and three are deleted: it knows of the two, even if its cache does not show it.
    ("scaling_down_stops_at_the_wanted_number", |story| {
        rolled_out(story, 3, &[("a", 3)]);
        pods(story, "web-a", "a", 3..5, true);
        story.wait(1000);
        story.freeze("Pod");
        for name in ["web-a-4", "web-a-3", "web-a-2"] {
            let going = patch("Pod", name, &terminating(story));
            story.write(REPLICA_SET, going);
        }
    }),
    ("recreation_waits_for_the_end_of_old_pods", |story| {
        rolled_out(story, 2, &[("old", 2), ("new", 0)]);
        story.user(patch("Deployment", "web", &json!({ "spec": { "strategy": { "type": "Recreate" } } })));
        story.wait(1000);
        story.write(DEPLOYMENT, patch("ReplicaSet", "web-new", &replicas(2)));
    }),
    ("replica_sets_ask_for_no_more_than_the_surge", |story| {
        rolled_out(story, 4, &[("old", 4), ("new", 1)]);
        story.write(DEPLOYMENT, patch("ReplicaSet", "web-new", &replicas(2)));
    }),
    // It scaled the other one up itself, even if its cache does not show it.
    ("replica_sets_ask_for_no_more_than_the_surge", |story| {
        rolled_out(story, 4, &[("old", 3), ("new", 1)]);
        story.freeze("ReplicaSet");
        story.write(DEPLOYMENT, patch("ReplicaSet", "web-old", &replicas(4)));
        story.write(DEPLOYMENT, patch("ReplicaSet", "web-new", &replicas(2)));
    }),
    ("no_more_pods_than_wanted_are_created", |story| {
        rolled_out(story, 3, &[("a", 3)]);
        let made = story.owned(pod("web-a-3", "a", None), "ReplicaSet", "web-a");
        story.write(REPLICA_SET, made);
    }),
    // The pod watch is stalled: the manager knows its own creates.
    ("at_most_the_needed_pods_are_created", |story| {
        rolled_out(story, 2, &[("a", 0)]);
        story.user(patch("ReplicaSet", "web-a", &replicas(2)));
        story.freeze("Pod");
        for number in 0..3 {
            let made = story.owned(pod(&format!("web-a-{number}"), "a", None), "ReplicaSet", "web-a");
            story.write(REPLICA_SET, made);
            story.wait(40);
        }
    }),
    // A duplicate counts even if it is deleted again.
    ("at_most_the_needed_pods_are_created", |story| {
        rolled_out(story, 1, &[("a", 0)]);
        story.user(patch("ReplicaSet", "web-a", &replicas(1)));
        for name in ["a-1", "a-2"] {
            let made = story.owned(pod(name, "a", None), "ReplicaSet", "web-a");
            story.write(REPLICA_SET, made);
        }
        story.deletes(REPLICA_SET, "Pod", "a-2");
        assert_eq!(story.count("at_most_the_needed_pods_are_created").violated, 1);
    }),
    ("a_template_has_one_replica_set", |story| {
        rolled_out(story, 1, &[("a", 1)]);
        let again = with(set("web-again", 0, "a"), &json!({ "metadata": { "labels": { "pod-template-hash": "b" } } }));
        let made = story.owned(again, "Deployment", "web");
        story.write(DEPLOYMENT, made);
    }),
    ("pods_that_are_missed_least_go_first", |story| {
        rolled_out(story, 3, &[("a", 3)]);
        story.node(pod_that(story, "web-a-1", "False"));
        story.user(patch("ReplicaSet", "web-a", &replicas(2)));
        story.wait(1000);
        story.deletes(REPLICA_SET, "Pod", "web-a-0");
    }),
    ("pods_that_are_missed_least_go_first", |story| {
        rolled_out(story, 3, &[("a", 3)]);
        let cost = json!({ "metadata": { "annotations": { "controller.kubernetes.io/pod-deletion-cost": "-5" } } });
        story.user(patch("Pod", "web-a-2", &cost));
        story.user(patch("ReplicaSet", "web-a", &replicas(2)));
        story.wait(1000);
        story.deletes(REPLICA_SET, "Pod", "web-a-0");
    }),
    // Three of the Deployment's pods share a node, and the one that is alone is deleted.
    ("pods_that_are_missed_least_go_first", |story| {
        rolled_out(story, 4, &[("a", 4)]);
        story.node(patch("Pod", "web-a-3", &json!({ "spec": { "nodeName": "node-2" } })));
        story.user(patch("ReplicaSet", "web-a", &replicas(3)));
        story.wait(1000);
        story.deletes(REPLICA_SET, "Pod", "web-a-3");
    }),
    ("revisions_only_grow", |story| {
        rolled_out(story, 1, &[("a", 1)]);
        let revision =
            |number: &str| json!({ "metadata": { "annotations": { "deployment.kubernetes.io/revision": number } } });
        story.write(DEPLOYMENT, patch("ReplicaSet", "web-a", &revision("3")));
        story.write(DEPLOYMENT, patch("ReplicaSet", "web-a", &revision("2")));
    }),
    ("no_needed_replica_set_is_forgotten", |story| {
        rolled_out(story, 2, &[("old", 1), ("new", 1)]);
        story.deletes(DEPLOYMENT, "ReplicaSet", "web-old");
    }),
    ("no_needed_replica_set_is_forgotten", |story| {
        rolled_out(story, 0, &[("old", 0), ("new", 0)]);
        story.deletes(DEPLOYMENT, "ReplicaSet", "web-new");
    }),
    ("every_set_has_its_replicas", |story| {
        rolled_out(story, 3, &[("a", 3)]);
        story.user_deletes("Pod", "web-a-0");
        story.rest();
    }),
    ("statuses_of_sets_are_true_at_rest", |story| {
        rolled_out(story, 3, &[("a", 3)]);
        said(story, "web-a", 3, 2);
        story.rest();
    }),
    ("deployments_are_rolled_out", |story| {
        rolled_out(story, 2, &[("old", 1), ("new", 1)]);
        story.rest();
    }),
    ("statuses_of_deployments_are_true_at_rest", |story| {
        rolled_out(story, 2, &[("a", 2)]);
        story.rest();
    }),
    ("orphans_that_match_are_adopted", |story| {
        rolled_out(story, 2, &[("a", 2)]);
        story.user(pod("stray", "a", None));
        story.rest();
    }),
    ("what_does_not_match_is_released", |story| {
        rolled_out(story, 2, &[("a", 2)]);
        story.user(patch("Pod", "web-a-0", &json!({ "metadata": { "labels": { "app": "other" } } })));
        story.rest();
    }),
    ("history_is_kept_to_its_limit", |story| {
        rolled_out(story, 1, &[("a", 0), ("b", 0), ("c", 1)]);
        story.user(patch(
            "Deployment",
            "web",
            &json!({ "status": {
            "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1, "observedGeneration": 1,
        } }),
        ));
        story.rest();
    }),
    ("the_new_replica_set_has_the_highest_revision", |story| {
        rolled_out(story, 1, &[("a", 0), ("b", 1)]);
        for (name, revision) in [("web-a", "3"), ("web-b", "2")] {
            story.user(patch(
                "ReplicaSet",
                name,
                &json!({ "metadata": { "annotations": {
                "deployment.kubernetes.io/revision": revision } } }),
            ));
        }
        story.rest();
    }),
];

pub(super) fn sized_for(count: i32) -> Value {
    json!({ "metadata": { "annotations": { "deployment.kubernetes.io/desired-replicas": count.to_string() } } })
}

/// A pod whose condition `Ready` has this status from now on.
pub(super) fn pod_that(story: &Story, name: &str, status: &str) -> Value {
    let ready = json!({ "type": "Ready", "status": status, "lastTransitionTime": story.now() });
    patch("Pod", name, &json!({ "status": { "conditions": [ready] } }))
}
