//! Table tests of the pure functions.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use steersman_model::View;
use steersman_model::apps::{ControllerRevisionView, StatefulSetView};

use super::data;
use super::memory::Patches;
use super::plan::{Newest, forgotten, forgotten_of_old, newest, sort};
use crate::test_objects::decode;

/// Recorded from kube-controller-manager and kube-apiserver 1.37.1: templates as the server returns them, and the
/// revisions that the manager created for them.
const RECORDED: &str = include_str!("../../tests/data/controller-revisions.tsv");

fn set(template: &str) -> StatefulSetView {
    let template: Value = serde_json::from_str(template).unwrap();
    decode(json!({ "metadata": { "name": "web" }, "spec": { "template": template } }))
}

#[test]
fn data_and_hash_are_those_of_kube_controller_manager() {
    let mut kinds = HashSet::new();
    for line in RECORDED.lines().skip(1) {
        let columns: Vec<_> = line.split('\t').collect();
        let [kind, owner, template, want, name, hash] = columns[..] else { panic!("{line}") };
        kinds.insert(kind);
        let patch = data::patch(&set(template).spec.template);
        assert_eq!(patch, want, "{owner}");
        // The hash of a DaemonSet's revision is a hash of Go's structures, not of the data.
        if kind == "StatefulSet" {
            assert_eq!(data::hash(&patch, 0), hash, "{owner}");
            assert_eq!(data::name(owner, hash), name);
            assert_ne!(data::hash(&patch, 1), hash, "{owner}");
        }
    }
    assert_eq!(kinds.len(), 2);
}

#[test]
fn a_long_name_is_cut_as_upstream_cuts_it() {
    let name = data::name(&"a".repeat(250), "hash");
    assert_eq!(name, format!("{}-hash", "a".repeat(223)));
}

#[test]
fn data_is_compared_by_bytes_and_then_by_what_it_says() {
    for (left, right, want) in [
        (r#"{"a":"<"}"#, r#"{"a":"<"}"#, true),
        (r#"{"a":"\u003c"}"#, r#"{"a":"<"}"#, true),
        (r#"{"a":1,"b":2}"#, r#"{ "b": 2, "a": 1 }"#, true),
        (r#"{"a":1}"#, r#"{"a":2}"#, false),
        (r#"{"a":1}"#, "", false),
        ("nonsense", "nonsense too", false),
    ] {
        assert_eq!(data::is_same(left, right), want, "{left} {right}");
    }
}

fn template(image: &str) -> Value {
    json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "name": "c", "image": image }] } })
}

fn patch(image: &str) -> String {
    data::patch(&set(&template(image).to_string()).spec.template)
}

fn revision(name: &str, number: i64, data: &str) -> Arc<ControllerRevisionView> {
    let data: Value = serde_json::from_str(data).unwrap();
    let object = json!({ "metadata": { "name": name, "resourceVersion": "1" }, "revision": number, "data": data });
    Arc::new(decode(object))
}

#[test]
fn the_revision_of_a_template_is_found_by_its_data() {
    let one = revision("one", 1, &patch("web:1"));
    let two = revision("two", 2, &patch("web:2"));
    let again = revision("again", 3, &patch("web:1"));
    let is = |revision: &Arc<ControllerRevisionView>| Newest::Is(Arc::clone(revision));
    let check = |name: &str, held: &[&Arc<ControllerRevisionView>], image: &str, want: Newest| {
        let held: Vec<_> = held.iter().map(|revision| Arc::clone(revision)).collect();
        let set = set(&template(image).to_string());
        assert_eq!(newest(&held, &set.spec.template, &patch(image), true), want, "{name}");
    };
    check("the first", &[], "web:1", Newest::Create { number: 1 });
    check("unchanged", &[&one], "web:1", is(&one));
    check("changed", &[&one], "web:2", Newest::Create { number: 2 });
    check("changed again", &[&one, &two], "web:3", Newest::Create { number: 3 });
    check("rolled back", &[&one, &two], "web:1", Newest::Renumber { revision: Arc::clone(&one), to: 3 });
    check("the newest of two equal ones", &[&one, &two, &again], "web:1", is(&again));
}

/// Older versions of Kubernetes wrote `creationTimestamp: null`.
#[test]
fn a_revision_of_an_older_version_in_other_words_is_kept_unless_the_gate_is_off() {
    let mut old: Value = serde_json::from_str(&patch("web:1")).unwrap();
    old["spec"]["template"]["metadata"]["creationTimestamp"] = Value::Null;
    let held = [revision("old", 1, &old.to_string())];
    let set = set(&template("web:1").to_string());
    let found = |by_meaning: bool| newest(&held, &set.spec.template, &patch("web:1"), by_meaning);
    assert_eq!(found(true), Newest::Is(Arc::clone(&held[0])));
    assert_eq!(found(false), Newest::Create { number: 2 });
}

#[test]
fn revisions_are_sorted_by_number_then_by_age_then_by_name() {
    let at = |name: &str, number: i64, created: &str| -> Arc<ControllerRevisionView> {
        let metadata = json!({ "name": name, "creationTimestamp": created });
        Arc::new(decode(json!({ "metadata": metadata, "revision": number })))
    };
    let early = "2026-11-15T11:00:00Z";
    let late = "2026-11-15T12:00:00Z";
    let mut held = vec![at("c", 2, early), at("b", 1, late), at("d", 1, early), at("a", 1, late)];
    sort(&mut held);
    let names: Vec<_> = held.iter().map(|revision| revision.meta().name.to_string()).collect();
    assert_eq!(names, ["d", "a", "b", "c"]);
}

#[test]
fn revisions_beyond_the_limit_are_forgotten_but_for_those_in_use() {
    let held: Vec<_> = (1..=5).map(|number| revision(&format!("r{number}"), number, "{}")).collect();
    let check = |limit: i32, live: &[&str], want: &[&str]| {
        let live: HashSet<&str> = live.iter().copied().collect();
        let gone: Vec<_> = forgotten(&held, &live, limit).iter().map(|it| it.meta().name.to_string()).collect();
        assert_eq!(gone, want, "{limit} {live:?}");
    };
    check(10, &["r5"], &[]);
    check(4, &["r5"], &[]);
    check(2, &["r5"], &["r1", "r2"]);
    check(2, &["r1", "r5"], &["r2"]);
    check(0, &["r5"], &["r1", "r2", "r3", "r4"]);
    check(-1, &["r5"], &[]);
}

#[test]
fn old_revisions_of_a_daemon_set_beyond_the_limit_are_forgotten_but_for_those_in_use() {
    let held: Vec<_> = (1..=4).map(|number| revision(&format!("r{number}"), number, "{}")).collect();
    let check = |limit: i32, live: &[&str], want: &[&str]| {
        let is_live = |it: &ControllerRevisionView| live.contains(&it.meta().name.as_str());
        let gone = forgotten_of_old(&held, is_live, limit);
        let gone: Vec<_> = gone.iter().map(|it| it.meta().name.to_string()).collect();
        assert_eq!(gone, want, "{limit} {live:?}");
    };
    check(4, &[], &[]);
    check(2, &[], &["r1", "r2"]);
    check(2, &["r1"], &["r2", "r3"]);
    check(0, &["r1", "r2"], &["r3", "r4"]);
}

#[test]
fn the_patch_is_always_that_of_the_present_template_and_owner() {
    let patches = Patches::default();
    let of = |uid: &str, image: &str| {
        let owner = json!({ "metadata": { "name": "web", "uid": uid }, "spec": { "template": template(image) } });
        let owner: StatefulSetView = decode(owner);
        patches.of(owner.meta(), &owner.spec.template)
    };
    let first = of("1", "a");
    assert_eq!(first.as_str(), patch("a"));
    assert!(of("1", "a").same_allocation(&first), "nothing is made anew");
    for (uid, image) in [("1", "b"), ("1", "a"), ("2", "a"), ("2", "b")] {
        assert_eq!(of(uid, image).as_str(), patch(image), "{uid} {image}");
    }
    patches.forget(&decode::<StatefulSetView>(json!({ "metadata": { "name": "web" } })).meta().key());
    assert_eq!(of("2", "a").as_str(), patch("a"));
}
