//! Pure: how long pods may take to end.

use std::sync::Arc;
use std::time::Duration;

use steersman_base::{Istr, Meta};
use steersman_model::view;

view! {
    /// What tells how long a pod may take to end.
    pub(super) struct EndingPod for namespaced("", "v1", "pods", "Pod") {
        /// Its metadata.
        metadata: Meta = 1,
        /// What it should be.
        spec: EndingPodSpec = 2,
        /// What it is.
        status: EndingPodStatus = 3,
    }
}

view! {
    /// How long it is given.
    pub(super) struct EndingPodSpec {
        /// Seconds between asking and killing.
        termination_grace_period_seconds: Option<i64> = 4,
    }
}

view! {
    /// How far it is.
    pub(super) struct EndingPodStatus {
        /// `Succeeded` and `Failed` have ended.
        phase: Istr = 1,
    }
}

/// For how many seconds the namespace may wait for its pods: the longest grace period of those that have not ended. Once
/// the namespace has been going for longer than that, there is nothing to wait for: zero.
pub(super) fn seconds_to_end(pods: &[Arc<EndingPod>], since_deletion: Duration) -> u64 {
    let running = pods.iter().filter(|pod| !matches!(&*pod.status.phase, "Succeeded" | "Failed"));
    let grace = running.filter_map(|pod| pod.spec.termination_grace_period_seconds).max().unwrap_or(0);
    let grace = u64::try_from(grace).unwrap_or(0);
    if since_deletion >= Duration::from_secs(grace) { 0 } else { grace }
}
