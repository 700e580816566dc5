//! The status.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::condition;
use steersman_model::apps::{StatefulSetStatus, StatefulSetView};
use steersman_model::core::PodView;

use super::{pod, set, unready, with_seen};
use crate::statefulset::Options;
use crate::statefulset::plan::plan;
use crate::statefulset::status::{next_check, status};
use crate::test_objects::terminating;

/// The status after a pass that deleted one old pod, if there was one to delete.
fn of(set: &StatefulSetView, pods: &[Arc<PodView>]) -> StatefulSetStatus {
    with_seen(set, pods, &[], Options { recreate: true, ..Options::default() }, |seen| status(seen, &plan(seen), 4, 1))
}

#[test]
fn status_counts_what_is_seen() {
    let pods = [
        pod("web-0", "old", json!({})),
        pod("web-1", "old", unready()),
        pod("web-2", "new", json!({})),
        pod("web-3", "new", terminating()),
        pod("web-4", "older", json!({})),
    ];
    let got = of(&set(json!({})), &pods);
    assert_eq!((got.replicas, got.ready_replicas, got.available_replicas), (5, 4, 4));
    assert_eq!((got.current_replicas, got.updated_replicas), (2, 1));
    assert_eq!((&*got.current_revision, &*got.update_revision), ("old", "new"));
    assert_eq!((got.collision_count, got.observed_generation), (Some(4), 2));
}

/// The server refuses a status with a negative number.
#[test]
fn a_pod_that_was_deleted_in_this_pass_is_not_counted_any_more() {
    for (revisions, want) in [(["old", "old", "old"], 2), (["old", "old", "older"], 2), (["older"; 3], 0)] {
        let pods = [("web-0", 0), ("web-1", 1), ("web-2", 2)].map(|(name, at)| pod(name, revisions[at], json!({})));
        assert_eq!(of(&set(json!({})), &pods).current_replicas, want, "{revisions:?}");
    }
}

#[test]
fn the_update_is_complete_when_all_pods_are_updated_and_ready() {
    let all = |revision: &str| ["web-0", "web-1", "web-2"].map(|name| pod(name, revision, json!({})));
    let done = of(&set(json!({})), &all("new"));
    assert_eq!((&*done.current_revision, done.current_replicas), ("new", 3));
    let not_done = of(&set(json!({})), &all("old"));
    assert_eq!(&*not_done.current_revision, "old");
    let mut more = all("new").to_vec();
    more.push(pod("web-3", "new", json!({})));
    assert_eq!(&*of(&set(json!({})), &more).current_revision, "old", "a surplus pod is still there");
}

#[test]
fn recreate_reports_its_progress() {
    let recreate = |more: Value| {
        let mut base = json!({ "spec": { "updateStrategy": { "type": "Recreate", "rollingUpdate": null } } });
        base["status"] = more;
        set(base)
    };
    let said = |status: &StatefulSetStatus| {
        let held = condition::find(&status.conditions, "Progressing");
        held.map(|held| (held.status.to_string(), held.reason.to_string(), held.message.to_string()))
    };
    let want = |status: &str, reason: &str, text: &str| Some((status.to_owned(), reason.to_owned(), text.to_owned()));
    let old = of(&recreate(json!({})), &[pod("web-0", "old", terminating())]);
    assert_eq!(said(&old), want("True", "RecreateInProgress", "Deleting old revision pods"));
    let gone = of(&recreate(json!({})), &[]);
    assert_eq!(said(&gone), want("True", "RecreateInProgress", "Waiting for new-revision pods to be created"));
    let held = json!({ "conditions": [{ "type": "Progressing", "status": "True", "reason": "RecreateInProgress" }] });
    let all = ["web-0", "web-1", "web-2"].map(|name| pod(name, "new", json!({})));
    let done = of(&recreate(held), &all);
    assert_eq!(said(&done), want("False", "RecreateCompleted", "All pods recreated successfully"));
}

#[test]
fn the_next_check_is_when_the_next_pod_becomes_available() {
    let since = |name: &str, time: &str| {
        pod(
            name,
            "new",
            json!({ "status": { "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": time }] } }),
        )
    };
    let pods = [since("web-0", "2026-11-15T11:59:55Z"), since("web-1", "2026-11-15T11:59:52Z")];
    for (seconds, want) in [(0, None), (3, None), (10, Some(2)), (6, Some(1))] {
        let set = set(json!({ "spec": { "minReadySeconds": seconds } }));
        let got =
            with_seen(&set, &pods, &[], Options::default(), |seen| next_check(seen, &status(seen, &plan(seen), 0, 0)));
        assert_eq!(got, want.map(Duration::from_secs), "{seconds}");
    }
}
