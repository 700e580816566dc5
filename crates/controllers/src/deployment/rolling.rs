//! Pure: the arithmetic of a rolling update.
//!
//! 1. ReplicaSets never want more than `replicas + maxSurge` pods in total. The wanted number counts: as upstream, a
//!    pod that is about to be deleted takes no room.
//! 2. No step deletes an available pod while `replicas - maxUnavailable` or fewer *would remain*: a pod remains if its
//!    ReplicaSet still wants it ([`Size::remaining`]). The status of a ReplicaSet is late, so it may count pods that
//!    are about to be deleted or were deleted since; a status of an older spec counts as zero.
//!    The worst case counts: a ReplicaSet deletes pods that are not ready first, but among those that are ready it may delete
//!    available ones before others, which wait for `minReadySeconds`.
//! 3. Pods of old ReplicaSets whose deletion takes no available pod are deleted first: they serve nobody, and could block
//!    the update. They are those that are not ready, and all of a ReplicaSet without an available pod.
//! 4. If the new pods become available, every step is followed by another until the new ReplicaSet has them all. A step
//!    that waits for a status is enqueued by it: every ReplicaSet reports on every spec.
//!
//! Follows `rolling.go` and `deployment_util.go` of Kubernetes 1.37.1, which sums `availableReplicas` as reported, and
//! relies on an error ("invalid request to scale down") that ends the pass in most cases.

use steersman_base::IntOrString;
use steersman_base::int_or_string::Rounding;
use steersman_model::apps::{DeploymentSpec, ReplicaSetView};

use super::sets::{is_observed, wanted};

/// The limits of a rolling update, in pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// The desired number of pods.
    pub(super) desired: i32,
    /// The number of pods allowed beyond that.
    pub(super) surge: i32,
    /// The number of pods that may be unavailable.
    pub(super) unavailable: i32,
}

/// The size of one ReplicaSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    /// The number of pods it wants.
    pub(super) wanted: i32,
    /// The number of ready pods in its status, available or not.
    pub(super) ready: i32,
    /// The number of available pods in its status. It can exceed `wanted` just after a scale-down.
    pub(super) available: i32,
    /// Whether the status is about the current spec.
    pub(super) observed: bool,
}

/// Returns the number of pods a Deployment wants. An absent count means one: the API server's default.
pub(super) fn desired(spec: &DeploymentSpec) -> i32 {
    spec.replicas.unwrap_or(1)
}

/// Whether old pods are replaced step by step. An absent strategy means so: the API server's default.
pub(super) fn is_rolling(spec: &DeploymentSpec) -> bool {
    spec.strategy.type_.is_empty() || spec.strategy.type_ == "RollingUpdate"
}

/// Returns the number of pods the new ReplicaSet should want. `total` is the sum over all ReplicaSets.
pub(super) fn new_size(limits: Limits, new: i32, total: i32) -> i32 {
    if new >= limits.desired {
        return limits.desired;
    }
    let room = limits.total_max().saturating_sub(total).max(0);
    new.saturating_add(room.min(limits.desired - new))
}

/// Returns the number of pods each old ReplicaSet should want. They are given oldest first.
pub(super) fn old_sizes(limits: Limits, new: Size, old: &[Size]) -> Vec<i32> {
    let mut sizes: Vec<i32> = old.iter().map(|set| set.wanted).collect();
    // Assumes that all pods kept by old ReplicaSets are available: pods of the new one may never be.
    let may_go = sum(sizes.iter().copied()).saturating_add(new.remaining()).saturating_sub(limits.available_min());
    if may_go <= 0 {
        return sizes;
    }
    take(&mut sizes, may_go, |at| old[at].spare());
    let remaining = sum(old.iter().map(|set| set.remaining())).saturating_add(new.remaining());
    take(&mut sizes, remaining.saturating_sub(limits.available_min()), |_| i32::MAX);
    sizes
}

/// Takes up to `count` in total, from first to last, and from each at most what it has and what `at_most` allows.
fn take(sizes: &mut [i32], count: i32, at_most: impl Fn(usize) -> i32) {
    let mut left = count.max(0);
    for (at, size) in sizes.iter_mut().enumerate() {
        let taken = left.min(at_most(at)).min(*size).max(0);
        *size -= taken;
        left -= taken;
    }
}

fn sum(counts: impl Iterator<Item = i32>) -> i32 {
    counts.fold(0, i32::saturating_add)
}

// === impl Size ===

impl Size {
    /// Returns the size of a ReplicaSet.
    pub(super) fn of(set: &ReplicaSetView) -> Self {
        let status = &set.status;
        let observed = is_observed(set);
        Self { wanted: wanted(set), ready: status.ready_replicas, available: status.available_replicas, observed }
    }

    /// Returns the number of available pods that certainly remain when the ReplicaSet has reached its wanted size.
    ///
    /// It deletes pods that are not ready first; of the ready ones that go, each may be an available one. If its status is
    /// about an older spec, nothing is certain: it may have been scaled down and up again, and the new pods are not available.
    pub(super) fn remaining(self) -> i32 {
        let waiting = self.ready.max(0).saturating_sub(self.available.max(0)).max(0);
        if self.observed { self.available.min(self.wanted.saturating_sub(waiting)).max(0) } else { 0 }
    }

    /// Returns the number of available pods in its status, at most the wanted number; also if the status is about an
    /// older spec.
    pub(super) fn reported(self) -> i32 {
        self.available.min(self.wanted).max(0)
    }

    /// Returns the number of wanted pods that it can delete without an available one among them.
    fn spare(self) -> i32 {
        match self.remaining() {
            _ if !self.observed => 0,
            0 => self.wanted,
            _ => self.wanted.saturating_sub(self.ready.max(self.available)),
        }
    }
}

// === impl Limits ===

impl Limits {
    /// Returns the limits of a Deployment. With `Recreate` both are zero.
    pub(super) fn of(spec: &DeploymentSpec) -> Self {
        let desired = desired(spec);
        if !is_rolling(spec) {
            return Self { desired, surge: 0, unavailable: 0 };
        }
        let rolling = spec.strategy.rolling_update.as_ref();
        // Values that pass validation always convert; any other must not stop a Deployment.
        let scaled = |field: Option<&IntOrString>, rounding| {
            field.and_then(|share| share.scaled(desired, rounding).ok()).unwrap_or(0).max(0)
        };
        let surge = scaled(rolling.and_then(|rolling| rolling.max_surge.as_ref()), Rounding::Up);
        let mut unavailable = scaled(rolling.and_then(|rolling| rolling.max_unavailable.as_ref()), Rounding::Down);
        if surge == 0 && unavailable == 0 {
            // Both were rounded to zero: one pod at a time may be unavailable, because a quota may not allow a surge.
            unavailable = 1;
        }
        Self { desired, surge, unavailable: unavailable.min(desired) }
    }

    /// Returns the maximum number of pods over all ReplicaSets.
    pub(super) fn total_max(self) -> i32 {
        self.desired.saturating_add(self.surge)
    }

    /// Returns the minimum number of available pods.
    pub(super) fn available_min(self) -> i32 {
        self.desired.saturating_sub(self.unavailable)
    }
}
