//! Revisions.

use serde_json::{Value, json};
use steersman_base::StringMap;
use steersman_model::View;

use super::super::history::{
    annotations_of_new, annotations_rolled_back, first_annotations, forgotten, last_revision, next_revision,
};
use super::super::sets::Sets;
use super::{available, deployment, noted, set};
use crate::test_objects::{merged, terminating};

const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";

fn texts(map: &StringMap) -> Vec<String> {
    map.iter().map(|(key, value)| format!("{}={value}", key.rsplit('/').next().unwrap_or(key))).collect()
}

#[test]
fn the_new_one_has_the_next_revision() {
    let check = |name: &str, old: &[Value], next: i64, last: i64| {
        let old = old.iter().enumerate().map(|(n, revision)| {
            set(&format!("v{n}"), "web:1", 0, json!({ "metadata": { "annotations": { REVISION: revision } } }))
        });
        let sets = Sets { new: None, old: old.collect() };
        assert_eq!((next_revision(&sets), last_revision(&sets)), (next, last), "{name}");
    };
    check("none yet", &[], 1, 0);
    check("one", &[json!("1")], 2, 0);
    check("several", &[json!("1"), json!("7"), json!("3")], 8, 3);
    check("one that is no number", &[json!("1"), json!("x")], 2, 0);
    check("two alike", &[json!("4"), json!("4")], 5, 4);
}

#[test]
fn a_new_one_gets_the_deployments_annotations_but_not_what_is_its_own() {
    let web = deployment(json!({ "metadata": { "annotations": {
        "kubernetes.io/change-cause": "better",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        REVISION: "9",
        "deprecated.deployment.rollback.to": "1",
    } } }));
    let got = first_annotations(&web, &Sets::default());
    assert_eq!(texts(&got), ["desired-replicas=3", "max-replicas=4", "revision=1", "change-cause=better"]);
}

#[test]
fn an_existing_one_remembers_the_revisions_it_had() {
    let check = |name: &str, new: Value, old: i64, want: &[&str]| {
        let new = set("v1", "web:2", 0, json!({ "metadata": { "annotations": new } }));
        let sets = Sets { new: Some(new.clone()), old: vec![set("v2", "web:1", 3, noted(old, 3, 4))] };
        assert_eq!(texts(&annotations_of_new(&deployment(json!({})), &sets, &new)), want, "{name}");
    };
    check("it is the newest", json!({ REVISION: "2" }), 1, &["revision=2"]);
    check("older ones were deleted", json!({ REVISION: "7" }), 1, &["revision=7"]);
    check("rolled back to", json!({ REVISION: "1" }), 2, &["revision=3", "revision-history=1"]);
    let again = json!({ REVISION: "3", HISTORY: "1,2" });
    check("rolled back to again", again, 4, &["revision=5", "revision-history=1,2,3"]);
    check("adopted", json!({}), 4, &["revision=5"]);
    check("somebody wrote nonsense", json!({ REVISION: "x", "a": "b" }), 4, &["a=b", "revision=x"]);
    check("somebody wrote nothing", json!({ REVISION: "" }), 4, &["revision=5"]);
}

#[test]
fn the_list_of_earlier_revisions_is_bounded() {
    let long: Vec<String> = (1_000..1_400).map(|n| n.to_string()).collect();
    let more = json!({ "metadata": { "annotations": { REVISION: "1400", HISTORY: long.join(",") } } });
    let new = set("v1", "web:2", 0, more);
    let sets = Sets { new: Some(new.clone()), old: vec![set("v2", "web:1", 3, noted(2_000, 3, 4))] };
    let got = annotations_of_new(&deployment(json!({})), &sets, &new);
    let list = got.get(HISTORY).unwrap();
    assert!(list.len() <= 2_000 && list.ends_with("1399,1400") && list.starts_with("1001,"), "{list}");
}

#[test]
fn a_deployment_that_goes_back_gets_the_annotations_of_then() {
    let now = json!({ "metadata": { "annotations": { "cause": "edit", "new": "x", REVISION: "2" } } });
    let then = json!({ "metadata": { "annotations": { "cause": "create", REVISION: "1" } } });
    let deployment = deployment(now);
    let set = set("v1", "web:1", 0, then);
    assert_eq!(texts(&annotations_rolled_back(deployment.meta(), set.meta())), ["cause=create", "revision=2"]);
}

#[test]
fn the_oldest_revisions_that_nobody_uses_are_forgotten() {
    let check = |name: &str, limit: Value, old: Vec<(i64, i32, Value)>, want: &[&str]| {
        let deployment = deployment(json!({ "spec": { "revisionHistoryLimit": limit } }));
        let old = old.into_iter().map(|(revision, replicas, more)| {
            set(&format!("v{revision}"), "web:1", replicas, merged(noted(revision, 3, 4), more))
        });
        let sets = Sets { new: None, old: old.collect() };
        let got: Vec<_> = forgotten(&deployment, &sets).iter().map(|set| set.meta().name.to_string()).collect();
        assert_eq!(got, want, "{name}");
    };
    let idle = |revision: i64| (revision, 0, json!({}));
    check("as many as are kept", json!(2), vec![idle(1), idle(2)], &[]);
    check("the lowest go", json!(1), vec![idle(3), idle(1), idle(2)], &["v1", "v2"]);
    check("no limit", json!(null), vec![idle(1), idle(2)], &[]);
    check("the largest number is no limit", json!(i32::MAX), vec![idle(1), idle(2)], &[]);
    let used = vec![(1, 0, available(1)), (2, 1, json!({})), (3, 1, available(1)), idle(4)];
    check("those that have or want pods stay", json!(0), used, &["v4"]);
    let unseen = (1, 0, json!({ "metadata": { "generation": 2 } }));
    check("nobody has looked at its last change", json!(0), vec![unseen], &[]);
    let going = (1, 0, terminating());
    check("one that goes does not count", json!(1), vec![going, idle(2)], &[]);
}
