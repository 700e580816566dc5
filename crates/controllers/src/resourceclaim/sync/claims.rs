//! Claims whose users are gone.

use std::sync::Arc;

use steersman_base::{Meta, ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::PodView;
use steersman_model::resource::{ConsumerReference, ResourceClaimView};
use steersman_model::scheduling::PodGroupView;
use steersman_model::{Kind, View};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Delete, Error, Patch, Reconciler, WriteError};

use super::super::memory::Gone;
use super::super::release::{self, Plan, Verdict, owning_pod, pod_verdict, verdict, without_finalizer};
use super::Why;
use crate::resource_claims::{is_done, is_group, is_pod};

const PODS: &Resource = &PodView::RESOURCE;
const CLAIMS: &Resource = &ResourceClaimView::RESOURCE;
const GROUPS: &Resource = &PodGroupView::RESOURCE;

/// The shell of the queue of claims.
pub(in super::super) struct Claims {
    pub(in super::super) claims: Lister<ResourceClaimView>,
    pub(in super::super) pods: Lister<PodView>,
    /// Absent if claims cannot belong to groups.
    pub(in super::super) groups: Option<Lister<PodGroupView>>,
    pub(in super::super) memory: Arc<Gone>,
}

// === impl Claims ===

impl Reconciler for Claims {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(claim) = self.claims.get(key) else { return Ok(Action::Done) };
        let mut remaining = Vec::new();
        for consumer in &claim.status.reserved_for {
            if self.is_kept(cx, &claim.meta().namespace, consumer).await? {
                remaining.push(consumer.clone());
            }
        }
        let is_unused = remaining.is_empty();
        let plan = release::plan(&claim, remaining);
        match self.carry_out(cx, &claim, &plan).await {
            // Others have changed the claim, or it is gone: that has an event of its own.
            Err(WriteError::Conflict | WriteError::NotFound) => return Ok(Action::Done),
            done => done?,
        }
        if is_unused && !claim.meta().is_terminating() && self.owner_is_done(cx, claim.meta()).await? {
            let write = cx.writer.on_behalf_of(claim.meta());
            let deleted = write.delete(CLAIMS, claim.meta(), Delete::default(), &Why::OwnerDone).await;
            deleted.ok_if_gone().ok_if_replaced()?;
        }
        Ok(Action::Done)
    }
}

impl Claims {
    /// Whether the claim stays reserved for a user.
    async fn is_kept(&self, cx: &Context, namespace: &str, consumer: &ConsumerReference) -> Result<bool, Error> {
        let key = ObjectKey::new(namespace, &consumer.name);
        let (resource, verdict) = match &self.groups {
            _ if is_pod(consumer) => (PODS, pod_verdict(consumer, self.pods.get(&key).as_deref())),
            Some(groups) if is_group(consumer) => {
                (GROUPS, verdict(consumer, groups.get(&key).as_deref().map(View::meta)))
            }
            // Others look after users of other kinds.
            _ => return Ok(true),
        };
        match verdict {
            Verdict::Keep => Ok(true),
            Verdict::Remove => Ok(false),
            Verdict::Ask if self.memory.has(&consumer.uid) => Ok(false),
            Verdict::Ask => {
                let found = cx.live.get_meta(resource, &key).await?;
                Ok(found.is_some_and(|object| object.uid == consumer.uid))
            }
        }
    }

    async fn carry_out(&self, cx: &Context, claim: &ResourceClaimView, plan: &Plan) -> Result<(), WriteError> {
        let meta = claim.meta();
        let write = cx.writer.on_behalf_of(meta);
        let mut stored = meta.clone();
        if let Some(patch) = plan.status(meta) {
            let why = plan.reserved_for.as_ref().map_or(Why::Unused, |left| Why::UsersGone { left: left.len() });
            stored = write.patch_subresource(CLAIMS, &meta.key(), "status", Patch::Merge(&patch), &why).await?;
        }
        if plan.unprotect {
            let patch = without_finalizer(&stored);
            write.patch(CLAIMS, &meta.key(), Patch::Merge(&patch), &Why::Unprotected).await?;
        }
        Ok(())
    }

    /// Whether the claim was made for a pod that never runs (again), or that was replaced by another of its name. A claim
    /// whose pod is gone is the garbage collector's.
    async fn owner_is_done(&self, cx: &Context, claim: &Meta) -> Result<bool, Error> {
        let Some((key, owner)) = owning_pod(claim) else { return Ok(false) };
        match self.pods.get(&key) {
            None => Ok(false),
            Some(pod) if pod.meta().uid == owner.uid => Ok(is_done(&pod)),
            // The cache may have an older pod of the name.
            Some(_) => {
                let found = cx.live.get_meta(PODS, &key).await?;
                Ok(found.is_some_and(|pod| pod.uid != owner.uid))
            }
        }
    }
}
