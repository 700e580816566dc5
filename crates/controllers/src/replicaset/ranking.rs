//! Pure: which pods are deleted first when there are too many.
//!
//! The order of `ActivePodsWithRanks` in upstream's `controller_utils.go`: the least useful pods first.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_base::{Time, names};
use steersman_model::View;
use steersman_model::core::PodView;

use super::Options;
use crate::pod;

/// An age by its order of magnitude: no time at all comes first, then zero and the future, then each doubling.
///
/// Upstream compares exact times before magnitudes, and the uid in between, which is not a total order: the comparison
/// of three pods can be cyclic. This order is total, and differs only where upstream's result depends on the input
/// order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Age {
    Unknown,
    Zero,
    /// The binary logarithm of the age in nanoseconds.
    Magnitude(u32),
}

/// Sorts `pods` so that those to be deleted come first. `related` are all pods of the same Deployment: a pod that
/// shares its node with many of them is deleted before one that does not.
pub(super) fn rank(pods: &mut [Arc<PodView>], related: &[Arc<PodView>], options: Options, now: Time) {
    let mut on_node: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in related.iter().filter(|pod| pod::is_active(pod)) {
        *on_node.entry(&pod.spec.node_name).or_default() += 1;
    }
    let neighbours = |pod: &PodView| on_node.get(&*pod.spec.node_name).copied().unwrap_or(0);
    let cost = |pod: &PodView| if options.pod_deletion_cost { deletion_cost(pod) } else { 0 };
    pods.sort_by(|left, right| {
        before_cost(left, right)
            .then_with(|| cost(left).cmp(&cost(right)))
            .then_with(|| neighbours(right).cmp(&neighbours(left)))
            .then_with(|| after_neighbours(left, right, now))
    });
}

/// The part of the order that comes before the costs: the same for every controller.
pub(crate) fn before_cost(left: &PodView, right: &PodView) -> Ordering {
    let assigned = |pod: &PodView| !pod.spec.node_name.is_empty();
    assigned(left)
        .cmp(&assigned(right))
        .then_with(|| startup(left).cmp(&startup(right)))
        .then_with(|| pod::is_ready(left).cmp(&pod::is_ready(right)))
}

fn after_neighbours(left: &PodView, right: &PodView, now: Time) -> Ordering {
    let created = |pod: &PodView| pod.meta().creation_timestamp;
    Age::new(pod::ready_since(left), now)
        .cmp(&Age::new(pod::ready_since(right), now))
        .then_with(|| restarts(right).cmp(&restarts(left)))
        .then_with(|| Age::new(created(left), now).cmp(&Age::new(created(right), now)))
        // Not by the exact age: pods of about the same age would always be deleted in one order.
        .then_with(|| left.meta().uid.cmp(&right.meta().uid))
}

/// Orders phases: pending before unknown before running.
fn startup(pod: &PodView) -> u8 {
    match &*pod.status.phase {
        "Running" => 2,
        "Unknown" => 1,
        _ => 0,
    }
}

fn deletion_cost(pod: &PodView) -> i32 {
    pod.meta().annotations.get(names::annotations::POD_DELETION_COST).and_then(|cost| parse_cost(cost)).unwrap_or(0)
}

/// Parses a cost in upstream's strict form: no plus sign, no leading zeros. Any other text counts as no cost.
fn parse_cost(text: &str) -> Option<i32> {
    let plain = text == "0" || text.starts_with(|first: char| first == '-' || ('1'..='9').contains(&first));
    plain.then(|| text.parse().ok()).flatten()
}

/// Returns the most restarts of any container, then of any sidecar. Other init containers do not count.
pub(crate) fn restarts(pod: &PodView) -> (i32, i32) {
    let is_sidecar = |name: &str| {
        pod.spec.init_containers.iter().any(|container| container.name == *name && container.restart_policy == "Always")
    };
    let most = |counts: &mut dyn Iterator<Item = i32>| counts.max().unwrap_or(0);
    let containers = most(&mut pod.status.container_statuses.iter().map(|status| status.restart_count));
    let sidecars = pod.status.init_container_statuses.iter().filter(|status| is_sidecar(&status.name));
    (containers, most(&mut sidecars.map(|status| status.restart_count)))
}

// === impl Age ===

impl Age {
    fn new(time: Option<Time>, now: Time) -> Self {
        let Some(time) = time else { return Self::Unknown };
        let nanos = u64::try_from(now.since(time).as_nanos()).unwrap_or(u64::MAX);
        nanos.checked_ilog2().map_or(Self::Zero, Self::Magnitude)
    }
}
