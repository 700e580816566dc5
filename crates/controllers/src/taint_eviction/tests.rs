//! Tables: when a pod leaves, and what its status says then.

use serde_json::{Value, json};
use steersman_base::MicroTime;
use steersman_base::names::taints::{NOT_READY, UNREACHABLE};
use steersman_model::core::{NodeView, PodView, Taint};

use super::DISRUPTION;
use super::memory::Memory;
use super::plan::{Fate, Known, came, fate, since};
use crate::eviction::disrupted;
use crate::test_objects::{decode, now, pod};
use crate::toleration::Comparison;

fn at(seconds: f64) -> MicroTime {
    MicroTime::from_unix_micros(MicroTime::from(now()).unix_micros() + (seconds * 1e6) as i64)
}

fn tolerating(tolerations: &Value) -> PodView {
    decode(json!({ "metadata": { "name": "p" }, "spec": { "tolerations": tolerations } }))
}

fn taint(key: &str, time_added: Option<f64>) -> Taint {
    let time_added = time_added.map(|seconds| at(seconds).to_seconds());
    Taint { key: key.into(), effect: "NoExecute".into(), time_added, ..Taint::default() }
}

fn known(taint: &Taint, seen: f64, away: Option<f64>) -> Known<'_> {
    Known { taint, seen: at(seen), away: away.map(at) }
}

fn exists(key: &str, seconds: Option<i64>) -> Value {
    json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds })
}

#[test]
fn a_pod_leaves_when_the_first_of_its_tolerations_ends() {
    let check = |name: &str, tolerations: &[Value], taints: &[(Taint, f64)], want: Option<f64>| {
        let pod = tolerating(&json!(tolerations));
        let known: Vec<_> = taints.iter().map(|(taint, seen)| known(taint, *seen, None)).collect();
        let got = fate(&pod.spec.shared.tolerations, &known, at(-1000.0), Comparison::Off);
        assert_eq!(got, want.map_or(Fate::Stays, |seconds| Fate::Leaves(at(seconds))), "{name}");
    };
    let forever = exists("a", None);
    check("no taints", &[], &[], None);
    check("not tolerated", &[], &[(taint("a", None), 5.0)], Some(5.0));
    check("another one is tolerated", &[exists("b", None)], &[(taint("a", None), 5.0)], Some(5.0));
    check("for ever", std::slice::from_ref(&forever), &[(taint("a", Some(0.0)), 5.0)], None);
    check("for a time", &[exists("a", Some(60))], &[(taint("a", Some(0.0)), 20.0)], Some(60.0));
    check("without the taint's time", &[exists("a", Some(60))], &[(taint("a", None), 20.0)], Some(80.0));
    check("a second is exact", &[exists("a", Some(60))], &[(taint("a", Some(0.0)), 0.75)], Some(60.75));
    check("added in the future", &[exists("a", Some(60))], &[(taint("a", Some(3600.0)), 1.0)], Some(61.0));
    check("for no time", &[exists("a", Some(0))], &[(taint("a", None), 1.0)], Some(1.0));
    check("for less than that", &[exists("a", Some(-5))], &[(taint("a", None), 1.0)], Some(1.0));
    let two = [(taint("a", Some(0.0)), 10.0), (taint("b", Some(30.0)), 40.0)];
    check("the first of two", &[exists("a", Some(60)), exists("b", Some(20))], &two, Some(50.0));
    check("one for ever", &[forever.clone(), exists("b", Some(20))], &two, Some(50.0));
    check("one not at all", &[exists("a", Some(60))], &two, Some(30.0));
    check("the first that matches counts", &[exists("", Some(7)), forever], &two[..1], Some(7.0));
}

#[test]
fn a_pod_that_came_later_than_the_taint_has_its_time_from_then_on() {
    let pod = tolerating(&json!([exists("a", Some(60))]));
    let taint = taint("a", Some(0.0));
    let known = [known(&taint, 2.0, None)];
    let fate = |since| fate(&pod.spec.shared.tolerations, &known, since, Comparison::Off);
    assert_eq!(fate(at(500.0)), Fate::Leaves(at(560.0)));
    assert_eq!(fate(at(-500.0)), Fate::Leaves(at(60.0)));
}

#[test]
fn a_node_that_is_not_ready_and_then_unreachable_does_not_start_a_time_anew() {
    let check = |name: &str, not_ready: Option<i64>, unreachable: Option<i64>, pod_since: f64, want: Option<f64>| {
        let pod = tolerating(&json!([exists(NOT_READY, not_ready), exists(UNREACHABLE, unreachable)]));
        let taint = taint(UNREACHABLE, Some(200.0));
        let known = [known(&taint, 201.0, Some(0.0))];
        let got = fate(&pod.spec.shared.tolerations, &known, at(pod_since), Comparison::Off);
        assert_eq!(got, want.map_or(Fate::Stays, |seconds| Fate::Leaves(at(seconds))), "{name}");
    };
    check("as by default", Some(300), Some(300), -1000.0, Some(300.0));
    check("it came in between", Some(300), Some(300), 100.0, Some(400.0));
    check("less time for this one", Some(300), Some(30), -1000.0, Some(230.0));
    check("more time for this one", Some(300), Some(3600), -1000.0, Some(3800.0));
    check("the other one was tolerated for ever", None, Some(300), -1000.0, Some(500.0));
    check("this one is tolerated for ever", Some(300), None, -1000.0, None);
}

#[test]
fn a_node_is_away_while_it_has_one_of_the_two_taints() {
    let memory = Memory::default();
    let away = |taints: &[&Taint], now: f64| -> Vec<Option<MicroTime>> {
        memory.taints_seen(&"n".into(), taints, at(now)).iter().map(|known| known.away).collect()
    };
    let other = taint("maintenance", Some(0.0));
    let not_ready = taint(NOT_READY, Some(100.0));
    let unreachable = taint(UNREACHABLE, Some(200.0));
    assert_eq!(away(&[&other], 50.0), [None]);
    assert_eq!(away(&[&other, &not_ready], 110.0), [None, Some(at(100.0))]);
    assert_eq!(away(&[&unreachable, &other], 210.0), [Some(at(100.0)), None], "without a gap");
    assert_eq!(away(&[&other], 300.0), [None], "it is back");
    let again = taint(NOT_READY, Some(400.0));
    assert_eq!(away(&[&again], 410.0), [Some(at(400.0))]);
    memory.forget_node(&"n".into());
    assert_eq!(away(&[&taint(UNREACHABLE, None)], 500.0), [Some(at(500.0))]);
}

#[test]
fn a_pod_comes_to_its_node_when_it_is_bound() {
    let check = |name: &str, created: f64, bound: Option<(&str, f64)>, want: f64| {
        let time = |seconds: f64| at(seconds).to_seconds();
        let condition = |(status, seconds): (&str, f64)| json!({ "type": "PodScheduled", "status": status, "lastTransitionTime": time(seconds) });
        let conditions: Vec<Value> = bound.into_iter().map(condition).collect();
        let metadata = json!({ "name": "p", "creationTimestamp": time(created) });
        let pod: PodView = decode(json!({ "metadata": metadata, "status": { "conditions": conditions } }));
        assert_eq!(came(&pod), Some(time(want)), "{name}");
    };
    check("created with a node", 0.0, None, 0.0);
    check("no node was free for ten minutes", 0.0, Some(("True", 600.0)), 600.0);
    check("it is not known yet to be bound", 0.0, Some(("False", 600.0)), 0.0);
    check("the clock of a kubelet is behind", 0.0, Some(("True", -3600.0)), 0.0);
}

#[test]
fn a_time_that_was_reported_counts_unless_it_is_about_now_or_later() {
    for (reported, seen, want) in
        [(None, 3.0, 3.0), (Some(0.0), 0.9, 0.9), (Some(0.0), 1.5, 0.0), (Some(9.0), 3.0, 3.0)]
    {
        let reported = reported.map(|reported: f64| at(reported).to_seconds());
        assert_eq!(since(reported, at(seen)), at(want), "{reported:?} {seen}");
    }
}

#[test]
fn a_pod_says_once_why_it_is_deleted() {
    let plain = pod("p", json!({ "metadata": { "generation": 3, "resourceVersion": "7" } }));
    let patch = disrupted(&plain, DISRUPTION, now()).unwrap();
    assert_eq!(patch["metadata"], json!({ "uid": "p", "resourceVersion": "7" }));
    assert_eq!(
        patch["status"]["conditions"],
        json!([{
            "type": "DisruptionTarget", "status": "True", "observedGeneration": 3, "lastProbeTime": null,
            "lastTransitionTime": now(), "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
        }])
    );
    let earlier = now().plus_seconds(-60);
    let held = |reason: &str| {
        let condition =
            json!({ "type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": earlier });
        pod("p", json!({ "status": { "conditions": [condition] } }))
    };
    assert_eq!(disrupted(&held("DeletionByTaintManager"), DISRUPTION, now()), None);
    let other = disrupted(&held("EvictionByEvictionAPI"), DISRUPTION, now()).unwrap();
    assert_eq!(other["status"]["conditions"][0]["lastTransitionTime"], json!(earlier));
}

#[test]
fn only_taints_that_evict_count() {
    let node =
        |taints: Value| -> NodeView { decode(json!({ "metadata": { "name": "n" }, "spec": { "taints": taints } })) };
    let both = node(json!([{ "key": "a", "effect": "NoSchedule" }, { "key": "b", "effect": "NoExecute" }]));
    let keys: Vec<&str> = super::map::executing(&both).map(|taint| &*taint.key).collect();
    assert_eq!(keys, ["b"]);
}
