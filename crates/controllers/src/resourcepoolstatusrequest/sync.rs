//! The shell: observe → compute the pools → write the answer; and delete old requests.

use steersman_base::{ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::resource::{
    DeviceTaintRuleView, PooledSliceView, ResourceClaimView, ResourcePoolStatusRequestView,
};
use steersman_model::{Kind, View};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Delete, Error, Patch, Reconciler, reasons};

use super::metrics::Metrics;
use super::plan::{answer, is_answerable, is_old, is_pending};
use super::pools::{Known, pools};

const REQUESTS: &Resource = &ResourcePoolStatusRequestView::RESOURCE;

/// Answers requests.
pub(super) struct Requests {
    pub(super) requests: Lister<ResourcePoolStatusRequestView>,
    pub(super) slices: Lister<PooledSliceView>,
    pub(super) claims: Lister<ResourceClaimView>,
    /// Absent if there are no rules.
    pub(super) rules: Option<Lister<DeviceTaintRuleView>>,
    pub(super) metrics: Metrics,
}

/// Deletes old requests.
pub(super) struct Cleaner {
    pub(super) requests: Lister<ResourcePoolStatusRequestView>,
}

reasons! {
    /// Why the controller of pool status requests writes.
    pub enum Why {
        /// A request has no answer.
        Unanswered { pools: usize } => "the status of {pools} pools is asked for",
        /// A request is old.
        Old => "the request is old",
    }
}

// === impl Requests ===

impl Reconciler for Requests {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(request) = self.requests.get(key).filter(|request| is_pending(request)) else {
            return Ok(Action::Done);
        };
        let began = cx.clock.now_micros();
        let slices = self.slices.filter(|slice| slice.spec.driver == request.spec.driver);
        let claims = self.claims.filter(|claim| claim.status.allocation.is_some());
        let rules = self.rules.as_ref().map(Lister::list).unwrap_or_default();
        let known = Known { slices: &slices, claims: &claims, rules: &rules };
        let pools = pools(&request, &known);
        if !is_answerable(&request, &pools) {
            return Err(Error::message("incomplete pools detected, requeueing"));
        }
        let patch = answer(&request, &pools, cx.clock.now());
        let why = Why::Unanswered { pools: pools.len() };
        let write = cx.writer.on_behalf_of(request.meta());
        let written = write.patch_subresource(REQUESTS, key, "status", Patch::Merge(&patch), &why).await;
        let written = written.ok_if_gone().ok_if_replaced();
        self.metrics.answered(&request.spec.driver, cx.clock.now_micros().since(began), written.is_err());
        written?;
        Ok(Action::Done)
    }
}

// === impl Cleaner ===

impl Reconciler for Cleaner {
    async fn reconcile(&self, cx: &Context, _key: &ObjectKey) -> Result<Action, Error> {
        let now = cx.clock.now();
        for request in self.requests.filter(|request| is_old(request, now)) {
            let meta = request.meta();
            let write = cx.writer.on_behalf_of(meta);
            let deleted = write.delete(REQUESTS, meta, Delete::default(), &Why::Old).await;
            // One request does not hold back the others; the next pass tries again.
            if let Err(error) = deleted.ok_if_gone().ok_if_replaced() {
                tracing::warn!(request = %meta.key(), %error, "an old request could not be cleaned up");
            }
        }
        Ok(Action::Done)
    }
}
