//! Pure: which pods are deleted, and why.

use std::cmp::Ordering;
use std::sync::Arc;

use steersman_base::{ConditionStatus, condition};
use steersman_model::View;
use steersman_model::core::{NodeView, PodView};

use crate::pod;

/// Why a pod is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// It has ended, and too many have.
    Terminated,
    /// It is terminating, and its node is out of service.
    OutOfService,
    /// Its node does not exist.
    Orphaned,
    /// It is terminating, and was never scheduled.
    Unscheduled,
}

/// The taint of a node that is out of service.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// Returns the ended pods beyond the threshold: evicted ones first, then the oldest.
pub(super) fn too_many(mut ended: Vec<Arc<PodView>>, threshold: usize) -> Vec<Arc<PodView>> {
    let surplus = ended.len().saturating_sub(threshold);
    if surplus == 0 {
        return Vec::new();
    }
    ended.sort_by(|left, right| missed_less(left, right));
    ended.truncate(surplus);
    ended
}

/// Evicted pods are the least useful: others may still be inspected by their creators.
fn missed_less(left: &PodView, right: &PodView) -> Ordering {
    let evicted = |pod: &PodView| pod.status.phase == "Failed" && pod.status.reason() == "Evicted";
    let created = |pod: &PodView| pod.meta().creation_timestamp;
    evicted(right)
        .cmp(&evicted(left))
        .then_with(|| created(left).cmp(&created(right)))
        .then_with(|| left.meta().name.cmp(&right.meta().name))
        .then_with(|| left.meta().namespace.cmp(&right.meta().namespace))
}

/// Whether nothing is left to request: the pod has ended, its grace period is over, and only a finalizer keeps it.
pub(super) fn is_asked_for(pod: &PodView) -> bool {
    let meta = pod.meta();
    let is_over = meta.is_terminating() && meta.deletion_grace_period_seconds() == Some(0);
    pod::has_ended(pod) && is_over && !meta.finalizers().is_empty()
}

/// Returns why a terminating pod is deleted at once, if it is; `node` is its node, if that exists.
pub(super) fn of_terminating(pod: &PodView, node: Option<&NodeView>) -> Option<Cause> {
    if pod.spec.node_name.is_empty() {
        return Some(Cause::Unscheduled);
    }
    node.filter(|node| is_out_of_service(node)).map(|_| Cause::OutOfService)
}

fn is_out_of_service(node: &NodeView) -> bool {
    let ready = condition::find(&node.status.conditions, "Ready");
    ready.is_none_or(|ready| ready.status != ConditionStatus::True)
        && node.spec.taints.iter().any(|taint| taint.key == OUT_OF_SERVICE)
}

// === impl Cause ===

impl Cause {
    /// Returns the label of the metrics.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Terminated => "terminated",
            Self::OutOfService => "out-of-service",
            Self::Orphaned => "orphaned",
            Self::Unscheduled => "unscheduled",
        }
    }
}
