//! The shell: observe → count → write the status, or the fail-safe.

mod scale;

use std::sync::Arc;
use std::time::Duration;

use steersman_base::{ObjectKey, Resource, Selector, Time};
use steersman_informer::Lister;
use steersman_model::core::PodView;
use steersman_model::policy::{PodDisruptionBudgetStatus, PodDisruptionBudgetView};
use steersman_model::{Kind, View, status_body};
use steersman_runtime::events::About;
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Patch, Reconciler, WriteError, reasons};

use super::plan::{self, Disrupted, Required};
use super::{stale, status};
use crate::service_pods::SelectedPods;

pub(super) use scale::Scales;

const BUDGETS: &Resource = &PodDisruptionBudgetView::RESOURCE;
const PODS: &Resource = &PodView::RESOURCE;
/// Times are in whole seconds: an eviction is late in the second after its time is up.
const WHOLE_SECONDS: Duration = Duration::from_secs(1);

/// Counts pods for budgets.
pub(super) struct Budgets {
    pub(super) budgets: Lister<PodDisruptionBudgetView>,
    pub(super) pods: SelectedPods,
    pub(super) scales: Scales,
}

/// The requirements of a budget, and the observed pods.
struct Counted {
    required: Required,
    healthy: i32,
    disrupted: Disrupted,
}

/// Resets the condition `DisruptionTarget` of pods that were not disrupted.
pub(super) struct StaleTargets {
    pub(super) pods: Lister<PodView>,
}

reasons! {
    /// Why the disruption controller writes.
    pub enum Why {
        /// The pods of a budget have changed.
        Counted { healthy: i32, required: i32, allowed: i32 } => "{healthy} pods are healthy, {required} must be: {allowed} may be evicted",
        /// The pods of a budget cannot be counted, or its status cannot be written.
        CannotCount => "its pods cannot be counted, so none may be evicted",
        /// A pod was to be disrupted, and was not.
        NotDisrupted => "the pod was to be disrupted two minutes ago, and is still there",
    }
}

// === impl Budgets ===

impl Reconciler for Budgets {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(budget) = self.budgets.get(key) else { return Ok(Action::Done) };
        let now = cx.clock.now();
        match self.count(cx, &budget, now).await {
            Ok(Counted { required, healthy, disrupted }) => {
                if let Some(status) = status::status(&budget, required, healthy, &disrupted.pods, now) {
                    let allowed = status.disruptions_allowed;
                    let why = Why::Counted { healthy, required: required.healthy, allowed };
                    match write(cx, &budget, &status, &why).await.ok_if_gone() {
                        Ok(()) => {}
                        // What the server has may allow too much.
                        Err(error @ (WriteError::Rejected(_) | WriteError::Unknown(_))) => {
                            return fail_safe(cx, &budget, error.into(), now).await;
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
                Ok(disrupted.recheck_in.map_or(Action::Done, |wait| Action::After(wait + WHOLE_SECONDS)))
            }
            // The cause may go away without an event about a pod or the budget.
            Err(error) => fail_safe(cx, &budget, error, now).await,
        }
    }
}

impl Budgets {
    async fn count(&self, cx: &Context, budget: &PodDisruptionBudgetView, now: Time) -> Result<Counted, Error> {
        let about = About::new(BUDGETS, budget.meta());
        let selector = Selector::from_declared(budget.spec.selector.as_ref()).map_err(|error| {
            cx.events.warning(&about, "NoPods", format!("Failed to get pods: {error}"));
            Error::message(error)
        })?;
        let pods = self.pods.of(&budget.meta().namespace, &selector);
        if pods.is_empty() {
            cx.events.normal(&about, "NoPods", "No matching pods found");
        }
        let required = self.required(cx, budget, &pods).await.inspect_err(|error| {
            let note = format!("Failed to calculate the number of expected pods: {error}");
            cx.events.warning(&about, "CalculateExpectedPodCountFailed", note);
        })?;
        let disrupted = plan::disrupted(budget, &pods, now);
        for pod in &disrupted.late {
            cx.events.warning(&About::new(PODS, pod.meta()), "NotDeleted", plan::not_deleted(budget));
        }
        Ok(Counted { required, healthy: plan::healthy(&pods, &disrupted.pods, now), disrupted })
    }

    async fn required(
        &self,
        cx: &Context,
        budget: &PodDisruptionBudgetView,
        pods: &[Arc<PodView>],
    ) -> Result<Required, Error> {
        if !plan::needs_scale(&budget.spec) {
            let count = i32::try_from(pods.len()).unwrap_or(i32::MAX);
            return Ok(plan::required(&budget.spec, count)?);
        }
        let scale = self.scales.of(cx, pods).await?;
        let required = plan::required(&budget.spec, scale.sum)?;
        if scale.has_unmanaged {
            let note = plan::unmanaged(budget.spec.selector.as_ref());
            cx.events.warning(&About::new(BUDGETS, budget.meta()), "UnmanagedPods", note);
        }
        Ok(required)
    }
}

/// Allows no eviction while a budget cannot be reconciled, and returns the error.
async fn fail_safe(cx: &Context, budget: &PodDisruptionBudgetView, error: Error, now: Time) -> Result<Action, Error> {
    if let Some(status) = status::failed(budget, &error.to_string(), now) {
        write(cx, budget, &status, &Why::CannotCount).await.ok_if_gone()?;
    }
    Err(error)
}

async fn write(
    cx: &Context,
    budget: &PodDisruptionBudgetView,
    status: &PodDisruptionBudgetStatus,
    why: &Why,
) -> Result<(), WriteError> {
    let body = status_body::<PodDisruptionBudgetView>(budget.meta(), &status::body(status));
    let write = cx.writer.on_behalf_of(budget.meta());
    write.put_status(BUDGETS, &budget.meta().key(), body, why).await.map(drop)
}

// === impl StaleTargets ===

impl Reconciler for StaleTargets {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(pod) = self.pods.get(key) else { return Ok(Action::Done) };
        let now = cx.clock.now();
        match stale::stale_in(&pod, now) {
            None => Ok(Action::Done),
            Some(wait) if !wait.is_zero() => Ok(Action::After(wait)),
            Some(_) => {
                let patch = stale::no_target(&pod, now);
                let write = cx.writer.on_behalf_of(pod.meta());
                let patch = Patch::Strategic(&patch);
                let patched = write.patch_subresource(PODS, key, "status", patch, &Why::NotDisrupted).await;
                // A pod that was changed or deleted meanwhile has an event of its own.
                patched.ok_if_gone().ok_if_replaced()?;
                Ok(Action::Done)
            }
        }
    }
}
