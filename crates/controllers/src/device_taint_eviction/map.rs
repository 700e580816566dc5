//! Pure: which pods and rules a change concerns; index functions.

use std::sync::Arc;

use steersman_base::{Istr, ObjectKey};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::{PodView, Taint};
use steersman_model::resource::{DeviceTaintRuleView, ResourceClaimView, ResourceSliceView};

use super::plan::is_evicting;

/// A pool of devices.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Pool {
    pub(super) driver: Istr,
    pub(super) name: Istr,
}

/// Index function: the pool of a slice.
pub(super) fn pool_of_slice(slice: &ResourceSliceView) -> [Pool; 1] {
    [Pool { driver: slice.spec.driver.clone(), name: slice.spec.pool.name.clone() }]
}

/// Index function: the pools of a claim's devices.
pub(super) fn pools_of_claim(claim: &ResourceClaimView) -> Vec<Pool> {
    let devices = claim.status.allocation.iter().flat_map(|allocation| &allocation.devices.results);
    let mut pools: Vec<_> =
        devices.map(|device| Pool { driver: device.driver.clone(), name: device.pool.clone() }).collect();
    pools.sort();
    pools.dedup();
    pools
}

/// Returns the pod, if it may have to leave: it has claims, and was bound or got another claim, or it is gone and was to be
/// evicted.
pub(super) fn pod(change: &Change<PodView>, is_planned: impl Fn(&ObjectKey) -> bool) -> Option<ObjectKey> {
    let pod = change.object();
    if pod.spec.resource_claims.is_empty() {
        return None;
    }
    let concerns = match change {
        Change::Added { .. } => !pod.spec.node_name.is_empty(),
        Change::Updated { old, new } => {
            change.is_resync()
                || old.spec.node_name != new.spec.node_name
                || old.status.resource_claim_statuses() != new.status.resource_claim_statuses()
        }
        Change::Deleted { .. } => false,
    };
    (concerns || is_gone(change) && is_planned(&change.key())).then(|| change.key())
}

fn is_gone(change: &Change<PodView>) -> bool {
    matches!(change, Change::Deleted { .. }) || change.object().meta().is_terminating()
}

/// Returns the users of a claim, before and after a change that may concern them.
pub(super) fn users_of_changed(
    change: &Change<ResourceClaimView>,
    users: impl Fn(&ResourceClaimView) -> Vec<ObjectKey>,
) -> Vec<ObjectKey> {
    if !changes_users(change) && !change.is_resync() {
        return Vec::new();
    }
    let mut found: Vec<_> =
        change.before().into_iter().chain([change.object()]).flat_map(|claim| users(claim)).collect();
    found.sort();
    found.dedup();
    found
}

/// Whether the devices or the users of a claim are others.
pub(super) fn changes_users(change: &Change<ResourceClaimView>) -> bool {
    match change {
        Change::Added { new: claim, .. } | Change::Deleted { last: claim, .. } => claim.status.allocation.is_some(),
        Change::Updated { old, new } => {
            (old.status.allocation.is_some() || new.status.allocation.is_some()) && old.status != new.status
        }
    }
}

/// Whether the taints of a pool that evict may be others: those of a slice are, or slices of another generation count.
pub(super) fn changes_taints(
    change: &Change<ResourceSliceView>,
    pool: impl Fn() -> Vec<Arc<ResourceSliceView>>,
) -> bool {
    match change {
        Change::Updated { old, new } if old.spec.pool == new.spec.pool && old.spec.driver == new.spec.driver => {
            change.is_resync() || evicting(old) != evicting(new)
        }
        Change::Updated { old, new } => {
            has_taints(old) || has_taints(new) || pool().iter().any(|slice| has_taints(slice))
        }
        Change::Added { new: slice, .. } | Change::Deleted { last: slice, .. } => {
            has_taints(slice) || pool().iter().any(|slice| has_taints(slice))
        }
    }
}

fn has_taints(slice: &ResourceSliceView) -> bool {
    !evicting(slice).is_empty()
}

fn evicting(slice: &ResourceSliceView) -> Vec<(&Istr, &Taint)> {
    let devices = slice.spec.devices.iter();
    let taints = devices.flat_map(|device| device.taints.iter().map(|taint| (&device.name, taint)));
    taints.filter(|(_, taint)| is_evicting(taint)).collect()
}

/// Returns a rule before and after a change, if it evicts and its spec is another.
pub(super) fn evicting_rules(change: &Change<DeviceTaintRuleView>) -> Vec<&Arc<DeviceTaintRuleView>> {
    if changed_rule(change).is_none() && !matches!(change, Change::Deleted { .. }) && !change.is_resync() {
        return Vec::new();
    }
    let rules = change.before().into_iter().chain([change.object()]);
    rules.filter(|rule| is_evicting(&rule.spec.taint)).collect()
}

/// Returns a rule that is new, or has another spec.
pub(super) fn changed_rule(change: &Change<DeviceTaintRuleView>) -> Option<ObjectKey> {
    let is_changed = match change {
        Change::Added { .. } => true,
        Change::Updated { old, new } => old.spec != new.spec,
        Change::Deleted { .. } => false,
    };
    is_changed.then(|| change.key())
}

/// Whether a change of a pod may change the number of pods that are to be evicted.
pub(super) fn changes_pending(change: &Change<PodView>) -> bool {
    !change.object().spec.resource_claims.is_empty()
        && match change {
            Change::Added { .. } | Change::Deleted { .. } => true,
            Change::Updated { old, new } => {
                old.meta().is_terminating() != new.meta().is_terminating()
                    || old.spec.node_name != new.spec.node_name
                    || old.status.resource_claim_statuses() != new.status.resource_claim_statuses()
            }
        }
}
