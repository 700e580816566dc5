//! Pure: the decisions of a pass: whether metrics are needed, and how many pods there should be.

use steersman_model::autoscaling::{HorizontalPodAutoscalerSpec, HorizontalPodAutoscalerStatus};

use super::status;

/// The input of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// The current number of replicas.
    pub(super) current: i32,
    pub(super) min: i32,
    pub(super) max: i32,
    /// Whether the autoscaler itself has scaled the target to zero.
    pub(super) scaled_to_zero: bool,
    /// Whether it may return from zero: there is a metric without pods.
    pub(super) has_metrics_without_pods: bool,
}

/// The way in which the number of replicas is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    /// By the metrics.
    Metrics,
    /// This many, whatever the metrics say, for this reason.
    Fixed(i32, &'static str),
    /// Not at all: somebody else scaled the target to zero.
    Disabled,
}

/// The number of replicas, and why it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) replicas: i32,
    pub(super) reason: String,
}

const ABOVE_MAX: &str = "Current number of replicas above Spec.MaxReplicas";
const BELOW_MIN: &str = "Current number of replicas below Spec.MinReplicas";

// === impl Bounds ===

impl Bounds {
    pub(super) fn new(
        spec: &HorizontalPodAutoscalerSpec,
        status: &HorizontalPodAutoscalerStatus,
        current: i32,
        scale_to_zero: bool,
    ) -> Self {
        let is_without_pods = |type_: &str| matches!(type_, "Object" | "External");
        Self {
            current,
            min: spec.min_replicas.unwrap_or(1),
            max: spec.max_replicas,
            scaled_to_zero: scale_to_zero && status::is_scaled_to_zero(status),
            has_metrics_without_pods: spec.metrics.iter().any(|metric| is_without_pods(&metric.type_)),
        }
    }

    /// Returns how the number of replicas is found.
    pub(super) fn aim(&self) -> Aim {
        match self.current {
            0 if self.scaled_to_zero && (self.min != 0 || self.has_metrics_without_pods) => Aim::Metrics,
            0 => Aim::Disabled,
            current if current > self.max => Aim::Fixed(self.max, ABOVE_MAX),
            current if current < self.min => Aim::Fixed(self.min, BELOW_MIN),
            _ => Aim::Metrics,
        }
    }

    /// Returns the number of replicas after the recommendation of the metrics was `normalized`.
    pub(super) fn decide(&self, recommended: i32, metric: &str, normalized: i32) -> Decision {
        let recommended = recommended.max(0);
        let mut reason = String::new();
        if recommended > self.current {
            reason = format!("{metric} above target");
        } else if recommended < self.current {
            "All metrics below target".clone_into(&mut reason);
        }
        if self.current == 0 && self.min != 0 && self.scaled_to_zero && normalized < self.min {
            if reason.is_empty() {
                BELOW_MIN.clone_into(&mut reason);
            }
            return Decision { replicas: self.min, reason };
        }
        Decision { replicas: normalized, reason }
    }

    /// Whether this change takes the target to zero, so that the metrics may bring it back.
    pub(super) fn scales_to_zero(&self, replicas: i32) -> bool {
        self.current > 0 && replicas == 0 && self.min == 0 && self.has_metrics_without_pods
    }
}

/// Returns the group of an `apiVersion`.
pub(super) fn group_of(api_version: &str) -> Result<&str, String> {
    match api_version.split_once('/') {
        None | Some(("", "")) => Ok(""),
        Some((group, version)) if !version.contains('/') => Ok(group),
        Some(_) => Err(format!("unexpected GroupVersion string: {api_version}")),
    }
}
