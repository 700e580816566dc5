//! Pure: how many pods a budget counts with, how many are healthy, and which evictions are under way.

use std::sync::Arc;
use std::time::Duration;

use steersman_base::int_or_string::{Rounding, ScaleError};
use steersman_base::{IntOrString, Istr, LabelSelector, Time};
use steersman_model::View;
use steersman_model::core::PodView;
use steersman_model::policy::{PodDisruptionBudgetSpec, PodDisruptionBudgetView};
use steersman_model::wire::Times;

use crate::pod;

/// The time for which an evicted pod may stay before its eviction counts as failed: upstream's.
pub(super) const DELETION_TIMEOUT: Duration = Duration::from_secs(2 * 60);

/// The requirements of a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Required {
    /// The number of pods that should exist.
    pub(super) expected: i32,
    /// The number of those that must be healthy.
    pub(super) healthy: i32,
}

/// Pods whose eviction was granted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Disrupted {
    /// Those that are expected to be deleted soon, and since when.
    pub(super) pods: Times,
    /// The time until the next of them is late.
    pub(super) recheck_in: Option<Duration>,
    /// Those that should have been deleted by now.
    pub(super) late: Vec<Arc<PodView>>,
}

/// Whether a budget needs to know the scale of its pods' owners, and not only the pods.
pub(super) fn needs_scale(spec: &PodDisruptionBudgetSpec) -> bool {
    spec.max_unavailable.is_some() || matches!(spec.min_available, Some(IntOrString::String(_)))
}

/// Returns what a budget requires. `count` is the scale of its pods' owners, if it [needs that](needs_scale); else the
/// number of its pods.
///
/// # Errors
/// A value is no number and no percentage.
pub(super) fn required(spec: &PodDisruptionBudgetSpec, count: i32) -> Result<Required, ScaleError> {
    let (expected, healthy) = match (&spec.max_unavailable, &spec.min_available) {
        (Some(max), _) => (count, count.saturating_sub(max.scaled(count, Rounding::Up)?).max(0)),
        (None, Some(min)) => (count, min.scaled(count, Rounding::Up)?),
        (None, None) => (0, 0),
    };
    Ok(Required { expected, healthy })
}

/// Returns the pods whose eviction was granted and that are still there.
pub(super) fn disrupted(budget: &PodDisruptionBudgetView, pods: &[Arc<PodView>], now: Time) -> Disrupted {
    let mut found = Disrupted::default();
    let mut kept: Vec<(Istr, Option<Time>)> = Vec::new();
    for pod in pods.iter().filter(|pod| !pod.meta().is_terminating()) {
        let Some(since) = budget.status.disrupted_pods.get(&pod.meta().name) else { continue };
        if is_successor(pod, *since) {
            continue;
        }
        match since.map(|since| (now.since(since), since)) {
            Some((age, since)) if age <= DELETION_TIMEOUT => {
                let left = DELETION_TIMEOUT - age;
                found.recheck_in = Some(found.recheck_in.map_or(left, |before: Duration| before.min(left)));
                kept.push((pod.meta().name.clone(), Some(since)));
            }
            Some(_) | None => found.late.push(Arc::clone(pod)),
        }
    }
    found.pods = Times::new(kept);
    found
}

/// Whether a pod was created after the eviction of this name was granted: a StatefulSet creates another of the same name, and the
/// cache may never show the evicted one on its way out.
fn is_successor(pod: &PodView, granted: Option<Time>) -> bool {
    pod.meta().creation_timestamp.zip(granted).is_some_and(|(created, granted)| created > granted)
}

/// Returns the number of healthy pods. A pod whose eviction was granted does not count, even if it is still ready.
pub(super) fn healthy(pods: &[Arc<PodView>], disrupted: &Times, now: Time) -> i32 {
    let is_going = |pod: &PodView| {
        let since = disrupted.get(&pod.meta().name).copied().flatten();
        since.is_some_and(|since| now.since(since) < DELETION_TIMEOUT)
    };
    let is_healthy = |pod: &&Arc<PodView>| !pod.meta().is_terminating() && !is_going(pod) && pod::is_ready(pod);
    i32::try_from(pods.iter().filter(is_healthy).count()).unwrap_or(i32::MAX)
}

/// Returns the warning about pods without an owner, whose number cannot be calculated.
pub(super) fn unmanaged(selector: Option<&LabelSelector>) -> String {
    format!(
        "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of the \
         PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set \
         \".spec.minAvailable\" field of the PDB to an integer value.",
        go_text(selector)
    )
}

/// Returns the warning about a pod whose eviction was granted, and that was not deleted.
pub(super) fn not_deleted(budget: &PodDisruptionBudgetView) -> String {
    format!("Pod was expected by PDB {} to be deleted but it wasn't", budget.meta().key())
}

/// A selector as Go prints it.
fn go_text(selector: Option<&LabelSelector>) -> String {
    let Some(selector) = selector else { return "nil".to_owned() };
    let labels: String = selector.match_labels.iter().map(|(key, value)| format!("{key}: {value},")).collect();
    let expressions = selector.match_expressions.iter().map(|expression| {
        let values: Vec<&str> = expression.values.iter().map(|value| &**value).collect();
        let values = values.join(" ");
        format!(
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{values}],}},",
            expression.key, expression.operator
        )
    });
    let expressions: String = expressions.collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}
