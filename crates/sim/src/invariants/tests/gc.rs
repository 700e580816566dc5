//! Streams about what is deleted: garbage, pods, namespaces, tokens.

use serde_json::{Value, json};

use super::Stream;
use super::story::{Story, named, patch, pod, rolled_out, terminating, with};
use crate::invariants::{ACCOUNT, GARBAGE, NAMESPACE, Options, POD_GC, TOKEN};

pub(super) fn finalized(story: &Story, finalizers: &Value) -> Value {
    with(terminating(story), &json!({ "metadata": { "finalizers": finalizers } }))
}

pub(super) fn token(account_uid: &Value) -> Value {
    with(
        named("Secret", "robot-token"),
        &json!({
            "type": "kubernetes.io/service-account-token",
            "metadata": { "annotations": {
                "kubernetes.io/service-account.name": "robot", "kubernetes.io/service-account.uid": account_uid,
            } },
            "data": { "token": "dG9rZW4=" },
        }),
    )
}

pub(super) fn namespace(story: &Story) -> Value {
    with(
        named("Namespace", super::story::NS),
        &with(terminating(story), &json!({ "spec": { "finalizers": ["kubernetes"] } })),
    )
}

pub(super) fn on_node(name: &str, phase: &str) -> Value {
    with(pod(name, "a", None), &json!({ "status": { "phase": phase } }))
}

pub(super) const VIOLATIONS: &[(&str, Stream)] = &[
    ("nothing_with_a_living_owner_is_collected", |story| {
        rolled_out(story, 1, &[("a", 1)]);
        story.deletes(GARBAGE, "Pod", "web-a-0");
    }),
    // It waits until its dependents are orphaned, not until they are deleted.
    ("nothing_with_a_living_owner_is_collected", |story| {
        rolled_out(story, 1, &[("a", 1)]);
        let going = patch("ReplicaSet", "web-a", &finalized(story, &json!(["orphan"])));
        story.user(going);
        story.deletes(GARBAGE, "Pod", "web-a-0");
    }),
    ("nothing_without_owners_is_collected", |story| {
        story.user(pod("stray", "a", None));
        story.deletes(GARBAGE, "Pod", "stray");
    }),
    ("orphans_are_let_go_before_their_owner_goes", |story| {
        rolled_out(story, 1, &[("a", 1)]);
        let going = patch("ReplicaSet", "web-a", &finalized(story, &json!(["orphan"])));
        story.user(going);
        story.wait(100);
        story.deletes(GARBAGE, "ReplicaSet", "web-a");
    }),
    ("foreground_owners_go_after_what_blocks_them", |story| {
        rolled_out(story, 1, &[("a", 1)]);
        let going = patch("ReplicaSet", "web-a", &finalized(story, &json!(["foregroundDeletion"])));
        story.user(going);
        story.wait(100);
        story.deletes(GARBAGE, "ReplicaSet", "web-a");
    }),
    ("the_collector_takes_off_its_own_finalizers_alone", |story| {
        rolled_out(story, 1, &[("a", 0)]);
        let going = patch("ReplicaSet", "web-a", &finalized(story, &json!(["orphan", "example.dev/mine"])));
        story.user(going);
        story.deletes(GARBAGE, "ReplicaSet", "web-a");
    }),
    ("references_to_living_owners_stay", |story| {
        rolled_out(story, 1, &[("a", 1)]);
        story.write(GARBAGE, patch("Pod", "web-a-0", &json!({ "metadata": { "ownerReferences": [] } })));
    }),
    ("all_garbage_is_collected", |story| {
        rolled_out(story, 1, &[("a", 1)]);
        story.user_deletes("ReplicaSet", "web-a");
        story.rest();
    }),
    ("no_reference_leads_nowhere", |story| {
        rolled_out(story, 1, &[("a", 1)]);
        let owner = |name: &str, uid: &str| json!({ "kind": "ReplicaSet", "name": name, "uid": uid });
        let owners = json!([owner("web-a", &story.uid("ReplicaSet", "web-a")), owner("gone", "gone")]);
        story.user(patch("Pod", "web-a-0", &json!({ "metadata": { "ownerReferences": owners } })));
        story.rest();
    }),
    ("finalizers_of_the_collector_are_taken_off", |story| {
        rolled_out(story, 1, &[("a", 0)]);
        let going = patch("ReplicaSet", "web-a", &finalized(story, &json!(["foregroundDeletion"])));
        story.user(going);
        story.rest();
    }),
    ("a_namespace_is_let_go_only_when_empty", |story| {
        let going = namespace(story);
        story.user(going);
        story.user(pod("stray", "a", None));
        story.wait(100);
        story.write(NAMESPACE, patch("Namespace", super::story::NS, &json!({ "spec": { "finalizers": [] } })));
    }),
    ("a_namespace_tells_what_is_left", |story| {
        let going = namespace(story);
        story.user(going);
        story.user(pod("stray", "a", None));
        story.wait(100);
        let told = json!([{ "type": "NamespaceContentRemaining", "status": "False", "reason": "ContentRemoved" }]);
        story.write(NAMESPACE, patch("Namespace", super::story::NS, &json!({ "status": { "conditions": told } })));
    }),
    ("nothing_is_published_into_a_namespace_that_goes", |story| {
        let going = namespace(story);
        story.user(going);
        story.wait(100);
        story.write(ACCOUNT, named("ServiceAccount", "default"));
    }),
    ("deleted_namespaces_are_gone", |story| {
        let going = namespace(story);
        story.user(going);
        story.rest();
    }),
    ("nothing_is_left_of_a_namespace_that_is_gone", |story| {
        story.user(named("Namespace", super::story::NS));
        story.user(pod("stray", "a", None));
        story.user_deletes("Namespace", super::story::NS);
        story.rest();
    }),
    ("tokens_go_only_with_their_account", |story| {
        story.user(named("ServiceAccount", "robot"));
        let uid = json!(story.uid("ServiceAccount", "robot"));
        story.user(token(&uid));
        story.wait(100);
        story.deletes(TOKEN, "Secret", "robot-token");
    }),
    ("every_namespace_has_its_default_account", |story| {
        story.user(named("Namespace", super::story::NS));
        story.rest();
    }),
    ("every_namespace_has_the_root_certificate", |story| {
        story.user(named("Namespace", super::story::NS));
        story.user(with(named("ConfigMap", "kube-root-ca.crt"), &json!({ "data": { "ca.crt": "", "more": "" } })));
        story.rest();
    }),
    ("tokens_follow_their_accounts", |story| {
        story.user(token(&json!("gone")));
        story.rest();
    }),
    ("running_pods_on_living_nodes_are_left_alone", |story| {
        story.user(named("Node", "node-1"));
        story.node(on_node("a", "Running"));
        story.wait(100);
        story.write(POD_GC, patch("Pod", "a", &json!({ "status": { "phase": "Failed" } })));
    }),
    ("ended_pods_are_kept_up_to_the_threshold", |story| {
        story.options(Options { ended_pods_max: 2, ..Options::default() });
        story.user(named("Node", "node-1"));
        story.node(on_node("a", "Succeeded"));
        story.node(on_node("b", "Succeeded"));
        story.wait(100);
        story.deletes(POD_GC, "Pod", "a");
    }),
    ("no_pod_waits_for_a_node_that_is_gone", |story| {
        story.node(on_node("a", "Running"));
        story.rest();
    }),
];
