//! Table tests of the classification of owners, and of the dump of the graph.

use serde_json::json;
use steersman_base::meta::{Owners, RareMeta};
use steersman_base::names::finalizers;
use steersman_base::{Istr, Meta, OwnerRef, Time};
use steersman_runtime::Propagation;

use super::dump::Picture;
use super::graph::{Graph, Work};
use super::identity::{Identity, Kind};
use super::plan::{Dependents, OwnerState, Plan, owner_state, plan};

fn owner(uid: &str) -> OwnerRef {
    OwnerRef { api_version: "v1".into(), kind: "Pod".into(), name: "p".into(), uid: uid.into(), ..OwnerRef::default() }
}

fn object(uid: &str, owners: &[&str], held_by: &[&str]) -> Meta {
    let rare = RareMeta { finalizers: held_by.iter().map(|name| Istr::from(*name)).collect(), ..RareMeta::default() };
    Meta {
        name: uid.into(),
        namespace: "a".into(),
        uid: uid.into(),
        owner_references: Owners::new(owners.iter().map(|uid| owner(uid)).collect()),
        rare: Some(Box::new(rare)),
        ..Meta::default()
    }
}

fn terminating(mut object: Meta) -> Meta {
    if let Some(rare) = &mut object.rare {
        rare.deletion_timestamp = Some(Time::from_unix(1));
    }
    object
}

#[test]
fn an_owner_is_worth_what_the_server_has() {
    let check = |name: &str, live: Option<Meta>, want: OwnerState| {
        assert_eq!(owner_state(&owner("o"), live.as_ref()), want, "{name}");
    };
    let foreground = [finalizers::FOREGROUND_DELETION];
    check("none", None, OwnerState::Dangling);
    check("another of its name", Some(object("x", &[], &[])), OwnerState::Dangling);
    check("another that waits", Some(terminating(object("x", &[], &foreground))), OwnerState::Dangling);
    check("there", Some(object("o", &[], &[])), OwnerState::Solid);
    check("going, in no hurry", Some(terminating(object("o", &[], &["example.com/hold"]))), OwnerState::Solid);
    check("going, leaving us behind", Some(terminating(object("o", &[], &[finalizers::ORPHAN]))), OwnerState::Solid);
    check("with the finalizer, not going", Some(object("o", &[], &foreground)), OwnerState::Solid);
    check("waiting", Some(terminating(object("o", &[], &foreground))), OwnerState::Waiting);
}

#[test]
fn an_object_stays_for_one_solid_owner_and_goes_for_none() {
    use OwnerState::{Dangling, Solid, Waiting};
    const NO: Dependents = Dependents { any: false, any_waiting: false };
    const SOME: Dependents = Dependents { any: true, any_waiting: false };
    const CYCLE: Dependents = Dependents { any: true, any_waiting: true };
    let check = |owners: &[&str], owner_states: &[OwnerState], held_by: &[&str], dependents: Dependents, want: Plan| {
        let got = plan(&object("me", owners, held_by), owner_states, dependents);
        assert_eq!(got, want, "{owners:?} {owner_states:?} {held_by:?} {dependents:?}");
    };
    let lets_go = |uids: &[&str]| Plan::RemoveOwners(uids.iter().map(|uid| (*uid).into()).collect());
    check(&[], &[], &[], SOME, Plan::Keep);
    check(&["a", "b"], &[Solid, Solid], &[], NO, Plan::Keep);
    check(&["a", "b"], &[Solid, Dangling], &[], NO, lets_go(&["b"]));
    check(&["a", "b", "c"], &[Waiting, Dangling, Solid], &[], CYCLE, lets_go(&["a", "b"]));
    check(&["a", "b", "b"], &[Solid, Dangling, Dangling], &[], NO, lets_go(&["b"]));
    check(&["a", "a"], &[Solid, Dangling], &[], NO, Plan::Keep);
    check(&["a", "a"], &[Dangling, Solid], &[], NO, Plan::Keep);

    let background = Plan::Delete(Propagation::Background);
    check(&["a"], &[Dangling], &[], NO, background.clone());
    check(&["a"], &[Dangling], &[], CYCLE, background.clone());
    check(&["a"], &[Waiting], &[], NO, background.clone());
    check(&["a"], &[Dangling], &["example.com/hold"], NO, background);
    check(&["a"], &[Dangling], &[finalizers::ORPHAN], SOME, Plan::Delete(Propagation::Orphan));
    check(&["a"], &[Dangling], &[finalizers::FOREGROUND_DELETION], SOME, Plan::Delete(Propagation::Foreground));
    check(&["a"], &[Waiting], &[finalizers::ORPHAN], NO, Plan::Delete(Propagation::Orphan));
    check(&["a", "b"], &[Dangling, Waiting], &[], SOME, Plan::DeleteInForeground { in_cycle: false });
    check(&["a"], &[Waiting], &[finalizers::ORPHAN], CYCLE, Plan::DeleteInForeground { in_cycle: true });
}

/// Upstream's `escaping.dot`, as far as it is legible.
#[test]
fn the_picture_is_upstreams() {
    let mut graph = Graph::default();
    let kind = Kind { api_version: "apps/v1".into(), kind: "ReplicaSet".into() };
    let mut child = object("ref1-\"\\\u{fc}", &["ref2-"], &[]);
    child.name = "child".into();
    graph.observed(&kind, &terminating(child), None, &mut Work::default());
    graph.observed(&kind, &object("alone", &[], &[]), None, &mut Work::default());
    let picture = Picture::of(&graph, &[]);
    let want = r#"strict digraph full {
  // Node definitions.
  "ref1-\"\\ü" [
    label="uid=ref1-\"\\ü\nnamespace=a\nReplicaSet.v1.apps/child\nbeingDeleted\n"
    group="apps"
    version="v1"
    kind="ReplicaSet"
    namespace="a"
    name="child"
    uid="ref1-\"\\ü"
    missing="false"
    beingDeleted="true"
    deletingDependents="false"
    virtual="false"
  ];
  "ref2-" [
    label="uid=ref2-\nnamespace=a\nPod.v1/p\nvirtual\n"
    group=""
    version="v1"
    kind="Pod"
    namespace="a"
    name="p"
    uid="ref2-"
    missing="false"
    beingDeleted="false"
    deletingDependents="false"
    virtual="true"
  ];
  // Edge definitions.
  "ref1-\"\\ü" -> "ref2-";
}
"#;
    assert_eq!(picture.dot(), want);
    let json = picture.json();
    assert_eq!(json["edges"], json!([{ "dependent": "ref1-\"\\ü", "owner": "ref2-" }]));
    assert_eq!(json["nodes"][1]["virtual"], true);

    graph.mark_absent(&Identity::referred_to(&owner("ref2-"), &"a".into()), &mut Work::default());
    let json = Picture::of(&graph, &["ref1-\"\\ü".into()]).json();
    assert_eq!((json["nodes"].as_array().map(Vec::len), &json["nodes"][1]["missing"]), (Some(2), &json!(true)));
    assert_eq!(Picture::of(&graph, &["alone".into()]).json()["nodes"], json!([]));
}
