//! Tables of the decisions.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_informer::{Change, End};
use steersman_model::rbac::ClusterRoleView;

use super::map::roles_to_check;
use super::plan::{applied, plan};
use crate::test_objects::decode;

fn rule(resource: &str) -> Value {
    json!({ "verbs": ["get"], "apiGroups": [""], "resources": [resource] })
}

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
fn role(name: &str, labels: Value, rules: &[Value]) -> Arc<ClusterRoleView> {
    Arc::new(decode(json!({ "metadata": { "name": name, "labels": labels, "uid": name }, "rules": rules })))
}

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
fn whole(selectors: Value, rules: &[Value]) -> Arc<ClusterRoleView> {
    let aggregation = json!({ "clusterRoleSelectors": selectors });
    let meta = json!({ "name": "whole", "uid": "whole", "labels": { "to": "whole" } });
    Arc::new(decode(json!({ "metadata": meta, "aggregationRule": aggregation, "rules": rules })))
}

fn to_whole() -> Value {
    json!([{ "matchLabels": { "to": "whole" } }])
}

#[test]
fn a_role_has_the_rules_of_the_roles_it_selects_by_name_and_each_once() {
    let roles = |more: &[Arc<ClusterRoleView>]| {
        let mut roles = vec![
            role("a", json!({ "to": "whole" }), &[rule("pods"), rule("nodes")]),
            role("b", json!({ "to": "whole", "and": "other" }), &[rule("nodes"), rule("secrets")]),
            role("c", json!({ "and": "other" }), &[rule("jobs")]),
        ];
        roles.extend(more.iter().cloned());
        roles
    };
    let check = |name: &str, whole: &Arc<ClusterRoleView>, want: Option<&[&str]>| {
        let got = plan(whole, &roles(&[Arc::clone(whole)])).unwrap();
        let got = got.map(|rules| rules.iter().map(|rule| rule.resources[0].to_string()).collect::<Vec<_>>());
        assert_eq!(got, want.map(|want| want.iter().map(ToString::to_string).collect()), "{name}");
    };
    check("new", &whole(to_whole(), &[]), Some(&["pods", "nodes", "secrets"]));
    check("as it should be", &whole(to_whole(), &[rule("pods"), rule("nodes"), rule("secrets")]), None);
    check(
        "in another order",
        &whole(to_whole(), &[rule("nodes"), rule("pods"), rule("secrets")]),
        Some(&["pods", "nodes", "secrets"]),
    );
    let two = json!([{ "matchLabels": { "and": "other" } }, { "matchLabels": { "to": "whole" } }]);
    check("selectors in their order", &whole(two, &[]), Some(&["nodes", "secrets", "jobs", "pods"]));
    check("nothing selected, and its own rules do not count", &whole(json!([]), &[rule("pods")]), Some(&[]));
    let plain = role("plain", json!({}), &[rule("pods")]);
    assert_eq!(plan(&plain, &roles(&[])).unwrap(), None, "a role that is not made of others");
    let bad = whole(json!([{ "matchExpressions": [{ "key": "to", "operator": "Perhaps" }] }]), &[]);
    assert!(plan(&bad, &roles(&[])).is_err());
}

#[test]
fn only_the_rules_are_applied_and_no_role_is_made_anew() {
    let whole = whole(to_whole(), &[]);
    let rules = plan(&whole, &[role("a", json!({ "to": "whole" }), &[rule("pods")])]).unwrap().unwrap();
    let want = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": { "name": "whole", "uid": "whole" },
        "rules": [rule("pods")],
    });
    assert_eq!(applied(&whole, &rules), want);
    assert_eq!(applied(&whole, &[]).get("rules"), None);
}

#[test]
fn a_change_concerns_the_roles_that_select_it_or_did() {
    let whole = whole(to_whole(), &[]);
    let all = [Arc::clone(&whole)];
    let check = |change: Change<ClusterRoleView>, want: &[&str]| {
        let keys = roles_to_check(&change, &all);
        assert_eq!(keys.iter().map(ToString::to_string).collect::<Vec<_>>(), want);
    };
    let part = role("part", json!({ "to": "whole" }), &[rule("pods")]);
    let grown = role("part", json!({ "to": "whole" }), &[rule("pods"), rule("nodes")]);
    let other = role("part", json!({}), &[rule("pods")]);
    let added = |new: &Arc<ClusterRoleView>| Change::Added { new: Arc::clone(new), initial: false };
    let updated = |old: &Arc<ClusterRoleView>, new: &Arc<ClusterRoleView>| Change::Updated {
        old: Arc::clone(old),
        new: Arc::clone(new),
    };
    check(added(&part), &["whole"]);
    check(added(&other), &[]);
    check(added(&whole), &["whole"]);
    check(updated(&part, &grown), &["whole"]);
    check(updated(&part, &other), &["whole"]);
    check(updated(&part, &part), &[]);
    check(updated(&whole, &whole), &["whole"]);
    check(Change::Deleted { last: part, end: End::Observed }, &["whole"]);
}
