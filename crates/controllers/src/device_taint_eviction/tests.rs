//! Tables: when a pod leaves, whom a change concerns, and what a rule's condition says.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::{Condition, ConditionStatus, MicroTime};
use steersman_informer::{Change, End};
use steersman_model::core::PodView;
use steersman_model::resource::{DeviceTaintRuleView, ResourceClaimView, ResourceSliceView};

use super::map;
use super::plan::{Eviction, as_if_evicting, eviction, find, selects};
use super::status::{Counts, applied, changed, too_early};
use crate::test_objects::{NOW, decode, merged, now, pod};

fn at(seconds: i64) -> MicroTime {
    MicroTime::from(now().plus_seconds(seconds))
}

fn taint(key: &str, added: Option<i64>) -> Value {
    json!({ "key": key, "effect": "NoExecute", "timeAdded": added.map(|seconds| now().plus_seconds(seconds)) })
}

fn slice(name: &str, generation: i64, devices: &Value) -> Arc<ResourceSliceView> {
    let pool = json!({ "name": "p", "generation": generation });
    let spec = json!({ "driver": "d", "pool": pool, "devices": devices });
    Arc::new(decode(json!({ "metadata": { "name": name, "resourceVersion": "1" }, "spec": spec })))
}

fn tainted(generation: i64, taints: &[Value]) -> Arc<ResourceSliceView> {
    slice("s", generation, &json!([{ "name": "other" }, { "name": "gpu", "taints": taints }]))
}

fn claim(tolerations: &[Value]) -> Arc<ResourceClaimView> {
    let result = json!({ "request": "r", "driver": "d", "pool": "p", "device": "gpu", "tolerations": tolerations });
    let status = json!({ "allocation": { "devices": { "results": [result] } } });
    Arc::new(decode(json!({ "metadata": { "name": "c", "namespace": "default" }, "status": status })))
}

fn rule(name: &str, selector: &Value, taint: &Value) -> Arc<DeviceTaintRuleView> {
    let metadata = json!({ "name": name, "uid": name, "generation": 3 });
    Arc::new(decode(json!({ "metadata": metadata, "spec": { "deviceSelector": selector, "taint": taint } })))
}

fn exists(key: &str, effect: &str, seconds: Option<i64>) -> Value {
    json!({ "key": key, "operator": "Exists", "effect": effect, "tolerationSeconds": seconds })
}

#[test]
fn a_pod_leaves_when_the_first_of_its_devices_is_not_tolerated_any_more() {
    let check = |what: &str, tolerations: &[Value], taints: &[Value], want: Option<i64>| {
        let slices = vec![tainted(1, taints)];
        let got = eviction(&[claim(tolerations)], |_| slices.clone(), &[], at(100));
        assert_eq!(got.map(|it| it.at), want.map(at), "{what}");
    };
    let some = |seconds| exists("a", "NoExecute", Some(seconds));
    check("no taint", &[], &[], None);
    check("not tolerated", &[], &[taint("a", Some(5))], Some(5));
    check("it does not say since when", &[], &[taint("a", None)], Some(100));
    check("in the future, as an administrator has planned", &[], &[taint("a", Some(900))], Some(900));
    check("for ever", &[exists("a", "NoExecute", None)], &[taint("a", Some(5))], None);
    check("every effect", &[exists("a", "", None)], &[taint("a", Some(5))], None);
    check("another effect", &[exists("a", "NoSchedule", None)], &[taint("a", Some(5))], Some(5));
    check("another taint", &[exists("b", "NoExecute", None)], &[taint("a", Some(5))], Some(5));
    check("for a time", &[some(60)], &[taint("a", Some(5))], Some(65));
    check("the shortest counts", &[some(60), some(20)], &[taint("a", Some(5))], Some(25));
    check("unless one is for ever", &[some(60), exists("", "NoExecute", None)], &[taint("a", Some(5))], None);
    check("for less than no time", &[some(-7)], &[taint("a", Some(5))], Some(5));
    check("the first of two", &[some(60)], &[taint("a", Some(5)), taint("b", Some(30))], Some(30));
    check("no effect", &[], &[json!({ "key": "a", "effect": "None" })], None);
    let slices = vec![tainted(1, &[taint("a", Some(5))])];
    let longer_than_time = eviction(&[claim(&[some(i64::MAX)])], |_| slices.clone(), &[], at(0)).unwrap();
    assert!(longer_than_time.at > at(1_000_000_000));
}

#[test]
fn rules_add_taints_to_the_devices_that_they_select() {
    let check = |what: &str, selector: &Value, want: bool| {
        let rule = rule("r", selector, &taint("a", Some(5)));
        assert_eq!(selects(&rule, &claim(&[])), want, "{what}");
        let want = want.then(|| Eviction { at: at(5), rules: vec!["r".into()] });
        assert_eq!(eviction(&[claim(&[])], |_| Vec::new(), &[rule], at(0)), want, "{what}");
    };
    check("nothing", &Value::Null, false);
    check("all", &json!({}), true);
    check("a driver", &json!({ "driver": "d" }), true);
    check("another driver", &json!({ "driver": "x" }), false);
    check("a device", &json!({ "driver": "d", "pool": "p", "device": "gpu" }), true);
    check("another pool", &json!({ "driver": "d", "pool": "x", "device": "gpu" }), false);
    check("another device", &json!({ "device": "x" }), false);

    let everything = json!({});
    let two = [rule("b", &everything, &taint("b", Some(50))), rule("a", &everything, &taint("a", Some(70)))];
    let tolerant = claim(&[exists("b", "NoExecute", None)]);
    let slices = vec![tainted(1, &[taint("c", Some(60))])];
    let got = eviction(&[tolerant], |_| slices.clone(), &two, at(0));
    assert_eq!(got, Some(Eviction { at: at(60), rules: vec!["a".into()] }), "the slice is first, a rule is a reason");
}

#[test]
fn a_dry_run_counts_the_pods_that_do_not_tolerate_an_eviction() {
    let none = json!({ "key": "a", "effect": "None", "timeAdded": now() });
    let check = |what: &str, tolerations: &[Value], want: bool| {
        let rule = as_if_evicting(&rule("r", &json!({}), &none));
        let got = eviction(&[claim(tolerations)], |_| Vec::new(), &[Arc::new(rule)], at(0));
        assert_eq!(got.is_some(), want, "{what}");
    };
    check("not tolerated", &[], true);
    check("for ever", &[exists("a", "NoExecute", None)], false);
    check("for a time", &[exists("a", "NoExecute", Some(60))], true);
    check("no effect is tolerated", &[exists("a", "None", None)], true);
}

#[test]
fn slices_of_older_generations_do_not_count() {
    let old = slice("old", 1, &json!([{ "name": "gpu", "taints": [taint("a", Some(1))] }]));
    let new = slice("new", 2, &json!([{ "name": "gpu" }]));
    assert!(find(&[Arc::clone(&old), new], "gpu").unwrap().taints.is_empty());
    assert!(find(&[old], "gone").is_none());
}

#[test]
fn a_slice_concerns_pods_if_the_taints_of_its_pool_may_be_others() {
    let plain = tainted(1, &[]);
    let bad = tainted(1, &[taint("a", Some(1))]);
    let newer = tainted(2, &[]);
    let added = |new: &Arc<ResourceSliceView>| Change::Added { new: Arc::clone(new), initial: false };
    let updated = |old: &Arc<ResourceSliceView>, new: &Arc<ResourceSliceView>| Change::Updated {
        old: Arc::clone(old),
        new: Arc::clone(new),
    };
    let check = |what: &str, change: &Change<ResourceSliceView>, pool: &[Arc<ResourceSliceView>], want: bool| {
        assert_eq!(map::changes_taints(change, || pool.to_vec()), want, "{what}");
    };
    check("a new one without taints", &added(&plain), &[Arc::clone(&plain)], false);
    check("a new one with", &added(&bad), &[], true);
    check("a new generation hides a taint", &added(&newer), &[Arc::clone(&bad), Arc::clone(&newer)], true);
    check("a taint comes", &updated(&plain, &bad), &[], true);
    check("a taint goes", &updated(&bad, &plain), &[], true);
    check(
        "nothing of interest",
        &updated(&plain, &tainted(1, &[json!({ "key": "a", "effect": "NoSchedule" })])),
        &[],
        false,
    );
    check("another generation", &updated(&bad, &newer), &[], true);
    check("deleted", &Change::Deleted { last: bad, end: End::Observed }, &[], true);
}

#[test]
fn a_pod_is_looked_at_when_it_is_bound_or_gets_another_claim() {
    let with = |more: Value| {
        pod("web", merged(json!({ "spec": { "resourceClaims": [{ "name": "gpu", "resourceClaimName": "c" }] } }), more))
    };
    let running = with(json!({}));
    let unbound = with(json!({ "spec": { "nodeName": "" } }));
    let leaving = with(json!({ "metadata": { "deletionTimestamp": NOW } }));
    let check = |what: &str, change: Change<PodView>, is_planned: bool, want: bool| {
        assert_eq!(map::pod(&change, |_| is_planned).is_some(), want, "{what}");
    };
    let added = |new: &Arc<PodView>| Change::Added { new: Arc::clone(new), initial: false };
    let updated =
        |old: &Arc<PodView>, new: &Arc<PodView>| Change::Updated { old: Arc::clone(old), new: Arc::clone(new) };
    check("new", added(&running), false, true);
    check("not bound", added(&unbound), false, false);
    check("bound", updated(&unbound, &running), false, true);
    check("something else", updated(&running, &with(json!({ "status": { "phase": "Failed" } }))), true, false);
    check("it leaves by itself", updated(&running, &leaving), true, true);
    check("it leaves, and was not to be evicted", updated(&running, &leaving), false, false);
    check("it is gone", Change::Deleted { last: Arc::clone(&running), end: End::Observed }, true, true);
    check("no claims", added(&pod("web", json!({}))), true, false);
    assert!(map::changes_pending(&updated(&running, &leaving)));
    assert!(!map::changes_pending(&updated(&running, &with(json!({ "status": { "phase": "Failed" } })))));
}

#[test]
fn the_condition_of_a_rule_has_upstreams_words() {
    let pending = |namespaces: &[&str]| namespaces.iter().map(|it| (*it).into()).collect();
    let check = |effect: &str, counts: Counts, want: (ConditionStatus, &str, &str)| {
        let rule = rule("r", &json!({}), &json!({ "key": "a", "effect": effect }));
        let got = changed(&rule, &counts, now()).unwrap();
        assert_eq!((got.status, &*got.reason, &*got.message), want);
        assert_eq!(
            (&*got.type_, got.observed_generation, got.last_transition_time),
            ("EvictionInProgress", 3, Some(now()))
        );
        assert_eq!(applied(&rule, &got)["metadata"], json!({ "name": "r", "uid": "r" }));
    };
    let none = Counts::default;
    check("NoExecute", none(), (ConditionStatus::False, "NotStarted", ""));
    let evicted = Counts { evicted: 1, ..none() };
    check("NoExecute", evicted, (ConditionStatus::False, "Completed", "1 pod evicted since starting the controller."));
    let one = Counts { pending: pending(&["a"]), ..none() };
    let message = "1 pod needs to be evicted in 1 namespace.";
    check("NoExecute", one, (ConditionStatus::True, "PodsPendingEviction", message));
    let more = Counts { pending: pending(&["a", "b", "a"]), evicted: 2, ..none() };
    let message = "3 pods need to be evicted in 2 different namespaces. 2 pods evicted since starting the controller.";
    check("NoExecute", more, (ConditionStatus::True, "PodsPendingEviction", message));
    let message = "Eviction only happens for the NoExecute effect.";
    check("NoSchedule", none(), (ConditionStatus::False, "OtherEffect", message));
    let simulated = Counts { pending: pending(&["a"]), published: 1, allocated: 2, evicted: 0 };
    let message = "1 published device selected. 2 allocated devices selected. 1 pod would be evicted in 1 namespace if the \
                   effect was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to \
                   trigger an update.";
    check("None", simulated, (ConditionStatus::False, "NoEffect", message));
}

#[test]
fn a_condition_is_written_when_it_changes_and_not_too_often() {
    let condition = Condition {
        type_: "EvictionInProgress".into(),
        status: ConditionStatus::False,
        reason: "NotStarted".into(),
        observed_generation: 3,
        last_transition_time: Some(now()),
        ..Condition::default()
    };
    let taint = json!({ "key": "a", "effect": "NoExecute" });
    let bare = rule("r", &json!({}), &taint);
    let reported = DeviceTaintRuleView {
        status: steersman_model::resource::DeviceTaintRuleStatus { conditions: [condition].into() },
        ..(*bare).clone()
    };
    assert!(changed(&reported, &Counts::default(), now().plus_seconds(60)).is_none());
    assert!(changed(&reported, &Counts { evicted: 1, ..Counts::default() }, now()).is_some());
    assert_eq!(too_early(&reported, now().plus_seconds(4)).map(|wait| wait.as_secs()), Some(6));
    assert_eq!(too_early(&reported, now().plus_seconds(10)), None);
    assert_eq!(too_early(&bare, now()), None);
    let mut other = reported;
    other.metadata.generation = 4;
    assert_eq!(too_early(&other, now()), None, "another spec is reported at once");
}
