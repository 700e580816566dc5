//! The time of the change that endpoints are written for: the annotation
//! `endpoints.kubernetes.io/last-change-trigger-time`.
//!
//! It is the earliest time at which a pod became ready or not ready since the last pass; for a new service, its
//! creation time. It serves to measure the latency between pods and endpoints.
//!
//! Follows `util/trigger_time_tracker.go` of k8s.io/endpointslice 0.37.1, with two differences. The state of a pass is
//! [kept](TriggerTimes::keep) when its writes have succeeded, so that a retry has the same time. And a new pod counts
//! only if it is published: there is no pass for one that is not, so that its time would be attributed to a later,
//! unrelated change.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use steersman_base::{Istr, ObjectKey, Time};
use steersman_model::View;
use steersman_model::core::{PodView, ServiceView};

use crate::service_pods::is_published;

/// The state of the last passes, by service.
#[derive(Debug, Default)]
pub(crate) struct TriggerTimes(Mutex<HashMap<ObjectKey, Seen>>);

/// The state of one pass over a service.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    service: Option<Time>,
    /// By name.
    pods: Box<[(Istr, Time)]>,
}

// === impl TriggerTimes ===

impl TriggerTimes {
    /// Returns the trigger time, if any, and the state. `pods` are sorted by name.
    pub(crate) fn observe(&self, service: &ServiceView, pods: &[Arc<PodView>]) -> (Option<Time>, Seen) {
        let known = self.0.lock();
        let before = known.get(&service.meta().key());
        let time = match before {
            Some(before) => before.changes(service, pods),
            None => service.meta().creation_timestamp,
        };
        (time, Seen::of(service, pods))
    }

    /// Records that the writes of a pass have succeeded.
    pub(crate) fn keep(&self, key: &ObjectKey, seen: Seen) {
        self.0.lock().insert(key.clone(), seen);
    }

    /// Forgets a deleted service.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }
}

// === impl Seen ===

impl Seen {
    fn of(service: &ServiceView, pods: &[Arc<PodView>]) -> Self {
        let changed = |pod: &Arc<PodView>| Some((pod.meta().name.clone(), readiness_changed(pod)?));
        Self { service: service.meta().creation_timestamp, pods: pods.iter().filter_map(changed).collect() }
    }

    /// Returns the earliest change since.
    fn changes(&self, service: &ServiceView, pods: &[Arc<PodView>]) -> Option<Time> {
        let is_news = |pod: &PodView, time: Time| match self.pod(&pod.meta().name) {
            Some(before) => time > before,
            None => is_published(pod, true),
        };
        let pods = pods.iter().filter_map(|pod| readiness_changed(pod).filter(|time| is_news(pod, *time)));
        let service = service.meta().creation_timestamp.filter(|time| Some(*time) > self.service);
        pods.chain(service).min()
    }

    fn pod(&self, name: &Istr) -> Option<Time> {
        let at = self.pods.binary_search_by(|(held, _)| held.cmp(name)).ok()?;
        Some(self.pods[at].1)
    }
}

/// Returns when the pod became ready or not ready.
fn readiness_changed(pod: &PodView) -> Option<Time> {
    pod.status.conditions.get("Ready")?.last_transition_time
}
