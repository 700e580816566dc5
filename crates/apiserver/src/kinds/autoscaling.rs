//! The group `autoscaling`: HorizontalPodAutoscalers.

mod horizontal_pod_autoscaler;

use crate::kinds::Kinds;

/// The kinds of the group `autoscaling`.
pub(super) const KINDS: Kinds = &[("HorizontalPodAutoscaler", &horizontal_pod_autoscaler::RULES)];
