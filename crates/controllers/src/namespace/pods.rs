//! Pure: how long pods may take to end, and in which namespaces there are any.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use steersman_base::{Istr, Meta};
use steersman_informer::MetaChange;
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

/// How many pods each namespace has.
#[derive(Debug, Default)]
pub(super) struct Counts(Mutex<BTreeMap<Istr, usize>>);

/// For how many seconds the namespace may wait for its pods: the longest grace period of those that have not ended. Once
/// the namespace has been going for longer than that, there is nothing to wait for: zero.
pub(super) fn seconds_to_end(pods: &[Arc<EndingPod>], since_deletion: Duration) -> u64 {
    let running = pods.iter().filter(|pod| !matches!(&*pod.status.phase, "Succeeded" | "Failed"));
    let grace = running.filter_map(|pod| pod.spec.termination_grace_period_seconds).max().unwrap_or(0);
    let grace = u64::try_from(grace).unwrap_or(0);
    if since_deletion >= Duration::from_secs(grace) { 0 } else { grace }
}

// === impl Counts ===

impl Counts {
    /// Takes a change of a pod in; the namespace, if that was its last one.
    pub(super) fn note(&self, change: MetaChange<'_>) -> Option<Istr> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match change {
            MetaChange::Added { new, .. } => {
                *counts.entry(new.namespace.clone()).or_default() += 1;
                None
            }
            MetaChange::Updated { .. } => None,
            MetaChange::Deleted { last, .. } => {
                let count = counts.get_mut(&last.namespace)?;
                *count -= 1;
                (*count == 0).then(|| counts.remove_entry(&last.namespace).map(|(namespace, _)| namespace)).flatten()
            }
        }
    }
}
