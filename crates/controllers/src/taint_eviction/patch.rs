//! Pure: the status of a pod before it is deleted.

use serde_json::{Value, json};
use steersman_base::{ConditionStatus, Time};
use steersman_model::View;
use steersman_model::core::PodView;

const DISRUPTION_TARGET: &str = "DisruptionTarget";
const REASON: &str = "DeletionByTaintManager";

/// Returns the status patch that says why a pod is deleted; `None` if it says so.
///
/// It has the version as a precondition: a pod that has got another toleration meanwhile is checked again.
pub(super) fn disrupted(pod: &PodView, now: Time) -> Option<Value> {
    let meta = pod.meta();
    let held = pod.status.conditions.get(DISRUPTION_TARGET).filter(|held| held.status == ConditionStatus::True);
    if held.is_some_and(|held| held.reason == REASON) {
        return None;
    }
    Some(json!({
        "metadata": { "uid": meta.uid, "resourceVersion": meta.resource_version },
        "status": { "conditions": [{
            "type": DISRUPTION_TARGET,
            "status": "True",
            "observedGeneration": meta.generation,
            "lastProbeTime": null,
            "lastTransitionTime": held.and_then(|held| held.last_transition_time).unwrap_or(now),
            "reason": REASON,
            "message": "Taint manager: deleting due to NoExecute taint",
        }] },
    }))
}
