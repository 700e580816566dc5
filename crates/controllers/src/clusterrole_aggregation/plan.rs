//! Pure: the rules of a role that is made of others.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::Selector;
use steersman_base::validation::FieldErrors;
use steersman_model::rbac::{ClusterRoleView, PolicyRule};
use steersman_model::{Kind, View};

/// Returns the rules that a role should have, if they are not those that it has: for each selector the rules of the roles that
/// it selects, by name, each rule once. `roles` are all roles, ordered by name.
///
/// # Errors
/// A selector is invalid.
pub(super) fn plan(
    whole: &ClusterRoleView,
    roles: &[Arc<ClusterRoleView>],
) -> Result<Option<Vec<PolicyRule>>, FieldErrors> {
    let Some(aggregation) = &whole.aggregation_rule else { return Ok(None) };
    let mut rules: Vec<PolicyRule> = Vec::new();
    let mut seen: HashSet<&PolicyRule> = HashSet::new();
    for selector in &aggregation.cluster_role_selectors {
        let selector = Selector::from_declared(Some(selector))?;
        let parts = roles.iter().filter(|role| role.metadata.name != whole.metadata.name);
        for rule in parts.filter(|role| selector.matches(&role.metadata.labels)).flat_map(|role| &role.rules) {
            if seen.insert(rule) {
                rules.push(rule.clone());
            }
        }
    }
    Ok((rules[..] != whole.rules[..]).then_some(rules))
}

/// Returns the part of a role that this controller applies. The uid is the condition that no role is made anew that was
/// deleted meanwhile.
pub(super) fn applied(whole: &ClusterRoleView, rules: &[PolicyRule]) -> Value {
    let resource = &ClusterRoleView::RESOURCE;
    let meta = whole.meta();
    let mut role = json!({
        "apiVersion": resource.api_version(),
        "kind": resource.kind,
        "metadata": { "name": meta.name, "uid": meta.uid },
    });
    if !rules.is_empty() {
        role["rules"] = json!(rules);
    }
    role
}
