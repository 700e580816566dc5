//! The rules of an aggregated ClusterRole: `aggregationRule`.
//!
//! 1. Its rules are those of the ClusterRoles that its selectors match, recursively. Its own rules do not count:
//!    upstream's controller replaces them. They come in the order in which it writes them, each once.
//! 2. They are computed on use. Upstream's `clusterrole-aggregation` controller writes them into the object a moment
//!    after a change; here they apply whether it runs or not.
//!
//! Follows `pkg/controller/clusterroleaggregation` of Kubernetes 1.37.

use std::collections::{BTreeSet, HashSet};
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
            let chosen = chosen_by(&role, &all).into_iter().filter(|chosen| seen.insert(chosen.key.name.to_string()));
            let chosen: Vec<Value> = chosen.filter_map(|chosen| chosen.parse().ok()).collect();
            // The first is taken from the end: the order is that of the names, as upstream.
            waiting.extend(chosen.into_iter().rev());
        }
    }
    let mut known = HashSet::new();
    rules.retain(|rule| known.insert(rule.to_string()));
    rules
}

fn own_rules(mut role: Value) -> Vec<Value> {
    match role["rules"].take() {
        Value::Array(rules) => rules,
        _ => Vec::new(),
    }
}

/// Returns the ClusterRoles that the selectors of one match: those of the first selector, by name, then those of the next.
fn chosen_by<'a>(role: &Value, all: &'a [Arc<Object>]) -> Vec<&'a Arc<Object>> {
    let declared = role["aggregationRule"]["clusterRoleSelectors"].as_array().into_iter().flatten();
    let selectors =
        declared.filter_map(|declared| serde_json::from_value::<LabelSelector>(declared.clone()).ok()?.compile().ok());
    let chosen = selectors.flat_map(|selector: Selector| all.iter().filter(move |it| selector.matches(&it.labels)));
    chosen.collect()
}
