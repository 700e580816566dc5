//! Pure: which budgets a change of a pod concerns.

use std::sync::Arc;

use steersman_base::{Meta, ObjectKey, Selector};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::PodView;
use steersman_model::policy::PodDisruptionBudgetView;

use crate::pod;

/// Whether a change of a pod may change what budgets count: its existence, its labels, its owner, whether it is ready or
/// terminating.
pub(super) fn matters(change: &Change<PodView>) -> bool {
    match change {
        // Every budget is reconciled once at the start anyway.
        Change::Added { initial, .. } => !initial,
        Change::Deleted { .. } => true,
        Change::Updated { old, new } => {
            pod::is_ready(old) != pod::is_ready(new)
                || old.meta().is_terminating() != new.meta().is_terminating()
                || old.meta().labels != new.meta().labels
                || old.meta().controller() != new.meta().controller()
        }
    }
}

/// Returns the budgets that select the pod, or did; `budgets` are those of its namespace.
pub(super) fn budgets_of(change: &Change<PodView>, budgets: &[Arc<PodDisruptionBudgetView>]) -> Vec<ObjectKey> {
    let pods = || change.before().into_iter().chain([change.object()]);
    let selects = |budget: &&Arc<PodDisruptionBudgetView>| {
        // An invalid selector matches nothing.
        let selector = Selector::from_declared(budget.spec.selector.as_ref()).ok();
        selector.is_some_and(|selector| pods().any(|pod| selector.matches(&pod.meta().labels)))
    };
    let mut found: Vec<ObjectKey> = budgets.iter().filter(selects).map(|budget| budget.meta().key()).collect();
    found.sort();
    found
}

/// Returns the message about a new pod, or one with other labels, that several budgets select: evictions of it are refused.
pub(super) fn too_many(change: &Change<PodView>, budgets: &[ObjectKey]) -> Option<String> {
    let is_new = match change {
        Change::Added { .. } => true,
        Change::Updated { old, new } => old.meta().labels != new.meta().labels,
        Change::Deleted { .. } => false,
    };
    let Meta { namespace, name, .. } = change.object().meta();
    let chosen = &budgets.first().filter(|_| is_new && budgets.len() > 1)?.name;
    Some(format!("Pod {namespace:?}/{name:?} matches multiple PodDisruptionBudgets.  Chose {chosen:?} arbitrarily."))
}
