//! Pure: the status and its conditions.

use steersman_base::Time;
use steersman_base::condition::{self, Condition, ConditionStatus};
use steersman_model::autoscaling::{HorizontalPodAutoscalerStatus, MetricStatus};

/// The condition that reports whether the scale of the target can be read and written.
pub(super) const ABLE_TO_SCALE: &str = "AbleToScale";
/// The condition that reports whether the metrics give a number of pods.
pub(super) const SCALING_ACTIVE: &str = "ScalingActive";
/// The condition that reports whether a limit applies.
pub(super) const SCALING_LIMITED: &str = "ScalingLimited";
/// The condition that reports whether the autoscaler itself has scaled the target to zero.
const SCALED_TO_ZERO: &str = "ScaledToZero";

/// A status in the making.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) status: HorizontalPodAutoscalerStatus,
    now: Time,
}

/// Whether the autoscaler itself has scaled the target to zero.
pub(super) fn is_scaled_to_zero(status: &HorizontalPodAutoscalerStatus) -> bool {
    condition::is_true(&status.conditions, SCALED_TO_ZERO)
}

// === impl Draft ===

impl Draft {
    pub(super) fn new(status: &HorizontalPodAutoscalerStatus, now: Time) -> Self {
        Self { status: status.clone(), now }
    }

    /// Sets a condition.
    pub(super) fn set(&mut self, type_: &str, holds: bool, reason: &str, message: &str) {
        let status = if holds { ConditionStatus::True } else { ConditionStatus::False };
        let mut conditions = std::mem::take(&mut self.status.conditions).into_vec();
        condition::set(&mut conditions, Condition::new(type_, status).because(reason, message), self.now);
        self.status.conditions = conditions.into();
    }

    /// Reports that the scale of the target cannot be read.
    pub(super) fn no_scale(&mut self, error: &str) {
        let message = format!("the HPA controller was unable to get the target's current scale: {error}");
        self.set(ABLE_TO_SCALE, false, "FailedGetScale", &message);
    }

    /// Reports whether the autoscaler itself has scaled the target to zero; without the feature gate, nothing.
    pub(super) fn zero(&mut self, enabled: bool, scaled: bool) {
        match (enabled, scaled) {
            (false, _) => {
                let mut conditions = std::mem::take(&mut self.status.conditions).into_vec();
                condition::remove(&mut conditions, SCALED_TO_ZERO);
                self.status.conditions = conditions.into();
            }
            (true, true) => {
                self.set(SCALED_TO_ZERO, true, "ScaledToZero", "the HPA controller scaled the workload to zero");
            }
            (true, false) => {
                let message = "the HPA controller did not scale the workload to zero";
                self.set(SCALED_TO_ZERO, false, "NotScaledToZero", message);
            }
        }
    }

    /// Sets everything but the conditions. Without `desired`, the desired number stays.
    pub(super) fn fill(
        &mut self,
        current: i32,
        desired: Option<i32>,
        metrics: Vec<MetricStatus>,
        generation: Option<i64>,
    ) {
        self.status.observed_generation = generation;
        self.status.current_replicas = current;
        self.status.desired_replicas = desired.unwrap_or(self.status.desired_replicas);
        self.status.current_metrics = metrics.into();
    }

    /// Records that the number of pods was changed now.
    pub(super) fn scaled(&mut self) {
        self.status.last_scale_time = Some(self.now);
    }
}
