//! Pure: which quotas a change concerns.

use std::sync::Arc;
use std::time::Duration;

use steersman_base::quota::{Amounts, DeviceClasses, Tracker, amounts};
use steersman_base::{ObjectKey, Time};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PodView, ResourceQuotaView, ServiceView};

use super::usage;
use crate::pod;

/// Whether a change of a quota makes it worth counting: its own status is written by this controller, and charged by the
/// API server.
pub(super) fn is_counted_again(change: &Change<ResourceQuotaView>) -> bool {
    match change {
        Change::Added { .. } => true,
        Change::Updated { old, new } => {
            old.spec != new.spec || old.metadata.uid != new.metadata.uid || (is_urgent(new) && !is_urgent(old))
        }
        Change::Deleted { .. } => false,
    }
}

/// Whether the status of a quota lacks limits, or the usage of one: the API server refuses what it cannot charge.
pub(super) fn is_urgent(quota: &ResourceQuotaView) -> bool {
    let status = &quota.status;
    quota.spec.hard != status.hard || status.hard.iter().any(|(name, _)| status.used.get(name).is_none())
}

/// Returns the keys of quotas, in order.
pub(super) fn keys(quotas: &[Arc<ResourceQuotaView>]) -> Vec<ObjectKey> {
    let mut keys: Vec<ObjectKey> = quotas.iter().map(|quota| quota.meta().key()).collect();
    keys.sort();
    keys
}

/// Returns those of the quotas that count a resource.
pub(super) fn counting(
    quotas: &[Arc<ResourceQuotaView>],
    tracker: &Tracker,
    classes: &DeviceClasses,
) -> Vec<ObjectKey> {
    let counts = |quota: &ResourceQuotaView| {
        let names = quota.spec.hard.iter().chain(quota.status.hard.iter());
        names.map(|(name, _)| name).any(|name| tracker.tracks(name, classes))
    };
    keys(&quotas.iter().filter(|quota| counts(quota)).cloned().collect::<Vec<_>>())
}

/// Returns after which time a change of a pod frees something: it is deleted, has ended, uses less, or is in other scopes. A
/// terminating pod counts until its grace period is over.
pub(super) fn pod_frees(change: &Change<PodView>, now: Time) -> Option<Duration> {
    match change {
        Change::Added { .. } => None,
        Change::Deleted { .. } => Some(Duration::ZERO),
        Change::Updated { old, new } => {
            let new_end = charged_until(new).filter(|_| charged_until(old) != charged_until(new));
            // One that has ended meanwhile frees what it used at once.
            if let Some(end) = new_end.filter(|end| *end >= now && !pod::has_ended(new)) {
                return Some(end.plus_seconds(1).since(now));
            }
            let is_same = old.spec.shared.same_allocation(&new.spec.shared)
                && old.status.phase == new.status.phase
                && old.status.container_statuses == new.status.container_statuses
                && old.status.init_container_statuses == new.status.init_container_statuses
                && new_end.is_none();
            if is_same {
                return None;
            }
            let scopes = |pod: &PodView| {
                let spec = &pod.spec;
                (spec.has_active_deadline, spec.priority_class_name.clone(), spec.has_cross_namespace_affinity)
            };
            let used = |pod: &PodView| usage::pod(pod, true).usage(now);
            let frees = scopes(old) != scopes(new) || amounts::frees(&used(old), &used(new));
            frees.then_some(Duration::ZERO)
        }
    }
}

fn charged_until(pod: &PodView) -> Option<Time> {
    usage::pod_meta(pod).charged_until()
}

/// Whether a change of a Service frees something.
pub(super) fn service_frees(change: &Change<ServiceView>) -> bool {
    frees(change, |service| usage::service(service).usage())
}

/// Whether a change of a claim frees something, or puts it into other scopes.
pub(super) fn claim_frees(change: &Change<PersistentVolumeClaimView>) -> bool {
    let classes = |claim: &PersistentVolumeClaimView| {
        usage::volume_claim(claim).attributes_classes().into_iter().cloned().collect::<Vec<_>>()
    };
    let is_elsewhere = matches!(change, Change::Updated { old, new } if classes(old) != classes(new));
    is_elsewhere || frees(change, |claim| usage::volume_claim(claim).usage())
}

fn frees<V: View>(change: &Change<V>, usage: impl Fn(&V) -> Amounts) -> bool {
    match change {
        Change::Added { .. } => false,
        Change::Deleted { .. } => true,
        Change::Updated { old, new } => amounts::frees(&usage(old), &usage(new)),
    }
}
