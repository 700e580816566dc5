//! The claims of pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_base::{Istr, ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::PodView;
use steersman_model::core::pod::ResourceClaim;
use steersman_model::resource::ResourceClaimView;
use steersman_model::scheduling::PodGroupView;
use steersman_model::{Kind, View};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Patch, Reconciler};

use super::super::plan::{Group, Holder, Problem, bound_to, is_of_group, lacks_reservation, needs_work};
use super::super::release::reserved;
use super::Why;
use super::make::{Maker, refuse};
use crate::resource_claims::{GroupClaims, claim_name, group_of, is_for_pod, is_group};

const CLAIMS: &Resource = &ResourceClaimView::RESOURCE;

/// The shell of the queue of pods.
pub(in super::super) struct Pods {
    pub(in super::super) pods: Lister<PodView>,
    pub(in super::super) known: Arc<Known>,
    pub(in super::super) maker: Arc<Maker>,
}

/// The caches that say whether there is something to do for a pod.
pub(in super::super) struct Known {
    pub(in super::super) claims: Lister<ResourceClaimView>,
    /// Absent if pods cannot be members of groups.
    pub(in super::super) groups: Option<Lister<PodGroupView>>,
    pub(in super::super) options: GroupClaims,
}

// === impl Known ===

impl Known {
    /// Whether there is something to do for a pod.
    pub(in super::super) fn needs_work(&self, pod: &PodView) -> bool {
        let claim_of = |name: &Istr| self.claims.namespace(&pod.meta().namespace).get(name);
        needs_work(pod, claim_of, || self.group_of(pod), self.options)
    }

    fn group_of(&self, pod: &PodView) -> Group {
        let Some(key) = group_of(pod) else { return Group::None };
        match &self.groups {
            None => Group::Disabled(key.name),
            Some(groups) => groups.get(&key).map_or(Group::Missing(key.name), Group::Found),
        }
    }
}

// === impl Pods ===

impl Reconciler for Pods {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let pod = cx.main(&self.pods, key).await?;
        let Some(pod) = pod.filter(|pod| self.known.needs_work(pod)) else { return Ok(Action::Done) };
        let group = match self.known.group_of(&pod) {
            Group::None => None,
            Group::Found(group) => Some(group),
            Group::Missing(name) => {
                let problem = format!("get PodGroup for Pod {key}: podgroup.scheduling.k8s.io {name:?} not found");
                return Err(Error::message(problem));
            }
            Group::Disabled(name) => {
                return Err(Error::terminal(format!(
                    "get PodGroup for Pod {key}: Pod is a member of PodGroup {name} but GenericWorkload feature is disabled"
                )));
            }
        };
        let holder = Holder::pod(&pod);
        let mut made = BTreeMap::new();
        for entry in holder.claims {
            if let Some(claim) = self.claim(cx, &pod, group.as_deref(), entry).await? {
                made.insert(entry.name.clone(), claim);
            }
        }
        if !made.is_empty() {
            // The change of the pod leads to the next pass, which reserves them if the pod is scheduled.
            self.maker.report(cx, &holder, &made).await?;
            return Ok(Action::Done);
        }
        self.reserve(cx, &pod, group.as_deref()).await?;
        Ok(Action::Done)
    }
}

impl Pods {
    /// Returns the claim of an entry, if the status of the pod does not name it yet.
    async fn claim(
        &self,
        cx: &Context,
        pod: &PodView,
        group: Option<&PodGroupView>,
        entry: &ResourceClaim,
    ) -> Result<Option<Istr>, Error> {
        let holder = Holder::pod(pod);
        let groups = self.known.options;
        let is_ours = |claim: &_| is_for_pod(claim, pod, groups);
        if !self.maker.is_lacking(cx, &holder, entry, is_ours).await? {
            return Ok(None);
        }
        let Some(group) = group.filter(|group| is_of_group(group, entry)) else {
            return self.maker.find_or_make(cx, &holder, entry).await;
        };
        if groups == GroupClaims::Off {
            return Err(refuse(cx, &holder, entry, &Problem::GroupClaimsOff(entry.name.clone())));
        }
        // It is made for the group; when it is, the group's status changes, and the pod is enqueued.
        let claim = self.maker.find(cx, group.meta(), entry).await?;
        Ok(claim.map(|claim| claim.meta().name.clone()))
    }

    /// Reserves the allocated claims of a scheduled pod, for the pod or its group.
    async fn reserve(&self, cx: &Context, pod: &PodView, group: Option<&PodGroupView>) -> Result<(), Error> {
        let groups = self.known.options;
        for entry in &pod.spec.resource_claims {
            let Some(name) = claim_name(entry, pod.status.resource_claim_statuses()) else { continue };
            let key = ObjectKey { namespace: pod.meta().namespace.clone(), name: name.clone() };
            let Some(claim) = cx.get(&self.known.claims, &key).await? else { continue };
            if !lacks_reservation(&claim, pod, groups) {
                continue;
            }
            let consumer = bound_to(pod, group, entry);
            if is_group(&consumer) && groups == GroupClaims::Off {
                continue;
            }
            let mut consumers = claim.status.reserved_for.to_vec();
            consumers.push(consumer);
            let patch = reserved(claim.meta(), &consumers);
            let write = cx.writer.on_behalf_of(pod.meta());
            let written = write.patch_subresource(CLAIMS, &key, "status", Patch::Merge(&patch), &Why::Unreserved).await;
            // A claim that others have changed has an event of its own.
            written.ok_if_gone().ok_if_replaced()?;
        }
        Ok(())
    }
}
