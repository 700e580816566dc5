//! Pure: what every controller asks of a pod.

use std::time::Duration;

use steersman_base::{ConditionStatus, Time, validation};
use steersman_model::View;
use steersman_model::core::PodView;

/// Whether the pod still counts: it has not ended, and nobody asked it to.
#[must_use]
pub fn is_active(pod: &PodView) -> bool {
    !has_ended(pod) && !pod.meta().is_terminating()
}

/// Whether the pod was asked to end and has not ended yet.
#[must_use]
pub fn is_terminating(pod: &PodView) -> bool {
    !has_ended(pod) && pod.meta().is_terminating()
}

/// Whether all its containers have stopped for good.
#[must_use]
pub fn has_ended(pod: &PodView) -> bool {
    matches!(&*pod.status.phase, "Succeeded" | "Failed")
}

/// Since when the pod is ready; `None` if it is not. A ready pod without a time has been ready for ever.
#[must_use]
pub fn ready_since(pod: &PodView) -> Option<Option<Time>> {
    let ready = pod.status.conditions.get("Ready")?;
    (ready.status == ConditionStatus::True).then_some(ready.last_transition_time)
}

/// Whether the pod is ready.
#[must_use]
pub fn is_ready(pod: &PodView) -> bool {
    ready_since(pod).is_some()
}

/// How long until a ready pod has been ready for `min_ready`; zero if it has been, `None` if it is not ready or nobody
/// can tell since when.
#[must_use]
pub fn available_in(pod: &PodView, min_ready: Duration, now: Time) -> Option<Duration> {
    let since = ready_since(pod)?;
    if min_ready.is_zero() {
        return Some(Duration::ZERO);
    }
    Some(min_ready.saturating_sub(now.since(since?)))
}

/// What the server makes the name of a controller's pod from: the controller's name and a hyphen, unless that is too long.
#[must_use]
pub fn name_prefix(controller: &str) -> String {
    // The server appends to the hyphen, so that it never ends the name; a letter stands for what follows.
    let is_prefix = validation::dns1123_subdomain(&format!("{controller}a")).is_empty();
    if is_prefix { format!("{controller}-") } else { controller.to_owned() }
}
