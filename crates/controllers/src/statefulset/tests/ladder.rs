//! The decision ladder.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_model::View;
use steersman_model::apps::StatefulSetView;
use steersman_model::core::PodView;

use super::{claim, planned, pod, set, unready, with_seen};
use crate::statefulset::plan::{Plan, Step, plan};
use crate::statefulset::{CREATES_MAX, Options};
use crate::test_objects::{merged, terminating};

fn parallel() -> Value {
    json!({ "spec": { "podManagementPolicy": "Parallel" } })
}

fn ended() -> Value {
    json!({ "status": { "phase": "Failed" } })
}

fn reported(plan: &Plan) -> Vec<String> {
    let name = |pod: &Arc<PodView>| pod.meta().name.to_string();
    let step = |step: &Step| match step {
        Step::Create { ordinal, is_update } => format!("create {ordinal} {}", if *is_update { "new" } else { "old" }),
        Step::DeleteEnded(pod) => format!("ended {}", name(pod)),
        Step::DeleteBroken(pod) => format!("broken {}", name(pod)),
        Step::Claims(pod) => format!("claims {}", name(pod)),
        Step::Amend(pod) => format!("amend {}", name(pod)),
    };
    let wanted = plan.wanted.iter().map(step);
    let own = plan.own.iter().map(|pod| format!("own {}", name(pod)));
    let down = plan.scale_down.iter().map(|pod| format!("down {}", name(pod)));
    let replace = plan.replace.iter().map(|pod| format!("replace {}", name(pod)));
    wanted.chain(own).chain(down).chain(replace).collect()
}

fn check(name: &str, set: &StatefulSetView, pods: &[Arc<PodView>], want: &[&str]) {
    assert_eq!(reported(&planned(set, pods, &[])), want, "{name}");
}

fn new(name: &str) -> Arc<PodView> {
    pod(name, "new", json!({}))
}

fn old(name: &str) -> Arc<PodView> {
    pod(name, "old", json!({}))
}

fn all(make: fn(&str) -> Arc<PodView>) -> [Arc<PodView>; 3] {
    ["web-0", "web-1", "web-2"].map(make)
}

#[test]
fn ordered_pods_come_one_after_the_other() {
    let web = set(json!({}));
    let bad = |more: Value| [new("web-0"), pod("web-1", "new", more)];
    check("none", &web, &[], &["create 0 new"]);
    check("one", &web, &[new("web-0")], &["create 1 new"]);
    check("a gap", &web, &[new("web-0"), new("web-2")], &["create 1 new"]);
    check("all", &web, &all(new), &[]);
    check("one is not ready", &web, &bad(unready()), &[]);
    check("one is terminating", &web, &bad(terminating()), &[]);
    check("one is pending", &web, &bad(json!({ "status": { "phase": "Pending" } })), &[]);
    check("one has failed", &web, &bad(ended()), &["ended web-1"]);
    check("one has failed and goes", &web, &bad(merged(ended(), terminating())), &[]);
    let slow = set(json!({ "spec": { "minReadySeconds": 7200 } }));
    check("one is not available yet", &slow, &[new("web-0")], &[]);
    check("it terminates", &set(terminating()), &[], &[]);
    check("what is no member", &web, &[new("web-99999999999")], &["create 0 new"]);
}

#[test]
fn parallel_pods_come_and_go_at_once() {
    let web = set(parallel());
    check("none", &web, &[], &["create 0 new", "create 1 new", "create 2 new"]);
    check("one is not ready", &web, &[pod("web-1", "new", unready())], &["create 0 new", "create 2 new"]);
    check("one has failed", &web, &[pod("web-1", "new", ended())], &["create 0 new", "ended web-1", "create 2 new"]);
    let surplus =
        [new("web-0"), new("web-1"), new("web-2"), new("web-3"), new("web-5"), pod("web-4", "new", terminating())];
    check("too many", &web, &surplus, &["down web-5", "down web-3"]);
    let huge = set(merged(parallel(), json!({ "spec": { "replicas": i32::MAX } })));
    assert_eq!(planned(&huge, &[new("web-7")], &[]).wanted.len(), CREATES_MAX, "work is bounded");
}

/// A pass reads the claims of so many missing pods, and no others.
#[test]
fn a_pod_that_waits_for_its_claim_counts_among_the_missing_ones_of_a_pass() {
    let claims = json!({
        "replicas": i32::MAX,
        "volumeClaimTemplates": [{ "metadata": { "name": "data" } }],
        "persistentVolumeClaimRetentionPolicy": { "whenScaled": "Delete", "whenDeleted": "Retain" },
    });
    let web = set(merged(parallel(), json!({ "spec": claims })));
    let earlier = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "web-1", "uid": "earlier", "controller": true }]);
    let steps = planned(&web, &[], &[claim("data-web-1", earlier)]).wanted;
    let last = Step::Create { ordinal: i64::try_from(CREATES_MAX).unwrap() - 1, is_update: true };
    assert_eq!((steps.len(), steps.last()), (CREATES_MAX - 1, Some(&last)));
}

#[test]
fn ordered_surplus_pods_go_one_after_the_other() {
    let web = set(json!({}));
    let with = |more: &[Arc<PodView>]| [&all(new)[..], more].concat();
    let sick = |name: &str| pod(name, "new", unready());
    check("the highest first", &web, &with(&[new("web-3"), new("web-4")]), &["down web-4"]);
    check("one goes already", &web, &with(&[new("web-3"), pod("web-4", "new", terminating())]), &[]);
    check("the highest is sick", &web, &with(&[new("web-3"), sick("web-4")]), &["down web-4"]);
    check("a lower one is sick", &web, &with(&[sick("web-3"), new("web-4")]), &["down web-4"]);
    check("both are sick: the lower one blocks", &web, &with(&[sick("web-3"), sick("web-4")]), &[]);
    check("a wanted one is sick", &web, &[new("web-0"), sick("web-1"), new("web-2"), new("web-3")], &[]);
    check("before updates", &web, &[&all(old)[..], &[new("web-3")]].concat(), &["down web-3"]);
    let later = set(json!({ "spec": { "ordinals": { "start": 1 } } }));
    check("below the start", &later, &[&all(new)[..], &[new("web-3")]].concat(), &["down web-0"]);
}

/// Upstream issue 67250.
#[test]
fn with_our_gate_a_broken_old_pod_does_not_hold_back_an_update() {
    let options = Options { replace_broken: true, ..Options::default() };
    let check = |name: &str, set: &StatefulSetView, pods: &[Arc<PodView>], want: &[&str]| {
        assert_eq!(reported(&with_seen(set, pods, &[], options, plan)), want, "{name}");
    };
    let web = set(json!({}));
    let sick = |revision: &str, more: Value| [old("web-0"), pod("web-1", revision, more), old("web-2")];
    check("an old one is not ready", &web, &sick("old", unready()), &["broken web-1"]);
    check("an old one is pending", &web, &sick("old", json!({ "status": { "phase": "Pending" } })), &["broken web-1"]);
    check("it goes already", &web, &sick("old", merged(unready(), terminating())), &[]);
    check("a new one is not ready", &web, &sick("new", unready()), &[]);
    check("it is ready, and not for long enough", &set(json!({ "spec": { "minReadySeconds": 7200 } })), &all(old), &[]);
    let partition = json!({ "spec": { "updateStrategy": { "rollingUpdate": { "partition": 2 } } } });
    check("it is below the partition", &set(partition), &sick("old", unready()), &[]);
    let on_delete = set(json!({ "spec": { "updateStrategy": { "type": "OnDelete", "rollingUpdate": null } } }));
    check("users delete", &on_delete, &sick("old", unready()), &[]);
    assert_eq!(reported(&planned(&web, &sick("old", unready()), &[])), [""; 0], "without the gate, as upstream");
}

#[test]
fn a_rolling_update_goes_down_from_the_highest_ordinal() {
    let rolling = |more: Value| set(json!({ "spec": { "updateStrategy": { "rollingUpdate": more } } }));
    check("all are old", &set(json!({})), &all(old), &["replace web-2"]);
    check("one is new", &set(json!({})), &[old("web-0"), old("web-1"), new("web-2")], &["replace web-1"]);
    let sick = [old("web-0"), old("web-1"), pod("web-2", "new", unready())];
    check("the new one is not ready", &set(json!({})), &sick, &[]);
    check("a partition", &rolling(json!({ "partition": 2 })), &[old("web-0"), old("web-1"), new("web-2")], &[]);
    check("a partition beyond all", &rolling(json!({ "partition": 9 })), &all(old), &[]);
    check("two at once", &rolling(json!({ "maxUnavailable": 2 })), &all(old), &["replace web-2", "replace web-1"]);
    check("70% of three", &rolling(json!({ "maxUnavailable": "70%" })), &all(old), &["replace web-2", "replace web-1"]);
    check("at least one", &rolling(json!({ "maxUnavailable": "1%" })), &all(old), &["replace web-2"]);
    let strategy = |kind: &str| json!({ "spec": { "updateStrategy": { "type": kind, "rollingUpdate": null } } });
    check("on delete", &set(strategy("OnDelete")), &all(old), &[]);
    let mixed = [old("web-0"), pod("web-1", "old", terminating()), new("web-2"), old("web-3")];
    check("recreate: delete", &set(strategy("Recreate")), &mixed, &["replace web-0", "replace web-3"]);
    check("recreate: wait", &set(strategy("Recreate")), &[pod("web-1", "old", terminating())], &[]);
    check("recreate: create", &set(strategy("Recreate")), &[new("web-0")], &["create 1 new"]);
}

#[test]
fn a_parallel_update_replaces_first_what_serves_nobody() {
    let web = |max: i32| {
        let strategy = json!({ "spec": { "updateStrategy": { "rollingUpdate": { "maxUnavailable": max } } } });
        set(merged(parallel(), strategy))
    };
    let sick = [pod("web-0", "old", unready()), old("web-1"), old("web-2")];
    check("one is unavailable", &web(1), &sick, &["replace web-0"]);
    check("one is unavailable, two may be", &web(2), &sick, &["replace web-0", "replace web-2"]);
    let new_sick = [old("web-0"), old("web-1"), pod("web-2", "new", unready())];
    check("a new one is unavailable", &web(1), &new_sick, &[]);
    check("one is missing", &web(1), &[old("web-0"), old("web-1")], &["create 2 new"]);
    let failed = [old("web-0"), old("web-1"), pod("web-2", "old", ended())];
    check("one has failed, and still says that it is ready", &web(1), &failed, &["ended web-2"]);
}

#[test]
fn without_its_gate_max_unavailable_is_one() {
    let strategy = json!({ "spec": { "updateStrategy": { "rollingUpdate": { "maxUnavailable": 3 } } } });
    let planned_without = |more: Value, pods: &[Arc<PodView>]| {
        let options = Options { max_unavailable: false, ..Options::default() };
        with_seen(&set(merged(strategy.clone(), more)), pods, &[], options, |seen| reported(&plan(seen)))
    };
    assert_eq!(planned_without(json!({}), &all(old)), ["replace web-2"]);
    assert_eq!(planned_without(json!({}), &[old("web-0"), old("web-1"), new("web-2")]), ["replace web-1"]);
    let sick = [old("web-0"), old("web-1"), pod("web-2", "new", unready())];
    assert_eq!(planned_without(parallel(), &sick), [""; 0]);
    assert_eq!(planned_without(parallel(), &[old("web-0"), old("web-1")]), ["create 2 new"]);
}

#[test]
fn a_pod_below_the_partition_is_created_from_the_current_revision() {
    let rolling = |more: Value| set(json!({ "spec": { "updateStrategy": { "rollingUpdate": more } } }));
    check("below", &rolling(json!({ "partition": 1 })), &[], &["create 0 old"]);
    check("at it", &rolling(json!({ "partition": 1 })), &[old("web-0")], &["create 1 new"]);
    let shifted = json!({ "ordinals": { "start": 5 }, "updateStrategy": { "rollingUpdate": { "partition": 1 } } });
    check("counted from the start", &set(json!({ "spec": shifted })), &[], &["create 5 old"]);
    let unset = json!({ "spec": { "updateStrategy": { "rollingUpdate": null } }, "status": { "currentReplicas": 1 } });
    check("without a partition: the current ones", &set(unset), &[], &["create 0 old"]);
}

#[test]
fn claims_come_with_their_pods() {
    let templates = json!({ "spec": { "volumeClaimTemplates": [{ "metadata": { "name": "data" } }] } });
    let volumes = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data-web-0" } }]);
    let web = |more: Value| set(merged(templates.clone(), more));
    let with = |more: Value| pod("web-0", "new", merged(json!({ "spec": { "volumes": volumes } }), more));
    let pending = || json!({ "status": { "phase": "Pending" } });
    let one = json!({ "spec": { "replicas": 1 } });
    let check = |name: &str, more: Value, pods: &[Arc<PodView>], owners: Option<Value>, want: &[&str]| {
        let claims: Vec<_> = owners.into_iter().map(|owners| claim("data-web-0", owners)).collect();
        assert_eq!(reported(&planned(&web(merged(one.clone(), more)), pods, &claims)), want, "{name}");
    };
    check("all is there", json!({}), &[with(json!({}))], Some(json!([])), &[]);
    check("a pending pod lacks a claim", json!({}), &[with(pending())], None, &["claims web-0"]);
    check("a pending pod waits", json!({}), &[with(pending())], Some(json!([])), &[]);
    check("a running pod lacks a claim: too late", json!({}), &[with(json!({}))], None, &[]);
    check("a pod without its volume", json!({}), &[new("web-0")], Some(json!([])), &["amend web-0"]);
    let deleted = json!({ "spec": { "persistentVolumeClaimRetentionPolicy": { "whenScaled": "Delete", "whenDeleted": "Delete" } } });
    check("a claim without its owner", deleted.clone(), &[with(json!({}))], Some(json!([])), &["amend web-0"]);
    let earlier = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "web-0", "uid": "earlier" }]);
    check("the claim of an earlier pod", deleted.clone(), &[], Some(earlier.clone()), &[]);
    check("it is kept", json!({}), &[], Some(earlier), &["create 0 new"]);
    let none = merged(deleted, json!({ "spec": { "replicas": 0 } }));
    check("a surplus pod's claim", none, &[with(json!({}))], Some(json!([])), &["own web-0", "down web-0"]);
}
