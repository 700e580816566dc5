//! Evictions by taints, of nodes and of devices: which pods are to be evicted, and what their status says then.

pub(crate) mod metrics;

use std::collections::HashMap;

use parking_lot::Mutex;
use serde_json::{Value, json};
use steersman_base::{ConditionStatus, Meta, MicroTime, ObjectKey, Time, Uid};
use steersman_model::View;
use steersman_model::core::PodView;

const DISRUPTION_TARGET: &str = "DisruptionTarget";

/// Why a pod is evicted, as its condition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Disruption {
    pub(crate) reason: &'static str,
    pub(crate) message: &'static str,
}

/// The pods that are to be evicted.
#[derive(Default)]
pub(crate) struct PlannedPods(Mutex<HashMap<ObjectKey, Planned>>);

struct Planned {
    uid: Uid,
    seen: MicroTime,
    is_announced: bool,
}

/// Returns the status patch that says why a pod is deleted; `None` if it says so.
///
/// It has the version as a precondition: a pod that has changed meanwhile is checked again.
pub(crate) fn disrupted(pod: &PodView, why: Disruption, now: Time) -> Option<Value> {
    let meta = pod.meta();
    let held = pod.status.conditions.get(DISRUPTION_TARGET).filter(|held| held.status == ConditionStatus::True);
    if held.is_some_and(|held| held.reason == why.reason) {
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
            "reason": why.reason,
            "message": why.message,
        }] },
    }))
}

// === impl PlannedPods ===

impl PlannedPods {
    /// Whether this pod is to be evicted.
    pub(crate) fn is_planned(&self, pod: &ObjectKey) -> bool {
        self.0.lock().contains_key(pod)
    }

    /// Returns when a pod was first seen to be evicted.
    pub(crate) fn seen(&self, pod: &Meta, now: MicroTime) -> MicroTime {
        let pods = self.0.lock();
        pods.get(&pod.key()).filter(|planned| planned.uid == pod.uid).map_or(now, |planned| planned.seen)
    }

    /// Remembers that a pod is to be evicted.
    pub(crate) fn plan(&self, pod: &Meta, now: MicroTime) {
        let mut pods = self.0.lock();
        let planned = pods.entry(pod.key()).or_insert_with(|| Planned::new(pod, now));
        if planned.uid != pod.uid {
            *planned = Planned::new(pod, now);
        }
    }

    /// Whether the eviction of a pod is announced for the first time.
    pub(crate) fn announces(&self, pod: &ObjectKey) -> bool {
        let mut pods = self.0.lock();
        pods.get_mut(pod).is_some_and(|planned| !std::mem::replace(&mut planned.is_announced, true))
    }

    /// Forgets a pod, and returns whether it was to be evicted.
    pub(crate) fn forget(&self, pod: &ObjectKey) -> bool {
        self.0.lock().remove(pod).is_some()
    }
}

// === impl Planned ===

impl Planned {
    fn new(pod: &Meta, now: MicroTime) -> Self {
        Self { uid: pod.uid.clone(), seen: now, is_announced: false }
    }
}
