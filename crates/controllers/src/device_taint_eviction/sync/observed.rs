//! The caches that the controller decides by.

use std::sync::Arc;

use steersman_base::{Istr, MicroTime, ObjectKey};
use steersman_informer::{Index, Lister};
use steersman_model::View;
use steersman_model::core::PodView;
use steersman_model::resource::{AllocatedDevice, DeviceTaintRuleView, ResourceClaimView, ResourceSliceView};

use super::super::map::Pool;
use super::super::plan::{self, Eviction};
use crate::resource_claims::{GroupClaims, Named, is_for_pod, is_group, is_pod, is_reserved_for, named};

/// The caches.
pub(in super::super) struct Observed {
    pub(in super::super) pods: Lister<PodView>,
    pub(in super::super) claims: Lister<ResourceClaimView>,
    pub(in super::super) slices: Index<Pool, ResourceSliceView>,
    /// Absent if there are no rules.
    pub(in super::super) rules: Option<Lister<DeviceTaintRuleView>>,
    /// The pods of groups; absent if groups have no claims.
    pub(in super::super) members: Option<Index<ObjectKey, PodView>>,
    pub(in super::super) groups: GroupClaims,
}

// === impl Observed ===

impl Observed {
    /// Returns the allocated claims that a pod uses.
    pub(in super::super) fn claims_of(&self, pod: &PodView) -> Vec<Arc<ResourceClaimView>> {
        let statuses = pod.status.resource_claim_statuses();
        let claims = pod.spec.resource_claims.iter().filter_map(|entry| {
            let get = |name: &Istr| self.claims.namespace(&pod.meta().namespace).get(name);
            let claim = match named(entry, statuses) {
                Named::Given(name) => get(name),
                Named::Made(name) => get(name).filter(|claim| is_for_pod(claim.meta(), pod, self.groups)),
                Named::NotMade(_) | Named::NotNeeded | Named::Unsupported => None,
            }?;
            (claim.status.allocation.is_some() && is_reserved_for(&claim, pod, self.groups)).then_some(claim)
        });
        claims.collect()
    }

    /// Returns the keys of the pods that a claim is reserved for.
    pub(in super::super) fn users(&self, claim: &ResourceClaimView) -> Vec<ObjectKey> {
        let namespace = &claim.meta().namespace;
        let users = claim.status.reserved_for.iter().flat_map(|user| {
            let key = ObjectKey { namespace: namespace.clone(), name: user.name.clone() };
            match &self.members {
                _ if is_pod(user) => vec![key],
                Some(members) if is_group(user) => members.get(&key).iter().map(|pod| pod.meta().key()).collect(),
                _ => Vec::new(),
            }
        });
        users.collect()
    }

    /// Returns when a pod has to leave, if it has to.
    pub(super) fn eviction(&self, pod: &PodView, seen: MicroTime) -> Option<Eviction> {
        let claims = self.claims_of(pod);
        if claims.is_empty() {
            return None;
        }
        let evicting = |rules: &Lister<DeviceTaintRuleView>| rules.filter(|rule| plan::is_evicting(&rule.spec.taint));
        let rules = self.rules.as_ref().map(evicting).unwrap_or_default();
        self.eviction_by(pod, &claims, &rules, seen)
    }

    /// As [`eviction`](Self::eviction), with the taints of these rules only.
    pub(super) fn eviction_by(
        &self,
        pod: &PodView,
        claims: &[Arc<ResourceClaimView>],
        rules: &[Arc<DeviceTaintRuleView>],
        seen: MicroTime,
    ) -> Option<Eviction> {
        if pod.spec.node_name.is_empty() {
            return None;
        }
        plan::eviction(claims, |device| self.slices_of(device), rules, seen)
    }

    fn slices_of(&self, device: &AllocatedDevice) -> Vec<Arc<ResourceSliceView>> {
        self.slices.get(&Pool { driver: device.driver.clone(), name: device.pool.clone() })
    }
}
