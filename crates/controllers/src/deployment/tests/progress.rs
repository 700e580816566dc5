//! Status, conditions and the deadline.

use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::condition;
use steersman_base::{Condition, ConditionStatus};
use steersman_model::apps::DeploymentView;

use super::super::Options;
use super::super::progress::{PROGRESSING, next_check};
use super::super::sets::Sets;
use super::super::status::{Estimate, New, status};
use super::{available, deployment, set};
use crate::test_objects::{merged, now};

const BEFORE: &str = "2026-11-15T11:50:00Z";

fn condition(status: &str, reason: &str, at: &str) -> Value {
    json!({ "type": "Progressing", "status": status, "reason": reason, "lastUpdateTime": at, "lastTransitionTime": at })
}

/// Returns a Deployment of this size with this status.
#[allow(clippy::needless_pass_by_value, reason = "rows of a table read better")]
fn seen(replicas: i32, counts: [i32; 3], conditions: Value, deadline: Value) -> DeploymentView {
    let [replicas_seen, updated, available] = counts;
    deployment(json!({
        "spec": { "replicas": replicas, "progressDeadlineSeconds": deadline },
        "status": {
            "replicas": replicas_seen, "updatedReplicas": updated, "availableReplicas": available,
            "readyReplicas": available, "conditions": conditions, "observedGeneration": 1,
        },
    }))
}

fn sets(new: Option<i32>, old: &[i32]) -> Sets {
    let old = old.iter().enumerate().map(|(n, size)| set(&format!("v{n}"), "web:1", *size, available(*size)));
    Sets { new: new.map(|size| set("v9", "web:2", size, available(size))), old: old.collect() }
}

fn progressing(deployment: &DeploymentView, sets: &Sets, estimate: Estimate) -> Option<Condition> {
    let new = if sets.new.is_some() { New::Found { name: "v9" } } else { New::None };
    let status = status(deployment, sets, new, estimate, Options::default(), now());
    condition::find(&status.conditions, PROGRESSING).cloned()
}

/// A rollout that is undone at once: all counts predate it, and so would the condition `Progressing`.
#[test]
fn a_roll_out_is_not_through_before_its_replica_sets_have_seen_their_specs() {
    let late = json!({ "metadata": { "generation": 3 }, "status": { "observedGeneration": 1 } });
    let sets = |new: Value| Sets { new: Some(set("v9", "web:2", 3, merged(available(3), new))), old: Vec::new() };
    let check = |name: &str, at: &str, new: Value, want: &str| {
        let seen = seen(3, [3, 3, 3], json!([condition("True", "ReplicaSetUpdated", at)]), json!(60));
        let got = progressing(&seen, &sets(new), Estimate::Progress).unwrap();
        assert_eq!(&*got.reason, want, "{name}");
    };
    check("it says so of an older spec", "2026-11-15T11:59:30Z", late.clone(), "ReplicaSetUpdated");
    check("and is not blamed for being late", BEFORE, late, "ReplicaSetUpdated");
    check("it says so of its spec", BEFORE, json!({}), "NewReplicaSetAvailable");
}

/// As upstream's `TestSyncRolloutStatus`.
#[test]
fn the_condition_reports_how_the_roll_out_gets_on() {
    let updated = || condition("True", "ReplicaSetUpdated", BEFORE);
    let timed_out = || condition("False", "ProgressDeadlineExceeded", BEFORE);
    let check = |name: &str, seen: DeploymentView, sets: Sets, want: Option<(&str, &str, bool, bool)>| {
        let got = progressing(&seen, &sets, Estimate::Progress);
        let before = Some(BEFORE.parse().unwrap());
        let got = got.as_ref().map(|condition| {
            let updated = condition.last_update_time;
            let transition = condition.last_transition_time;
            (condition.status.as_str(), &*condition.reason, updated == before, transition == before)
        });
        assert_eq!(got, want, "{name}");
    };
    check("no deadline", seen(3, [2, 2, 2], json!([updated()]), json!(null)), sets(Some(2), &[1]), None);
    check(
        "no deadline by the largest number",
        seen(3, [2, 2, 2], json!([updated()]), json!(i32::MAX)),
        sets(Some(2), &[1]),
        None,
    );
    let through = json!([condition("True", "NewReplicaSetAvailable", BEFORE)]);
    check(
        "it was through",
        seen(3, [3, 3, 3], through.clone(), json!(60)),
        sets(Some(3), &[]),
        Some(("True", "NewReplicaSetAvailable", true, true)),
    );
    check(
        "it was through, and pods fail",
        seen(3, [3, 3, 3], through, json!(60)),
        sets(Some(2), &[]),
        Some(("True", "NewReplicaSetAvailable", true, true)),
    );
    check(
        "it gets on",
        seen(3, [2, 1, 2], json!([updated()]), json!(60)),
        sets(Some(2), &[1]),
        Some(("True", "ReplicaSetUpdated", false, true)),
    );
    check(
        "it gets on after all",
        seen(3, [2, 1, 2], json!([timed_out()]), json!(60)),
        sets(Some(2), &[1]),
        Some(("True", "ReplicaSetUpdated", false, false)),
    );
    check(
        "it gets on, nothing was said",
        seen(3, [2, 1, 2], json!([]), json!(60)),
        sets(Some(2), &[1]),
        Some(("True", "ReplicaSetUpdated", false, false)),
    );
    check(
        "it gets through",
        seen(3, [3, 3, 2], json!([updated()]), json!(60)),
        sets(Some(3), &[]),
        Some(("True", "NewReplicaSetAvailable", false, true)),
    );
    check(
        "it gets through after all",
        seen(3, [3, 3, 2], json!([timed_out()]), json!(60)),
        sets(Some(3), &[]),
        Some(("True", "NewReplicaSetAvailable", false, false)),
    );
    check(
        "to nothing, without a new one",
        seen(0, [3, 3, 3], json!([updated()]), json!(60)),
        sets(None, &[0]),
        Some(("True", "NewReplicaSetAvailable", false, true)),
    );
    check(
        "it gets nowhere",
        seen(3, [2, 2, 2], json!([updated()]), json!(60)),
        sets(Some(2), &[]),
        Some(("False", "ProgressDeadlineExceeded", false, false)),
    );
    check(
        "it still gets nowhere",
        seen(3, [2, 2, 2], json!([timed_out()]), json!(60)),
        sets(Some(2), &[]),
        Some(("False", "ProgressDeadlineExceeded", true, true)),
    );
    let timeless = json!([{ "type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated" }]);
    check(
        "it gets nowhere, and nobody knows since when",
        seen(3, [2, 2, 2], timeless, json!(60)),
        sets(Some(2), &[]),
        Some(("False", "ProgressDeadlineExceeded", false, false)),
    );
    check(
        "it has time",
        seen(3, [2, 2, 2], json!([updated()]), json!(600)),
        sets(Some(2), &[]),
        Some(("True", "ReplicaSetUpdated", true, true)),
    );
    check(
        "one second more, and it has not",
        seen(3, [2, 2, 2], json!([updated()]), json!(599)),
        sets(Some(2), &[]),
        Some(("False", "ProgressDeadlineExceeded", false, false)),
    );
}

#[test]
fn the_condition_names_the_new_one() {
    let web = seen(3, [3, 3, 2], json!([]), json!(60));
    let said = progressing(&web, &sets(Some(3), &[]), Estimate::Progress).unwrap();
    assert_eq!(said.message, r#"ReplicaSet "v9" has successfully progressed."#);
    let said = progressing(&seen(0, [0, 0, 0], json!([]), json!(60)), &sets(None, &[0]), Estimate::Progress).unwrap();
    assert_eq!(said.message, r#"Deployment "web" has successfully progressed."#);
}

#[test]
fn what_is_paused_does_not_time_out() {
    let check = |name: &str, paused: bool, held: Value, want: Option<(&str, &str)>| {
        let mut web = seen(3, [2, 2, 2], held, json!(60));
        web.spec.paused = paused;
        let estimate = if paused { Estimate::Nothing } else { Estimate::Progress };
        let got = progressing(&web, &sets(Some(2), &[]), estimate);
        assert_eq!(got.as_ref().map(|said| (said.status.as_str(), &*said.reason)), want, "{name}");
    };
    let updated = || json!([condition("True", "ReplicaSetUpdated", BEFORE)]);
    let paused = || json!([condition("Unknown", "DeploymentPaused", BEFORE)]);
    let timed_out = || json!([condition("False", "ProgressDeadlineExceeded", BEFORE)]);
    check("it is paused", true, updated(), Some(("Unknown", "DeploymentPaused")));
    check("it stays paused", true, paused(), Some(("Unknown", "DeploymentPaused")));
    check("it is resumed, and time counts from now", false, paused(), Some(("Unknown", "DeploymentResumed")));
    check("what has timed out stays so", true, timed_out(), Some(("False", "ProgressDeadlineExceeded")));
    check("somebody began to care while it was paused", true, json!([]), Some(("Unknown", "DeploymentPaused")));
}

#[test]
fn a_new_one_that_was_made_or_found_is_reported() {
    let check = |name: &str, held: Value, new: New<'_>, estimate: Estimate, want: (&str, &str)| {
        let web = seen(3, [3, 3, 3], held, json!(60));
        let old = if matches!(new, New::Made { .. }) { sets(None, &[3]) } else { sets(Some(1), &[2]) };
        let status = status(&web, &old, new, estimate, Options::default(), now());
        let said = condition::find(&status.conditions, PROGRESSING).unwrap();
        assert_eq!((&*said.reason, &*said.message), want, "{name}");
    };
    let through = json!([condition("True", "NewReplicaSetAvailable", BEFORE)]);
    let made = New::Made { name: "v9", wanted: 1 };
    let created = ("NewReplicaSetCreated", r#"Created new replica set "v9""#);
    check("made, after a roll-out that was through", through, made, Estimate::Progress, created);
    let found = ("FoundNewReplicaSet", r#"Found new replica set "v9""#);
    check("found", json!([]), New::Found { name: "v9" }, Estimate::Nothing, found);
}

#[test]
fn the_deadline_is_looked_at_when_it_passes_and_not_before() {
    let check = |name: &str, counts: [i32; 3], conditions: Value, deadline: Value, want: Option<u64>| {
        let web = seen(3, counts, conditions, deadline);
        assert_eq!(next_check(&web, &web.status, now()), want.map(Duration::from_secs), "{name}");
    };
    let since = |at: &str| json!([condition("True", "ReplicaSetUpdated", at)]);
    check("no deadline", [3, 3, 1], since(BEFORE), json!(null), None);
    check("nothing was said", [3, 3, 1], json!([]), json!(60), None);
    check("it is through", [3, 3, 3], since(BEFORE), json!(60), None);
    check(
        "it has timed out",
        [3, 3, 0],
        json!([condition("False", "ProgressDeadlineExceeded", BEFORE)]),
        json!(60),
        None,
    );
    check(
        "it was through, and pods fail: no hot loop",
        [3, 3, 0],
        json!([condition("True", "NewReplicaSetAvailable", BEFORE)]),
        json!(60),
        None,
    );
    check("half of it is left", [3, 3, 1], since("2026-11-15T11:59:30Z"), json!(60), Some(31));
    check("it passes now", [3, 3, 1], since("2026-11-15T11:59:00Z"), json!(60), Some(1));
    check("it is long past", [3, 3, 1], since(BEFORE), json!(60), Some(1));
}

#[test]
fn status_adds_up_what_the_replica_sets_say() {
    let with = |terminating: Value, more: Value| {
        merged(
            merged(available(2), json!({ "status": { "readyReplicas": 3, "terminatingReplicas": terminating } })),
            more,
        )
    };
    let failure = json!({ "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota",
        "lastTransitionTime": BEFORE });
    let failing = json!({ "status": { "conditions": [failure] } });
    let sets = Sets {
        new: Some(set("v9", "web:2", 4, with(json!(1), json!({})))),
        old: vec![set("v1", "web:1", 2, with(json!(2), failing))],
    };
    let web = deployment(json!({ "metadata": { "generation": 7 }, "status": { "collisionCount": 2 } }));
    let got = status(&web, &sets, New::Found { name: "v9" }, Estimate::Progress, Options::default(), now());
    assert_eq!((got.replicas, got.updated_replicas, got.ready_replicas, got.available_replicas), (4, 2, 6, 4));
    assert_eq!((got.unavailable_replicas, got.terminating_replicas, got.collision_count), (2, Some(3), Some(2)));
    assert_eq!(got.observed_generation, 7);
    let reported = condition::find(&got.conditions, "ReplicaFailure").unwrap();
    assert_eq!((&*reported.message, reported.last_update_time), ("quota", Some(BEFORE.parse().unwrap())));
    assert!(condition::is_true(&got.conditions, "Available"));

    let silent = Sets { new: Some(set("v9", "web:2", 4, with(json!(null), json!({})))), old: vec![] };
    let got = status(&web, &silent, New::Found { name: "v9" }, Estimate::Progress, Options::default(), now());
    assert_eq!(got.terminating_replicas, None, "one does not report it");
    let off = Options { terminating_replicas: false };
    let got = status(&web, &sets, New::Found { name: "v9" }, Estimate::Progress, off, now());
    assert_eq!(got.terminating_replicas, None, "the feature gate DeploymentReplicaSetTerminatingReplicas is off");
    let unseen =
        Sets { new: Some(set("v9", "web:2", 4, json!({ "status": { "observedGeneration": 0 } }))), old: vec![] };
    let got = status(&web, &unseen, New::Found { name: "v9" }, Estimate::Progress, Options::default(), now());
    assert_eq!(got.terminating_replicas, Some(0), "nobody has looked at it yet");
    let said = condition::find(&got.conditions, "Available").unwrap();
    assert_eq!((said.status, &*said.reason), (ConditionStatus::False, "MinimumReplicasUnavailable"));
}
