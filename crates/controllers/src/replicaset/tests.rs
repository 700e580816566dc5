//! Table tests of the pure functions.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_informer::{Change, End};
use steersman_model::View;
use steersman_model::core::PodView;

use super::plan::{Plan, plan};
use super::{BURST, Options, metrics, ranking, status};
use crate::test_objects::{NOW, merged, now, pod, ready_since, replica_set as set, terminating};

#[test]
fn only_what_concerns_nothing_but_the_status_is_gathered() {
    let check = |name: &str, change: Change<PodView>, want: bool| {
        assert_eq!(crate::pod::changes_status_only(&change), want, "{name}");
    };
    let updated = |new: Value| Change::Updated { old: pod("a", json!({})), new: pod("a", new) };
    let phase = |phase: &str| json!({ "status": { "phase": phase } });
    check("it becomes ready", updated(ready_since(NOW)), true);
    check("it is scheduled", updated(json!({ "spec": { "nodeName": "node-2" } })), true);
    check("it is terminating", updated(terminating()), false);
    check("it has ended", updated(phase("Failed")), false);
    check("it has another label", updated(json!({ "metadata": { "labels": { "app": "api" } } })), false);
    let owner = json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "u", "controller": true }]);
    check("it is adopted", updated(json!({ "metadata": { "ownerReferences": owner } })), false);
    check("it is new", Change::Added { new: pod("a", json!({})), initial: false }, false);
    check("it is gone", Change::Deleted { last: pod("a", json!({})), end: End::Observed }, false);
}

#[test]
fn the_plan_makes_up_the_difference_and_no_more_than_a_burst() {
    let check = |name: &str, replicas: Value, have: usize, want: &Plan| {
        let pods: Vec<_> = (0..have).map(|n| pod(&format!("p{n:04}"), json!({}))).collect();
        let set = set(json!({ "spec": { "replicas": replicas } }));
        let got = plan(&set, &pods, Vec::new, Options::default(), now());
        match (&got, want) {
            (Plan::Delete { pods: got }, Plan::Delete { pods: want }) => assert_eq!(got.len(), want.len(), "{name}"),
            _ => assert_eq!(&got, want, "{name}"),
        }
    };
    let delete = |count: usize| Plan::Delete { pods: (0..count).map(|_| pod("x", json!({}))).collect() };
    check("as many as wanted", json!(3), 3, &Plan::Nothing);
    check("too few", json!(3), 1, &Plan::Create { count: 2 });
    check("far too few", json!(2000), 1, &Plan::Create { count: BURST });
    check("too many", json!(3), 5, &delete(2));
    check("far too many", json!(0), BURST + 5, &delete(BURST));
    check("none wanted", json!(0), 2, &delete(2));
    check("no count means one", json!(null), 0, &Plan::Create { count: 1 });
}

#[test]
fn a_set_that_goes_away_makes_no_pods_and_deletes_none() {
    let set = set(terminating());
    assert_eq!(plan(&set, &[], Vec::new, Options::default(), now()), Plan::Nothing);
}

#[test]
fn those_go_first_that_are_missed_least() {
    // Each row: the deleted pod, the kept pod, for one reason alone.
    let old = "2026-11-01T00:00:00Z";
    let ready = || ready_since(old);
    let cost =
        |cost: &str| json!({ "metadata": { "annotations": { "controller.kubernetes.io/pod-deletion-cost": cost } } });
    let restarted = |count: i32| json!({ "status": { "containerStatuses": [{ "name": "c", "restartCount": count }] } });
    let sidecar = |count: i32| {
        json!({
            "spec": { "initContainers": [{ "name": "s", "restartPolicy": "Always" }] },
            "status": { "initContainerStatuses": [{ "name": "s", "restartCount": count }] },
        })
    };
    let created = |time: &str| json!({ "metadata": { "creationTimestamp": time } });
    let check = |name: &str, goes: Value, stays: Value| {
        let goes = pod("goes", goes);
        let stays = pod("a-stays", stays);
        for mut pods in [vec![goes.clone(), stays.clone()], vec![stays, goes]] {
            ranking::rank(&mut pods, &[], Options::default(), now());
            assert_eq!(pods[0].meta().name, "goes", "{name}");
        }
    };
    check("without a node", json!({ "spec": { "nodeName": "" } }), json!({}));
    check("pending", json!({ "status": { "phase": "Pending" } }), json!({ "status": { "phase": "Unknown" } }));
    check("unknown", json!({ "status": { "phase": "Unknown" } }), json!({ "status": { "phase": "Running" } }));
    check("not ready", json!({}), ready());
    check("cheaper", merged(ready(), cost("-5")), ready());
    check("cheaper than dear", ready(), merged(ready(), cost("5")));
    check("a cost that is none counts as zero", merged(ready(), cost("+5")), merged(ready(), cost("1")));
    check("ready for a short time", ready_since("2026-11-15T11:59:00Z"), ready());
    check("more restarts", merged(ready(), restarted(5)), merged(ready(), restarted(2)));
    check("more restarts of a sidecar", merged(ready(), sidecar(5)), merged(ready(), sidecar(2)));
    check("younger", created("2026-11-15T11:59:00Z"), created(old));
}

/// The feature gate `PodDeletionCost`.
#[test]
fn without_its_gate_a_cost_does_not_count() {
    let cost = json!({ "metadata": { "annotations": { "controller.kubernetes.io/pod-deletion-cost": "-5" } } });
    let cheap = || pod("cheap", merged(ready_since("2026-11-01T00:00:00Z"), cost.clone()));
    let young = || pod("young", ready_since("2026-11-15T11:59:00Z"));
    for (pod_deletion_cost, want) in [(true, "cheap"), (false, "young")] {
        let options = Options { pod_deletion_cost, ..Options::default() };
        for mut pods in [vec![cheap(), young()], vec![young(), cheap()]] {
            ranking::rank(&mut pods, &[], options, now());
            assert_eq!(pods[0].meta().name, want, "{options:?}");
        }
    }
}

/// The feature gate `DeploymentReplicaSetTerminatingReplicas`.
#[test]
fn without_its_gate_status_does_not_report_how_many_pods_terminate() {
    let set = set(json!({ "status": { "terminatingReplicas": 7 } }));
    for (terminating_replicas, want) in [(true, Some(2)), (false, None)] {
        let options = Options { terminating_replicas, ..Options::default() };
        assert_eq!(status::status(&set, &[], 2, None, options, now()).terminating_replicas, want, "{options:?}");
    }
}

#[test]
fn the_pod_with_more_neighbours_goes_first() {
    let on = |name: &str, node: &str| pod(name, merged(json!({ "spec": { "nodeName": node } }), ready_since(NOW)));
    let mut pods = vec![on("alone", "node-1"), on("crowded", "node-2")];
    let related = [on("x", "node-1"), on("y", "node-2"), on("z", "node-2")];
    ranking::rank(&mut pods, &related, Options::default(), now());
    assert_eq!(pods[0].meta().name, "crowded");
}

#[test]
fn pods_of_about_the_same_age_go_by_uid() {
    let ready = |name: &str, time: &str| pod(name, ready_since(time));
    let mut pods = vec![ready("b", "2026-11-15T10:00:00Z"), ready("a", "2026-11-15T10:10:00Z")];
    ranking::rank(&mut pods, &[], Options::default(), now());
    assert_eq!(pods[0].meta().name, "a", "two hours and less are one order of magnitude");
}

#[test]
fn status_counts_what_is_seen() {
    let pods = [
        pod("ready", ready_since("2026-11-15T11:00:00Z")),
        pod("just-ready", ready_since("2026-11-15T11:59:55Z")),
        pod("relabelled", json!({ "metadata": { "labels": { "app": "web", "tier": "x" } } })),
    ];
    let set = set(json!({ "spec": {
        "minReadySeconds": 10,
        "template": { "metadata": { "labels": { "app": "web", "tier": "x" } } },
    } }));
    let got = status::status(&set, &pods, 2, None, Options::default(), now());
    assert_eq!((got.replicas, got.ready_replicas, got.available_replicas), (3, 2, 1));
    assert_eq!((got.fully_labeled_replicas, got.terminating_replicas, got.observed_generation), (1, Some(2), 2));
    assert_eq!(status::next_check(&set, &got, &pods, now()), Some(Duration::from_secs(5)));
}

#[test]
fn nothing_is_looked_at_again_when_every_ready_pod_is_available() {
    let pods = [pod("ready", ready_since("2026-11-15T11:00:00Z"))];
    for seconds in [0, 10] {
        let set = set(json!({ "spec": { "minReadySeconds": seconds } }));
        let got = status::status(&set, &pods, 0, None, Options::default(), now());
        assert_eq!(status::next_check(&set, &got, &pods, now()), None);
    }
}

#[test]
fn a_failure_shows_as_a_condition_until_it_is_over() {
    let failed = status::status(&set(json!({})), &[], 0, Some("quota"), Options::default(), now());
    assert_eq!(&*failed.conditions[0].type_, "ReplicaFailure");
    assert_eq!((&*failed.conditions[0].reason, &*failed.conditions[0].message), ("FailedCreate", "quota"));
    let condition = json!({ "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "first" });
    let seen = set(json!({ "status": { "conditions": [condition] } }));
    let again = status::status(&seen, &[], 0, Some("second"), Options::default(), now());
    assert_eq!(
        &*again.conditions[0].message, "first",
        "the first failure stays, so that status is not written each time"
    );
    assert!(status::status(&seen, &[], 0, None, Options::default(), now()).conditions.is_empty());
    let pods: Vec<_> = (0..5).map(|n| pod(&format!("p{n}"), json!({}))).collect();
    let failed = status::status(&set(json!({})), &pods, 0, Some("webhook"), Options::default(), now());
    let said = (&*failed.conditions[0].reason, &*failed.conditions[0].message);
    assert_eq!(said, ("FailedDelete", "unable to delete pods: webhook"), "upstream's words");
}

#[test]
fn the_choice_is_measured_by_how_much_older_than_the_youngest_it_is() {
    let at = |name: &str, time: &str| {
        pod(name, merged(json!({ "metadata": { "creationTimestamp": time } }), ready_since(NOW)))
    };
    let young = at("young", "2026-11-15T11:59:00Z");
    let old = at("old", "2026-11-15T11:57:30Z");
    let unready = pod("unready", json!({ "metadata": { "creationTimestamp": NOW } }));
    let all = [Arc::clone(&young), Arc::clone(&old), Arc::clone(&unready)];
    let ratios = |chosen: &[Arc<PodView>]| metrics::age_ratios(&all, chosen, now()).collect::<Vec<_>>();
    assert_eq!(ratios(&[young, unready]), [1.0], "pods that are not ready do not count");
    assert_eq!(ratios(&[old]), [2.0], "two and a half times as old, in whole times");
    assert!(ratios(&all).is_empty(), "where all go, nothing was chosen");
}
