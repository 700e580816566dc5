//! What the world remembers.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::{Istr, ObjectKey, Time, Uid};

use super::*;
use crate::record::{Actor, Change};

fn change(revision: u64, at: i64, name: &str, before: Option<&Value>, after: Option<&Value>) -> Change {
    let arc = |value: Option<&Value>| value.cloned().map(Arc::new);
    Change {
        revision,
        at: Time::from_unix(at),
        resource: "pods".into(),
        key: ObjectKey::new("shop", name),
        before: arc(before),
        after: arc(after),
        by: Actor::Node,
        shown: None,
    }
}

fn pod(uid: &str, owner: Option<&str>, phase: &str) -> Value {
    let owners = owner.map(|uid| json!([{ "kind": "ReplicaSet", "name": "web", "uid": uid, "controller": true }]));
    json!({ "kind": "Pod", "metadata": { "uid": uid, "ownerReferences": owners }, "status": { "phase": phase } })
}

fn shown(revision: u64, hidden: &[u64]) -> Shown {
    let pods = Istr::from("pods");
    Shown {
        revisions: Arc::new([(pods.clone(), revision)].into()),
        hidden: [(pods, hidden.iter().copied().collect::<BTreeSet<_>>())].into(),
        since: Arc::default(),
        sent: None,
    }
}

#[test]
fn the_past_is_shown_as_it_was_without_what_was_hidden() {
    let mut world = World::default();
    let key = ObjectKey::new("shop", "a");
    let versions = [pod("1", None, "Pending"), pod("1", Some("rs"), "Running"), pod("1", Some("rs"), "Failed")];
    world.apply(&change(1, 100, "a", None, Some(&versions[0])));
    world.apply(&change(2, 101, "a", Some(&versions[0]), Some(&versions[1])));
    world.apply(&change(3, 102, "a", Some(&versions[1]), Some(&versions[2])));
    world.apply(&change(4, 103, "a", Some(&versions[2]), None));
    let phase = |revision, hidden: &[u64]| {
        let shown = shown(revision, hidden);
        world.as_shown(&shown).get("pods", &key).and_then(|pod| pod.pod()).map(|pod| pod.phase)
    };
    assert_eq!(phase(0, &[]), None, "before it was there");
    assert_eq!(phase(1, &[]), Some(Phase::Pending));
    assert_eq!(phase(2, &[]), Some(Phase::Running));
    assert_eq!(phase(3, &[2, 3]), Some(Phase::Pending), "what was hidden did not happen");
    assert_eq!(phase(4, &[4]), Some(Phase::Ended));
    assert_eq!(phase(4, &[]), None);
    let of = |revision| world.as_shown(&shown(revision, &[])).controlled("pods", &Uid::new("rs")).count();
    assert_eq!((of(1), of(2), of(4)), (0, 1, 0));
}

#[test]
fn indexes_follow_the_objects() {
    let mut world = World::default();
    let first = pod("1", Some("rs"), "Running");
    let second = pod("1", Some("other"), "Succeeded");
    world.apply(&change(1, 100, "a", None, Some(&first)));
    assert_eq!(world.dependents(&Uid::new("rs")).count(), 1);
    assert_eq!(world.content("shop").count(), 1);
    world.apply(&change(2, 100, "a", Some(&first), Some(&second)));
    assert_eq!((world.dependents(&Uid::new("rs")).count(), world.dependents(&Uid::new("other")).count()), (0, 1));
    assert_eq!(world.controlled("pods", &Uid::new("rs")).count(), 0);
    assert_eq!(world.controlled("pods", &Uid::new("other")).count(), 1);
    assert_eq!(world.ended_pods(), 1);
    world.apply(&change(3, 100, "a", Some(&second), None));
    assert!(world.by_uid(&Uid::new("1")).is_none());
    assert_eq!((world.content("shop").count(), world.ended_pods()), (0, 0));
}

#[test]
fn what_was_there_before_the_recorder_counts() {
    let mut world = World::default();
    let first = pod("1", Some("rs"), "Running");
    let second = pod("1", None, "Running");
    world.apply(&change(7, 100, "a", Some(&first), Some(&second)));
    let step = world.last();
    assert!(step.before.as_ref().unwrap().controller().is_some());
    assert!(step.after.as_ref().unwrap().controller().is_none());
}

#[test]
fn the_past_is_bounded() {
    let mut world = World::default();
    let made = pod("1", Some("rs"), "Running");
    for n in 0..5000_u64 {
        let before = (n > 0).then_some(&made);
        world.apply(&change(n + 1, 100 + i64::try_from(n).unwrap(), "a", before, Some(&made)));
    }
    let key = ObjectKey::new("shop", "a");
    let known = world.history("pods", &key).unwrap().revisions_after(0).count();
    assert!((3600..=3700).contains(&known), "{known} versions are kept");
    world.apply(&change(5001, 6000, "a", Some(&made), None));
    world.apply(&change(5002, 6000 + history::SECONDS_MAX + 1, "b", None, Some(&made)));
    assert!(world.history("pods", &key).is_none(), "what is gone for long is forgotten");
    assert_eq!(world.histories("pods", &Uid::new("rs")).count(), 1, "and its place in indexes");
}
