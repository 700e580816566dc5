//! Pure: which roles a change concerns.

use std::sync::Arc;

use steersman_base::{ObjectKey, Selector};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::rbac::ClusterRoleView;

/// Returns the roles that are made of others and that the change concerns: the changed one itself, and those that select
/// it, or did.
pub(super) fn roles_to_check(change: &Change<ClusterRoleView>, aggregated: &[Arc<ClusterRoleView>]) -> Vec<ObjectKey> {
    let role = change.object();
    let is_other =
        change.before().is_none_or(|old| old.rules != role.rules || old.metadata.labels != role.metadata.labels);
    let selects = |whole: &&Arc<ClusterRoleView>| {
        is_other && change.before().into_iter().chain([role]).any(|part| is_selected(whole, part))
    };
    let mut keys: Vec<ObjectKey> = aggregated.iter().filter(selects).map(|whole| whole.meta().key()).collect();
    let is_whole = role.aggregation_rule.is_some() && !matches!(change, Change::Deleted { .. });
    if is_whole && !keys.contains(&role.meta().key()) {
        keys.push(role.meta().key());
    }
    keys
}

/// Whether `part` is a part of `whole`. A selector that is invalid selects nothing.
fn is_selected(whole: &ClusterRoleView, part: &ClusterRoleView) -> bool {
    let selectors = whole.aggregation_rule.iter().flat_map(|rule| &rule.cluster_role_selectors);
    let mut selectors = selectors.filter_map(|selector| Selector::from_declared(Some(selector)).ok());
    selectors.any(|selector| selector.matches(&part.metadata.labels))
}
