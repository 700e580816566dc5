//! Pure: the condition `DisruptionTarget` of pods that were not disrupted after all.

use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::{ConditionStatus, Time};
use steersman_model::View;
use steersman_model::core::PodView;

use crate::pod;

const TARGET: &str = "DisruptionTarget";
/// The time for which the condition is trusted: upstream's.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2 * 60);

/// Returns the time until the condition of a pod is stale; zero if it is. `None` if the pod does not have it, has ended or is
/// terminating, or if its kubelet ends it.
pub(super) fn stale_in(pod: &PodView, now: Time) -> Option<Duration> {
    let target = pod.status.conditions.get(TARGET)?;
    let is_meant = target.status == ConditionStatus::True && *target.reason != *"TerminationByKubelet";
    if !is_meant || pod::has_ended(pod) || pod.meta().is_terminating() {
        return None;
    }
    let age = target.last_transition_time.map_or(TIMEOUT, |since| now.since(since));
    Some(TIMEOUT.saturating_sub(age))
}

/// Returns the patch of the status that says that the pod is no target. The version is the condition that nothing has happened
/// to the pod meanwhile.
pub(super) fn no_target(pod: &PodView, now: Time) -> Value {
    let meta = pod.meta();
    json!({
        "metadata": { "uid": meta.uid, "resourceVersion": meta.resource_version },
        "status": { "conditions": [{
            "type": TARGET,
            "status": "False",
            "observedGeneration": meta.generation,
            "lastProbeTime": null,
            "lastTransitionTime": now,
            "reason": null,
            "message": null,
        }] },
    })
}
