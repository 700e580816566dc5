//! Streams in which nothing is wrong, or something excuses it.

use serde_json::json;

use super::Stream;
use super::gc::{finalized, namespace, on_node, token};
use super::rollout::{pod_that, replicas, sized_for};
use super::service::{addresses, begun, endpoint, slice};
use super::state::{condition, lease, released, status};
use super::story::{NS, Story, deployment, named, patch, pod, pods, rolled_out, said, set, terminating, with};
use crate::invariants::{DEPLOYMENT, GARBAGE, NAMESPACE, POD_GC, REPLICA_SET, ROOT_CA, SLICES, TOKEN};

pub(super) fn expect_stale(story: &mut Story, invariant: &str) {
    story.expect(invariant, |count| count.stale > 0);
}

fn expect_excused(story: &mut Story, invariant: &str) {
    story.expect(invariant, |count| count.excused > 0);
}

pub(super) fn expect_checked(story: &mut Story, invariant: &str) {
    story.expect(invariant, |count| count.checked > 0 && count.stale + count.excused == 0);
}

const FLOOR: &str = "rolling_updates_keep_their_available_pods";

pub(super) const LEGAL: &[(&str, Stream)] = &[
    ("a step of a rolling update", |story| {
        rolled_out(story, 4, &[("old", 4), ("new", 0)]);
        story.write(DEPLOYMENT, patch("ReplicaSet", "web-new", &replicas(1)));
        story.write(DEPLOYMENT, patch("ReplicaSet", "web-old", &replicas(3)));
        expect_checked(story, FLOOR);
        expect_checked(story, "replica_sets_ask_for_no_more_than_the_surge");
    }),
    ("pods that are not available go first, even below the floor", |story| {
        rolled_out(story, 4, &[("old", 4), ("new", 0)]);
        for name in ["web-old-0", "web-old-1"] {
            let made = pod_that(story, name, "False");
            story.node(made);
        }
        said(story, "web-old", 4, 2);
        story.wait(1000);
        story.write(DEPLOYMENT, patch("ReplicaSet", "web-old", &replicas(2)));
        expect_checked(story, FLOOR);
    }),
    ("a user scales down", |story| {
        rolled_out(story, 8, &[("a", 8)]);
        story.user(deployment("web", 2, "a"));
        story.wait(1000);
        story.write(DEPLOYMENT, patch("ReplicaSet", "web-a", &with(replicas(2), &sized_for(2))));
        expect_checked(story, FLOOR);
        for number in 0..6 {
            story.deletes(REPLICA_SET, "Pod", &format!("web-a-{number}"));
        }
        expect_checked(story, "scaling_down_stops_at_the_wanted_number");
    }),
    ("a user scales in the middle of a roll-out: all in proportion", |story| {
        rolled_out(story, 10, &[("old", 6), ("new", 7)]);
        for number in 0..7 {
            let made = pod_that(story, &format!("web-new-{number}"), "False");
            story.node(made);
        }
        said(story, "web-new", 7, 0);
        story.user(deployment("web", 8, "new"));
        story.wait(1000);
        story.write(DEPLOYMENT, patch("ReplicaSet", "web-old", &with(replicas(5), &sized_for(8))));
        expect_excused(story, FLOOR);
    }),
    ("pods fail that the status still calls available", |story| {
        rolled_out(story, 4, &[("old", 4), ("new", 1)]);
        let made = pod_that(story, "web-new-0", "False");
        story.node(made);
        story.wait(1000);
        story.write(DEPLOYMENT, patch("ReplicaSet", "web-old", &replicas(2)));
        expect_stale(story, FLOOR);
    }),
    ("a user raises the floor between decision and write", |story| {
        rolled_out(story, 4, &[("old", 4), ("new", 0)]);
        story.user(patch(
            "Deployment",
            "web",
            &json!({ "spec": { "strategy": { "rollingUpdate": { "maxUnavailable": 0 } } } }),
        ));
        story.write(DEPLOYMENT, patch("ReplicaSet", "web-old", &replicas(3)));
        expect_stale(story, FLOOR);
    }),
    ("a user deletes a pod while the watch stands still", |story| {
        rolled_out(story, 3, &[("a", 3)]);
        pods(story, "web-a", "a", 3..4, true);
        story.wait(1000);
        story.freeze("Pod");
        story.user_deletes("Pod", "web-a-0");
        story.wait(1000);
        story.deletes(REPLICA_SET, "Pod", "web-a-3");
        expect_stale(story, "scaling_down_stops_at_the_wanted_number");
    }),
    ("a deletion is made after its error was answered, and after its author chose another pod", |story| {
        rolled_out(story, 3, &[("a", 3)]);
        story.user(patch("ReplicaSet", "web-a", &replicas(2)));
        let sent = story.now();
        story.wait(5);
        story.deletes(REPLICA_SET, "Pod", "web-a-0");
        story.sent(sent);
        story.deletes(REPLICA_SET, "Pod", "web-a-1");
        expect_stale(story, "scaling_down_stops_at_the_wanted_number");
    }),
    ("a user scales back up while the watch stands still", |story| {
        rolled_out(story, 3, &[("a", 3)]);
        story.user(patch("ReplicaSet", "web-a", &replicas(2)));
        story.freeze("ReplicaSet");
        story.wait(1000);
        story.user(patch("ReplicaSet", "web-a", &replicas(3)));
        story.wait(1000);
        story.deletes(REPLICA_SET, "Pod", "web-a-0");
        expect_stale(story, "scaling_down_stops_at_the_wanted_number");
        // What it took too much it may make again.
        let made = story.owned(pod("web-a-9", "a", None), "ReplicaSet", "web-a");
        story.write(REPLICA_SET, made);
        expect_checked(story, "at_most_the_needed_pods_are_created");
    }),
    ("recreation after the old pods have ended", |story| {
        rolled_out(story, 1, &[("old", 1), ("new", 0)]);
        story.user(patch("Deployment", "web", &json!({ "spec": { "strategy": { "type": "Recreate" } } })));
        story.wait(1000);
        story.write(DEPLOYMENT, patch("ReplicaSet", "web-old", &replicas(0)));
        story.node(patch("Pod", "web-old-0", &json!({ "status": { "phase": "Succeeded" } })));
        story.write(DEPLOYMENT, patch("ReplicaSet", "web-new", &replicas(1)));
        expect_checked(story, "recreation_waits_for_the_end_of_old_pods");
    }),
    ("a user scales down while the new one is scaled up", |story| {
        rolled_out(story, 4, &[("old", 4), ("new", 0)]);
        story.user(deployment("web", 2, "new"));
        story.write(DEPLOYMENT, patch("ReplicaSet", "web-new", &replicas(1)));
        expect_stale(story, "replica_sets_ask_for_no_more_than_the_surge");
    }),
    ("what is missing is created, whatever the reason", |story| {
        rolled_out(story, 3, &[("a", 3)]);
        story.node(patch("Pod", "web-a-0", &json!({ "status": { "phase": "Failed" } })));
        story.user_deletes("Pod", "web-a-1");
        story.user(patch("Pod", "web-a-2", &json!({ "metadata": { "labels": { "app": "other" } } })));
        story.write(REPLICA_SET, patch("Pod", "web-a-2", &released()));
        expect_checked(story, "what_matches_is_not_released");
        story.user(patch("ReplicaSet", "web-a", &replicas(4)));
        for number in 10..14 {
            let made = story.owned(pod(&format!("web-a-{number}"), "a", None), "ReplicaSet", "web-a");
            story.write(REPLICA_SET, made);
        }
        expect_checked(story, "at_most_the_needed_pods_are_created");
        expect_checked(story, "no_more_pods_than_wanted_are_created");
        expect_checked(story, "what_is_created_belongs_to_its_creator");
    }),
    ("another manager whose watch stands still does not know of the first one's pods", |story| {
        rolled_out(story, 1, &[("a", 0)]);
        story.user(patch("ReplicaSet", "web-a", &replicas(1)));
        story.wait(1000);
        story.freeze("Pod");
        let first = story.owned(pod("web-a-1", "a", None), "ReplicaSet", "web-a");
        story.write(REPLICA_SET, first);
        story.wait(1000);
        story.manager(1);
        let second = story.owned(pod("web-a-2", "a", None), "ReplicaSet", "web-a");
        story.write(REPLICA_SET, second);
        expect_stale(story, "at_most_the_needed_pods_are_created");
        // A pod that is lost later may be created again, and no duplicate is reported twice.
        story.user_deletes("Pod", "web-a-1");
        story.user_deletes("Pod", "web-a-2");
        let third = story.owned(pod("web-a-3", "a", None), "ReplicaSet", "web-a");
        story.write(REPLICA_SET, third);
        story.expect("at_most_the_needed_pods_are_created", |count| count.stale == 1);
    }),
    ("another ReplicaSet of the template that nobody was shown", |story| {
        rolled_out(story, 1, &[("old", 1)]);
        story.user(deployment("web", 1, "new"));
        story.wait(1000);
        story.freeze("ReplicaSet");
        let first = story.owned(set("web-new", 0, "new"), "Deployment", "web");
        story.write(DEPLOYMENT, first);
        story.wait(1000);
        story.manager(1);
        let second = story.owned(set("web-new-2", 0, "new"), "Deployment", "web");
        story.write(DEPLOYMENT, second);
        expect_stale(story, "a_template_has_one_replica_set");
    }),
    ("those go first that are missed least, in any order of a batch", |story| {
        rolled_out(story, 4, &[("a", 4)]);
        let made = pod_that(story, "web-a-3", "False");
        story.node(made);
        story.user(patch("ReplicaSet", "web-a", &replicas(2)));
        story.wait(1000);
        story.deletes(REPLICA_SET, "Pod", "web-a-0");
        story.deletes(REPLICA_SET, "Pod", "web-a-3");
        expect_checked(story, "pods_that_are_missed_least_go_first");
    }),
    ("a pod fails after the choice", |story| {
        rolled_out(story, 3, &[("a", 3)]);
        story.user(patch("ReplicaSet", "web-a", &replicas(2)));
        story.wait(1000);
        let made = pod_that(story, "web-a-1", "False");
        story.node(made);
        story.deletes(REPLICA_SET, "Pod", "web-a-0");
        expect_stale(story, "pods_that_are_missed_least_go_first");
    }),
    ("an idle old ReplicaSet is forgotten", |story| {
        rolled_out(story, 1, &[("old", 0), ("new", 1)]);
        story.deletes(DEPLOYMENT, "ReplicaSet", "web-old");
        expect_checked(story, "no_needed_replica_set_is_forgotten");
    }),
    ("statuses as they should be", |story| {
        rolled_out(story, 4, &[("a", 4)]);
        let made = pod_that(story, "web-a-0", "False");
        story.node(made);
        let said = json!({ "status": {
            "replicas": 4, "fullyLabeledReplicas": 4, "readyReplicas": 3, "availableReplicas": 3, "observedGeneration": 1,
        } });
        story.write(REPLICA_SET, patch("ReplicaSet", "web-a", &said));
        let told = json!([
            condition(story, "Available", "True", "MinimumReplicasAvailable"),
            condition(story, "Progressing", "True", "ReplicaSetUpdated"),
        ]);
        story.write(DEPLOYMENT, status((4, 4, 3), &told));
        for name in [
            "a_replica_set_counts_its_pods",
            "a_deployment_adds_up_its_replica_sets",
            "availability_is_told_as_it_is_counted",
        ] {
            expect_checked(story, name);
        }
        let updated = json!(story.now());
        story.wait(602);
        let mut told = json!([
            condition(story, "Available", "True", "MinimumReplicasAvailable"),
            condition(story, "Progressing", "False", "ProgressDeadlineExceeded"),
        ]);
        told[0]["lastTransitionTime"] = updated;
        story.write(DEPLOYMENT, status((4, 4, 3), &told));
        expect_checked(story, "a_deadline_is_exceeded_only_after_it");
    }),
    ("a status that was true a moment ago, or as far as anybody was shown", |story| {
        rolled_out(story, 2, &[("a", 2)]);
        said(story, "web-a", 1, 1);
        story.wait(1000);
        story.freeze("Pod");
        story.user_deletes("Pod", "web-a-0");
        story.wait(1000);
        let said = json!({ "status": { "replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 2 } });
        story.write(REPLICA_SET, patch("ReplicaSet", "web-a", &said));
        expect_stale(story, "a_replica_set_counts_its_pods");
    }),
    ("the status of a ReplicaSet that goes while its pods are orphaned one by one", |story| {
        rolled_out(story, 3, &[("a", 3)]);
        let going = patch("ReplicaSet", "web-a", &finalized(story, &json!(["orphan"])));
        story.user(going);
        story.write(GARBAGE, patch("Pod", "web-a-0", &released()));
        story.write(GARBAGE, patch("Pod", "web-a-1", &released()));
        story.write(GARBAGE, patch("Pod", "web-a-2", &released()));
        let said = json!({ "status": { "replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 2 } });
        story.write(REPLICA_SET, patch("ReplicaSet", "web-a", &said));
        expect_stale(story, "a_replica_set_counts_its_pods");
    }),
    ("a matching orphan is adopted", |story| {
        rolled_out(story, 1, &[("a", 1)]);
        story.user(pod("stray", "a", None));
        story.wait(1000);
        let taken = story.owned(patch("Pod", "stray", &json!({})), "ReplicaSet", "web-a");
        story.write(REPLICA_SET, taken);
        expect_checked(story, "adoption_is_of_matching_orphans_by_living_owners");
    }),
    ("the leader writes, and what was sent before the take-over arrives", |story| {
        rolled_out(story, 4, &[("a", 4)]);
        story.write("leader-election", lease("one"));
        story.write(DEPLOYMENT, status((4, 4, 4), &json!([])));
        expect_checked(story, "no_write_by_a_deposed_leader");
        let sent = story.now();
        story.wait(20);
        story.manager(1);
        story.write("leader-election", lease("two"));
        story.manager(0);
        story.sent(sent);
        story.write(
            DEPLOYMENT,
            status((4, 4, 4), &json!([condition(story, "Available", "True", "MinimumReplicasAvailable")])),
        );
        expect_excused(story, "no_write_by_a_deposed_leader");
    }),
    ("dependents of what is gone are collected", |story| {
        rolled_out(story, 1, &[("a", 1)]);
        story.user_deletes("ReplicaSet", "web-a");
        story.deletes(GARBAGE, "Pod", "web-a-0");
        expect_checked(story, "nothing_with_a_living_owner_is_collected");
    }),
    ("an owner in the foreground goes after its dependents", |story| {
        rolled_out(story, 1, &[("a", 1)]);
        let going = patch("ReplicaSet", "web-a", &finalized(story, &json!(["foregroundDeletion"])));
        story.user(going);
        story.deletes(GARBAGE, "Pod", "web-a-0");
        story.deletes(GARBAGE, "ReplicaSet", "web-a");
        expect_checked(story, "foreground_owners_go_after_what_blocks_them");
    }),
    ("a dependent goes though its owner, deleted in the foreground, is held by another finalizer", |story| {
        rolled_out(story, 1, &[("a", 1)]);
        let going = patch("ReplicaSet", "web-a", &finalized(story, &json!(["foregroundDeletion", "example.com/hold"])));
        story.user(going);
        let held = patch("ReplicaSet", "web-a", &finalized(story, &json!(["example.com/hold"])));
        story.user(held);
        story.deletes(GARBAGE, "Pod", "web-a-0");
        expect_checked(story, "nothing_with_a_living_owner_is_collected");
    }),
    ("an owner goes after its dependents are orphans", |story| {
        rolled_out(story, 1, &[("a", 1)]);
        let going = patch("ReplicaSet", "web-a", &finalized(story, &json!(["orphan"])));
        story.user(going);
        story.write(GARBAGE, patch("Pod", "web-a-0", &released()));
        expect_checked(story, "references_to_living_owners_stay");
        story.wait(100);
        story.deletes(GARBAGE, "ReplicaSet", "web-a");
        expect_checked(story, "orphans_are_let_go_before_their_owner_goes");
    }),
    ("a dependent that comes while its owner goes", |story| {
        rolled_out(story, 1, &[("a", 0)]);
        let going = patch("ReplicaSet", "web-a", &finalized(story, &json!(["orphan"])));
        story.user(going);
        story.wait(100);
        story.freeze("Pod");
        let late = story.owned(pod("late", "a", None), "ReplicaSet", "web-a");
        story.user(late);
        story.wait(100);
        story.deletes(GARBAGE, "ReplicaSet", "web-a");
        expect_stale(story, "orphans_are_let_go_before_their_owner_goes");
    }),
    ("an empty namespace is let go", |story| {
        let going = namespace(story);
        story.user(going);
        let told = json!([{ "type": "NamespaceContentRemaining", "status": "False", "reason": "ContentRemoved" }]);
        story.write(NAMESPACE, patch("Namespace", NS, &json!({ "status": { "conditions": told } })));
        story.write(NAMESPACE, patch("Namespace", NS, &json!({ "spec": { "finalizers": [] } })));
        expect_checked(story, "a_namespace_tells_what_is_left");
        expect_checked(story, "a_namespace_is_let_go_only_when_empty");
    }),
    ("a namespace that goes while the watch stands still", |story| {
        story.user(named("Namespace", NS));
        story.freeze("Namespace");
        story.wait(100);
        let going = namespace(story);
        story.user(going);
        story.wait(100);
        story.write(ROOT_CA, named("ConfigMap", "kube-root-ca.crt"));
        expect_stale(story, "nothing_is_published_into_a_namespace_that_goes");
    }),
    ("a token goes with its account", |story| {
        story.user(named("ServiceAccount", "robot"));
        let uid = json!(story.uid("ServiceAccount", "robot"));
        story.user(token(&uid));
        story.user_deletes("ServiceAccount", "robot");
        story.user(named("ServiceAccount", "robot"));
        story.wait(100);
        story.deletes(TOKEN, "Secret", "robot-token");
        expect_checked(story, "tokens_go_only_with_their_account");
    }),
    ("pods of a node that is gone are ended and go", |story| {
        story.user(named("Node", "node-1"));
        story.node(on_node("a", "Running"));
        story.user_deletes("Node", "node-1");
        story.wait(100);
        story.write(POD_GC, patch("Pod", "a", &json!({ "status": { "phase": "Failed" } })));
        story.deletes(POD_GC, "Pod", "a");
        story.node(with(on_node("b", "Pending"), &json!({ "spec": { "nodeName": "" } })));
        let going = patch("Pod", "b", &terminating(story));
        story.user(going);
        story.deletes(POD_GC, "Pod", "b");
        expect_checked(story, "running_pods_on_living_nodes_are_left_alone");
    }),
    ("endpoints of a pod that failed a moment ago", |story| {
        begun(story);
        let made = pod_that(story, "a", "False");
        story.node(made);
        let made = slice("web-1", &[endpoint(story, "a", true)]);
        story.write(SLICES, made);
        expect_stale(story, "ready_endpoints_are_ready_pods");
    }),
    ("a world at rest", |story| {
        begun(story);
        story.user_deletes("Pod", "a");
        rolled_out(story, 1, &[("old", 0), ("new", 1)]);
        for (name, revision) in [("web-old", "1"), ("web-new", "2")] {
            story.user(patch(
                "ReplicaSet",
                name,
                &json!({
                    "metadata": { "annotations": { "deployment.kubernetes.io/revision": revision } },
                    "status": { "observedGeneration": 1 },
                }),
            ));
        }
        story.user(patch(
            "Deployment",
            "web",
            &json!({ "metadata": { "annotations": { "deployment.kubernetes.io/revision": "2" } } }),
        ));
        story.user(status((1, 1, 1), &json!([])));
        let made = slice("web-1", &[endpoint(story, "web-new-0", true)]);
        story.write(SLICES, made);
        let made = addresses(story, &["web-new-0"]);
        story.user(made);
        story.rest();
        for name in [
            "slices_are_those_of_the_pods",
            "endpoints_are_those_of_the_pods",
            "deployments_are_rolled_out",
            "every_set_has_its_replicas",
            "history_is_kept_to_its_limit",
            "every_namespace_has_its_default_account",
        ] {
            expect_checked(story, name);
        }
    }),
    ("a paused Deployment, and pods that a quota refuses", |story| {
        begun(story);
        story.user_deletes("Pod", "a");
        story.user_deletes("Service", "web");
        rolled_out(story, 2, &[("old", 2), ("new", 0)]);
        story.user(patch("Deployment", "web", &json!({ "spec": { "paused": true } })));
        story.user(patch(
            "Deployment",
            "web",
            &json!({ "status": {
            "replicas": 1, "readyReplicas": 1, "updatedReplicas": 0, "observedGeneration": 2 } }),
        ));
        story.user_deletes("Pod", "web-old-0");
        let failure = condition(story, "ReplicaFailure", "True", "FailedCreate");
        story.user(patch("ReplicaSet", "web-old", &json!({ "status": {
            "replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "observedGeneration": 1, "conditions": [failure] } })));
        story.user(patch("ReplicaSet", "web-new", &json!({ "status": { "observedGeneration": 1 } })));
        story.rest();
        expect_excused(story, "deployments_are_rolled_out");
        expect_excused(story, "every_set_has_its_replicas");
    }),
];
