//! Pure: which pods a change concerns.

use std::sync::Arc;

use steersman_base::{ObjectKey, Uid};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView, PodView};
use steersman_model::storage::CsiDriverView;

use crate::pod;

/// Returns a pod with volumes that is new, has ended or is gone. Nothing else that matters here can change.
pub(super) fn pod(change: &Change<PodView>) -> Option<ObjectKey> {
    let pod = change.object();
    let is_relevant = match change {
        Change::Updated { old, new } => change.is_resync() || pod::has_ended(new) && !pod::has_ended(old),
        Change::Added { .. } | Change::Deleted { .. } => true,
    };
    (is_relevant && !pod.spec.volumes.is_empty()).then(|| change.key())
}

/// Returns the pods of a claim that is bound since this change.
pub(super) fn pods_of_claim(
    change: &Change<PersistentVolumeClaimView>,
    pods_of: impl Fn(&ObjectKey) -> Vec<Arc<PodView>>,
) -> Vec<ObjectKey> {
    let claim = change.object();
    let is_bound = |claim: &PersistentVolumeClaimView| {
        (claim.spec.volume_name.clone(), claim.status.phase.clone(), claim.meta().uid.clone())
    };
    let is_same = change.before().is_some_and(|old| is_bound(old) == is_bound(claim));
    if is_same || claim.spec.volume_name.is_empty() || matches!(change, Change::Deleted { .. }) {
        return Vec::new();
    }
    keys(&pods_of(&change.key()))
}

/// Returns the pods of the claim that a volume is bound to since this change.
pub(super) fn pods_of_volume(
    change: &Change<PersistentVolumeView>,
    pods_of: impl Fn(&ObjectKey) -> Vec<Arc<PodView>>,
) -> Vec<ObjectKey> {
    let claim =
        |volume: &PersistentVolumeView| volume.spec.claim_ref.clone().filter(|claim| claim.uid != Uid::default());
    let Some(now) = claim(change.object()) else { return Vec::new() };
    let is_same = change.before().is_some_and(|old| claim(old).is_some_and(|old| old.uid == now.uid));
    if is_same || matches!(change, Change::Deleted { .. }) {
        return Vec::new();
    }
    keys(&pods_of(&ObjectKey { namespace: now.namespace.clone(), name: now.name.clone() }))
}

/// Whether the volumes of a driver are mounted in another way since this change.
pub(super) fn changes_mount(change: &Change<CsiDriverView>) -> bool {
    let mounts = |driver: &CsiDriverView| driver.spec.se_linux_mount == Some(true);
    match change {
        Change::Added { .. } => true,
        Change::Updated { old, new } => mounts(old) != mounts(new),
        Change::Deleted { last, .. } => mounts(last),
    }
}

fn keys(pods: &[Arc<PodView>]) -> Vec<ObjectKey> {
    pods.iter().map(|pod| pod.meta().key()).collect()
}
