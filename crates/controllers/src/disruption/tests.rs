//! Tables of the decisions.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::{ConditionStatus, condition};
use steersman_informer::{Change, End};
use steersman_model::core::PodView;
use steersman_model::policy::PodDisruptionBudgetView;
use steersman_model::wire::Times;

use super::map::{budgets_of, matters, too_many};
use super::plan::{Required, disrupted, healthy, needs_scale, required, unmanaged};
use super::stale::{no_target, stale_in};
use super::status::{body, failed, status};
use crate::test_objects::{NOW, decode, merged, now, pod, ready_since, terminating};

const BEFORE: &str = "2026-11-15T11:00:00Z";

fn budget(more: Value) -> PodDisruptionBudgetView {
    let base = json!({
        "metadata": { "name": "web", "namespace": "default", "uid": "b", "generation": 2 },
        "spec": { "selector": { "matchLabels": { "app": "web" } } },
    });
    decode(merged(base, more))
}

fn healthy_pod(name: &str) -> Arc<PodView> {
    pod(name, ready_since(BEFORE))
}

#[test]
fn a_budget_requires_a_number_or_a_share_rounded_up() {
    let check = |spec: Value, count: i32, want: (bool, i32, i32)| {
        let budget = budget(json!({ "spec": spec }));
        let got = required(&budget.spec, count).unwrap();
        assert_eq!((needs_scale(&budget.spec), got.expected, got.healthy), want, "{spec} of {count}");
    };
    check(json!({ "minAvailable": 2 }), 5, (false, 5, 2));
    check(json!({ "minAvailable": 9 }), 5, (false, 5, 9));
    check(json!({ "minAvailable": "50%" }), 5, (true, 5, 3));
    check(json!({ "minAvailable": "0%" }), 5, (true, 5, 0));
    check(json!({ "minAvailable": "100%" }), 5, (true, 5, 5));
    check(json!({ "maxUnavailable": 1 }), 5, (true, 5, 4));
    check(json!({ "maxUnavailable": 9 }), 5, (true, 5, 0));
    check(json!({ "maxUnavailable": "30%" }), 5, (true, 5, 3));
    check(json!({ "maxUnavailable": "30%" }), 0, (true, 0, 0));
    check(json!({ "maxUnavailable": 0 }), 5, (true, 5, 5));
    check(json!({}), 5, (false, 0, 0));
    let wrong = budget(json!({ "spec": { "minAvailable": "half" } }));
    let error = required(&wrong.spec, 5).unwrap_err().to_string();
    assert!(error.contains("string is not a percentage"), "{error}");
}

#[test]
fn pods_that_are_ready_and_stay_are_healthy() {
    let count = |pods: &[Arc<PodView>]| healthy(pods, &Times::default(), now());
    assert_eq!(count(&[]), 0);
    assert_eq!(count(&[healthy_pod("a"), healthy_pod("b"), pod("not-ready", json!({}))]), 2);
    assert_eq!(count(&[pod("leaving", merged(ready_since(BEFORE), terminating()))]), 0);
    let granted = Times::new(vec![("a".into(), Some(now()))]);
    assert_eq!(healthy(&[healthy_pod("a"), healthy_pod("b")], &granted, now()), 1, "the eviction of a was granted");
}

#[test]
fn an_eviction_is_remembered_until_the_pod_goes_or_is_late() {
    let since = |time: &str| json!({ "status": { "disruptedPods": { "a": time, "gone": time } } });
    let check = |name: &str, more: Value, pods: &[Arc<PodView>], want: (usize, Option<u64>, usize)| {
        let found = disrupted(&budget(more), pods, now());
        let got = (found.pods.iter().len(), found.recheck_in.map(|wait| wait.as_secs()), found.late.len());
        assert_eq!(got, want, "{name}");
    };
    let here = [healthy_pod("a"), healthy_pod("b")];
    check("none", json!({}), &here, (0, None, 0));
    check("just granted", since(NOW), &here, (1, Some(120), 0));
    check("half a minute left", since("2026-11-15T11:58:30Z"), &here, (1, Some(30), 0));
    check("its time is just up", since("2026-11-15T11:58:00Z"), &here, (1, Some(0), 0));
    check("late", since("2026-11-15T11:57:59Z"), &here, (0, None, 1));
    check("terminating", since(NOW), &[pod("a", terminating())], (0, None, 0));
    check("gone", since(NOW), &[], (0, None, 0));
    let created = |time: &str| pod("a", json!({ "metadata": { "creationTimestamp": time } }));
    check("another of the same name", since("2026-11-15T11:59:00Z"), &[created("2026-11-15T11:59:01Z")], (0, None, 0));
    check(
        "one of the same second",
        since("2026-11-15T11:59:00Z"),
        &[created("2026-11-15T11:59:00Z")],
        (1, Some(60), 0),
    );
}

#[test]
fn the_status_says_how_many_may_be_evicted() {
    let required = |expected: i32, healthy: i32| Required { expected, healthy };
    let check = |required: Required, healthy: i32, want: i32, reason: &str| {
        let status = status(&budget(json!({})), required, healthy, &Times::default(), now()).unwrap();
        let allowed = condition::find(&status.conditions, "DisruptionAllowed").unwrap();
        assert_eq!((status.disruptions_allowed, &*allowed.reason), (want, reason), "{required:?} {healthy}");
        assert_eq!((status.observed_generation, allowed.observed_generation), (2, 2));
        assert_eq!(allowed.status == ConditionStatus::True, want > 0);
    };
    check(required(5, 3), 5, 2, "SufficientPods");
    check(required(5, 3), 3, 0, "InsufficientPods");
    check(required(5, 3), 2, 0, "InsufficientPods");
    check(required(0, 0), 5, 0, "InsufficientPods");
}

#[test]
fn a_status_that_is_right_is_not_written_again() {
    let wanted = Required { expected: 5, healthy: 3 };
    let none = Times::default();
    let first = status(&budget(json!({})), wanted, 5, &none, now()).unwrap();
    let written = |more: Value| budget(merged(json!({ "status": body(&first) }), more));
    assert_eq!(status(&written(json!({})), wanted, 5, &none, now()), None);
    let later = json!({ "metadata": { "generation": 3 } });
    assert!(status(&written(later), wanted, 5, &none, now()).is_some(), "another generation");
    let granted = Times::new(vec![("a".into(), Some(now()))]);
    assert!(status(&written(json!({})), wanted, 5, &granted, now()).is_some(), "an eviction");
    let other = json!({ "status": { "conditions": [{ "type": "DisruptionAllowed", "status": "False" }] } });
    assert!(status(&written(other), wanted, 5, &none, now()).is_some(), "a condition of another status");
    let zero = status(&budget(json!({})), Required::default(), 0, &none, now()).unwrap();
    let sent = body(&zero);
    assert_eq!((&sent["disruptionsAllowed"], &sent["expectedPods"]), (&json!(0), &json!(0)), "zeros are sent");
}

#[test]
fn what_cannot_be_counted_allows_nothing_and_says_why() {
    let none = Times::default();
    let first = status(&budget(json!({})), Required { expected: 5, healthy: 3 }, 5, &none, now()).unwrap();
    let written = budget(json!({ "status": body(&first) }));
    let status = failed(&written, "found no controllers for pod \"a\"", now()).unwrap();
    let allowed = condition::find(&status.conditions, "DisruptionAllowed").unwrap();
    assert_eq!((status.disruptions_allowed, status.current_healthy), (0, 5));
    assert_eq!((&*allowed.reason, &*allowed.message), ("SyncFailed", "found no controllers for pod \"a\""));
    let again = budget(json!({ "status": body(&status) }));
    assert_eq!(failed(&again, "found no controllers for pod \"a\"", now()), None, "it says so already");
}

#[test]
fn only_changes_that_are_counted_concern_budgets() {
    let plain = pod("a", json!({}));
    let updated = |new: Arc<PodView>| Change::Updated { old: Arc::clone(&plain), new };
    assert!(!matters(&Change::Added { new: Arc::clone(&plain), initial: true }));
    assert!(matters(&Change::Added { new: Arc::clone(&plain), initial: false }));
    assert!(matters(&Change::Deleted { last: Arc::clone(&plain), end: End::Observed }));
    assert!(!matters(&updated(pod("a", json!({ "status": { "podIP": "10.0.0.1" } })))));
    assert!(matters(&updated(healthy_pod("a"))));
    assert!(matters(&updated(pod("a", terminating()))));
    assert!(matters(&updated(pod("a", json!({ "metadata": { "labels": { "app": "other" } } })))));
}

#[test]
fn a_pod_concerns_every_budget_that_selects_it_or_did() {
    let named = |name: &str, selector: Value| {
        Arc::new(budget(json!({ "metadata": { "name": name }, "spec": { "selector": selector } })))
    };
    let of = |app: &str| json!({ "matchLabels": { "app": app } });
    let budgets = [
        named("b", of("web")),
        named("a", of("web")),
        named("other", of("other")),
        named("everything", json!({ "matchLabels": null })),
        named("nothing", json!(null)),
    ];
    let found = |change: &Change<PodView>| {
        let keys = budgets_of(change, &budgets);
        keys.iter().map(|key| key.name.to_string()).collect::<Vec<_>>()
    };
    let web = pod("web", json!({}));
    let other = pod("web", json!({ "metadata": { "labels": { "app": "other" } } }));
    let added = Change::Added { new: Arc::clone(&web), initial: false };
    assert_eq!(found(&added), ["a", "b", "everything"]);
    let moved = Change::Updated { old: Arc::clone(&web), new: Arc::clone(&other) };
    assert_eq!(found(&moved), ["a", "b", "everything", "other"]);
    let note = too_many(&added, &budgets_of(&added, &budgets)).unwrap();
    let want = "Pod \"default\"/\"web\" matches multiple PodDisruptionBudgets.  Chose \"a\" arbitrarily.";
    assert_eq!(note, want);
    assert_eq!(too_many(&added, &budgets_of(&added, &budgets[2..3])), None);
}

#[test]
fn a_condition_is_stale_after_two_minutes_unless_the_pod_ends() {
    let target = |since: &str, more: Value| {
        let condition = json!({ "type": "DisruptionTarget", "status": "True", "lastTransitionTime": since });
        pod("a", json!({ "status": { "conditions": [merged(condition, more)] } }))
    };
    let check = |name: &str, pod: &PodView, want: Option<u64>| {
        assert_eq!(stale_in(pod, now()), want.map(Duration::from_secs), "{name}");
    };
    check("without one", &pod("a", json!({})), None);
    check("new", &target(NOW, json!({})), Some(120));
    check("a minute old", &target("2026-11-15T11:59:00Z", json!({})), Some(60));
    check("old", &target(BEFORE, json!({})), Some(0));
    check("reset", &target(BEFORE, json!({ "status": "False" })), None);
    check("of the kubelet", &target(BEFORE, json!({ "reason": "TerminationByKubelet" })), None);
    let old = json!({ "type": "DisruptionTarget", "status": "True", "lastTransitionTime": BEFORE });
    let of = |more: Value| pod("a", merged(json!({ "status": { "conditions": [old] } }), more));
    check("ended", &of(json!({ "status": { "phase": "Failed" } })), None);
    check("terminating", &of(terminating()), None);
    let patch = no_target(&target(BEFORE, json!({})), now());
    assert_eq!(patch["status"]["conditions"][0]["status"], "False");
    assert_eq!(patch["metadata"], json!({ "uid": "a", "resourceVersion": "1" }));
}

#[test]
fn the_warning_shows_the_selector_as_go_does() {
    let selector = json!({
        "matchLabels": { "app": "web" },
        "matchExpressions": [{ "key": "tier", "operator": "In", "values": ["a", "b"] }],
    });
    let budget = budget(json!({ "spec": { "selector": selector } }));
    let note = unmanaged(budget.spec.selector.as_ref());
    let want = "(selector: &LabelSelector{MatchLabels:map[string]string{app: web,},\
                MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:tier,Operator:In,Values:[a b],},},})";
    assert!(note.contains(want), "{note}");
}
