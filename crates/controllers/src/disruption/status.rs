//! Pure: the status of a budget.

use serde_json::{Value, json};
use steersman_base::{Condition, ConditionStatus, Time, condition};
use steersman_model::View;
use steersman_model::policy::{PodDisruptionBudgetStatus, PodDisruptionBudgetView};
use steersman_model::wire::Times;

use super::plan::Required;

/// The condition that says whether a pod may be evicted.
const ALLOWED: &str = "DisruptionAllowed";
const SUFFICIENT: &str = "SufficientPods";
const INSUFFICIENT: &str = "InsufficientPods";
const FAILED: &str = "SyncFailed";

/// Returns the status of a budget, if it is not the one that it has.
pub(super) fn status(
    budget: &PodDisruptionBudgetView,
    required: Required,
    healthy: i32,
    disrupted: &Times,
    now: Time,
) -> Option<PodDisruptionBudgetStatus> {
    let spare = healthy.saturating_sub(required.healthy).max(0);
    let mut status = PodDisruptionBudgetStatus {
        observed_generation: budget.meta().generation,
        disrupted_pods: disrupted.clone(),
        disruptions_allowed: if required.expected > 0 { spare } else { 0 },
        current_healthy: healthy,
        desired_healthy: required.healthy,
        expected_pods: required.expected,
        conditions: budget.status.conditions.clone(),
    };
    if status == budget.status && is_up_to_date(&budget.status) {
        return None;
    }
    let allowed = if status.disruptions_allowed > 0 {
        Condition::new(ALLOWED, ConditionStatus::True).because(SUFFICIENT, "")
    } else {
        Condition::new(ALLOWED, ConditionStatus::False).because(INSUFFICIENT, "")
    };
    set(&mut status, allowed, now);
    Some(status)
}

/// Returns the status of a budget whose pods cannot be counted: nothing may be evicted.
pub(super) fn failed(budget: &PodDisruptionBudgetView, error: &str, now: Time) -> Option<PodDisruptionBudgetStatus> {
    let mut status = budget.status.clone();
    status.disruptions_allowed = 0;
    set(&mut status, Condition::new(ALLOWED, ConditionStatus::False).because(FAILED, error), now);
    (status != budget.status).then_some(status)
}

/// Returns the status as it is sent: numbers are there even if they are zero.
pub(super) fn body(status: &PodDisruptionBudgetStatus) -> Value {
    let mut body = json!({
        "observedGeneration": status.observed_generation,
        "disruptionsAllowed": status.disruptions_allowed,
        "currentHealthy": status.current_healthy,
        "desiredHealthy": status.desired_healthy,
        "expectedPods": status.expected_pods,
        "conditions": status.conditions,
    });
    if !status.disrupted_pods.is_empty() {
        body["disruptedPods"] = json!(status.disrupted_pods);
    }
    body
}

fn set(status: &mut PodDisruptionBudgetStatus, mut allowed: Condition, now: Time) {
    allowed.observed_generation = status.observed_generation;
    let mut conditions = status.conditions.to_vec();
    condition::set(&mut conditions, allowed, now);
    status.conditions = conditions.into();
}

/// Whether the condition says what the number does.
fn is_up_to_date(status: &PodDisruptionBudgetStatus) -> bool {
    let want = if status.disruptions_allowed > 0 {
        (ConditionStatus::True, SUFFICIENT)
    } else {
        (ConditionStatus::False, INSUFFICIENT)
    };
    condition::find(&status.conditions, ALLOWED).is_some_and(|held| (held.status, &*held.reason) == want)
}
