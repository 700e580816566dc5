//! Windows, policies, limits, and the decisions of a pass.

use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::{MicroTime, Time};
use steersman_model::autoscaling::HorizontalPodAutoscalerView;

use crate::horizontal_pod_autoscaler::behavior::{Rules, Select, tolerances};
use crate::horizontal_pod_autoscaler::history::{Edge, History};
use crate::horizontal_pod_autoscaler::limits::Wish;
use crate::horizontal_pod_autoscaler::normalize::{Normalized, by_rules, plain};
use crate::horizontal_pod_autoscaler::plan::{Aim, Bounds, group_of};
use crate::test_objects::decode;

const WINDOW: Duration = Duration::from_secs(300);

fn at(seconds: i64) -> MicroTime {
    Time::from_unix(1_800_000_000 + seconds).into()
}

fn wish(current: i32, desired: i32) -> Wish {
    Wish { current, desired, min: 1, max: 100 }
}

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
fn autoscaler(spec: Value) -> HorizontalPodAutoscalerView {
    decode(json!({ "metadata": { "name": "web", "namespace": "default" }, "spec": spec }))
}

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
fn rules(behavior: Value) -> Rules {
    let hpa = autoscaler(json!({ "behavior": behavior }));
    Rules::of(hpa.spec.behavior.as_deref().unwrap(), WINDOW)
}

fn says(normalized: &Normalized) -> (i32, &'static str, bool, &'static str) {
    (normalized.limited.replicas, normalized.able.0, normalized.is_limited, normalized.limited.reason)
}

#[test]
fn without_rules_the_number_at_most_doubles_or_becomes_four() {
    let check = |wish: Wish, want: (i32, &str)| {
        let got = wish.limited();
        assert_eq!((got.replicas, got.reason), want, "{wish:?}");
    };
    check(wish(1, 10), (4, "ScaleUpLimit"));
    check(wish(3, 10), (6, "ScaleUpLimit"));
    check(wish(3, 6), (6, "DesiredWithinRange"));
    check(Wish { max: 5, ..wish(3, 10) }, (5, "TooManyReplicas"));
    check(Wish { max: 6, ..wish(3, 10) }, (6, "TooManyReplicas"));
    check(Wish { min: 2, ..wish(3, 0) }, (2, "TooFewReplicas"));
    check(wish(50, 1), (1, "DesiredWithinRange"));
    check(Wish { min: 0, ..wish(3, 0) }, (0, "DesiredWithinRange"));
    check(Wish { max: i32::MAX, ..wish(i32::MAX - 1, i32::MAX) }, (i32::MAX, "DesiredWithinRange"));
}

#[test]
fn without_rules_the_highest_recommendation_of_the_window_counts() {
    let mut history = History::default();
    history.begin(5, at(0));
    let mut pass = |seconds: i64, current: i32, desired: i32| {
        says(&plain(wish(current, desired), WINDOW, &mut history, at(seconds)))
    };
    assert_eq!(pass(0, 5, 3), (5, "ScaleDownStabilized", false, "DesiredWithinRange"), "as it was found");
    assert_eq!(pass(15, 5, 8), (8, "ReadyForNewScale", false, "DesiredWithinRange"), "up at once");
    assert_eq!(pass(30, 8, 2), (8, "ScaleDownStabilized", false, "DesiredWithinRange"));
    assert_eq!(pass(315, 8, 2), (8, "ScaleDownStabilized", false, "DesiredWithinRange"), "exactly the window");
    assert_eq!(pass(316, 8, 2), (2, "ReadyForNewScale", false, "DesiredWithinRange"), "after the window");
}

#[test]
fn rules_have_the_servers_defaults() {
    let rules = rules(json!({}));
    assert_eq!((rules.up.select, rules.up.window), (Select::Max, Duration::ZERO));
    let up: Vec<_> = rules.up.policies.iter().map(|policy| (&*policy.type_, policy.value)).collect();
    assert_eq!(up, [("Pods", 4), ("Percent", 100)]);
    assert_eq!((rules.down.window, rules.down.policies.len()), (WINDOW, 1));
    assert_eq!((rules.longest_window(), rules.longest_period()), (WINDOW, Duration::from_secs(15)));
}

/// Upstream's issue 101124 and the examples of its documentation: what policies allow, with earlier changes.
#[test]
fn policies_limit_the_change_of_a_period() {
    let policy =
        |type_: &str, value: i32, period: i32| json!({ "type": type_, "value": value, "periodSeconds": period });
    // Changes are (seconds ago, from, to).
    let check = |name: &str, behavior: Value, changes: &[(i64, i32, i32)], wish: Wish, want: (i32, &str)| {
        let rules = rules(behavior);
        let mut history = History::default();
        for &(ago, from, to) in changes {
            history.scaled(from, to, rules.longest_period(), at(-ago));
        }
        let got = wish.limited_by(&rules, &history, at(0));
        assert_eq!((got.replicas, got.reason), want, "{name}");
    };
    let up = |select: &str, policies: &[Value]| json!({ "scaleUp": { "selectPolicy": select, "policies": policies } });
    let down =
        |select: &str, policies: &[Value]| json!({ "scaleDown": { "selectPolicy": select, "policies": policies } });
    let two = [policy("Pods", 2, 60), policy("Percent", 50, 60)];
    check("up, the larger", up("Max", &two), &[], wish(1, 50), (3, "ScaleUpLimit"));
    check("up, the smaller, rounded up", up("Min", &two), &[], wish(1, 50), (2, "ScaleUpLimit"));
    check("up, not at all", up("Disabled", &two), &[], wish(3, 50), (3, "ScaleUpLimit"));
    check("up, to the maximum", up("Max", &two), &[], Wish { max: 3, ..wish(2, 50) }, (3, "TooManyReplicas"));
    check("up, within", up("Max", &two), &[], wish(10, 12), (12, "DesiredWithinRange"));
    check("up, some were added", up("Max", &two), &[(30, 8, 10)], wish(10, 50), (12, "ScaleUpLimit"));
    check("up, added long ago", up("Max", &two), &[(60, 8, 10)], wish(10, 50), (15, "ScaleUpLimit"));
    check("up, too many were added", up("Min", &two), &[(30, 2, 10)], wish(10, 50), (10, "ScaleUpLimit"));
    check(
        "up, after some were removed",
        up("Max", &[two[0].clone()]),
        &[(30, 12, 10)],
        wish(10, 50),
        (14, "ScaleUpLimit"),
    );
    check("up, the defaults", json!({}), &[], wish(1, 50), (5, "ScaleUpLimit"));
    check("up, the defaults, doubled", json!({}), &[], wish(10, 50), (20, "ScaleUpLimit"));
    check("down, the smaller change", down("Min", &two), &[], wish(5, 1), (3, "ScaleDownLimit"));
    check("down, the larger change", down("Max", &two), &[], wish(10, 1), (5, "ScaleDownLimit"));
    check("down, not at all", down("Disabled", &two), &[], wish(10, 1), (10, "ScaleDownLimit"));
    check("down, to the minimum", down("Max", &two), &[], Wish { min: 6, ..wish(10, 1) }, (6, "TooFewReplicas"));
    check("down, some were removed", down("Min", &two), &[(30, 12, 10)], wish(10, 1), (10, "ScaleDownLimit"));
    check("down, too many were removed", down("Min", &two), &[(30, 40, 10)], wish(10, 1), (10, "ScaleDownLimit"));
    check("down, the defaults", json!({}), &[], wish(10, 1), (1, "DesiredWithinRange"));
    check("no change", json!({}), &[], wish(10, 10), (10, "DesiredWithinRange"));
}

#[test]
fn a_change_whose_response_was_lost_counts_if_it_was_made() {
    let kept_for = Duration::from_secs(60);
    let before = |found: &[i32]| {
        let mut history = History::default();
        history.begin(2, at(0));
        history.attempted(2, 3, kept_for, at(0));
        for (pass, replicas) in (1..).zip(found) {
            history.begin(*replicas, at(15 * pass));
        }
        history.before(*found.last().unwrap(), kept_for, at(50))
    };
    assert_eq!(before(&[3]), 2, "it was made");
    assert_eq!(before(&[2]), 2, "it was not");
    assert_eq!(before(&[2, 3]), 2, "it came late");
    assert_eq!(before(&[3, 3]), 2, "it counts once");

    let mut history = History::default();
    history.attempted(2, 3, kept_for, at(0));
    history.scaled(2, 4, kept_for, at(15));
    history.begin(4, at(30));
    assert_eq!(history.before(4, kept_for, at(30)), 2, "another change was made instead");
}

#[test]
fn rules_have_a_window_for_each_direction() {
    let rules = rules(json!({
        "scaleUp": { "stabilizationWindowSeconds": 60 }, "scaleDown": { "stabilizationWindowSeconds": 120 },
    }));
    let mut history = History::default();
    history.begin(5, at(0));
    let mut pass = |seconds: i64, current: i32, desired: i32| {
        let got = by_rules(wish(current, desired), &rules, &mut history, at(seconds));
        (got.limited.replicas, got.able.0)
    };
    assert_eq!(pass(15, 5, 8), (5, "ScaleUpStabilized"), "it was found with five");
    assert_eq!(pass(59, 5, 9), (5, "ScaleUpStabilized"));
    assert_eq!(pass(61, 5, 9), (8, "ScaleUpStabilized"), "the lowest of the last minute");
    assert_eq!(pass(100, 8, 2), (8, "ScaleDownStabilized"));
    assert_eq!(pass(181, 8, 2), (2, "ReadyForNewScale"), "two minutes after the last nine");
}

#[test]
fn what_is_remembered_is_bounded_by_the_windows_and_not_by_the_passes() {
    let mut history = History::default();
    let kept_for = Duration::from_secs(60);
    for millis in 0..300_000_i64 {
        let now = at(0) + Duration::from_millis(millis.unsigned_abs());
        if millis % 10 == 0 {
            history.recommend(i32::try_from(millis % 7).unwrap(), kept_for, now);
            history.scaled(1, 2, kept_for, now);
            history.scaled(2, 1, kept_for, now);
        }
    }
    assert!(history.len() <= 3 * 62, "{}", history.len());
    assert_eq!(history.highest(kept_for, Edge::Inside, at(299)), Some(6));
    assert_eq!(history.lowest(kept_for, Edge::Inside, at(299)), Some(0));
    assert_eq!(history.before(10, kept_for, at(299)), 10, "as many were added as removed");
}

#[test]
fn tolerances_are_the_autoscalers_own_where_it_has_any() {
    let behavior = json!({ "scaleUp": { "tolerance": "0.05" }, "scaleDown": {} });
    let hpa = autoscaler(json!({ "behavior": behavior }));
    let of = |configurable| {
        let found = tolerances(hpa.spec.behavior.as_deref(), 0.1, configurable);
        (found.down, found.up)
    };
    assert_eq!(of(true), (0.1, 0.05));
    assert_eq!(of(false), (0.1, 0.1));
    let none = tolerances(None, 0.2, true);
    assert_eq!((none.down, none.up), (0.2, 0.2));
}

#[test]
fn metrics_are_asked_for_only_where_they_decide() {
    let bounds = Bounds { current: 3, min: 1, max: 10, scaled_to_zero: false, has_metrics_without_pods: false };
    let check = |name: &str, bounds: Bounds, want: Aim| assert_eq!(bounds.aim(), want, "{name}");
    check("within", bounds, Aim::Metrics);
    let above = "Current number of replicas above Spec.MaxReplicas";
    check("above", Bounds { current: 11, ..bounds }, Aim::Fixed(10, above));
    let below = "Current number of replicas below Spec.MinReplicas";
    check("below", Bounds { min: 4, ..bounds }, Aim::Fixed(4, below));
    let zero = Bounds { current: 0, min: 0, ..bounds };
    check("somebody else scaled it to zero", zero, Aim::Disabled);
    check("also where it could come back", Bounds { has_metrics_without_pods: true, ..zero }, Aim::Disabled);
    let own = Bounds { scaled_to_zero: true, ..zero };
    check("its own zero, without such a metric", own, Aim::Disabled);
    check("its own zero", Bounds { has_metrics_without_pods: true, ..own }, Aim::Metrics);
    check("its own zero, and the minimum was raised", Bounds { min: 2, ..own }, Aim::Metrics);
}

#[test]
fn the_reason_of_a_change_is_that_of_the_metrics() {
    let bounds = Bounds { current: 3, min: 1, max: 10, scaled_to_zero: false, has_metrics_without_pods: true };
    let check = |bounds: Bounds, recommended: i32, normalized: i32, want: (i32, &str)| {
        let got = bounds.decide(recommended, "cpu resource", normalized);
        assert_eq!((got.replicas, &*got.reason), want, "{bounds:?} {recommended} {normalized}");
    };
    check(bounds, 9, 6, (6, "cpu resource above target"));
    check(bounds, 1, 1, (1, "All metrics below target"));
    check(bounds, 3, 3, (3, ""));
    let zero = Bounds { current: 0, min: 2, scaled_to_zero: true, ..bounds };
    check(zero, 0, 0, (2, "Current number of replicas below Spec.MinReplicas"));
    check(zero, 1, 1, (2, "cpu resource above target"));
    check(zero, 5, 4, (4, "cpu resource above target"));
    assert!(Bounds { min: 0, ..bounds }.scales_to_zero(0));
    assert!(!bounds.scales_to_zero(0) && !Bounds { min: 0, ..bounds }.scales_to_zero(1));
    assert!(!Bounds { min: 0, has_metrics_without_pods: false, ..bounds }.scales_to_zero(0));
}

#[test]
fn the_group_of_an_api_version_is_found_or_the_text_is_refused() {
    for (text, want) in [
        ("apps/v1", Ok("apps")),
        ("v1", Ok("")),
        ("", Ok("")),
        ("/", Ok("")),
        ("a/b/c", Err("unexpected GroupVersion string: a/b/c".to_owned())),
    ] {
        assert_eq!(group_of(text), want, "{text}");
    }
}
