//! Pure: when a pod has to leave its node.

use std::time::Duration;

use steersman_base::names::taints;
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
    /// Since when the node has had this taint, or the [other one of its pair](other_of_pair), without a gap.
    pub(super) away: Option<MicroTime>,
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
/// tolerations ends. Each is counted from the time at which the taint was added, or the pod came, if that was later. A node
/// that changes between not ready and unreachable is away all that time: for a pod that tolerates both for the same time, it
/// does not begin anew.
pub(super) fn fate(
    tolerations: &[Toleration],
    taints: &[Known<'_>],
    pod_since: MicroTime,
    comparison: Comparison,
) -> Fate {
    let leaves = taints.iter().filter_map(|known| {
        let find = |taint: &Taint| tolerations.iter().find(|toleration| tolerates(toleration, taint, comparison));
        let added = since(known.taint.time_added, known.seen);
        let Some(toleration) = find(known.taint) else { return Some(added.max(pod_since)) };
        let seconds = toleration.toleration_seconds?;
        let other = other_of_pair(known.taint);
        let other = other.as_ref().and_then(find).and_then(|toleration| toleration.toleration_seconds);
        let start = known.away.filter(|_| other == Some(seconds)).unwrap_or(added).max(pod_since);
        Some(start + Duration::from_secs(u64::try_from(seconds).unwrap_or_default()))
    });
    leaves.min().map_or(Fate::Stays, Fate::Leaves)
}

/// Returns the other one of the two taints of nodes that are not ready, of which a node has one at a time; `None` for any
/// other taint.
pub(super) fn other_of_pair(taint: &Taint) -> Option<Taint> {
    let other = match &*taint.key {
        taints::NOT_READY => taints::UNREACHABLE,
        taints::UNREACHABLE => taints::NOT_READY,
        _ => return None,
    };
    Some(Taint { key: other.into(), effect: taint.effect.clone(), ..Taint::default() })
}

/// Returns the time at which a pod came to its node: that of its binding; of its creation, if it was created with a node.
pub(super) fn came(pod: &PodView) -> Option<Time> {
    let bound = pod.status.conditions.get(BOUND).filter(|bound| bound.status == ConditionStatus::True);
    let bound = bound.and_then(|bound| bound.last_transition_time);
    // A kubelet, whose clock may be behind, sets the condition of a pod that was created with a node.
    bound.max(pod.meta().creation_timestamp)
}

/// Returns since when something holds that is reported to hold since `reported`, and was first seen at `seen`. A clock that is
/// ahead does not prolong anything.
pub(super) fn since(reported: Option<Time>, seen: MicroTime) -> MicroTime {
    match reported.map(MicroTime::from) {
        Some(reported) if reported <= seen && seen.since(reported) >= WHOLE_SECONDS => reported,
        _ => seen,
    }
}
