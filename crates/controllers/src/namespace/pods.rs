//! Pure: how long pods may take to terminate.

use std::sync::Arc;
use std::time::Duration;

use steersman_base::{Istr, Meta};
use steersman_model::view;

view! {
    /// The part of a pod that determines how long it may take to terminate.
    pub(super) struct EndingPod for namespaced("", "v1", "pods", "Pod") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: EndingPodSpec = 2,
        /// The status.
        status: EndingPodStatus = 3,
    }
}

view! {
    /// The grace period.
    pub(super) struct EndingPodSpec {
        /// Seconds between SIGTERM and SIGKILL.
        termination_grace_period_seconds: Option<i64> = 4,
    }
}

view! {
    /// The phase.
    pub(super) struct EndingPodStatus {
        /// `Succeeded` and `Failed` have ended.
        phase: Istr = 1,
    }
}

/// Returns for how many seconds the namespace may wait for its pods: the longest grace period of those that have not
/// ended; zero, once the namespace has been terminating for longer than that.
pub(super) fn seconds_to_end(pods: &[Arc<EndingPod>], since_deletion: Duration) -> u64 {
    let running = pods.iter().filter(|pod| !matches!(&*pod.status.phase, "Succeeded" | "Failed"));
    let grace = running.filter_map(|pod| pod.spec.termination_grace_period_seconds).max().unwrap_or(0);
    let grace = u64::try_from(grace).unwrap_or(0);
    if since_deletion >= Duration::from_secs(grace) { 0 } else { grace }
}
