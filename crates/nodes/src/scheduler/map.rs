//! Which pods concern the scheduler.

use crate::view::SimPodView;

/// The part of a pod in scheduling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It is to be scheduled.
    Waiting,
    /// It uses resources of its node.
    Placed,
    /// It uses nothing, and is not to be scheduled.
    Apart,
}

/// Classifies a pod for the scheduler of this name.
pub(super) fn part(pod: &SimPodView, scheduler: &str) -> Part {
    let name = pod.spec.scheduler_name.as_str();
    let is_ours = name == scheduler || (name.is_empty() && scheduler == super::NAME);
    if pod.is_over() {
        Part::Apart
    } else if !pod.spec.node_name.is_empty() {
        Part::Placed
    } else if is_ours && pod.spec.scheduling_gates.is_empty() && !pod.metadata.is_terminating() {
        Part::Waiting
    } else {
        Part::Apart
    }
}
