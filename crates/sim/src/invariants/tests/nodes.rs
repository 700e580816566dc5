//! Ranges, taints and evictions.

use serde_json::{Value, json};

use super::Stream;
use super::legal::{expect_checked, expect_stale};
use super::story::{Story, named, patch, pod, with};
use crate::invariants::{NODE_IPAM, NODE_LIFECYCLE, TAINT_EVICTION};

const EVICTED: &str = "only_pods_that_do_not_tolerate_are_evicted";
const EMPTIED: &str = "only_nodes_that_are_not_ready_are_emptied";
const RATE: &str = "no_zone_is_emptied_faster_than_its_rate";
const LONG: i64 = 1000;

fn ready(story: &Story, status: &str) -> Value {
    json!({ "status": { "conditions": [
        { "type": "Ready", "status": status, "lastTransitionTime": story.now().to_string() },
    ] } })
}

/// A node that is ready, or not.
fn node(story: &mut Story, name: &str, status: &str) {
    let made = with(named("Node", name), &ready(story, status));
    story.node(made);
}

/// A node without a range.
fn bare(name: &str) -> Value {
    with(named("Node", name), &json!({ "spec": { "podCIDRs": [] } }))
}

fn unreachable(story: &Story) -> Value {
    let taint = json!({
        "key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": story.now().to_string(),
    });
    json!({ "spec": { "taints": [taint] } })
}

/// A pod on the node `a` that tolerates unreachable nodes for so long.
fn tolerant(story: &mut Story, seconds: Option<i64>) {
    let key = "node.kubernetes.io/unreachable";
    let toleration = match seconds {
        Some(seconds) => json!({ "key": key, "operator": "Exists", "tolerationSeconds": seconds }),
        None => json!({ "key": key, "operator": "Exists", "effect": "NoExecute" }),
    };
    story.node(with(pod("web-1", "a", None), &json!({ "spec": { "nodeName": "a", "tolerations": [toleration] } })));
}

pub(super) const VIOLATIONS: &[(&str, Stream)] = &[
    ("no_two_nodes_have_one_range", |story| {
        node(story, "a", "True");
        story.node(bare("b"));
        story.write(NODE_IPAM, patch("Node", "b", &json!({ "spec": { "podCIDRs": ["10.0.0.0/a"] } })));
    }),
    ("no_two_nodes_have_one_range", |story| {
        node(story, "a", "True");
        story.write(NODE_IPAM, patch("Node", "a", &json!({ "spec": { "podCIDRs": ["10.0.0.0/b"] } })));
    }),
    (EMPTIED, |story| {
        node(story, "a", "True");
        story.wait(LONG);
        let tainted = unreachable(story);
        story.write(NODE_LIFECYCLE, patch("Node", "a", &tainted));
    }),
    (RATE, |story| {
        for name in ["a", "b"] {
            node(story, name, "Unknown");
            let tainted = unreachable(story);
            story.write(NODE_LIFECYCLE, patch("Node", name, &tainted));
            story.wait(5);
        }
    }),
    (EVICTED, |story| {
        node(story, "a", "True");
        tolerant(story, None);
        story.wait(LONG);
        story.deletes(TAINT_EVICTION, "Pod", "web-1");
    }),
    (EVICTED, |story| {
        node(story, "a", "Unknown");
        let tainted = unreachable(story);
        story.write(NODE_LIFECYCLE, patch("Node", "a", &tainted));
        tolerant(story, None);
        story.wait(LONG);
        story.deletes(TAINT_EVICTION, "Pod", "web-1");
    }),
    (EVICTED, |story| {
        node(story, "a", "Unknown");
        let tainted = unreachable(story);
        story.write(NODE_LIFECYCLE, patch("Node", "a", &tainted));
        tolerant(story, Some(300));
        story.wait(299);
        story.deletes(TAINT_EVICTION, "Pod", "web-1");
    }),
    ("taints_are_those_of_the_conditions_at_rest", |story| {
        node(story, "a", "Unknown");
        story.wait(LONG);
        node(story, "b", "True");
        story.rest();
    }),
    ("taints_are_those_of_the_conditions_at_rest", |story| {
        node(story, "a", "True");
        let tainted = unreachable(story);
        story.user(patch("Node", "a", &tainted));
        story.wait(LONG);
        node(story, "b", "True");
        story.rest();
    }),
    ("every_node_has_a_range", |story| {
        story.node(bare("a"));
        story.rest();
    }),
];

pub(super) const LEGAL: &[(&str, Stream)] = &[
    (
        "nodes of a zone are emptied one after the other, and a request that was late counts from when it was sent",
        |story| {
            let begin = story.now();
            for (name, sent) in [("a", 0), ("b", 10), ("c", 20)] {
                node(story, name, "Unknown");
                let tainted = unreachable(story);
                story.sent(begin.plus_seconds(sent));
                story.write(NODE_LIFECYCLE, patch("Node", name, &tainted));
            }
            expect_checked(story, RATE);
        },
    ),
    ("another manager begins anew", |story| {
        for (number, name) in ["a", "b"].into_iter().enumerate() {
            node(story, name, "Unknown");
            let tainted = unreachable(story);
            story.manager(number);
            story.write(NODE_LIFECYCLE, patch("Node", name, &tainted));
        }
    }),
    ("a node gets a range that nobody has", |story| {
        node(story, "a", "True");
        story.node(bare("b"));
        story.write(NODE_IPAM, patch("Node", "b", &json!({ "spec": { "podCIDRs": ["10.0.0.0/b"] } })));
        expect_checked(story, "no_two_nodes_have_one_range");
    }),
    ("a node is lost, and its pods leave after their time", |story| {
        node(story, "a", "Unknown");
        let tainted = unreachable(story);
        story.write(NODE_LIFECYCLE, patch("Node", "a", &tainted));
        tolerant(story, Some(300));
        story.wait(300);
        story.deletes(TAINT_EVICTION, "Pod", "web-1");
        expect_checked(story, EMPTIED);
        expect_checked(story, EVICTED);
    }),
    ("a pod that tolerates nothing leaves at once", |story| {
        node(story, "a", "Unknown");
        let tainted = unreachable(story);
        story.write(NODE_LIFECYCLE, patch("Node", "a", &tainted));
        story.node(with(pod("web-1", "a", None), &json!({ "spec": { "nodeName": "a" } })));
        story.deletes(TAINT_EVICTION, "Pod", "web-1");
        expect_checked(story, EVICTED);
    }),
    ("a node came back, and the manager was not shown it", |story| {
        node(story, "a", "Unknown");
        let tainted = unreachable(story);
        story.node(patch("Node", "a", &tainted));
        story.node(with(pod("web-1", "a", None), &json!({ "spec": { "nodeName": "a" } })));
        story.freeze("Node");
        story.wait(LONG);
        story.user(patch("Node", "a", &json!({ "spec": { "taints": [] } })));
        story.wait(LONG);
        story.deletes(TAINT_EVICTION, "Pod", "web-1");
        expect_stale(story, EVICTED);
    }),
    ("taints follow the conditions, and every node has a range", |story| {
        node(story, "a", "Unknown");
        let tainted = unreachable(story);
        story.write(NODE_LIFECYCLE, patch("Node", "a", &tainted));
        node(story, "b", "True");
        story.wait(LONG);
        story.user(named("ConfigMap", "later"));
        story.rest();
        expect_checked(story, "taints_are_those_of_the_conditions_at_rest");
        expect_checked(story, "every_node_has_a_range");
    }),
];
