//! Tables for the pure parts: which failures there are, and in which words.

use serde_json::{Value, json};

use super::configuration::Policies;

fn policies(names: &[&str], bindings: &[(&str, &str)]) -> Policies {
    let policies: Vec<Value> = names.iter().map(|name| json!({"metadata": {"name": name}, "spec": {}})).collect();
    let bindings: Vec<Value> = bindings
        .iter()
        .map(|(name, policy)| json!({"metadata": {"name": name}, "spec": {"policyName": policy, "validationActions": ["Deny"]}}))
        .collect();
    Policies::read(&policies, &bindings)
}

#[test]
fn a_policy_without_bindings_decides_nothing() {
    assert!(policies(&["a", "b"], &[]).is_empty());
    assert!(policies(&[], &[("x", "a")]).is_empty());
    let some = policies(&["a", "b"], &[("x", "b"), ("y", "b"), ("z", "c")]);
    let names: Vec<_> = some.iter().map(|policy| (policy.name.as_str(), policy.bindings.len())).collect();
    assert_eq!(names, [("b", 2)]);
}
