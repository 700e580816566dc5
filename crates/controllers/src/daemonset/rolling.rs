//! Pure: a rolling update: which old pods are deleted, and which nodes get a second pod.
//!
//! 1. Without surge: no available pod is deleted while `maxUnavailable` nodes have no available pod.
//! 2. With surge: at most `maxSurge` nodes have a second pod that is not available yet. The old pod is deleted when the
//!    new one is available.
//! 3. Old pods that are unavailable are replaced at once: they serve nobody.
//!
//! Follows `rollingUpdate` in `update.go` of Kubernetes 1.37.1.

use std::collections::BTreeSet;
use std::sync::Arc;

use steersman_base::int_or_string::Rounding;
use steersman_base::{IntOrString, Istr};
use steersman_model::View;
use steersman_model::apps::{DaemonSetView, RollingUpdate};
use steersman_model::core::PodView;

use super::placement::Verdict;
use super::plan::{Observed, Plan, Reason};

/// The living pods of a node.
enum OnNode<'a> {
    /// At most one of the newest template, and one of an older one.
    Few { new: Option<&'a Arc<PodView>>, old: Option<&'a Arc<PodView>> },
    /// More: they are deleted before anything else happens.
    Many,
}

/// Returns how many nodes may have a second pod.
pub(super) fn max_surge(set: &DaemonSetView, nodes: i32) -> i32 {
    scaled(set, nodes, |rolling| rolling.max_surge.as_ref())
}

fn scaled(set: &DaemonSetView, nodes: i32, field: impl Fn(&RollingUpdate) -> Option<&IntOrString>) -> i32 {
    let limit = set.spec.update_strategy.rolling_update.as_ref().and_then(field);
    limit.map_or(0, |limit| limit.scaled(nodes, Rounding::Up).unwrap_or(0))
}

/// Plans a step of the update.
pub(super) fn roll(seen: &Observed<'_>, plan: &mut Plan) {
    let desired: BTreeSet<&Istr> = seen
        .nodes
        .iter()
        .filter(|node| seen.placement.on(node) == Verdict::Run)
        .map(|node| &node.meta().name)
        .collect();
    let count = i32::try_from(desired.len()).unwrap_or(i32::MAX);
    let surge = max_surge(seen.set, count);
    let unavailable = scaled(seen.set, count, |rolling| rolling.max_unavailable.as_ref());
    // The API server accepts no DaemonSet that allows neither, but a percentage may be none.
    let unavailable = if surge == 0 { unavailable.max(1) } else { unavailable };
    if surge == 0 {
        replace(seen, &desired, unavailable, plan);
    } else {
        surge_over(seen, &desired, surge, plan);
    }
}

/// Returns the nodes that have pods, and those that should have one.
fn nodes<'a>(seen: &'a Observed<'_>, desired: &BTreeSet<&'a Istr>) -> BTreeSet<&'a Istr> {
    seen.pods.keys().chain(desired.iter().copied()).collect()
}

fn replace<'a>(seen: &'a Observed<'_>, desired: &BTreeSet<&'a Istr>, max: i32, plan: &mut Plan) {
    let mut unavailable = 0;
    let mut candidates = Vec::new();
    for node in nodes(seen, desired) {
        match on_node(seen, node) {
            OnNode::Many | OnNode::Few { new: None, old: None } | OnNode::Few { new: Some(_), old: Some(_) } => {
                unavailable += 1;
            }
            OnNode::Few { new: Some(new), old: None } => unavailable += i32::from(!seen.is_available(new)),
            OnNode::Few { new: None, old: Some(old) } if seen.is_available(old) => candidates.push((old, node)),
            OnNode::Few { new: None, old: Some(old) } => {
                unavailable += 1;
                plan.delete(old, node, Reason::Old);
            }
        }
    }
    let room = usize::try_from(max - unavailable).unwrap_or(0);
    candidates.into_iter().take(room).for_each(|(old, node)| plan.delete(old, node, Reason::Old));
}

fn surge_over<'a>(seen: &'a Observed<'_>, desired: &BTreeSet<&'a Istr>, max: i32, plan: &mut Plan) {
    let mut surging = 0;
    let mut available = 0;
    let mut candidates = Vec::new();
    let mut misplaced = Vec::new();
    for node in nodes(seen, desired) {
        let OnNode::Few { new, old } = on_node(seen, node) else {
            surging += 1;
            continue;
        };
        available += i32::from(old.or(new).is_some_and(|pod| seen.is_available(pod)));
        match (new, old) {
            (_, None) => {}
            (None, Some(old)) => match (seen.is_available(old), desired.contains(node)) {
                (false, false) => plan.delete(old, node, Reason::Misplaced),
                (false, true) => plan.create.push(node.clone()),
                (true, false) => misplaced.push((old, node)),
                (true, true) => candidates.push(node),
            },
            (Some(new), Some(_)) if !seen.is_available(new) => surging += 1,
            (Some(_), Some(old)) => plan.delete(old, node, Reason::Old),
        }
    }
    // Where pods move to other nodes, the old ones stay until the new ones are available.
    let spare = usize::try_from(available - i32::try_from(desired.len()).unwrap_or(i32::MAX)).unwrap_or(0);
    misplaced.into_iter().take(spare).for_each(|(old, node)| plan.delete(old, node, Reason::Misplaced));
    let room = usize::try_from(max - surging).unwrap_or(0);
    plan.create.extend(candidates.into_iter().take(room).cloned());
}

fn on_node<'a>(seen: &'a Observed<'_>, node: &Istr) -> OnNode<'a> {
    let mut new = None;
    let mut old = None;
    let living = seen.pods.get(node).into_iter().flatten().filter(|pod| !pod.meta().is_terminating());
    for pod in living {
        let slot = if seen.wanted.is_of(pod) { &mut new } else { &mut old };
        if slot.replace(pod).is_some() {
            return OnNode::Many;
        }
    }
    OnNode::Few { new, old }
}
