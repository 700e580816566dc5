//! Pure: properties of pods that several controllers use.

use std::time::Duration;

use steersman_base::{ConditionStatus, Istr, Time, validation};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::PodView;

/// Whether the pod is active: it has not ended, and is not terminating.
#[must_use]
pub fn is_active(pod: &PodView) -> bool {
    !has_ended(pod) && !pod.meta().is_terminating()
}

/// Whether the pod is terminating and has not ended yet.
#[must_use]
pub fn is_terminating(pod: &PodView) -> bool {
    !has_ended(pod) && pod.meta().is_terminating()
}

/// Whether all its containers have stopped for good.
#[must_use]
pub fn has_ended(pod: &PodView) -> bool {
    matches!(&*pod.status.phase, "Succeeded" | "Failed")
}

/// Index function: the node of a scheduled pod.
#[must_use]
pub fn node(pod: &PodView) -> Option<Istr> {
    (!pod.spec.node_name.is_empty()).then(|| pod.spec.node_name.clone())
}

/// Whether the pod is ready.
#[must_use]
pub fn is_ready(pod: &PodView) -> bool {
    pod.status.conditions.get("Ready").is_some_and(|ready| ready.status == ConditionStatus::True)
}

/// Returns the time since which the pod is ready; `None` if it is not ready, or its condition has no time.
#[must_use]
pub fn ready_since(pod: &PodView) -> Option<Time> {
    let ready = pod.status.conditions.get("Ready")?;
    ready.last_transition_time.filter(|_| is_ready(pod))
}

/// Returns the time until a ready pod has been ready for `min_ready`; zero if it has been, `None` if it is not ready or
/// has no time.
#[must_use]
pub fn available_in(pod: &PodView, min_ready: Duration, now: Time) -> Option<Duration> {
    if !is_ready(pod) {
        return None;
    }
    if min_ready.is_zero() {
        return Some(Duration::ZERO);
    }
    Some(min_ready.saturating_sub(now.since(ready_since(pod)?)))
}

/// Whether a change of a pod concerns only its owner's status: owner and labels are unchanged, and it is active as before.
/// Readiness concerns the status; whether a pod has to be replaced does not.
#[must_use]
pub fn changes_status_only(change: &Change<PodView>) -> bool {
    let Change::Updated { old, new } = change else { return false };
    let before = old.meta();
    let now = new.meta();
    before.controller() == now.controller()
        && before.labels == now.labels
        && before.is_terminating() == now.is_terminating()
        && has_ended(old) == has_ended(new)
}

/// Returns the prefix of the names of a controller's pods: the controller's name and a hyphen, unless that is too long.
#[must_use]
pub fn name_prefix(controller: &str) -> String {
    // The server appends to the hyphen, so that it never ends the name; a letter stands for the suffix.
    let is_prefix = validation::dns1123_subdomain(&format!("{controller}a")).is_empty();
    if is_prefix { format!("{controller}-") } else { controller.to_owned() }
}
