//! Table tests of the pure functions.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::Time;
use steersman_model::core::{NodeView, PodView};
use steersman_model::{Encoded, View};

use super::patch::failed;
use super::plan::{Cause, is_asked_for, of_terminating, too_many};
use super::quarantine::{QUARANTINE, Quarantine};

const NOW: Time = Time::from_unix(1_800_000_000);

fn pod(value: &Value) -> PodView {
    PodView::decode(Encoded::Json(value.to_string().as_bytes())).unwrap()
}

fn ended(name: &str, reason: &str, age: i64) -> Arc<PodView> {
    Arc::new(pod(&json!({
        "metadata": { "name": name, "namespace": "ns", "creationTimestamp": NOW.plus_seconds(-age) },
        "status": { "phase": if reason.is_empty() { "Succeeded" } else { "Failed" }, "reason": reason },
    })))
}

fn node(ready: Option<&str>, taints: &[&str]) -> NodeView {
    let conditions: Vec<_> = ready.iter().map(|status| json!({ "type": "Ready", "status": status })).collect();
    let taints: Vec<_> = taints.iter().map(|key| json!({ "key": key, "effect": "NoExecute" })).collect();
    let node = json!({ "spec": { "taints": taints }, "status": { "conditions": conditions } });
    NodeView::decode(Encoded::Json(node.to_string().as_bytes())).unwrap()
}

#[test]
fn of_too_many_the_evicted_go_first_then_the_oldest_then_by_name() {
    let all = || {
        vec![
            ended("young", "", 10),
            ended("old", "", 30),
            ended("evicted", "Evicted", 5),
            ended("b", "", 20),
            ended("a", "", 20),
            ended("failed", "Error", 1),
        ]
    };
    for (threshold, want) in [
        (6, vec![]),
        (100, vec![]),
        (5, vec!["evicted"]),
        (3, vec!["evicted", "old", "a"]),
        (0, vec!["evicted", "old", "a", "b", "young", "failed"]),
    ] {
        let got: Vec<_> = too_many(all(), threshold).iter().map(|pod| pod.meta().name.to_string()).collect();
        assert_eq!(got, want, "{threshold}");
    }
}

#[test]
fn a_terminating_pod_goes_at_once_where_no_kubelet_ends_it() {
    const TAINT: &str = "node.kubernetes.io/out-of-service";
    let on = |node: &str| pod(&json!({ "metadata": { "deletionTimestamp": NOW }, "spec": { "nodeName": node } }));
    let check = |name: &str, pod: PodView, node: Option<NodeView>, want: Option<Cause>| {
        assert_eq!(of_terminating(&pod, node.as_ref()), want, "{name}");
    };
    check("never on a node", on(""), None, Some(Cause::Unscheduled));
    check("the node is gone: that takes its time", on("n"), None, None);
    check("the node is well", on("n"), Some(node(Some("True"), &[])), None);
    check("marked, but ready", on("n"), Some(node(Some("True"), &[TAINT])), None);
    check("not ready, but not marked", on("n"), Some(node(Some("False"), &["other"])), None);
    check("not ready and marked", on("n"), Some(node(Some("False"), &["other", TAINT])), Some(Cause::OutOfService));
    check("unknown and marked", on("n"), Some(node(Some("Unknown"), &[TAINT])), Some(Cause::OutOfService));
    check("silent and marked", on("n"), Some(node(None, &[TAINT])), Some(Cause::OutOfService));
}

#[test]
fn what_only_a_finalizer_keeps_is_left_alone() {
    let check = |grace: Option<i64>, phase: &str, finalizers: &[&str], want: bool| {
        let metadata = match grace {
            Some(grace) => json!({
                "deletionTimestamp": NOW, "deletionGracePeriodSeconds": grace, "finalizers": finalizers,
            }),
            None => json!({ "finalizers": finalizers }),
        };
        let pod = pod(&json!({ "metadata": metadata, "status": { "phase": phase } }));
        assert_eq!(is_asked_for(&pod), want, "{grace:?} {phase} {finalizers:?}");
    };
    check(Some(0), "Failed", &["x.dev/y"], true);
    check(Some(30), "Failed", &["x.dev/y"], false);
    check(Some(0), "Running", &["x.dev/y"], false);
    check(Some(0), "Failed", &[], false);
    check(None, "Failed", &["x.dev/y"], false);
}

#[test]
fn a_pod_that_has_not_ended_fails_and_an_orphan_says_why() {
    let running = |conditions: Value| {
        pod(&json!({
            "metadata": { "uid": "u", "generation": 3 }, "status": { "phase": "Running", "conditions": conditions },
        }))
    };
    let plain = json!({ "metadata": { "uid": "u" }, "status": { "phase": "Failed", "observedGeneration": 3 } });
    for cause in [Cause::Terminated, Cause::OutOfService, Cause::Unscheduled] {
        assert_eq!(failed(&running(json!([])), cause, NOW), Some(plain.clone()), "{cause:?}");
    }
    let mut orphaned = plain;
    orphaned["status"]["conditions"] = json!([{
        "type": "DisruptionTarget", "status": "True", "observedGeneration": 3, "lastProbeTime": null,
        "lastTransitionTime": NOW, "reason": "DeletionByPodGC", "message": "PodGC: node no longer exists",
    }]);
    assert_eq!(failed(&running(json!([])), Cause::Orphaned, NOW), Some(orphaned.clone()));
    let earlier = NOW.plus_seconds(-60);
    let held = |status| json!([{ "type": "DisruptionTarget", "status": status, "lastTransitionTime": earlier }]);
    assert_eq!(failed(&running(held("False")), Cause::Orphaned, NOW), Some(orphaned.clone()), "it was not so before");
    orphaned["status"]["conditions"][0]["lastTransitionTime"] = json!(earlier);
    assert_eq!(failed(&running(held("True")), Cause::Orphaned, NOW), Some(orphaned), "since then");

    let over = pod(&json!({ "metadata": { "uid": "u" }, "status": { "phase": "Succeeded" } }));
    assert_eq!(failed(&over, Cause::Orphaned, NOW), None);
}

#[test]
fn a_node_is_asked_for_when_it_was_missing_for_long_enough() {
    let mut quarantine = Quarantine::default();
    let seconds = i64::try_from(QUARANTINE.as_secs()).unwrap();
    let mut pass = |missing: &[&str], after: i64| -> Vec<String> {
        let missing = missing.iter().map(|&name| name.into()).collect();
        quarantine.pass(&missing, NOW.plus_seconds(after)).iter().map(ToString::to_string).collect()
    };
    assert_eq!(pass(&["a"], 0), [""; 0]);
    assert_eq!(pass(&["a", "b"], 20), [""; 0]);
    assert_eq!(pass(&["a", "b"], seconds), ["a"]);
    assert_eq!(pass(&["a", "b"], seconds + 20), ["b"], "a was asked for, and waits as long again");
    assert_eq!(pass(&["b"], 2 * seconds), [""; 0], "a was seen");
    assert_eq!(pass(&["a", "b"], 2 * seconds + 20), ["b"], "a begins anew");
    assert_eq!(pass(&["a"], 3 * seconds + 20), ["a"]);
}
