//! Table tests of the pure functions, and their objects.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::{Istr, Uid};
use steersman_informer::{Change, End};
use steersman_model::View;
use steersman_model::apps::{DaemonSetStatus, DaemonSetView};
use steersman_model::core::{NodeView, PodView};
use steersman_testing::objects::{self, ObjectBuilder as _, PodBuilder as _, WorkloadBuilder as _, controller_ref};

use super::memory::{Backoff, OfSet};
use super::placement::{Placement, Verdict};
use super::plan::{Observed, Plan, plan};
use super::pods::{Wanted, by_node, node_of};
use super::{BURST, map, status};
use crate::test_objects::{merged, now, terminating, view};
use crate::toleration::Comparison;

mod places;

/// A DaemonSet of `agent:2`, rolling.
fn set(more: Value) -> DaemonSetView {
    let agent = objects::daemon_set("agent").in_namespace("default").uid("set").image("agent:2");
    let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 1, "maxSurge": 0 } });
    view(&agent, merged(json!({ "metadata": { "generation": 2 }, "spec": { "updateStrategy": rolling } }), more))
}

fn limits(unavailable: i32, surge: i32) -> Value {
    let rolling = json!({ "maxUnavailable": unavailable, "maxSurge": surge });
    json!({ "spec": { "updateStrategy": { "rollingUpdate": rolling } } })
}

fn node(name: &str, more: Value) -> Arc<NodeView> {
    Arc::new(view(&objects::node(name).uid(name), more))
}

/// An available pod of a revision on a node; its name begins with `a`, `b`, … in the order of age.
fn pod(name: &str, node: &str, hash: &str, more: Value) -> Arc<PodView> {
    let owner = controller_ref(&objects::daemon_set("agent").uid("set"));
    let minute = name.bytes().next().unwrap_or(b'a') % 60;
    let pod = objects::pod(name).app("agent").in_namespace("default").uid(name).on_node(node).owner(owner);
    let pod = pod.ready_since("2026-11-15T11:00:00Z").created(&format!("2026-11-15T10:{minute:02}:00Z"));
    let pod = pod.with(json!({ "metadata": { "labels": { "controller-revision-hash": hash } } }));
    Arc::new(view(&pod, more))
}

fn old(name: &str, node: &str) -> Arc<PodView> {
    pod(name, node, "old", json!({}))
}

fn new(name: &str, node: &str) -> Arc<PodView> {
    pod(name, node, "new", json!({}))
}

fn unready() -> Value {
    json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } })
}

fn phase(phase: &str) -> Value {
    json!({ "status": { "phase": phase, "conditions": [] } })
}

fn tainted(effect: &str) -> Value {
    json!({ "spec": { "taints": [{ "key": "k", "value": "v", "effect": effect }] } })
}

fn with_seen<T>(
    set: &DaemonSetView,
    nodes: &[Arc<NodeView>],
    pods: &[Arc<PodView>],
    look: impl FnOnce(&Observed<'_>) -> T,
) -> T {
    look(&Observed {
        set,
        placement: &Placement::of(&set.spec.template, Comparison::Off),
        nodes,
        pods: &by_node(pods),
        wanted: &Wanted::new(set, Istr::new("new")),
        now: now(),
        waits: &|node| (node == "waits").then_some(Duration::from_secs(7)),
    })
}

fn reported(plan: &Plan) -> Vec<String> {
    let create = plan.create.iter().map(|node| format!("create on {node}"));
    let delete = plan.delete.iter().map(|it| format!("delete {} {:?}", it.pod.meta().name, it.reason));
    create.chain(delete).collect()
}

fn check(name: &str, set: &DaemonSetView, nodes: &[Arc<NodeView>], pods: &[Arc<PodView>], want: &[&str]) {
    assert_eq!(with_seen(set, nodes, pods, |seen| reported(&plan(seen))), want, "{name}");
}

fn nodes(count: usize) -> Vec<Arc<NodeView>> {
    (1..=count).map(|number| node(&format!("n{number}"), json!({}))).collect()
}

#[test]
fn each_node_that_should_run_a_pod_has_one() {
    let agent = set(json!({}));
    let one = nodes(1);
    check("none", &agent, &nodes(2), &[], &["create on n1", "create on n2"]);
    check("one is missing", &agent, &nodes(2), &[new("a", "n1")], &["create on n2"]);
    check("a terminating one is waited for", &agent, &one, &[pod("a", "n1", "new", terminating())], &[]);
    let gone = merged(terminating(), phase("Failed"));
    check("one that has ended and goes is not", &agent, &one, &[pod("a", "n1", "new", gone)], &["create on n1"]);
    check("two: the oldest stays", &agent, &one, &[new("b", "n1"), new("a", "n1")], &["delete b Duplicate"]);
    let unbound = pinned("a", "n1");
    check("a bound one counts more", &agent, &one, &[unbound, new("b", "n1")], &["delete a Duplicate"]);
    check("one has failed", &agent, &one, &[pod("a", "n1", "new", phase("Failed"))], &["delete a Failed"]);
    check("one has succeeded", &agent, &one, &[pod("a", "n1", "new", phase("Succeeded"))], &["delete a Succeeded"]);
    check("not here", &agent, &[node("n1", tainted("NoExecute"))], &[new("a", "n1")], &["delete a Misplaced"]);
    check("not any more", &agent, &[node("n1", tainted("NoSchedule"))], &[new("a", "n1")], &[]);
    check("not here, and none", &agent, &[node("n1", tainted("NoSchedule"))], &[], &[]);
    check("no such node", &agent, &[], &[pinned("a", "gone"), new("b", "gone")], &["delete a Misplaced"]);
    let many = nodes(BURST + 9);
    assert_eq!(with_seen(&agent, &many, &[], |seen| plan(seen).create.len()), BURST);
}

/// A pod that is made for a node and not bound yet.
fn pinned(name: &str, node: &str) -> Arc<PodView> {
    let fields = json!([{ "key": "metadata.name", "operator": "In", "values": [node] }]);
    let required = json!({ "nodeSelectorTerms": [{ "matchFields": fields }] });
    let affinity = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": required } });
    let unbound = merged(json!({ "spec": { "nodeName": "", "affinity": affinity } }), phase("Pending"));
    pod(name, "", "new", unbound)
}

#[test]
fn a_failed_pod_in_back_off_is_left_alone() {
    let failed = [pod("a", "waits", "new", phase("Failed"))];
    let (reported, check_in) = with_seen(&set(json!({})), &[node("waits", json!({}))], &failed, |seen| {
        let plan = plan(seen);
        (reported(&plan), plan.check_in)
    });
    assert_eq!((reported.len(), check_in), (0, Some(Duration::from_secs(7))));
}

#[test]
fn a_back_off_doubles_and_is_forgotten() {
    let backoff = Backoff::default();
    let of = |generation: i64| OfSet { backoff: &backoff, set: Uid::new("set"), generation };
    let seconds = Duration::from_secs;
    let at = |second: i64| now().plus_seconds(second);
    assert_eq!(of(1).wait("n1", at(0)), None);
    of(1).next("n1", at(0));
    assert_eq!(of(1).wait("n1", at(0)), Some(seconds(1)));
    assert_eq!((of(1).wait("n2", at(0)), of(2).wait("n1", at(0))), (None, None));
    assert_eq!(of(1).wait("n1", at(1)), None);
    for _ in 0..12 {
        of(1).next("n1", at(1));
    }
    assert_eq!(of(1).wait("n1", at(1)), Some(seconds(900)));
    of(1).next("n2", at(1802));
    of(1).next("n1", at(1802));
    assert_eq!(of(1).wait("n1", at(1802)), Some(seconds(1)));
}

#[test]
fn a_rolling_update_without_surge_keeps_enough_pods_available() {
    let three = nodes(3);
    let pods = |more: Value| [pod("a", "n1", "old", more), old("b", "n2"), old("c", "n3")];
    check("one at a time", &set(json!({})), &three, &pods(json!({})), &["delete a Old"]);
    check("two at a time", &set(limits(2, 0)), &three, &pods(json!({})), &["delete a Old", "delete b Old"]);
    let half = json!({ "spec": { "updateStrategy": { "rollingUpdate": { "maxUnavailable": "50%" } } } });
    check("half of them, rounded up", &set(half), &three, &pods(json!({})), &["delete a Old", "delete b Old"]);
    check("an old one is not ready", &set(json!({})), &three, &pods(unready()), &["delete a Old"]);
    check("an old one is going", &set(json!({})), &three, &pods(terminating()), &[]);
    let waiting = [pod("a", "n1", "new", unready()), old("b", "n2"), old("c", "n3")];
    check("a new one is not ready", &set(json!({})), &three, &waiting, &[]);
    check(
        "a new one is ready",
        &set(json!({})),
        &three,
        &[new("a", "n1"), old("b", "n2"), old("c", "n3")],
        &["delete b Old"],
    );
    let on_delete = json!({ "spec": { "updateStrategy": { "type": "OnDelete", "rollingUpdate": null } } });
    check("on delete", &set(on_delete), &three, &pods(json!({})), &[]);
    check("first what is missing", &set(json!({})), &nodes(4), &pods(json!({})), &["create on n4"]);
    let slow = set(json!({ "spec": { "minReadySeconds": 7200 } }));
    check(
        "not available yet",
        &slow,
        &three,
        &[new("a", "n1"), old("b", "n2"), old("c", "n3")],
        &["delete b Old", "delete c Old"],
    );
}

/// 123232: after several updates that did not become ready, no pod was ready any more: those of the updates before were not
/// counted.
#[test]
fn issue_123232_unready_pods_of_an_update_before_count_and_go_first() {
    let three = nodes(3);
    let broken = pod("a", "n1", "before", unready());
    let healthy = || [old("b", "n2"), old("c", "n3")];
    let pods = |first: Arc<PodView>| [&[first][..], &healthy()].concat();
    check("the broken one alone", &set(limits(1, 0)), &three, &pods(broken), &["delete a Old"]);
    let next = pod("a", "n1", "new", unready());
    check("none before the next one is ready", &set(limits(1, 0)), &three, &pods(next), &[]);
}

#[test]
fn a_rolling_update_with_surge_creates_before_it_deletes() {
    let agent = set(limits(0, 1));
    let two = nodes(2);
    check("one more", &agent, &two, &[old("a", "n1"), old("b", "n2")], &["create on n1"]);
    let surging = [old("a", "n1"), pod("c", "n1", "new", unready()), old("b", "n2")];
    check("it is waited for", &agent, &two, &surging, &[]);
    check("it is available", &agent, &two, &[old("a", "n1"), new("c", "n1"), old("b", "n2")], &["delete a Old"]);
    check(
        "the old one goes",
        &agent,
        &two,
        &[pod("a", "n1", "old", terminating()), new("c", "n1"), old("b", "n2")],
        &["create on n2"],
    );
    let sick = [pod("a", "n1", "old", unready()), pod("c", "n1", "new", unready()), old("b", "n2")];
    check("the old one is not ready: the new one stays", &agent, &two, &sick, &["delete a Old"]);
    let unavailable = [pod("a", "n1", "old", unready()), pod("b", "n2", "old", unready())];
    check("what serves nobody", &agent, &two, &unavailable, &["create on n1", "create on n2"]);
    check(
        "a terminating one is replaced at once",
        &agent,
        &nodes(1),
        &[pod("a", "n1", "new", terminating())],
        &["create on n1"],
    );
    let three = [old("a", "n1"), old("b", "n1"), new("c", "n1"), new("d", "n2")];
    check("three are too many", &agent, &two, &three, &["delete b Duplicate", "delete a Old"]);
    let moved =
        set(merged(limits(0, 1), json!({ "spec": { "template": { "spec": { "nodeSelector": { "to": "b" } } } } })));
    let places = [node("n1", tainted("NoSchedule")), node("n2", json!({ "metadata": { "labels": { "to": "b" } } }))];
    check(
        "moved, and the new place is ready",
        &moved,
        &places,
        &[old("a", "n1"), new("b", "n2")],
        &["delete a Misplaced"],
    );
}

#[test]
fn a_pod_of_the_templates_generation_is_updated_too() {
    let annotated = set(json!({ "metadata": { "annotations": { "deprecated.daemonset.template.generation": "7" } } }));
    let wanted = Wanted::new(&annotated, Istr::new("new"));
    let generation = json!({ "metadata": { "labels": { "pod-template-generation": "7" } } });
    assert!(wanted.is_of(&pod("a", "n1", "old", generation)));
    assert!(wanted.is_of(&new("a", "n1")) && !wanted.is_of(&old("a", "n1")));
    assert!(!Wanted::new(&set(json!({})), Istr::default()).is_of(&pod("a", "n1", "", json!({}))));
}

fn of(set: &DaemonSetView, nodes: &[Arc<NodeView>], pods: &[Arc<PodView>]) -> DaemonSetStatus {
    with_seen(set, nodes, pods, status::status)
}

#[test]
fn status_counts_nodes() {
    let places = [
        node("n1", json!({})),
        node("n2", json!({})),
        node("n3", json!({})),
        node("n4", json!({})),
        node("n5", tainted("NoSchedule")),
    ];
    let pods = [
        new("a", "n1"),
        old("b", "n2"),
        new("c", "n2"),
        pod("d", "n3", "new", unready()),
        new("e", "n5"),
        new("f", "elsewhere"),
    ];
    let got = of(&set(json!({ "status": { "collisionCount": 3 } })), &places, &pods);
    assert_eq!((got.desired_number_scheduled, got.current_number_scheduled, got.number_misscheduled), (4, 3, 1));
    assert_eq!((got.number_ready, got.number_available, got.number_unavailable), (2, 2, 2));
    assert_eq!((got.updated_number_scheduled, got.observed_generation, got.collision_count), (2, 2, Some(3)));
    let slow = set(json!({ "spec": { "minReadySeconds": 3610 } }));
    let got = of(&slow, &places, &pods);
    assert_eq!((got.number_ready, got.number_available), (2, 0));
    let check = with_seen(&slow, &places, &pods, status::next_check);
    assert_eq!(check, Some(Duration::from_secs(10)));
    assert_eq!(with_seen(&set(json!({})), &places, &pods, status::next_check), None);
}

#[test]
fn with_surge_the_second_pod_of_a_node_is_waited_for() {
    let surging = set(merged(limits(0, 1), json!({ "spec": { "minReadySeconds": 60 } })));
    let since = json!({ "type": "Ready", "status": "True", "lastTransitionTime": "2026-11-15T11:59:30Z" });
    let pods = [old("a", "n1"), pod("b", "n1", "new", json!({ "status": { "conditions": [since] } }))];
    let check = with_seen(&surging, &nodes(1), &pods, status::next_check);
    assert_eq!(check, Some(Duration::from_secs(30)));
}

#[test]
fn a_node_concerns_the_sets_whose_pods_it_changes() {
    let at =
        |version: &str, more: Value| node("n1", merged(json!({ "metadata": { "resourceVersion": version } }), more));
    let updated = |new: Value| Change::Updated { old: at("1", json!({})), new: at("2", new) };
    assert!(!map::changes_placement(&updated(json!({ "status": { "conditions": [{ "type": "Ready" }] } }))));
    assert!(!map::changes_placement(&updated(json!({ "spec": { "unschedulable": true } }))));
    assert!(map::changes_placement(&updated(tainted("NoSchedule"))));
    assert!(map::changes_placement(&updated(json!({ "metadata": { "labels": { "a": "b" } } }))));
    assert!(map::changes_placement(&Change::Deleted { last: at("1", json!({})), end: End::Missed }));
    let misscheduled = json!({ "status": { "numberMisscheduled": 1 } });
    for (name, more, taint, has_pod, came_or_went, want) in [
        ("a pod is missing", json!({}), None, false, false, true),
        ("all is well", json!({}), None, true, false, false),
        ("a pod may go on", json!({}), Some("NoSchedule"), true, false, false),
        ("a pod has to go", json!({}), Some("NoExecute"), true, false, true),
        ("none is wanted", json!({}), Some("NoSchedule"), false, false, false),
        ("the status may be wrong", misscheduled, None, true, false, true),
        ("the node is gone", json!({}), None, false, true, true),
        ("the node is gone, and was none of ours", json!({}), Some("NoExecute"), false, true, false),
        ("the node is back before its pod is gone", json!({}), None, true, true, true),
    ] {
        let set = set(more);
        let place = node("n1", taint.map_or(json!({}), tainted));
        let verdict = Placement::of(&set.spec.template, Comparison::Off).on(&place);
        assert_eq!(map::is_concerned(&set, verdict, has_pod, came_or_went), want, "{name}");
    }
}

#[test]
fn the_node_of_a_pod_is_where_it_runs_or_should_run() {
    assert_eq!(node_of(&new("a", "n1")).map(Istr::as_str), Some("n1"));
    assert_eq!(node_of(&pinned("a", "n2")).map(Istr::as_str), Some("n2"));
    assert_eq!(node_of(&pod("a", "", "new", json!({ "spec": { "nodeName": "" } }))), None);
    assert!(Verdict::GoOn.may_go_on() && !Verdict::Leave.may_go_on());
}
