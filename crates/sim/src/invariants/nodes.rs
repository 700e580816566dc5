//! Nodes: their ranges, their taints, and the pods that must leave them.

use steersman_base::names::taints;
use steersman_base::{ObjectKey, Time};

use super::{Case, Findings, NODE_IPAM, NODE_LIFECYCLE, Rest, TAINT_EVICTION, Verdict};
use crate::world::{Node, Object, Pod, Taint};

/// How long a node may be ready, or not, before its taints say so, in seconds: a pass of the controller and some retries.
const TAINTED_WITHIN_SECONDS: i64 = 120;

/// Times are in whole seconds.
const ROUNDED_SECONDS: i64 = 1;

/// "The first is assigning a CIDR block to the node when it is registered (if CIDR assignment is turned on)."
/// (website: Nodes)
///
/// Asked when the controller assigns ranges: no other node has one of them.
pub(super) fn no_two_nodes_have_one_range(case: &Case<'_>) -> Verdict {
    let Some((before, after)) = case.updated().filter(|_| case.is("nodes") && case.by(&[NODE_IPAM])) else {
        return Verdict::NotMine;
    };
    let Some((was, is)) = before.node().zip(after.node()).filter(|(was, is)| was.ranges != is.ranges) else {
        return Verdict::NotMine;
    };
    let has_one = |other: &Object| {
        other.uid != after.uid
            && other.node().is_some_and(|node| node.ranges.iter().any(|range| is.ranges.contains(range)))
    };
    let other = case.world.all("nodes").find(|other| has_one(other));
    Verdict::at_store(was.ranges.is_empty() && other.is_none(), || match other {
        Some(other) => format!("{after} gets {:?}, which {other} has", is.ranges),
        None => format!("{after} had {:?} and gets {:?}", was.ranges, is.ranges),
    })
}

/// "node.kubernetes.io/not-ready: Node is not ready. This corresponds to the NodeCondition Ready being "False"."
/// "node.kubernetes.io/unreachable: Node is unreachable from the node controller. This corresponds to the NodeCondition Ready
/// being "Unknown"." (website: Taints and Tolerations)
///
/// Asked when the node lifecycle controller adds one of the two with the effect `NoExecute`: the node is not ready. Judged
/// against the store; staleness excuses a node that was not ready at some time by what was shown.
pub(super) fn only_nodes_that_are_not_ready_are_emptied(case: &Case<'_>) -> Verdict {
    let Some((before, after)) = case.updated().filter(|_| case.is("nodes") && case.by(&[NODE_LIFECYCLE])) else {
        return Verdict::NotMine;
    };
    if is_emptied(before) || !is_emptied(after) {
        return Verdict::NotMine;
    }
    let is_down = |object: &Object| object.node().is_some_and(|node| !node.ready);
    let as_shown = || case.window().of_key("nodes", &after.key).is_some_and(|versions| versions.ever(is_down));
    Verdict::judge(is_down(after), as_shown, || format!("{after} is ready, and its pods are told to leave"))
}

/// "Number of nodes per second on which pods are deleted in case of node failure when a zone is healthy" (`--node-eviction-rate`,
/// website: kube-controller-manager)
///
/// Asked when the node lifecycle controller tells the pods of a node to leave: the same manager has told those of no other node of
/// the zone so shortly before. Judged by the times at which the requests were sent.
pub(super) fn no_zone_is_emptied_faster_than_its_rate(case: &Case<'_>) -> Verdict {
    let Some(since) = case.memory.emptied.since_last else { return Verdict::NotMine };
    let least = case.options.eviction_seconds - ROUNDED_SECONDS;
    Verdict::at_store(since >= least, || {
        let key = &case.change.key;
        format!("nodes {key} is emptied {since} seconds after another node of its zone")
    })
}

/// Whether pods are told to leave a node that is not ready.
pub(super) fn is_emptied(object: &Object) -> bool {
    object.node().is_some_and(|node| node.taints_of("NoExecute").any(Taint::is_of_readiness))
}

/// "Pods that do not tolerate the taint are evicted immediately. Pods that tolerate the taint without specifying
/// tolerationSeconds in their toleration specification remain bound forever. Pods that tolerate the taint with a specified
/// tolerationSeconds remain bound for the specified amount of time." (website: Taints and Tolerations)
///
/// Asked when the taint eviction controller deletes a pod: its node has a taint that the pod does not tolerate, or tolerates
/// no longer. Judged against the store; staleness excuses a node that had one at some time by what was shown.
pub(super) fn only_pods_that_do_not_tolerate_are_evicted(case: &Case<'_>) -> Verdict {
    let Some(before) = case.deleted().filter(|_| case.is("pods") && case.by(&[TAINT_EVICTION])) else {
        return Verdict::NotMine;
    };
    let Some(pod) = before.pod() else { return Verdict::NotMine };
    let node = ObjectKey::cluster(&pod.node);
    let latest = case.latest();
    let must_leave =
        |node: &Object| node.node().is_some_and(|node| leaves_at(pod, node).is_some_and(|at| at <= latest));
    let at_store = case.world.get("nodes", &node).is_some_and(|node| must_leave(node));
    let as_shown = || case.window().of_key("nodes", &node).is_some_and(|versions| versions.ever(must_leave));
    Verdict::judge(at_store, as_shown, || {
        format!("{before} is evicted, and tolerates the taints of its node {:?}", pod.node.as_str())
    })
}

/// The sentences of [`only_nodes_that_are_not_ready_are_emptied`].
///
/// At rest: a node that is ready has neither taint, and one that is not has one of them.
pub(super) fn taints_are_those_of_the_conditions_at_rest(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(NODE_LIFECYCLE) {
        return;
    }
    let long_ago = rest.world.now().plus_seconds(-TAINTED_WITHIN_SECONDS);
    for object in rest.world.all("nodes").filter(|object| !object.is_terminating()) {
        let Some(node) = object.node() else { continue };
        if node.ready_since.is_none_or(|since| since > long_ago) {
            continue;
        }
        let is_tainted = node.taints.iter().any(Taint::is_of_readiness);
        found.expect(is_tainted != node.ready, || {
            format!(
                "{object} is {} and has the taints {:?}",
                if node.ready { "ready" } else { "not ready" },
                node.taints
            )
        });
    }
}

/// "PodCIDR represents the pod IP range assigned to the node." (NodeSpec, podCIDR)
///
/// At rest: every node has one.
pub(super) fn every_node_has_a_range(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(NODE_IPAM) {
        return;
    }
    for object in rest.world.all("nodes").filter(|object| !object.is_terminating()) {
        let Some(node) = object.node() else { continue };
        found.expect(!node.ranges.is_empty(), || format!("{object} has no range for its pods"));
    }
}

/// The earliest time at which a pod has to leave a node; none if it may stay.
///
/// A taint that is not tolerated counts from when it was added. Tolerations with a time count from the oldest taint, the
/// shortest decides: no implementation is earlier.
fn leaves_at(pod: &Pod, node: &Node) -> Option<Time> {
    let oldest = node.taints_of("NoExecute").filter_map(|taint| taint.added).min();
    let mut shortest: Option<i64> = None;
    for taint in node.taints_of("NoExecute") {
        let mut tolerating = pod.tolerations.iter().filter(|toleration| toleration.tolerates(taint)).peekable();
        if tolerating.peek().is_none() {
            return Some(taint.added.unwrap_or(Time::from_unix(0)));
        }
        for seconds in tolerating.filter_map(|toleration| toleration.seconds) {
            shortest = Some(shortest.map_or(seconds, |shortest| shortest.min(seconds)));
        }
    }
    let seconds = shortest?;
    Some(oldest.map_or(Time::from_unix(0), |oldest| oldest.plus_seconds(seconds.max(0))))
}

// === impl Taint ===

impl Taint {
    /// Whether it says that a node is not ready.
    fn is_of_readiness(&self) -> bool {
        self.key == *taints::NOT_READY || self.key == *taints::UNREACHABLE
    }
}
