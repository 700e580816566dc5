//! Pure: the status of a DaemonSet, and when to check again.

use std::time::Duration;

use steersman_model::View;
use steersman_model::apps::{DaemonSetStatus, DaemonSetView};

use super::placement::Verdict;
use super::plan::{Observed, min_ready};
use crate::pod;

/// Whether the DaemonSet has no pod on a node that should have one, by its status.
pub(super) fn lacks_pods(set: &DaemonSetView) -> bool {
    let status = &set.status;
    status.current_number_scheduled < status.desired_number_scheduled
        || status.observed_generation < set.meta().generation
}

/// Returns the status that the DaemonSet should have. On each node the first pod counts: the oldest that is bound.
pub(super) fn status(seen: &Observed<'_>) -> DaemonSetStatus {
    let held = &seen.set.status;
    let mut status = DaemonSetStatus {
        observed_generation: seen.set.meta().generation,
        collision_count: held.collision_count,
        conditions: held.conditions.clone(),
        ..DaemonSetStatus::default()
    };
    for node in seen.nodes {
        let first = seen.pods.get(&node.meta().name).and_then(|pods| pods.first());
        if seen.placement.on(node) != Verdict::Run {
            status.number_misscheduled += i32::from(first.is_some());
            continue;
        }
        status.desired_number_scheduled += 1;
        let Some(first) = first else { continue };
        status.current_number_scheduled += 1;
        status.number_ready += i32::from(pod::is_ready(first));
        status.number_available += i32::from(seen.is_available(first));
        status.updated_number_scheduled += i32::from(seen.wanted.is_of(first));
    }
    status.number_unavailable = status.desired_number_scheduled - status.number_available;
    status
}

/// Returns when the next ready pod becomes available, if one is waiting for `minReadySeconds`. With `maxSurge` that may be
/// the second pod of a node, which the status does not count.
pub(super) fn next_check(seen: &Observed<'_>) -> Option<Duration> {
    let min_ready = min_ready(seen.set);
    let ready = seen.pods.values().flatten().filter(|pod| pod::is_ready(pod));
    // A ready pod without a time is checked again after the whole period.
    let waits = ready.map(|pod| pod::available_in(pod, min_ready, seen.now).unwrap_or(min_ready));
    waits.filter(|wait| !wait.is_zero()).min()
}
