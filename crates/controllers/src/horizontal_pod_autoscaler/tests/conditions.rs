//! Conditions, the status, which changes start a pass, and what is remembered.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::{Meta, MicroTime, Selector, StringMap};
use steersman_informer::{Change, End};
use steersman_model::View;
use steersman_model::autoscaling::{HorizontalPodAutoscalerView, TargetReference};

use crate::horizontal_pod_autoscaler::map::concerns;
use crate::horizontal_pod_autoscaler::memory::Memory;
use crate::horizontal_pod_autoscaler::status::{ABLE_TO_SCALE, Draft, is_scaled_to_zero};
use crate::test_objects::{decode, now};

fn autoscaler(more: Value) -> HorizontalPodAutoscalerView {
    let object = json!({ "metadata": { "name": "web", "namespace": "ns", "uid": "u", "generation": 1 } });
    decode(crate::test_objects::merged(object, more))
}

#[test]
fn only_new_specs_and_deletions_start_a_pass_before_the_period_is_over() {
    let object = |generation: i64| Arc::new(autoscaler(json!({ "metadata": { "generation": generation } })));
    let updated = |old, new| Change::Updated { old: object(old), new: object(new) };
    let key = Some(object(1).meta().key());
    assert_eq!(concerns(&Change::Added { new: object(1), initial: false }, true), key);
    assert_eq!(concerns(&updated(1, 2), true), key);
    assert_eq!(concerns(&updated(1, 2), false), None);
    assert_eq!(concerns(&updated(1, 1), true), None);
    assert_eq!(concerns(&Change::Deleted { last: object(1), end: End::Observed }, true), key);
}

#[test]
fn a_condition_keeps_its_time_while_its_status_stays() {
    let earlier = now().plus_seconds(-60);
    let held = json!({ "type": "AbleToScale", "status": "True", "lastTransitionTime": earlier, "reason": "A", "message": "a" });
    let hpa = autoscaler(json!({ "status": { "conditions": [held], "lastScaleTime": earlier, "desiredReplicas": 7 } }));
    let mut draft = Draft::new(&hpa.status, now());
    draft.set(ABLE_TO_SCALE, true, "B", "b");
    assert_eq!(draft.status.conditions[0].last_transition_time, Some(earlier));
    assert_eq!(&*draft.status.conditions[0].reason, "B");
    draft.no_scale("gone");
    assert_eq!(draft.status.conditions[0].last_transition_time, Some(now()));
    let message = "the HPA controller was unable to get the target's current scale: gone";
    assert_eq!(&*draft.status.conditions[0].message, message);

    draft.fill(3, None, Vec::new(), Some(4));
    let status = &draft.status;
    assert_eq!((status.current_replicas, status.desired_replicas, status.observed_generation), (3, 7, Some(4)));
    assert_eq!(status.last_scale_time, Some(earlier));
    draft.scaled();
    draft.fill(3, Some(5), Vec::new(), None);
    assert_eq!((draft.status.desired_replicas, draft.status.last_scale_time), (5, Some(now())));

    draft.zero(true, true);
    assert!(is_scaled_to_zero(&draft.status));
    draft.zero(true, false);
    assert!(!is_scaled_to_zero(&draft.status) && draft.status.conditions.len() == 2);
    draft.zero(false, false);
    assert_eq!(draft.status.conditions.len(), 1);
}

#[test]
fn memory_is_of_one_autoscaler_and_goes_with_it() {
    let memory = Memory::default();
    let meta =
        |name: &str, uid: &str| Meta { name: name.into(), namespace: "ns".into(), uid: uid.into(), ..Meta::default() };
    let web: Selector = "app=web".parse().unwrap();
    let labels = StringMap::from([("app", "web")]);
    memory.select(&meta("b", "1"), &web);
    memory.select(&meta("a", "2"), &web);
    memory.select(&meta("c", "3"), &"app=other".parse().unwrap());
    assert_eq!(memory.selecting("ns", &[&labels], 2), ["a", "b"]);
    assert_eq!(memory.selecting("ns", &[], 2), [""; 0]);
    assert_eq!(memory.selecting("other", &[&labels], 2), [""; 0]);
    memory.history(&meta("a", "2"), |history| history.begin(3, MicroTime::from(now())));
    assert_eq!(memory.history(&meta("a", "2"), |history| history.len()), 1);
    assert_eq!(memory.history(&meta("a", "new"), |history| history.len()), 0);
    assert_eq!(memory.selecting("ns", &[&labels], 2), ["b"], "a new one of the same name selects nothing yet");
    for name in ["a", "b", "c"] {
        memory.forget(&meta(name, "").key());
    }
    assert_eq!(memory.selecting("ns", &[&labels], 2), [""; 0]);
}

#[test]
fn an_autoscaler_that_is_pointed_at_another_object_begins_anew() {
    let memory = Memory::default();
    let meta = Meta { name: "a".into(), namespace: "ns".into(), uid: "1".into(), ..Meta::default() };
    let target = |name: &str| TargetReference { kind: "Deployment".into(), name: name.into(), ..Default::default() };
    let labels = StringMap::from([("app", "web")]);
    memory.begin(&meta, &target("web"));
    memory.select(&meta, &"app=web".parse().unwrap());
    memory.history(&meta, |history| history.begin(50, MicroTime::from(now())));
    memory.begin(&meta, &target("web"));
    assert_eq!(memory.history(&meta, |history| history.len()), 1, "the next pass");
    assert_eq!(memory.selecting("ns", &[&labels], 2), ["a"]);
    memory.begin(&meta, &target("shop"));
    assert_eq!(memory.history(&meta, |history| history.len()), 0, "50 pods were wanted of another object");
    assert_eq!(memory.selecting("ns", &[&labels], 2), [""; 0], "others may scale the old object");
}

#[test]
fn autoscalers_of_the_same_pods_are_found_whatever_their_selectors_look_like() {
    let memory = Memory::default();
    let meta = |name: &str| Meta { name: name.into(), namespace: "ns".into(), uid: name.into(), ..Meta::default() };
    let select = |name: &str, selector: &str| memory.select(&meta(name), &selector.parse().unwrap());
    let check = |labels: &[(&str, &str)], want: &[&str]| {
        let labels: StringMap = labels.iter().copied().collect();
        assert_eq!(memory.selecting("ns", &[&labels], 9), want, "{labels:?}");
    };
    let web = [("app", "web"), ("tier", "front")];
    select("exact", "app=web");
    select("two", "tier=front,app=web");
    select("set", "app in (web,shop)");
    select("exists", "tier");
    select("other", "app=shop");
    check(&web, &["exact", "exists", "set", "two"]);
    check(&[("app", "shop")], &["other", "set"]);
    check(&[("app", "web")], &["exact", "set"]);
    check(&[], &[]);
    // A selector that changes is found by the new one alone.
    select("exact", "app=shop");
    check(&web, &["exists", "set", "two"]);
    check(&[("app", "shop")], &["exact", "other", "set"]);
    memory.forget(&meta("set").key());
    check(&[("app", "shop")], &["exact", "other"]);
}
