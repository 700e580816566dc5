//! When the change happened that endpoints are written for: the annotation `endpoints.kubernetes.io/last-change-trigger-time`.
//!
//! It is the earliest time at which a pod became ready, or ceased to be, of those that are news since the last pass; for a
//! service that is seen for the first time, the time of its creation. Whoever measures how long endpoints take to follow
//! their pods takes it from there.
//!
//! Follows `util/trigger_time_tracker.go` of k8s.io/endpointslice 0.37.1, but for one thing: what a pass has seen is
//! [kept](TriggerTimes::keep) when its writes are through, so that a retry tells the same time.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use steersman_base::{Istr, ObjectKey, Time};
use steersman_model::View;
use steersman_model::core::{PodView, ServiceView};

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
        let now = Seen::of(service, pods);
        let time = now.news_since(before);
        (time, now)
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
        let readiness = |pod: &Arc<PodView>| {
            let changed = pod.status.conditions.get("Ready")?.last_transition_time?;
            Some((pod.meta().name.clone(), changed))
        };
        Self { service: service.meta().creation_timestamp, pods: pods.iter().filter_map(readiness).collect() }
    }

    fn news_since(&self, before: Option<&Self>) -> Option<Time> {
        let Some(before) = before else { return self.service };
        let earlier = |name: &Istr| {
            let at = before.pods.binary_search_by(|(held, _)| held.cmp(name)).ok()?;
            Some(before.pods[at].1)
        };
        let pods = self.pods.iter().filter(|(name, time)| Some(*time) > earlier(name)).map(|(_, time)| *time);
        pods.chain(self.service.filter(|time| Some(*time) > before.service)).min()
    }
}
