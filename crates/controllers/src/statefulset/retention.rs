//! Pure: retention: which owners a claim has, so that the garbage collector deletes it when its policy says so.
//!
//! | whenScaled | whenDeleted | owner of a wanted pod's claim | of a surplus pod's claim |
//! |---|---|---|---|
//! | Retain | Retain | none | none |
//! | Retain | Delete | the StatefulSet | the StatefulSet |
//! | Delete | Retain | none | the pod |
//! | Delete | Delete | the StatefulSet | the pod |
//!
//! A claim that another controller owns, or an earlier object of the same name, is left alone.

use steersman_base::{Meta, OwnerRef};
use steersman_model::apps::StatefulSetView;
use steersman_model::core::PodView;
use steersman_model::{Kind, View};

use super::identity::{Ordinals, ordinal};
use crate::claim::owner_ref;

/// The retention of claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Policy {
    /// Whether claims are deleted with the StatefulSet.
    pub(super) delete_with_set: bool,
    /// Whether claims are deleted with surplus pods.
    pub(super) delete_with_pod: bool,
}

/// The owners that a pod's claim may have.
pub(super) struct Owners<'a> {
    pub(super) set: &'a StatefulSetView,
    pub(super) pod: &'a PodView,
}

// === impl Policy ===

impl Policy {
    /// Returns the policy of a StatefulSet. An unknown one retains everything.
    pub(super) fn of(set: &StatefulSetView) -> Self {
        let Some(policy) = &set.spec.persistent_volume_claim_retention_policy else { return Self::default() };
        let words = [&*policy.when_deleted, &*policy.when_scaled];
        if !words.iter().all(|word| matches!(*word, "Retain" | "Delete")) {
            return Self::default();
        }
        Self { delete_with_set: words[0] == "Delete", delete_with_pod: words[1] == "Delete" }
    }
}

// === impl Owners ===

impl Owners<'_> {
    /// Whether the owners of a claim are right.
    pub(super) fn are_right(&self, claim: &Meta) -> bool {
        let owners = &claim.owner_references;
        let by_uid = |meta: &Meta| owners.iter().any(|owner| owner.uid == meta.uid);
        let has_set = by_uid(self.set.meta());
        let has_pod = by_uid(self.pod.meta());
        if is_stale::<StatefulSetView>(owners, self.set.meta()) || is_stale::<PodView>(owners, self.pod.meta()) {
            return true;
        }
        if self.is_of_another(claim) {
            return !has_set && !has_pod;
        }
        let is_ours = |owner: &&OwnerRef| owner.uid == self.set.meta().uid || owner.uid == self.pod.meta().uid;
        if owners.iter().filter(is_ours).any(|owner| owner.controller != Some(true)) {
            return false;
        }
        (has_set, has_pod) == self.wanted()
    }

    /// Whether a controller other than the StatefulSet and the pod owns the claim, and the policy has a say.
    pub(super) fn is_of_another(&self, claim: &Meta) -> bool {
        if Policy::of(self.set) == Policy::default() {
            return false;
        }
        claim.owner_references.iter().any(|owner| {
            if refers_to::<StatefulSetView>(owner, self.set.meta()) {
                owner.uid != self.set.meta().uid
            } else if refers_to::<PodView>(owner, self.pod.meta()) {
                owner.uid != self.pod.meta().uid
            } else {
                owner.controller == Some(true)
            }
        })
    }

    /// Returns the owners that the claim should have.
    pub(super) fn right(&self, claim: &Meta) -> Vec<OwnerRef> {
        let is_ours = |owner: &OwnerRef| {
            refers_to::<StatefulSetView>(owner, self.set.meta()) || refers_to::<PodView>(owner, self.pod.meta())
        };
        let mut owners: Vec<_> = claim.owner_references.iter().filter(|owner| !is_ours(owner)).cloned().collect();
        if !self.is_of_another(claim) {
            let (set, pod) = self.wanted();
            owners.extend(set.then(|| owner_ref(self.set)));
            owners.extend(pod.then(|| owner_ref(self.pod)));
        }
        owners
    }

    /// Returns whether the StatefulSet and whether the pod should own the claim.
    fn wanted(&self) -> (bool, bool) {
        let policy = Policy::of(self.set);
        let is_surplus = !ordinal(self.pod).is_some_and(|ordinal| Ordinals::of(self.set).contains(ordinal));
        let pod = policy.delete_with_pod && is_surplus;
        (policy.delete_with_set && !pod, pod)
    }
}

/// Whether a claim belongs to an earlier pod of this name: it is about to be deleted, and a new pod waits for that.
pub(super) fn is_of_earlier_pod(claim: &Meta, pod: &str) -> bool {
    let named = Meta { name: pod.into(), ..Meta::default() };
    claim.owner_references.iter().any(|owner| refers_to::<PodView>(owner, &named))
}

/// Whether an owner of a claim is an earlier object of this name.
fn is_stale<K: Kind>(owners: &[OwnerRef], object: &Meta) -> bool {
    owners.iter().find(|owner| refers_to::<K>(owner, object)).is_some_and(|owner| owner.uid != object.uid)
}

/// Whether the reference is to an object of this kind and name, whatever its uid.
fn refers_to<K: Kind>(owner: &OwnerRef, object: &Meta) -> bool {
    owner.kind == *K::RESOURCE.kind && owner.api_version == *K::RESOURCE.api_version() && owner.name == object.name
}
