//! The group `policy`: PodDisruptionBudgets.

mod pod_disruption_budget;

use crate::kinds::Kinds;

/// The kinds of the group `policy`.
pub(super) const KINDS: Kinds = &[("PodDisruptionBudget", &pod_disruption_budget::RULES)];
