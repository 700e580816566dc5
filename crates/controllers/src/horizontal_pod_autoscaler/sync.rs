//! The shell: read the scale → ask for the metrics → decide → write the scale → report.

use std::time::Duration;

use steersman_base::{MicroTime, ObjectKey};
use steersman_informer::Lister;
use steersman_model::autoscaling::{HorizontalPodAutoscalerView, MetricStatus};
use steersman_model::{Kind, View};
use steersman_runtime::events::About;
use steersman_runtime::mapper::RestMapper;
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Reconciler, WriteError, reasons};
use tokio::time::Instant;

mod compute;
pub(super) mod fetch;
mod scale;

use self::fetch::Fetch;
use self::scale::{NoScale, Scale, reference};
use super::Options;
use super::behavior::Rules;
use super::history::History;
use super::limits::Wish;
use super::memory::Memory;
use super::metrics::{Did, Fault, Metrics};
use super::normalize::{Normalized, by_rules, plain};
use super::plan::{Aim, Bounds, Decision};
use super::status::{ABLE_TO_SCALE, Draft, SCALING_ACTIVE, SCALING_LIMITED};
use crate::service_pods::SelectedPods;

/// The controller's shell: the caches that it reads from.
pub(super) struct Autoscalers {
    pub(super) autoscalers: Lister<HorizontalPodAutoscalerView>,
    pub(super) pods: SelectedPods,
    pub(super) mapper: RestMapper,
    pub(super) fetch: Fetch,
    pub(super) memory: Memory,
    pub(super) metrics: Metrics,
    pub(super) options: Options,
}

reasons! {
    /// Why the autoscaler of pods writes.
    pub enum Why {
        /// The metrics, or the limits of the spec, want another number of pods.
        Rescale { size: i32, reason: String } => "{size} replicas are wanted: {reason}"
            event "SuccessfulRescale" |_target| "New size: {size}; reason: {reason}",
        /// The status is out of date.
        Status { current: i32, desired: i32 } => "there are {current} replicas, {desired} are wanted"
            or "FailedUpdateStatus",
    }
}

/// The result of a pass: metrics that fail do not keep others from scaling.
struct Passed {
    did: Did,
    failure: Option<(Fault, String)>,
}

/// The decision, and the metrics that led to it.
struct Decided {
    decision: Decision,
    statuses: Vec<MetricStatus>,
    failure: Option<(Fault, String)>,
}

// === impl Autoscalers ===

impl Reconciler for Autoscalers {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        self.metrics.autoscalers(self.autoscalers.len());
        let Some(hpa) = cx.main(&self.autoscalers, key).await? else {
            self.memory.forget(key);
            self.metrics.forget(key);
            return Ok(Action::Done);
        };
        let began = Instant::now();
        let Passed { did, failure } = self.pass(cx, &hpa).await;
        self.metrics.pass(did, failure.as_ref().map_or(Fault::No, |(fault, _)| *fault), began.elapsed());
        match failure {
            // Retried after the same period.
            Some((_, error)) => Err(Error::message(error)),
            None => Ok(Action::After(self.options.sync_period)),
        }
    }
}

impl Autoscalers {
    async fn pass(&self, cx: &Context, hpa: &HorizontalPodAutoscalerView) -> Passed {
        let now = cx.clock.now_micros();
        self.memory.begin(hpa.meta(), &hpa.spec.scale_target_ref);
        let mut draft = Draft::new(&hpa.status, now.to_seconds());
        let scale = match self.scale(hpa).await {
            Ok(scale) => scale,
            Err(NoScale { note, error, fault }) => {
                warn(cx, hpa, "FailedGetScale", &note);
                draft.no_scale(&note);
                put_or_log(cx, hpa, &draft).await;
                return Passed::failed(fault, error);
            }
        };
        let message = "the HPA controller was able to get the target's current scale";
        draft.set(ABLE_TO_SCALE, true, "SucceededGetScale", message);
        let current = scale.replicas();
        self.memory.history(hpa.meta(), |history| history.begin(current, now));
        let bounds = Bounds::new(&hpa.spec, &hpa.status, current, self.options.scale_to_zero);
        let Decided { decision, statuses, failure } = match self.decide(cx, hpa, &scale, bounds, &mut draft, now).await
        {
            Ok(decided) => decided,
            Err(failed) => return failed,
        };
        let replicas = decision.replicas;
        let did = Did::of(current, replicas);
        if replicas != current {
            if let Err(error) = self.rescale(cx, hpa, scale, &decision).await {
                if matches!(error, WriteError::Unknown(_)) {
                    self.remember(hpa, |history, kept_for| history.attempted(current, replicas, kept_for, now));
                }
                return self.not_scaled(cx, hpa, draft, &decision, (current, statuses), &error).await;
            }
            let message = format!("the HPA controller was able to update the target scale to {replicas}");
            draft.set(ABLE_TO_SCALE, true, "SucceededRescale", &message);
            draft.zero(self.options.scale_to_zero, bounds.scales_to_zero(replicas));
            draft.scaled();
            self.remember(hpa, |history, kept_for| history.scaled(current, replicas, kept_for, now));
        }
        draft.fill(current, Some(replicas), statuses, self.generation(hpa));
        self.metrics.desired(&hpa.meta().key(), replicas);
        match put(cx, hpa, &draft).await {
            Ok(()) => Passed { did, failure },
            Err(error) => {
                let error = format!("failed to update status for {}: {error}", hpa.meta().name);
                Passed { did, failure: Some((Fault::Internal, error)) }
            }
        }
    }

    /// Decides how many replicas there should be.
    async fn decide(
        &self,
        cx: &Context,
        hpa: &HorizontalPodAutoscalerView,
        scale: &Scale,
        bounds: Bounds,
        draft: &mut Draft,
        now: MicroTime,
    ) -> Result<Decided, Passed> {
        let fixed = |replicas, reason: &str| {
            let decision = Decision { replicas, reason: reason.to_owned() };
            Ok(Decided { decision, statuses: Vec::new(), failure: None })
        };
        match bounds.aim() {
            Aim::Disabled => {
                let message = "scaling is disabled since the replica count of the target is zero";
                draft.set(SCALING_ACTIVE, false, "ScalingDisabled", message);
                if !self.options.scale_to_zero {
                    draft.zero(false, false);
                }
                return fixed(0, "");
            }
            Aim::Fixed(replicas, reason) => return fixed(replicas, reason),
            Aim::Metrics => {}
        }
        match self.recommend(cx, hpa, scale, draft, now).await {
            Ok(recommended) => {
                let desired = recommended.replicas.max(0);
                let normalized = self.normalize(hpa, bounds, desired, now);
                let Normalized { limited, is_limited, able: (reason, message) } = normalized;
                draft.set(ABLE_TO_SCALE, true, reason, message);
                draft.set(SCALING_LIMITED, is_limited, limited.reason, limited.message);
                let decision = bounds.decide(recommended.replicas, &recommended.metric, limited.replicas);
                Ok(Decided { decision, statuses: recommended.statuses, failure: recommended.failure })
            }
            Err(failed) => {
                draft.fill(bounds.current, None, failed.statuses, self.generation(hpa));
                put_or_log(cx, hpa, draft).await;
                warn(cx, hpa, "FailedComputeMetricsReplicas", &failed.error);
                let error = format!(
                    "failed to compute desired number of replicas based on listed metrics for {}: {}",
                    reference(hpa),
                    failed.error
                );
                Err(Passed::failed(failed.fault, error))
            }
        }
    }

    fn normalize(&self, hpa: &HorizontalPodAutoscalerView, bounds: Bounds, desired: i32, now: MicroTime) -> Normalized {
        let Bounds { current, min, max, .. } = bounds;
        let wish = Wish { current, desired, min, max };
        let window = self.options.downscale_stabilization;
        self.memory.history(hpa.meta(), |history| match &hpa.spec.behavior {
            None => plain(wish, window, history, now),
            Some(behavior) => by_rules(wish, &Rules::of(behavior, window), history, now),
        })
    }

    /// Notes a change in the history, for as long as it counts for the policies of the autoscaler.
    fn remember(&self, hpa: &HorizontalPodAutoscalerView, note: impl FnOnce(&mut History, Duration)) {
        if let Some(behavior) = &hpa.spec.behavior {
            let kept_for = Rules::of(behavior, self.options.downscale_stabilization).longest_period();
            self.memory.history(hpa.meta(), |history| note(history, kept_for));
        }
    }

    /// Reports that the scale could not be written.
    async fn not_scaled(
        &self,
        cx: &Context,
        hpa: &HorizontalPodAutoscalerView,
        mut draft: Draft,
        decision: &Decision,
        (current, statuses): (i32, Vec<MetricStatus>),
        error: &WriteError,
    ) -> Passed {
        let error_text = error.message();
        let passed = Passed::failed(Fault::Internal, format!("failed to rescale {}: {error_text}", reference(hpa)));
        if matches!(error, WriteError::NotLeader) {
            return passed;
        }
        let Decision { replicas, reason } = decision;
        let note = format!("New size: {replicas}; reason: {reason}; error: {error_text}");
        warn(cx, hpa, "FailedRescale", &note);
        let message = format!("the HPA controller was unable to update the target scale: {error_text}");
        draft.set(ABLE_TO_SCALE, false, "FailedUpdateScale", &message);
        draft.fill(current, None, statuses, self.generation(hpa));
        put_or_log(cx, hpa, &draft).await;
        passed
    }

    fn generation(&self, hpa: &HorizontalPodAutoscalerView) -> Option<i64> {
        self.options.generation.then_some(hpa.meta().generation)
    }
}

/// Sends a warning about an autoscaler.
fn warn(cx: &Context, hpa: &HorizontalPodAutoscalerView, reason: &str, note: &str) {
    cx.events.warning(&About::new(&HorizontalPodAutoscalerView::RESOURCE, hpa.meta()), reason, note);
}

/// Writes the status, if it has changed. A deleted autoscaler has none.
async fn put(cx: &Context, hpa: &HorizontalPodAutoscalerView, draft: &Draft) -> Result<(), WriteError> {
    let status = &draft.status;
    let why = Why::Status { current: status.current_replicas, desired: status.desired_replicas };
    let write = cx.writer.on_behalf_of(hpa.meta());
    let written = write.put_status_if_changed::<HorizontalPodAutoscalerView, _>(hpa.meta(), &hpa.status, status, &why);
    written.await.ok_if_gone()
}

/// Writes the status of a pass that has failed anyway.
async fn put_or_log(cx: &Context, hpa: &HorizontalPodAutoscalerView, draft: &Draft) {
    if let Err(error) = put(cx, hpa, draft).await {
        tracing::warn!(autoscaler = %hpa.meta().key(), %error, "the status of the autoscaler could not be written");
    }
}

// === impl Passed ===

impl Passed {
    fn failed(fault: Fault, error: String) -> Self {
        Self { did: Did::Nothing, failure: Some((fault, error)) }
    }
}
