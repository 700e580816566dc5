//! The shell: observe → plan → write the condition and the finalizer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use steersman_base::names::finalizers::PVC_PROTECTION;
use steersman_base::{Istr, ObjectKey, Resource};
use steersman_informer::{Index, Lister, Selection};
use steersman_model::core::{PersistentVolumeClaimView, PodView};
use steersman_model::{Kind, View};
use steersman_runtime::{Action, Context, Error, Reconciler, reasons};

use super::Options;
use super::plan::{self, Plan};
use crate::pod_claims::claims_of;
use crate::protection;
use crate::rewrite::rewrite;

const CLAIMS: &Resource = &PersistentVolumeClaimView::RESOURCE;

/// The delay before a claim is reconciled again that a pod uses which the cache does not show: if the pod is deleted before
/// the cache has shown it, there is no event.
const UNSEEN_PAUSE: Duration = Duration::from_secs(30);

/// The controller's shell: the caches that it reads from.
pub(super) struct ClaimProtection {
    pub(super) claims: Lister<PersistentVolumeClaimView>,
    /// The claims that are written if no pod uses them, by namespace.
    pub(super) unsettled: Index<Istr, PersistentVolumeClaimView>,
    /// Pods by their claims.
    pub(super) pods: Index<ObjectKey, PodView>,
    pub(super) options: Options,
}

/// The pods of a namespace as the server has them, by their claims.
type LivePods = BTreeMap<ObjectKey, Vec<Arc<PodView>>>;

reasons! {
    /// Why the claim protection controller writes.
    pub enum Why {
        /// A claim lacks the finalizer: it was created without the server's admission.
        Unprotected => "a claim must not be deleted while a pod uses it",
        /// A claim is terminating, and no pod uses it.
        Released => "the claim is being deleted, and no pod uses it",
        /// Whether pods use the claim has changed.
        UsageChanged { is_unused: bool } => "whether no pod uses the claim is now: {is_unused}",
    }
}

// === impl ClaimProtection ===

impl Reconciler for ClaimProtection {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(claim) = self.claims.get(key) else { return Ok(Action::Done) };
        let plan = self.plan(&claim, &self.pods.get(key));
        if !plan.relies_on_absence() {
            self.carry_out(cx, &claim, plan).await?;
            return Ok(Action::Done);
        }
        // Before the list: one that is deleted later may be used by a pod that the list does not show.
        let others = self.waiting_beside(key);
        let mut live = LivePods::new();
        for pod in cx.live.list::<PodView>(Selection::namespace(&key.namespace)).await? {
            for claim in claims_of(&pod) {
                live.entry(claim).or_default().push(pod.clone());
            }
        }
        let plan = self.plan(&claim, live.get(key).map_or(&[][..], Vec::as_slice));
        let done = self.carry_out(cx, &claim, plan).await;
        self.serve(cx, &others, &live).await;
        done?;
        Ok(if plan.relies_on_absence() { Action::Done } else { Action::After(UNSEEN_PAUSE) })
    }
}

impl ClaimProtection {
    /// Returns the other claims of a namespace that wait for a list of its pods.
    fn waiting_beside(&self, served: &ObjectKey) -> Vec<Arc<PersistentVolumeClaimView>> {
        let mut claims = self.unsettled.get(served.namespace.as_str());
        claims.retain(|claim| {
            let key = claim.meta().key();
            key != *served && self.plan(claim, &self.pods.get(&key)).relies_on_absence()
        });
        claims
    }

    /// Serves claims with a list that was made for another one. Each has a key of its own, which retries what fails here.
    async fn serve(&self, cx: &Context, claims: &[Arc<PersistentVolumeClaimView>], live: &LivePods) {
        for claim in claims {
            let key = claim.meta().key();
            let plan = self.plan(claim, live.get(&key).map_or(&[][..], Vec::as_slice));
            if let Err(error) = self.carry_out(cx, claim, plan).await {
                tracing::info!(claim = %key, %error, "a claim could not be served with another one");
            }
        }
    }

    fn plan(&self, claim: &PersistentVolumeClaimView, pods: &[Arc<PodView>]) -> Plan {
        plan::plan(claim, pods.iter().map(|pod| &**pod), self.options)
    }

    async fn carry_out(&self, cx: &Context, claim: &PersistentVolumeClaimView, plan: Plan) -> Result<(), Error> {
        let meta = claim.meta();
        if let Some(is_unused) = plan.unused {
            let now = cx.clock.now();
            let why = Why::UsageChanged { is_unused };
            rewrite(cx, CLAIMS, meta, "status", &why, |live| plan::set_unused(live, is_unused, now)).await?;
        }
        if plan.protect {
            rewrite(cx, CLAIMS, meta, "", &Why::Unprotected, |live| protection::add(live, PVC_PROTECTION)).await?;
        }
        if plan.release {
            rewrite(cx, CLAIMS, meta, "", &Why::Released, |live| protection::remove(live, PVC_PROTECTION)).await?;
        }
        Ok(())
    }
}
