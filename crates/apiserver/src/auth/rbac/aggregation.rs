//! The rules of an aggregated ClusterRole: `aggregationRule`.
//!
//! 1. Its rules are those of the ClusterRoles that its selectors match, recursively. Its own rules do not count:
//!    upstream's controller replaces them.
//! 2. They are computed on use. Upstream's `clusterrole-aggregation` controller writes them into the object a moment
//!    after a change; here they apply whether it runs or not.
//!
//! Follows `pkg/controller/clusterroleaggregation` of Kubernetes 1.37.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use steersman_base::LabelSelector;
use steersman_base::selector::Selector;

use super::GROUP;
use crate::registry::Registry;
use crate::registry::list::list_all;
use crate::store::Object;

/// Returns the rules of a role.
pub(super) fn rules_of(registry: &Registry, role: Value) -> Vec<Value> {
    if role["aggregationRule"].is_null() {
        return own_rules(role);
    }
    let row = registry.row(GROUP, "v1", "clusterroles");
    let all = row.map(|row| list_all(registry, &row, "")).unwrap_or_default();
    let mut seen = BTreeSet::from([role["metadata"]["name"].as_str().unwrap_or_default().to_owned()]);
    let mut waiting = vec![role];
    let mut rules = Vec::new();
    while let Some(role) = waiting.pop() {
        if role["aggregationRule"].is_null() {
            rules.extend(own_rules(role));
        } else {
            let chosen = chosen_by(&role, &all).filter(|chosen| seen.insert(chosen.key.name.to_string()));
            waiting.extend(chosen.filter_map(|chosen| chosen.parse().ok()));
        }
    }
    rules
}

fn own_rules(mut role: Value) -> Vec<Value> {
    match role["rules"].take() {
        Value::Array(rules) => rules,
        _ => Vec::new(),
    }
}

/// Returns the ClusterRoles that the selectors of one match.
fn chosen_by<'a>(role: &Value, all: &'a [Arc<Object>]) -> impl Iterator<Item = &'a Arc<Object>> {
    let declared = role["aggregationRule"]["clusterRoleSelectors"].as_array().into_iter().flatten();
    let selectors: Vec<Selector> = declared
        .filter_map(|declared| serde_json::from_value::<LabelSelector>(declared.clone()).ok()?.compile().ok())
        .collect();
    all.iter().filter(move |object| selectors.iter().any(|selector| selector.matches(&object.labels)))
}
