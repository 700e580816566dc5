//! Pure: which pods go, and why.

use std::cmp::Ordering;
use std::sync::Arc;

use steersman_base::{ConditionStatus, condition};
use steersman_model::View;
use steersman_model::core::{NodeView, PodView};

use crate::pod;

/// Why a pod goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// It has ended, and too many have.
    Terminated,
    /// It is being deleted, and its node is out of service.
    OutOfService,
    /// Its node is gone.
    Orphaned,
    /// It is being deleted, and was never on a node.
    Unscheduled,
}

/// Who takes a node out of service says so with this taint.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// Of the pods that have ended, those that are too many: evicted ones first, then the oldest.
pub(super) fn too_many(mut ended: Vec<Arc<PodView>>, threshold: usize) -> Vec<Arc<PodView>> {
    let surplus = ended.len().saturating_sub(threshold);
    if surplus == 0 {
        return Vec::new();
    }
    ended.sort_by(|left, right| missed_less(left, right));
    ended.truncate(surplus);
    ended
}

/// Evicted pods are missed least: others were made by somebody who looks at them.
fn missed_less(left: &PodView, right: &PodView) -> Ordering {
    let evicted = |pod: &PodView| pod.status.phase == "Failed" && pod.status.reason() == "Evicted";
    let created = |pod: &PodView| pod.meta().creation_timestamp;
    evicted(right)
        .cmp(&evicted(left))
        .then_with(|| created(left).cmp(&created(right)))
        .then_with(|| left.meta().name.cmp(&right.meta().name))
        .then_with(|| left.meta().namespace.cmp(&right.meta().namespace))
}

/// Whether there is nothing more to ask for: the pod has ended, its time is over, and only somebody's finalizer keeps it.
pub(super) fn is_asked_for(pod: &PodView) -> bool {
    let meta = pod.meta();
    let is_over = meta.is_terminating() && meta.deletion_grace_period_seconds() == Some(0);
    pod::has_ended(pod) && is_over && !meta.finalizers().is_empty()
}

/// Why a pod that is being deleted goes at once, if it does; `node` is what its node is, if there is one.
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
    /// What metrics call it.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Terminated => "terminated",
            Self::OutOfService => "out-of-service",
            Self::Orphaned => "orphaned",
            Self::Unscheduled => "unscheduled",
        }
    }
}
