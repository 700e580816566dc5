//! Pure: conditions of silent nodes, and of their pods.

use serde_json::{Value, json};
use steersman_base::{ConditionStatus, Time, condition};
use steersman_model::View;
use steersman_model::core::{NodeView, PodView};

use super::health::ready;

/// The conditions that a kubelet reports. `NetworkUnavailable` is the control plane's own.
const REPORTED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// Returns the status patch that sets the conditions of a silent node to `Unknown`; `None` if `Ready` is so already.
///
/// It has the version as a precondition: a report that arrives meanwhile is not overwritten.
pub(super) fn silent(node: &NodeView, now: Time) -> Option<Value> {
    if ready(node).is_some_and(|ready| ready.status == ConditionStatus::Unknown) {
        return None;
    }
    let meta = node.meta();
    let conditions = REPORTED.iter().filter_map(|type_| match condition::find(&node.status.conditions, type_) {
        Some(held) if held.status == ConditionStatus::Unknown => None,
        Some(_) => Some(json!({
            "type": type_,
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
            "lastTransitionTime": now,
        })),
        None => Some(json!({
            "type": type_,
            "status": "Unknown",
            "reason": "NodeStatusNeverUpdated",
            "message": "Kubelet never posted node status.",
            "lastHeartbeatTime": meta.creation_timestamp,
            "lastTransitionTime": now,
        })),
    });
    let conditions: Vec<Value> = conditions.collect();
    Some(json!({
        "metadata": { "uid": meta.uid, "resourceVersion": meta.resource_version },
        "status": { "conditions": conditions },
    }))
}

/// Whether a pod on a node that is not ready has to be marked as not ready, too.
pub(super) fn is_to_mark(pod: &PodView) -> bool {
    pod.status.conditions.get("Ready").is_some_and(|ready| ready.status != ConditionStatus::False)
}

/// Returns the status patch that marks a pod as not ready.
pub(super) fn unready(pod: &PodView, now: Time) -> Value {
    json!({
        "metadata": { "uid": pod.meta().uid },
        "status": { "conditions": [{ "type": "Ready", "status": "False", "lastTransitionTime": now }] },
    })
}
