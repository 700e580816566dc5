//! Pure: a DaemonSet, the nodes and its pods → the pods to create and delete. The decision ladder.
//!
//! 1. A node that should run a pod has one; a node that should not has none. A node gets a new pod when its old one is
//!    gone, or with `maxSurge` when it is terminating.
//! 2. Pods that have ended are deleted, failed ones with back-off: a kubelet may refuse them over and over.
//! 3. Of several pods on a node the oldest stays; with `maxSurge` one of the newest template beside a ready old one.
//! 4. When each node has what it should, old pods are replaced ([`rolling`]).
//!
//! Follows `podsShouldBeOnNode` in `daemon_controller.go` of Kubernetes 1.37.1.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use steersman_base::{Istr, Time};
use steersman_model::View;
use steersman_model::apps::DaemonSetView;
use steersman_model::core::{NodeView, PodView};

use super::placement::{Placement, Verdict};
use super::pods::{PodsByNode, Wanted};
use super::{BURST, rolling};
use crate::pod;

/// The observed state.
pub(super) struct Observed<'a> {
    pub(super) set: &'a DaemonSetView,
    pub(super) placement: &'a Placement,
    /// All nodes, by name.
    pub(super) nodes: &'a [Arc<NodeView>],
    pub(super) pods: &'a PodsByNode,
    pub(super) wanted: &'a Wanted,
    pub(super) now: Time,
    /// Returns the time for which failed pods on a node are left alone.
    pub(super) waits: &'a (dyn Fn(&str) -> Option<Duration> + Sync),
}

/// The actions of a pass.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The nodes that get a pod.
    pub(super) create: Vec<Istr>,
    /// The pods to delete.
    pub(super) delete: Vec<Deletion>,
    /// The time until a failed pod may be deleted.
    pub(super) check_in: Option<Duration>,
}

/// A pod to delete.
#[derive(Clone, Debug)]
pub(super) struct Deletion {
    pub(super) pod: Arc<PodView>,
    pub(super) node: Istr,
    pub(super) reason: Reason,
}

/// Why a pod is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Failed,
    Succeeded,
    /// Another pod runs on the node.
    Duplicate,
    /// The node should not run a pod, or does not exist.
    Misplaced,
    /// It is of an old template.
    Old,
}

/// Decides what to do.
pub(super) fn plan(seen: &Observed<'_>) -> Plan {
    let mut plan = Plan::default();
    for node in seen.nodes {
        on_node(seen, node, &mut plan);
    }
    without_node(seen, &mut plan);
    if plan.is_nothing() && seen.is_rolling() {
        rolling::roll(seen, &mut plan);
    }
    plan.create.truncate(BURST);
    plan.delete.truncate(BURST);
    plan
}

fn on_node(seen: &Observed<'_>, node: &NodeView, plan: &mut Plan) {
    let name = &node.meta().name;
    let verdict = seen.placement.on(node);
    let Some(pods) = seen.pods.get(name) else {
        if verdict == Verdict::Run {
            plan.create.push(name.clone());
        }
        return;
    };
    let living = pods.iter().filter(|pod| !pod.meta().is_terminating());
    if !verdict.may_go_on() {
        living.for_each(|pod| plan.delete(pod, name, Reason::Misplaced));
        return;
    }
    let mut running = Vec::new();
    living.for_each(|pod| match &*pod.status.phase {
        "Failed" => match (seen.waits)(name) {
            Some(wait) => plan.check_in = Some(plan.check_in.map_or(wait, |held| held.min(wait))),
            None => plan.delete(pod, name, Reason::Failed),
        },
        "Succeeded" => plan.delete(pod, name, Reason::Succeeded),
        _ => running.push(pod),
    });
    if !seen.allows_surge() {
        running.iter().skip(1).for_each(|pod| plan.delete(pod, name, Reason::Duplicate));
        return;
    }
    match running.len() {
        0 if verdict == Verdict::Run => plan.create.push(name.clone()),
        0 | 1 => {}
        _ => with_surge(seen, &running, name, plan),
    }
}

/// With surge, two pods may run: a new one that is not available yet, and an old one that is ready.
fn with_surge(seen: &Observed<'_>, running: &[&Arc<PodView>], node: &Istr, plan: &mut Plan) {
    let is_new = |pod: &&&Arc<PodView>| {
        pod.meta().labels.get(steersman_base::names::labels::CONTROLLER_REVISION_HASH) == Some(&seen.wanted.hash)
    };
    let new = running.iter().find(is_new);
    let old = running.iter().find(|pod| !is_new(pod));
    for pod in running {
        let is_kept = [new, old].into_iter().flatten().any(|kept| Arc::ptr_eq(kept, pod));
        if !is_kept {
            plan.delete(pod, node, Reason::Duplicate);
        }
    }
    if let (Some(new), Some(old)) = (new, old)
        && (!pod::is_ready(old) || seen.is_available(new))
    {
        plan.delete(old, node, Reason::Old);
    }
}

/// A pod that waits for a node that does not exist is never bound, and nobody else deletes it.
fn without_node(seen: &Observed<'_>, plan: &mut Plan) {
    let nodes: HashSet<&str> = seen.nodes.iter().map(|node| node.meta().name.as_str()).collect();
    for (node, pods) in seen.pods.iter().filter(|(node, _)| !nodes.contains(node.as_str())) {
        let unbound = pods.iter().filter(|pod| pod.spec.node_name.is_empty() && !pod.meta().is_terminating());
        unbound.for_each(|pod| plan.delete(pod, node, Reason::Misplaced));
    }
}

// === impl Plan ===

impl Plan {
    pub(super) fn is_nothing(&self) -> bool {
        self.create.is_empty() && self.delete.is_empty()
    }

    pub(super) fn delete(&mut self, pod: &Arc<PodView>, node: &Istr, reason: Reason) {
        self.delete.push(Deletion { pod: Arc::clone(pod), node: node.clone(), reason });
    }
}

// === impl Observed ===

impl Observed<'_> {
    /// Whether old pods are replaced step by step. An absent strategy means so: the API server's default.
    pub(super) fn is_rolling(&self) -> bool {
        matches!(&*self.set.spec.update_strategy.type_, "" | "RollingUpdate")
    }

    fn allows_surge(&self) -> bool {
        self.is_rolling() && rolling::max_surge(self.set, 1) > 0
    }

    pub(super) fn is_available(&self, pod: &PodView) -> bool {
        pod::available_in(pod, min_ready(self.set), self.now) == Some(Duration::ZERO)
    }
}

/// Returns how long a pod must be ready to be available.
pub(super) fn min_ready(set: &DaemonSetView) -> Duration {
    Duration::from_secs(u64::try_from(set.spec.min_ready_seconds).unwrap_or(0))
}
