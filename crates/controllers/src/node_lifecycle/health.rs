//! Pure: signs of life of a node, and when they were observed, by our own clock.
//!
//! Follows `tryUpdateNodeHealth` in `node_lifecycle_controller.go` of Kubernetes 1.37.1. Times of nodes are only compared
//! with earlier times of the same node: that they change is the sign, whatever they say.

use std::time::Duration;

use steersman_base::{Condition, MicroTime, Time, Uid, condition};
use steersman_model::core::NodeView;
use steersman_model::{NodeLeaseView, View};

/// The last observed state of a node.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Health {
    uid: Uid,
    /// The time of the last sign of life, by our clock.
    heard: Duration,
    /// Its last report; `None` without a `Ready` condition.
    reported: Option<Report>,
    /// The renewal of its lease.
    renewed: Option<MicroTime>,
    /// Whether the lease was ever seen.
    has_lease: bool,
    /// Whether its pods were marked as not ready since it is silent.
    pub(super) has_marked_pods: bool,
}

/// The heartbeat of a `Ready` condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Report {
    at: Option<Time>,
}

/// The times for which nodes may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grace {
    pub(super) monitor: Duration,
    pub(super) startup: Duration,
}

/// Returns the condition `Ready` of a node.
pub(super) fn ready(node: &NodeView) -> Option<&Condition> {
    condition::find(&node.status.conditions, "Ready")
}

// === impl Health ===

impl Health {
    /// Returns what is known of a node after another look at it.
    pub(super) fn observed(known: Option<Self>, node: &NodeView, lease: Option<&NodeLeaseView>, now: Duration) -> Self {
        let reported = ready(node).map(|ready| Report { at: ready.last_heartbeat_time });
        let uid = &node.meta().uid;
        let mut health = known.filter(|known| known.uid == *uid).unwrap_or_else(|| Self {
            uid: uid.clone(),
            heard: now,
            reported,
            renewed: None,
            has_lease: false,
            has_marked_pods: false,
        });
        if health.reported != reported {
            health.reported = reported;
            health.heard = now;
        }
        if let Some(lease) = lease
            && (!health.has_lease || health.renewed != lease.spec.renew_time)
        {
            health.has_lease = true;
            health.renewed = lease.spec.renew_time;
            health.heard = now;
        }
        health
    }

    /// Whether the node has been silent for longer than it may be.
    pub(super) fn is_silent(&self, grace: Grace, now: Duration) -> bool {
        now > self.heard + self.grace(grace)
    }

    /// Whether a lease shows a renewal that was not observed: the cache that it was observed in lags.
    pub(super) fn missed(&self, live: &NodeLeaseView) -> bool {
        !self.has_lease || self.renewed != live.spec.renew_time
    }

    /// Starts the time again, as if the node had been heard of now.
    pub(super) fn forgive(&mut self, now: Duration) {
        self.heard = now;
    }

    fn grace(&self, grace: Grace) -> Duration {
        if self.reported.is_some() { grace.monitor } else { grace.startup }
    }
}
