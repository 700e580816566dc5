//! When the change happened that endpoints are written for: the annotation `endpoints.kubernetes.io/last-change-trigger-time`.
//!
//! It is the earliest time at which a pod became ready, or ceased to be, of those that are news since the last pass; for a
//! service that is seen for the first time, the time of its creation. Whoever measures how long endpoints take to follow
//! their pods takes it from there.
//!
//! Follows `util/trigger_time_tracker.go` of k8s.io/endpointslice 0.37.1, but for two things. What a pass has seen is
//! [kept](TriggerTimes::keep) when its writes are through, so that a retry tells the same time. And a pod that is seen for
//! the first time is news only if it is published: there is no pass for one that is not, so that its time would be told
//! later, with a change that has nothing to do with it.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use steersman_base::{Istr, ObjectKey, Time};
use steersman_model::View;
use steersman_model::core::{PodView, ServiceView};

use crate::service_pods::is_published;

/// What the last passes have seen, by service.
#[derive(Debug, Default)]
pub(crate) struct TriggerTimes(Mutex<HashMap<ObjectKey, Seen>>);

/// What one pass has seen of a service.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    service: Option<Time>,
    /// By name.
    pods: Box<[(Istr, Time)]>,
}

// === impl TriggerTimes ===

impl TriggerTimes {
    /// The time to be told now, if any, and what was seen. `pods` are sorted by name.
    pub(crate) fn look(&self, service: &ServiceView, pods: &[Arc<PodView>]) -> (Option<Time>, Seen) {
        let known = self.0.lock();
        let before = known.get(&service.meta().key());
        let time = match before {
            Some(before) => before.news(service, pods),
            None => service.meta().creation_timestamp,
        };
        (time, Seen::of(service, pods))
    }

    /// What a pass has seen is written.
    pub(crate) fn keep(&self, key: &ObjectKey, seen: Seen) {
        self.0.lock().insert(key.clone(), seen);
    }

    /// The service is gone.
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

    /// The earliest of what is news since.
    fn news(&self, service: &ServiceView, pods: &[Arc<PodView>]) -> Option<Time> {
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

/// When the pod became ready, or ceased to be.
fn readiness_changed(pod: &PodView) -> Option<Time> {
    pod.status.conditions.get("Ready")?.last_transition_time
}
