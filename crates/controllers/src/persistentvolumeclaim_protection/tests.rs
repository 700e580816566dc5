//! Tables of the decisions.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::names::finalizers::PVC_PROTECTION;
use steersman_informer::{Change, End};
use steersman_model::core::{PersistentVolumeClaimView, PodView};

use super::Options;
use super::map::{claim as key_of_claim, claims_of_pod, unsettled};
use super::plan::{Plan, plan, set_unused};
use crate::test_objects::{NOW, decode, merged, now, pod};

const TRACKING: Options = Options { tracks_unused: true };
const PLAIN: Options = Options { tracks_unused: false };
const NOTHING: Plan = Plan { unused: None, protect: false, release: false };

fn claim(more: Value) -> PersistentVolumeClaimView {
    let base = json!({
        "metadata": { "name": "data", "namespace": "default", "uid": "claim", "finalizers": [PVC_PROTECTION] },
        "status": { "phase": "Bound" },
    });
    decode(merged(base, more))
}

fn terminating_claim() -> PersistentVolumeClaimView {
    claim(json!({ "metadata": { "deletionTimestamp": NOW } }))
}

/// A claim that was made for the pod `web`.
fn of_pod(more: Value) -> PersistentVolumeClaimView {
    let owner = json!({ "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "web", "controller": true });
    claim(merged(json!({ "metadata": { "name": "web-scratch", "ownerReferences": [owner] } }), more))
}

fn with_claim(name: &str, more: Value) -> Arc<PodView> {
    let volumes = json!({ "spec": { "volumes": [
        { "name": "other", "emptyDir": {} },
        { "name": "v", "persistentVolumeClaim": { "claimName": name } },
    ] } });
    pod("web", merged(volumes, more))
}

fn with_ephemeral(more: Value) -> Arc<PodView> {
    let template = json!({ "volumeClaimTemplate": { "spec": {} } });
    pod("web", merged(json!({ "spec": { "volumes": [{ "name": "scratch", "ephemeral": template }] } }), more))
}

fn unscheduled() -> Value {
    json!({ "spec": { "nodeName": null } })
}

fn shut_down() -> Value {
    json!({ "metadata": { "deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0 } })
}

fn leaving_with(state: &str) -> Value {
    json!({
        "metadata": { "deletionTimestamp": NOW, "deletionGracePeriodSeconds": 30 },
        "status": { "containerStatuses": [{ "name": "c", "state": { state: {} } }] },
    })
}

#[test]
fn a_terminating_claim_is_released_when_no_scheduled_pod_has_it() {
    let check = |name: &str, claim: &PersistentVolumeClaimView, pods: &[Arc<PodView>], is_released: bool| {
        let got = plan(claim, pods.iter().map(|pod| &**pod), TRACKING);
        assert_eq!(got, Plan { release: is_released, ..NOTHING }, "{name}");
    };
    let claim = terminating_claim();
    let made = of_pod(json!({ "metadata": { "deletionTimestamp": NOW } }));
    let of_other = of_pod(json!({ "metadata": { "deletionTimestamp": NOW, "ownerReferences": null } }));
    check("no pod", &claim, &[], true);
    check("a running pod", &claim, &[with_claim("data", json!({}))], false);
    check("a pod of another claim", &claim, &[with_claim("other", json!({}))], true);
    check("a pod without a node", &claim, &[with_claim("data", unscheduled())], true);
    // As upstream: its volumes may still be mounted.
    check("an ended pod", &claim, &[with_claim("data", json!({ "status": { "phase": "Succeeded" } }))], false);
    check("a pod that a finalizer keeps", &claim, &[with_claim("data", shut_down())], false);
    check("the pod it was made for", &made, &[with_ephemeral(json!({}))], false);
    check("the pod it was made for, shut down", &made, &[with_ephemeral(shut_down())], true);
    check("a pod of the name it was not made for", &of_other, &[with_ephemeral(json!({}))], true);
}

#[test]
fn a_claim_without_the_finalizer_gets_it_unless_it_terminates() {
    let bare = json!({ "metadata": { "finalizers": null } });
    assert_eq!(plan(&claim(bare.clone()), [], PLAIN), Plan { protect: true, ..NOTHING });
    assert_eq!(plan(&claim(merged(bare, json!({ "metadata": { "deletionTimestamp": NOW } }))), [], PLAIN), NOTHING);
    assert_eq!(plan(&claim(json!({})), [], PLAIN), NOTHING);
}

#[test]
fn a_bound_claim_says_whether_a_pod_names_it() {
    let check = |name: &str, held: Option<&str>, pods: &[Arc<PodView>], want: Option<bool>| {
        let conditions: Vec<_> = held.iter().map(|status| json!({ "type": "Unused", "status": status })).collect();
        let claim = claim(json!({ "status": { "conditions": conditions } }));
        let pods = || pods.iter().map(|pod| &**pod);
        assert_eq!(plan(&claim, pods(), TRACKING).unused, want, "{name}");
        assert_eq!(plan(&claim, pods(), PLAIN).unused, None, "{name}, without the gate");
    };
    let running = with_claim("data", json!({}));
    let waiting = with_claim("data", unscheduled());
    let ended = with_claim("data", json!({ "status": { "phase": "Failed" } }));
    check("new and used", None, std::slice::from_ref(&running), Some(false));
    check("new and unused", None, &[], Some(true));
    check("a pod without a node counts", None, &[waiting], Some(false));
    check("an ended one does not", Some("False"), &[ended], Some(true));
    check("unused, and now used", Some("True"), std::slice::from_ref(&running), Some(false));
    check("still used", Some("False"), std::slice::from_ref(&running), None);
    check("unknown, and used", Some("Unknown"), &[running], None);
    check("unknown, and unused", Some("Unknown"), &[], Some(true));
    check("still unused", Some("True"), &[], None);
    check("its containers have stopped", Some("False"), &[with_claim("data", leaving_with("terminated"))], Some(true));
    check("one still runs", Some("False"), &[with_claim("data", leaving_with("running"))], None);
    let pending = claim(json!({ "status": { "phase": "Pending" } }));
    assert_eq!(plan(&pending, [], TRACKING).unused, None, "a claim that is not bound belongs to the binder");
}

#[test]
fn the_condition_is_set_once_and_others_stay() {
    let other = json!({ "type": "Resizing", "status": "True" });
    let mut claim = json!({ "metadata": {}, "status": { "phase": "Bound", "conditions": [other] } });
    assert!(set_unused(&mut claim, true, now()));
    assert!(!set_unused(&mut claim, true, now()), "it says so already");
    assert_eq!(claim["status"]["conditions"][0], other);
    assert_eq!(
        claim["status"]["conditions"][1],
        json!({
            "type": "Unused", "status": "True", "lastTransitionTime": NOW, "reason": "NoPodsUsingPVC",
            "message": "No pods are currently referencing this PVC",
        })
    );
    assert!(set_unused(&mut claim, false, now()));
    assert_eq!(claim["status"]["conditions"][1]["reason"], "PodUsingPVC");
    assert_eq!(claim["status"]["conditions"].as_array().map(Vec::len), Some(2));
    claim["status"]["phase"] = json!("Lost");
    assert!(!set_unused(&mut claim, true, now()), "it is not bound any more");
}

#[test]
fn only_changes_that_may_decide_something_enqueue_claims() {
    let added = |pod: Arc<PodView>| Change::Added { new: pod, initial: false };
    let count = |change: &Change<PodView>, options: Options| claims_of_pod(change, options).len();
    let running = with_claim("data", json!({}));
    let ended = with_claim("data", json!({ "status": { "phase": "Succeeded" } }));
    let heartbeat = with_claim("data", json!({ "status": { "podIP": "10.0.0.1" } }));
    assert_eq!(count(&added(running.clone()), TRACKING), 1);
    assert_eq!(count(&added(running.clone()), PLAIN), 0, "a running pod releases nothing");
    assert_eq!(count(&added(with_claim("data", unscheduled())), PLAIN), 1);
    assert_eq!(count(&Change::Updated { old: running.clone(), new: heartbeat }, TRACKING), 0);
    assert_eq!(count(&Change::Updated { old: running.clone(), new: ended }, PLAIN), 1);
    assert_eq!(count(&Change::Deleted { last: running, end: End::Observed }, PLAIN), 1);
    let ephemeral = claims_of_pod(&added(with_ephemeral(json!({}))), TRACKING);
    assert_eq!(ephemeral.iter().map(ToString::to_string).collect::<Vec<_>>(), ["default/web-scratch"]);

    let is_enqueued = |claim: PersistentVolumeClaimView, options: Options| {
        key_of_claim(&Change::Added { new: Arc::new(claim), initial: false }, options).is_some()
    };
    assert!(is_enqueued(claim(json!({})), TRACKING), "it has no condition yet");
    assert!(!is_enqueued(claim(json!({})), PLAIN));
    assert!(is_enqueued(terminating_claim(), PLAIN));
}

#[test]
fn the_condition_of_a_bound_claim_is_checked_at_every_start_and_change() {
    let check = |name: &str, more: Value, want: bool| {
        let claim = Arc::new(claim(more));
        let added = Change::Added { new: claim.clone(), initial: true };
        let updated = Change::Updated { old: claim.clone(), new: claim };
        assert_eq!(key_of_claim(&added, TRACKING).is_some(), want, "{name}");
        assert_eq!(key_of_claim(&updated, TRACKING).is_some(), want, "{name}, updated");
        assert_eq!(key_of_claim(&added, PLAIN), None, "{name}, without the gate");
    };
    let held = |status: &str| json!({ "status": { "conditions": [{ "type": "Unused", "status": status }] } });
    check("the pod may have gone while no manager ran", held("False"), true);
    check("the write for a new pod may have been a conflict", held("True"), true);
    check("it belongs to the binder", json!({ "status": { "phase": "Pending" } }), false);
}

#[test]
fn only_claims_that_are_written_if_no_pod_uses_them_are_unsettled() {
    let check = |name: &str, claim: &PersistentVolumeClaimView, tracking: bool, plain: bool| {
        let is_unsettled = |options| unsettled(claim, options).is_some_and(|namespace| namespace == "default");
        assert_eq!((is_unsettled(TRACKING), is_unsettled(PLAIN)), (tracking, plain), "{name}");
    };
    let with_condition = |status: &str| {
        let condition = json!({ "type": "Unused", "status": status });
        claim(json!({ "status": { "conditions": [condition] } }))
    };
    check("terminating", &terminating_claim(), true, true);
    let bare = json!({ "metadata": { "deletionTimestamp": NOW, "finalizers": null } });
    check("terminating, and released", &claim(bare), false, false);
    check("new", &claim(json!({})), true, false);
    check("known as used", &with_condition("False"), true, false);
    check("known as unused", &with_condition("True"), false, false);
    check("not bound", &claim(json!({ "status": { "phase": "Pending" } })), false, false);
}
