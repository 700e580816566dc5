//! Pure: when a pod has to leave its node.

use std::time::Duration;

use steersman_base::{ConditionStatus, MicroTime, Time};
use steersman_model::View;
use steersman_model::core::pod::Toleration;
use steersman_model::core::{PodView, Taint};

use crate::toleration::{Comparison, tolerates};

/// A taint, and since when it is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    pub(super) taint: &'a Taint,
    pub(super) seen: MicroTime,
}

/// Whether a pod has to leave its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It tolerates all taints, for ever; or there is none.
    Stays,
    /// It has to leave at this time.
    Leaves(MicroTime),
}

/// The condition that the server sets with the binding of a pod.
const BOUND: &str = "PodScheduled";
/// Times are in whole seconds: what was seen within the second after one is more exact.
const WHOLE_SECONDS: Duration = Duration::from_secs(1);

/// Returns when a pod has to leave: at once for a taint that it does not tolerate, else as soon as the first of its
/// tolerations ends. Each is counted from the time at which the taint was added, or the pod came, if that was later.
pub(super) fn fate(
    tolerations: &[Toleration],
    taints: &[Known<'_>],
    pod_since: MicroTime,
    comparison: Comparison,
) -> Fate {
    let leaves = taints.iter().filter_map(|known| {
        let start = since(known.taint.time_added, known.seen).max(pod_since);
        let toleration = tolerations.iter().find(|toleration| tolerates(toleration, known.taint, comparison));
        let Some(toleration) = toleration else { return Some(start) };
        let seconds = u64::try_from(toleration.toleration_seconds?).unwrap_or_default();
        Some(start + Duration::from_secs(seconds))
    });
    leaves.min().map_or(Fate::Stays, Fate::Leaves)
}

/// Returns the time at which a pod came to its node: that of its binding; of its creation, if it was created with a node.
pub(super) fn came(pod: &PodView) -> Option<Time> {
    let bound = pod.status.conditions.get(BOUND).filter(|bound| bound.status == ConditionStatus::True);
    let bound = bound.and_then(|bound| bound.last_transition_time);
    // A kubelet, whose clock may be behind, sets the condition of a pod that was created with a node.
    bound.max(pod.meta().creation_timestamp)
}

/// Returns since when something holds that is said to hold since `told`, and was first seen at `seen`. A clock that is
/// ahead does not prolong anything.
pub(super) fn since(told: Option<Time>, seen: MicroTime) -> MicroTime {
    match told.map(MicroTime::from) {
        Some(told) if told <= seen && seen.since(told) >= WHOLE_SECONDS => told,
        _ => seen,
    }
}
