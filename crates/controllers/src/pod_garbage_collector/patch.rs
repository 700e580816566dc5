//! Pure: the status of a pod before it is deleted.

use serde_json::{Value, json};
use steersman_base::{ConditionStatus, Time};
use steersman_model::View;
use steersman_model::core::PodView;

use super::plan::Cause;
use crate::pod;

const DISRUPTION_TARGET: &str = "DisruptionTarget";

/// Returns the status patch that makes a pod `Failed`; `None` if it has ended already.
pub(super) fn failed(pod: &PodView, cause: Cause, now: Time) -> Option<Value> {
    if pod::has_ended(pod) {
        return None;
    }
    let meta = pod.meta();
    let mut status = json!({ "phase": "Failed", "observedGeneration": meta.generation });
    if cause == Cause::Orphaned {
        let held = pod.status.conditions.get(DISRUPTION_TARGET);
        let held = held.filter(|held| held.status == ConditionStatus::True);
        let since = held.and_then(|held| held.last_transition_time).unwrap_or(now);
        status["conditions"] = json!([{
            "type": DISRUPTION_TARGET,
            "status": "True",
            "observedGeneration": meta.generation,
            "lastProbeTime": null,
            "lastTransitionTime": since,
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
        }]);
    }
    Some(json!({ "metadata": { "uid": meta.uid }, "status": status }))
}
