//! Pure: the arithmetic of a rolling update.
//!
//! 1. ReplicaSets never want more pods in all than `replicas + maxSurge`. What is wanted counts: a pod that its ReplicaSet
//!    is about to delete takes no room, as upstream.
//! 2. No step takes an available pod away while `replicas - maxUnavailable` of them or fewer *remain*: a pod remains if its
//!    ReplicaSet still wants it ([`Size::remaining`]). A ReplicaSet's status is late, so it may count pods that are about to
//!    be deleted, or that were deleted since; what it says of an older spec counts for nothing.
//! 3. Pods of old ReplicaSets that are not available go first: they are missed by nobody, and could block the update.
//! 4. Unless pods never become available, every step is followed by another until the new ReplicaSet has them all. A step
//!    that waits for a status is woken by it: every ReplicaSet reports on every spec it was given.
//!
//! Follows `rolling.go` and `deployment_util.go` of Kubernetes 1.37.1, which adds up `availableReplicas` as reported, and
//! is kept from most of the harm by an error ("invalid request to scale down") that ends the pass.

use steersman_base::IntOrString;
use steersman_base::int_or_string::Rounding;
use steersman_model::apps::{DeploymentSpec, ReplicaSetView};

use super::sets::{is_observed, wanted};

/// How far a rolling update may go, in pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// How many pods there should be.
    pub(super) desired: i32,
    /// How many there may be beyond that.
    pub(super) surge: i32,
    /// How many of them may be missing.
    pub(super) unavailable: i32,
}

/// One ReplicaSet, as the arithmetic sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    /// How many pods it wants.
    pub(super) wanted: i32,
    /// How many of its pods it says are available. That can be more than it wants: it was just scaled down.
    pub(super) available: i32,
    /// Whether it says so of what it wants now, and not of what it wanted before.
    pub(super) observed: bool,
}

/// How many pods a Deployment wants. An absent count means one: the API server's default.
pub(super) fn desired(spec: &DeploymentSpec) -> i32 {
    spec.replicas.unwrap_or(1)
}

/// Whether pods of an older template are replaced step by step. An absent strategy means that: the API server's default.
pub(super) fn is_rolling(spec: &DeploymentSpec) -> bool {
    spec.strategy.type_.is_empty() || spec.strategy.type_ == "RollingUpdate"
}

/// How many pods the new ReplicaSet should want. `total` is what all of them want now.
pub(super) fn new_size(limits: Limits, new: i32, total: i32) -> i32 {
    if new >= limits.desired {
        return limits.desired;
    }
    let room = limits.total_max().saturating_sub(total).max(0);
    new.saturating_add(room.min(limits.desired - new))
}

/// How many pods each old ReplicaSet should want. They come oldest first.
pub(super) fn old_sizes(limits: Limits, new: Size, old: &[Size]) -> Vec<i32> {
    let mut sizes: Vec<i32> = old.iter().map(|set| set.wanted).collect();
    // Even if all pods that old ones keep are available, these are all there are: the new one's others may never be.
    let may_go = sum(sizes.iter().copied()).saturating_add(new.remaining()).saturating_sub(limits.available_min());
    if may_go <= 0 {
        return sizes;
    }
    take(&mut sizes, may_go, |at| old[at].unavailable());
    let remaining = sum(old.iter().map(|set| set.remaining())).saturating_add(new.remaining());
    take(&mut sizes, remaining.saturating_sub(limits.available_min()), |_| i32::MAX);
    sizes
}

/// Takes up to `count` in all, from the first to the last, and from each no more than it has or than `at_most` says.
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
    /// What a ReplicaSet wants and says.
    pub(super) fn of(set: &ReplicaSetView) -> Self {
        Self { wanted: wanted(set), available: set.status.available_replicas, observed: is_observed(set) }
    }

    /// How many available pods are there for certain when the ReplicaSet has done what it was last asked for.
    ///
    /// It deletes pods first that are not available, so no more than it wants remain. If its status is about an older spec,
    /// nobody can tell: it may have been scaled down and up again, and the pods that come back are not available.
    pub(super) fn remaining(self) -> i32 {
        if self.observed { self.reported() } else { 0 }
    }

    /// How many available pods it says it has, of those it wants; also if that is about an older spec.
    pub(super) fn reported(self) -> i32 {
        self.available.min(self.wanted).max(0)
    }

    /// How many of the pods it wants are known not to be available.
    fn unavailable(self) -> i32 {
        if self.observed { self.wanted.saturating_sub(self.remaining()) } else { 0 }
    }
}

// === impl Limits ===

impl Limits {
    /// The limits of a Deployment. A Deployment that is recreated has no room either way.
    pub(super) fn of(spec: &DeploymentSpec) -> Self {
        let desired = desired(spec);
        if !is_rolling(spec) {
            return Self { desired, surge: 0, unavailable: 0 };
        }
        let rolling = spec.strategy.rolling_update.as_ref();
        // What validation lets through always scales; nothing else may stop a Deployment.
        let scaled = |field: Option<&IntOrString>, rounding| {
            field.and_then(|share| share.scaled(desired, rounding).ok()).unwrap_or(0).max(0)
        };
        let surge = scaled(rolling.and_then(|rolling| rolling.max_surge.as_ref()), Rounding::Up);
        let mut unavailable = scaled(rolling.and_then(|rolling| rolling.max_unavailable.as_ref()), Rounding::Down);
        if surge == 0 && unavailable == 0 {
            // Both rounded to nothing: one pod at a time may go, because a quota may have no room for one more.
            unavailable = 1;
        }
        Self { desired, surge, unavailable: unavailable.min(desired) }
    }

    /// How many pods all ReplicaSets may want.
    pub(super) fn total_max(self) -> i32 {
        self.desired.saturating_add(self.surge)
    }

    /// How many pods must be available.
    pub(super) fn available_min(self) -> i32 {
        self.desired.saturating_sub(self.unavailable)
    }
}
