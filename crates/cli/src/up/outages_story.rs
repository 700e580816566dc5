//! Pure: a description of what happens to the nodes of the demo's third act, and to the pods on them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Node;

use super::act::State;
use super::story::Line;
use super::workloads_story::{self, Workloads};

/// A change of an object of the third act.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Node(Box<Node>),
    Workload(workloads_story::Change),
}

/// The state of the nodes that the third act follows, and of its pods and their budget.
#[derive(Clone, Debug, Default)]
pub(super) struct Outages {
    pub(super) workloads: Workloads,
    nodes: BTreeMap<String, Machine>,
}

/// The state of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Machine {
    zone: String,
    /// The status of the condition `Ready`.
    ready: String,
    /// Its taints, without the domain of their keys: `unreachable:NoExecute`.
    taints: BTreeSet<String>,
}

/// The component that watches nodes.
const WATCHES: &str = "node-lifecycle";

// === impl Outages ===

impl Outages {
    /// The nodes, as they are when the act begins.
    pub(super) fn of(nodes: &[Node]) -> Self {
        let nodes = nodes.iter().map(|node| (name(node), Machine::of(node))).collect();
        Self { workloads: Workloads::default(), nodes }
    }

    /// The nodes of a zone, by name.
    pub(super) fn nodes_of(&self, zone: &str) -> Vec<String> {
        self.nodes.iter().filter(|(_, node)| node.zone == zone).map(|(name, _)| name.clone()).collect()
    }

    /// The node with the most pods of an application.
    pub(super) fn busiest(&self, app: &str) -> String {
        let busiest = self.nodes.keys().max_by_key(|node| self.workloads.on(app, node).len());
        busiest.cloned().unwrap_or_default()
    }

    /// Whether a node has a taint, such as `unreachable:NoExecute`.
    pub(super) fn is_tainted(&self, node: &str, taint: &str) -> bool {
        self.nodes.get(node).is_some_and(|node| node.taints.contains(taint))
    }

    /// Whether a node is ready, and takes pods.
    pub(super) fn is_well(&self, node: &str) -> bool {
        self.nodes.get(node).is_some_and(|node| node.ready == "True" && node.taints.is_empty())
    }

    /// Whether all nodes are ready, and take pods.
    pub(super) fn are_well(&self) -> bool {
        self.nodes.keys().all(|node| self.is_well(node))
    }

    /// Whether all nodes are lost, and no taint evicts.
    pub(super) fn are_lost_and_spared(&self) -> bool {
        let evicts = |node: &Machine| node.taints.iter().any(|taint| taint.ends_with(":NoExecute"));
        self.nodes.values().all(|node| node.ready == "Unknown" && !evicts(node))
    }

    fn node(&mut self, node: &Node) -> Vec<Line> {
        let name = name(node);
        let now = Machine::of(node);
        let before = self.nodes.insert(name.clone(), now.clone()).unwrap_or_default();
        let mut lines = Vec::new();
        if before.ready != now.ready {
            lines.push(match now.ready.as_str() {
                "True" => Line::new(&name, "is ready"),
                status => Line::new(WATCHES, format!("says that {name} is {status}: {}", reason(node))),
            });
        }
        let shown = |taint: &String, what: &str| Line::new(WATCHES, format!("{what} {name}: {taint}"));
        lines.extend(now.taints.difference(&before.taints).map(|taint| shown(taint, "tainted")));
        lines.extend(before.taints.difference(&now.taints).map(|taint| shown(taint, "removed a taint of")));
        lines
    }
}

impl State for Outages {
    type Change = Change;

    fn apply(&mut self, change: &Change) -> Vec<Line> {
        match change {
            Change::Node(node) => self.node(node),
            Change::Workload(change) => self.workloads.apply(change),
        }
    }

    fn so_far(&self) -> String {
        let node = |(name, node): (&String, &Machine)| {
            let taints: Vec<_> = node.taints.iter().map(String::as_str).collect();
            format!("{name} (Ready: {}; taints: {})", node.ready, taints.join(", "))
        };
        let nodes: Vec<_> = self.nodes.iter().map(node).collect();
        format!("{}, {}", nodes.join(", "), self.workloads.so_far())
    }
}

// === impl Machine ===

impl Machine {
    fn of(node: &Node) -> Self {
        let labels = node.metadata.labels.as_ref();
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref()).into_iter().flatten();
        let short = |key: &str| key.rsplit('/').next().unwrap_or_default().to_owned();
        Self {
            zone: labels.and_then(|labels| labels.get("topology.kubernetes.io/zone").cloned()).unwrap_or_default(),
            ready: condition(node, |ready| ready.status.clone()),
            taints: taints.map(|taint| format!("{}:{}", short(&taint.key), taint.effect)).collect(),
        }
    }
}

fn name(node: &Node) -> String {
    node.metadata.name.clone().unwrap_or_default()
}

/// The message of the condition `Ready`.
fn reason(node: &Node) -> String {
    condition(node, |ready| ready.message.clone().unwrap_or_default())
}

fn condition(node: &Node, part: impl Fn(&k8s_openapi::api::core::v1::NodeCondition) -> String) -> String {
    let conditions = node.status.iter().flat_map(|status| &status.conditions).flatten();
    conditions.into_iter().find(|condition| condition.type_ == "Ready").map(part).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(name: &str, ready: &str, taints: &[(&str, &str)]) -> Node {
        let taints: Vec<_> =
            taints.iter().map(|(key, effect)| json!({ "key": format!("a.b/{key}"), "effect": effect })).collect();
        let message = "Kubelet stopped posting node status.";
        serde_json::from_value(json!({
            "metadata": { "name": name, "labels": { "topology.kubernetes.io/zone": "a" } },
            "spec": { "taints": taints },
            "status": { "conditions": [{ "type": "Ready", "status": ready, "message": message }] },
        }))
        .unwrap()
    }

    #[test]
    fn every_change_is_shown_once_with_the_one_who_made_it() {
        let mut outages = Outages::of(&[node("node-1", "True", &[]), node("node-2", "True", &[])]);
        assert!(
            outages.are_well() && outages.nodes_of("a") == ["node-1", "node-2"] && outages.nodes_of("b").is_empty()
        );
        let mut check = |change: Node, want: &[(&str, &str)]| {
            let want: Vec<_> = want.iter().map(|(who, what)| Line::new(who, *what)).collect();
            assert_eq!(outages.apply(&Change::Node(Box::new(change))), want);
        };
        check(node("node-1", "True", &[]), &[]);
        let silent = "says that node-1 is Unknown: Kubelet stopped posting node status.";
        check(node("node-1", "Unknown", &[]), &[("node-lifecycle", silent)]);
        let both = [("unreachable", "NoExecute"), ("unreachable", "NoSchedule")];
        let shown = ["tainted node-1: unreachable:NoExecute", "tainted node-1: unreachable:NoSchedule"];
        check(node("node-1", "Unknown", &both), &shown.map(|what| ("node-lifecycle", what)));
        check(node("node-1", "Unknown", &both), &[]);
        let spared = [("node-lifecycle", "removed a taint of node-1: unreachable:NoExecute")];
        check(node("node-1", "Unknown", &both[1..]), &spared);
        let back = [("node-1", "is ready"), ("node-lifecycle", "removed a taint of node-1: unreachable:NoSchedule")];
        check(node("node-1", "True", &[]), &back);
    }

    #[test]
    fn well_lost_and_spared_are_what_they_say() {
        let mut outages = Outages::of(&[node("node-1", "True", &[("unschedulable", "NoSchedule")])]);
        assert!(!outages.are_well() && outages.is_tainted("node-1", "unschedulable:NoSchedule"));
        assert!(!outages.are_lost_and_spared());
        let lost = node("node-1", "Unknown", &[("unreachable", "NoExecute")]);
        outages.apply(&Change::Node(Box::new(lost)));
        assert!(!outages.are_lost_and_spared(), "a taint evicts");
        assert_eq!(outages.so_far(), "node-1 (Ready: Unknown; taints: unreachable:NoExecute), no pods");
        outages.apply(&Change::Node(Box::new(node("node-1", "Unknown", &[("unreachable", "NoSchedule")]))));
        assert!(outages.are_lost_and_spared() && !outages.is_well("node-1"));
    }
}
