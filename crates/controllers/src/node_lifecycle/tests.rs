//! Tables: signs of life, conditions, taints, labels, zones and rates.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::{ConditionStatus, Istr};
use steersman_model::NodeLeaseView;
use steersman_model::View;
use steersman_model::core::{NodeView, Taint};

use super::health::{Grace, Health};
use super::limiter::Limiter;
use super::plan::{self, Eviction};
use super::zones::{Count, Next, Rates, State, Turn, Zones};
use super::{map, status, taints};
use crate::test_objects::{decode, merged, now, pod, ready_since};

const RATES: Rates = Rates { primary: 0.1, secondary: 0.01, large: 50, threshold: 0.55 };
const GRACE: Grace = Grace { monitor: secs(50), startup: secs(60) };

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn node(more: Value) -> NodeView {
    decode(merged(json!({ "metadata": { "name": "n", "uid": "u", "resourceVersion": "5" } }), more))
}

fn reporting(status: &str, heartbeat: &str) -> NodeView {
    let ready = json!({ "type": "Ready", "status": status, "lastHeartbeatTime": heartbeat });
    node(json!({ "status": { "conditions": [ready] } }))
}

fn lease(renewed: &str) -> NodeLeaseView {
    decode(json!({ "metadata": { "name": "n", "namespace": "kube-node-lease" }, "spec": { "renewTime": renewed } }))
}

fn tainted(conditions: &[(&str, &str)], taints: &[(&str, &str)]) -> NodeView {
    let conditions: Vec<_> =
        conditions.iter().map(|(type_, status)| json!({ "type": type_, "status": status })).collect();
    let taints: Vec<_> = taints.iter().map(|(key, effect)| json!({ "key": key, "effect": effect })).collect();
    node(json!({ "spec": { "taints": taints }, "status": { "conditions": conditions } }))
}

fn shown(taints: Option<Vec<Taint>>) -> Option<Vec<String>> {
    taints.map(|taints| taints.iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect())
}

#[test]
fn a_node_is_silent_when_nothing_of_it_has_changed_for_its_time() {
    let early = "2026-11-15T11:00:00Z";
    let late = "2026-11-15T12:00:00Z";
    // Looks at a node at certain times; whether it is silent at the last of them.
    let check = |name: &str, looks: &[(u64, &NodeView, Option<&NodeLeaseView>)], want: bool| {
        let mut health = None;
        let mut last = Duration::ZERO;
        for (at, node, lease) in looks {
            last = secs(*at);
            health = Some(Health::observed(health, node, *lease, last));
        }
        assert_eq!(health.unwrap().is_silent(GRACE, last), want, "{name}");
    };
    let reported = reporting("True", early);
    let again = reporting("True", late);
    let never = node(json!({}));
    let renewed = lease("2026-11-15T11:00:00.000000Z");
    let renewed_again = lease("2026-11-15T11:00:10.000000Z");
    check("first seen", &[(0, &reported, None)], false);
    check("within its time", &[(0, &reported, None), (50, &reported, None)], false);
    check("beyond it", &[(0, &reported, None), (51, &reported, None)], true);
    check("it has reported", &[(0, &reported, None), (51, &again, None)], false);
    check("its clock was set back", &[(0, &again, None), (51, &reported, None)], false);
    check("it has renewed", &[(0, &reported, Some(&renewed)), (51, &reported, Some(&renewed_again))], false);
    check("its lease went back", &[(0, &reported, Some(&renewed_again)), (51, &reported, Some(&renewed))], false);
    check("its lease is old", &[(0, &reported, Some(&renewed)), (51, &reported, Some(&renewed))], true);
    check("its lease is gone", &[(0, &reported, Some(&renewed)), (51, &reported, None)], true);
    check("its lease is new", &[(0, &reported, None), (51, &reported, Some(&renewed))], false);
    check("it never reported, and may start", &[(0, &never, None), (60, &never, None)], false);
    check("it never reported", &[(0, &never, None), (61, &never, None)], true);
    check("it never reported, and renews", &[(0, &never, Some(&renewed)), (61, &never, Some(&renewed_again))], false);
    check("its report was removed", &[(0, &reported, None), (51, &never, None)], false);
    let another = node(json!({ "metadata": { "uid": "v" } }));
    check("another one has its name", &[(0, &never, None), (61, &another, None)], false);
}

#[test]
fn a_renewal_that_only_the_server_shows_was_missed() {
    let reported = reporting("True", "2026-11-15T11:00:00Z");
    let renewed = lease("2026-11-15T11:00:00.000000Z");
    let health = Health::observed(None, &reported, Some(&renewed), secs(0));
    assert!(!health.missed(&renewed));
    assert!(health.missed(&lease("2026-11-15T11:00:10.000000Z")));
    assert!(Health::observed(None, &reported, None, secs(0)).missed(&renewed));
}

#[test]
fn a_silent_node_is_unknown_with_upstreams_words() {
    let created = "2026-11-15T10:00:00Z";
    let partly = node(json!({
        "metadata": { "creationTimestamp": created },
        "status": { "conditions": [
            { "type": "Ready", "status": "True", "lastHeartbeatTime": created },
            { "type": "DiskPressure", "status": "Unknown" },
            { "type": "NetworkUnavailable", "status": "False" },
        ] },
    }));
    let stopped = |type_: &str| {
        json!({
            "type": type_, "status": "Unknown", "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.", "lastTransitionTime": now(),
        })
    };
    let never = |type_: &str| {
        json!({
            "type": type_, "status": "Unknown", "reason": "NodeStatusNeverUpdated",
            "message": "Kubelet never posted node status.", "lastHeartbeatTime": created, "lastTransitionTime": now(),
        })
    };
    let patch = status::silent(&partly, now()).unwrap();
    assert_eq!(patch["metadata"], json!({ "uid": "u", "resourceVersion": "5" }));
    let want = json!([stopped("Ready"), never("MemoryPressure"), never("PIDPressure")]);
    assert_eq!(patch["status"]["conditions"], want);
    assert_eq!(status::silent(&tainted(&[("Ready", "Unknown"), ("DiskPressure", "False")], &[]), now()), None);
    let not_ready = status::silent(&tainted(&[("Ready", "False")], &[]), now()).unwrap();
    assert_eq!(not_ready["status"]["conditions"][0], stopped("Ready"));
}

#[test]
fn a_pod_that_says_it_is_ready_is_marked() {
    let ready = pod("p", ready_since("2026-11-15T11:00:00Z"));
    assert!(status::is_to_mark(&ready));
    let want = json!({
        "metadata": { "uid": "p" },
        "status": { "conditions": [{ "type": "Ready", "status": "False", "lastTransitionTime": now() }] },
    });
    assert_eq!(status::unready(&ready, now()), want);
    let condition = |status: &str| json!({ "status": { "conditions": [{ "type": "Ready", "status": status }] } });
    assert!(!status::is_to_mark(&pod("p", condition("False"))));
    assert!(status::is_to_mark(&pod("p", condition("Unknown"))));
    assert!(!status::is_to_mark(&pod("p", json!({}))));
}

#[test]
fn taints_that_keep_pods_away_follow_the_conditions() {
    let check = |name: &str, node: &NodeView, want: Option<&[&str]>| {
        let got = shown(taints::by_condition(node, Some(now())));
        assert_eq!(got, want.map(|want| want.iter().map(ToString::to_string).collect()), "{name}");
    };
    let of = |key: &str| format!("node.kubernetes.io/{key}:NoSchedule");
    check("ready", &tainted(&[("Ready", "True")], &[]), None);
    check("not ready", &tainted(&[("Ready", "False")], &[]), Some(&[&of("not-ready")]));
    check("unknown", &tainted(&[("Ready", "Unknown")], &[]), Some(&[&of("unreachable")]));
    let pressures = [("MemoryPressure", "True"), ("DiskPressure", "True"), ("PIDPressure", "True")];
    let want = [of("memory-pressure"), of("disk-pressure"), of("pid-pressure")];
    check("pressures", &tainted(&pressures, &[]), Some(&want.each_ref().map(String::as_str)));
    let network = [("NetworkUnavailable", "True"), ("DiskPressure", "Unknown")];
    check("network", &tainted(&network, &[]), Some(&[&of("network-unavailable")]));
    let held = [("node.kubernetes.io/not-ready", "NoSchedule"), ("own", "NoSchedule")];
    check("well again", &tainted(&[("Ready", "True")], &held), Some(&["own:NoSchedule"]));
    check("as it is", &tainted(&[("Ready", "False")], &held), None);
    check("other", &tainted(&[("Ready", "Unknown")], &held), Some(&["own:NoSchedule", &of("unreachable")]));
    let evicting = [("node.kubernetes.io/unreachable", "NoExecute")];
    check("not those that evict", &tainted(&[("Ready", "True")], &evicting), None);
    let cordoned = node(json!({ "spec": { "unschedulable": true } }));
    check("cordoned", &cordoned, Some(&[&of("unschedulable")]));
    let uncordoned = tainted(&[], &[("node.kubernetes.io/unschedulable", "NoSchedule")]);
    check("uncordoned", &uncordoned, Some(&[]));
}

#[test]
fn taints_that_evict_are_exclusive_and_wait_for_their_turn() {
    const NOT_READY: (&str, &str) = ("node.kubernetes.io/not-ready", "NoExecute");
    const UNREACHABLE: (&str, &str) = ("node.kubernetes.io/unreachable", "NoExecute");
    let check = |ready: &str, held: &[(&str, &str)], want: Eviction, after: Option<&[&str]>| {
        let node = tainted(&[("Ready", ready)], held);
        let status = super::health::ready(&node).unwrap().status;
        assert_eq!(plan::eviction(&node, Some(status)), want, "{ready} {held:?}");
        let got = shown(taints::executing(&node, status, Some(now())));
        assert_eq!(got, after.map(|want| want.iter().map(ToString::to_string).collect()), "{ready} {held:?}");
        assert_eq!(plan::needs_taint(Some(&node)), ready != "True" && want != Eviction::None, "{ready} {held:?}");
    };
    let not_ready = "node.kubernetes.io/not-ready:NoExecute";
    let unreachable = "node.kubernetes.io/unreachable:NoExecute";
    check("True", &[], Eviction::None, None);
    check("True", &[NOT_READY], Eviction::Now, Some(&[]));
    check("True", &[UNREACHABLE, ("own", "NoExecute")], Eviction::Now, Some(&["own:NoExecute"]));
    check("False", &[], Eviction::InTurn, Some(&[not_ready]));
    check("False", &[NOT_READY], Eviction::None, None);
    check("False", &[UNREACHABLE], Eviction::Now, Some(&[not_ready]));
    check("Unknown", &[], Eviction::InTurn, Some(&[unreachable]));
    check("Unknown", &[UNREACHABLE], Eviction::None, None);
    check("Unknown", &[NOT_READY], Eviction::Now, Some(&[unreachable]));
    assert_eq!(plan::eviction(&node(json!({})), None), Eviction::None);
    assert!(!plan::needs_taint(None) && !plan::needs_taint(Some(&node(json!({})))));
    let added = taints::executing(&tainted(&[], &[]), ConditionStatus::Unknown, Some(now())).unwrap();
    assert_eq!(json!(added), json!([{ "key": UNREACHABLE.0, "effect": "NoExecute", "timeAdded": now() }]));
}

#[test]
fn older_labels_follow_the_newer_ones() {
    let check = |labels: Value, want: &[(&str, &str)]| {
        let node = node(json!({ "metadata": { "labels": labels } }));
        let got = plan::labels(node.meta());
        let got: Vec<(&str, &str)> = got.iter().map(|(key, value)| (*key, value.as_str())).collect();
        assert_eq!(got, want, "{labels}");
    };
    check(json!({}), &[]);
    check(json!({ "beta.kubernetes.io/os": "linux" }), &[]);
    check(json!({ "kubernetes.io/os": "linux", "beta.kubernetes.io/os": "linux" }), &[]);
    check(json!({ "kubernetes.io/os": "linux" }), &[("beta.kubernetes.io/os", "linux")]);
    let both =
        json!({ "kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64", "beta.kubernetes.io/arch": "amd64" });
    check(both, &[("beta.kubernetes.io/os", "linux"), ("beta.kubernetes.io/arch", "arm64")]);
}

#[test]
fn a_zone_is_named_after_region_and_zone() {
    let check = |labels: Value, want: &str| {
        let node = node(json!({ "metadata": { "labels": labels } }));
        assert_eq!(map::zone(node.meta()).as_str(), want, "{labels}");
    };
    check(json!({}), "");
    check(json!({ "topology.kubernetes.io/zone": "a" }), ":\0:a");
    check(json!({ "topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "r" }), "r:\0:a");
    let old = json!({ "topology.kubernetes.io/zone": "a", "failure-domain.beta.kubernetes.io/zone": "b" });
    check(old, ":\0:b");
}

#[test]
fn the_state_of_a_zone_follows_from_the_share_of_ready_nodes() {
    let check = |ready: usize, unready: usize, want: State| {
        assert_eq!(RATES.state(Count { ready, unready }), want, "{ready} {unready}");
    };
    check(0, 0, State::Normal);
    check(1, 0, State::Normal);
    check(0, 1, State::Full);
    check(0, 500, State::Full);
    check(1, 2, State::Normal);
    check(1, 3, State::Partial);
    check(9, 11, State::Partial);
    check(10, 10, State::Normal);
    check(1, 499, State::Partial);
    assert_eq!(RATES.rate(State::Normal, 500), 0.1);
    assert_eq!(RATES.rate(State::Full, 500), 0.1);
    assert_eq!(RATES.rate(State::Partial, 51), 0.01);
    assert_eq!(RATES.rate(State::Partial, 50), 0.0);
}

#[test]
fn a_limiter_holds_one_token_and_another_rate_gives_none() {
    let mut limiter = Limiter::full(0.1, secs(100));
    assert_eq!(limiter.take(secs(100)), Ok(()));
    assert_eq!(limiter.take(secs(103)), Err(Some(secs(7))));
    assert_eq!(limiter.take(secs(500)), Ok(()));
    assert_eq!(limiter.take(secs(500)), Err(Some(secs(10))), "tokens are not saved");
    limiter.set_rate(0.1, secs(505));
    assert_eq!(limiter.take(secs(505)), Err(Some(secs(5))), "the same rate changes nothing");
    let mut late = limiter.clone();
    late.used(secs(502));
    assert_eq!(late.take(secs(505)), Err(Some(secs(7))), "the last token was used late");
    limiter.set_rate(1.0, secs(505));
    assert_eq!(limiter.take(secs(505)), Err(Some(secs(1))), "there was no token");
    limiter.set_rate(0.1, secs(600));
    assert_eq!(limiter.take(secs(600)), Ok(()), "there was one");
    limiter.set_rate(0.0, secs(700));
    assert_eq!(limiter.take(secs(9000)), Err(None));
    limiter.set_rate(0.5, secs(9000));
    assert_eq!(limiter.take(secs(9000)), Err(Some(secs(2))), "nothing was saved meanwhile");
}

/// The states of zones, as counts: name, ready, unready.
fn counts(zones: &[(&str, usize, usize)]) -> BTreeMap<Istr, Count> {
    zones.iter().map(|(name, ready, unready)| ((*name).into(), Count { ready: *ready, unready: *unready })).collect()
}

#[test]
fn nodes_of_a_zone_are_taken_at_its_rate_and_those_that_need_nothing_cost_nothing() {
    let zone: Istr = "z".into();
    let mut zones = Zones::default();
    zones.assess(&counts(&[("z", 10, 4)]), &RATES, secs(0));
    for name in ["a", "b", "a", "c", "d"] {
        zones.enqueue(&zone, &name.into(), &RATES, secs(0));
    }
    let needed = |name: &Istr| *name != "b";
    assert_eq!(zones.next(&zone, secs(0), needed), Next::Take("a".into()));
    assert_eq!(zones.next(&zone, secs(1), needed), Next::Wait(secs(9)));
    assert_eq!(zones.next(&zone, secs(10), needed), Next::Take("c".into()));
    zones.put_back(&zone, &"c".into());
    assert_eq!(zones.next(&zone, secs(20), needed), Next::Take("c".into()));
    zones.remove(&zone, &"d".into());
    assert_eq!(zones.next(&zone, secs(30), needed), Next::Idle);
    assert!(zones.waiting().is_empty());
}

#[test]
fn nothing_is_taken_while_every_zone_is_lost_and_little_when_some_are_back() {
    let mut zones = Zones::default();
    let all = |_: &Istr| true;
    let two: [Istr; 2] = ["a".into(), "b".into()];
    let fill = |zones: &mut Zones, at: u64| {
        for zone in &two {
            for node in ["1", "2", "3"] {
                zones.enqueue(zone, &format!("{zone}{node}").as_str().into(), &RATES, secs(at));
            }
        }
    };
    assert_eq!(zones.assess(&counts(&[("a", 3, 0), ("b", 100, 0)]), &RATES, secs(0)), Turn::Usual);
    fill(&mut zones, 5);
    assert_eq!(zones.assess(&counts(&[("a", 0, 3), ("b", 0, 100)]), &RATES, secs(5)), Turn::AllLost);
    fill(&mut zones, 10);
    assert_eq!(zones.assess(&counts(&[("a", 0, 3), ("b", 0, 100)]), &RATES, secs(10)), Turn::StillLost);
    fill(&mut zones, 10);
    assert_eq!(zones.next(&two[0], secs(1000), all), Next::Idle);
    assert_eq!(zones.next(&two[1], secs(1000), all), Next::Idle);
    assert_eq!(zones.assess(&counts(&[("a", 0, 3), ("b", 1, 99)]), &RATES, secs(1000)), Turn::SomeBack);
    // A zone that is lost while another one is not evicts at the primary rate, a large disrupted one at the secondary.
    assert_eq!(zones.next(&two[0], secs(1000), all), Next::Wait(secs(10)));
    assert_eq!(zones.next(&two[1], secs(1000), all), Next::Wait(secs(100)));
    // A small disrupted zone evicts nothing.
    assert_eq!(zones.assess(&counts(&[("a", 1, 3), ("b", 1, 99)]), &RATES, secs(1005)), Turn::Usual);
    assert_eq!(zones.next(&two[0], secs(9999), all), Next::Idle);
}

#[test]
fn a_zone_that_was_empty_for_a_moment_has_no_token_for_that() {
    let zone: Istr = "z".into();
    let all = |_: &Istr| true;
    let mut zones = Zones::default();
    let one = counts(&[("z", 5, 1), ("other", 1, 0)]);
    zones.assess(&one, &RATES, secs(0));
    zones.enqueue(&zone, &"a".into(), &RATES, secs(0));
    assert_eq!(zones.next(&zone, secs(0), all), Next::Take("a".into()));
    zones.assess(&counts(&[("other", 1, 0)]), &RATES, secs(1));
    zones.assess(&one, &RATES, secs(2));
    zones.enqueue(&zone, &"b".into(), &RATES, secs(2));
    assert_eq!(zones.next(&zone, secs(2), all), Next::Wait(secs(8)));
}
