//! What the store promises, and its engine keeps.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use steersman_base::{Clock, Istr, ObjectKey, StringMap};

use super::memory::Memory;
use super::{
    Change, Collection, Draft, EventKind, Expect, NewState, Range, Storage, Unavailable, Write, WriteConflict,
};

fn collection() -> Collection {
    Collection { name: Istr::new("things"), history_events_max: 100, ttl_seconds: None }
}

fn state(key: &ObjectKey, value: i64) -> NewState {
    let object = json!({
        "apiVersion": "v1", "kind": "Thing",
        "metadata": {"name": key.name.as_str(), "namespace": key.namespace.as_str()}, "value": value,
    });
    NewState { draft: Draft::encode(&object, true), labels: StringMap::default(), fields: Box::default() }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("n", name)
}

fn put(store: &Memory, name: &str, value: i64) -> Arc<super::Object> {
    let expect = store.get(&collection(), &key(name)).map_or(Expect::Absent, |held| Expect::Revision(held.revision));
    store.commit(&collection(), &key(name), expect, Change::Put(state(&key(name), value))).unwrap()
}

fn remove(store: &Memory, name: &str) {
    let Some(held) = store.get(&collection(), &key(name)) else { return };
    store.commit(&collection(), &key(name), Expect::Revision(held.revision), Change::Delete(None)).unwrap();
}

#[test]
fn an_object_is_written_only_as_it_was_seen() {
    let store = Memory::new(Clock::system());
    let commit = |expect| store.commit(&collection(), &key("a"), expect, Change::Put(state(&key("a"), 1)));
    assert_eq!(commit(Expect::Revision(7)).unwrap_err(), WriteConflict::Gone);
    let made = commit(Expect::Absent).unwrap();
    assert_eq!(commit(Expect::Absent).unwrap_err(), WriteConflict::Exists);
    assert_eq!(commit(Expect::Revision(made.revision + 1)).unwrap_err(), WriteConflict::Moved);
    let changed = commit(Expect::Revision(made.revision)).unwrap();
    assert_eq!(changed.revision, made.revision + 1);
    assert_eq!(store.revision(), changed.revision, "what was refused has no revision");
}

#[test]
fn writes_that_are_done_together_are_done_all_or_none() {
    let store = Memory::new(Clock::system());
    let held = put(&store, "a", 1);
    let write = |name: &str, expect: Expect, value: i64| Write {
        collection: collection(),
        key: key(name),
        expect,
        change: Change::Put(state(&key(name), value)),
    };
    let moved = [write("b", Expect::Absent, 1), write("a", Expect::Revision(held.revision + 1), 2)];
    assert_eq!(store.commit_all(moved.into()).unwrap_err(), (1, WriteConflict::Moved));
    let exists = [write("a", Expect::Absent, 2), write("b", Expect::Absent, 1)];
    assert_eq!(store.commit_all(exists.into()).unwrap_err(), (0, WriteConflict::Exists));
    assert!(store.get(&collection(), &key("b")).is_none());
    assert_eq!(store.revision(), held.revision, "what was refused has no revision");
    let both = [write("a", Expect::Revision(held.revision), 2), write("b", Expect::Absent, 1)];
    let written = store.commit_all(both.into()).unwrap();
    let revisions: Vec<u64> = written.iter().map(|object| object.revision).collect();
    assert_eq!(revisions, [held.revision + 1, held.revision + 2]);
    assert_eq!(store.events(&collection(), held.revision, 10).unwrap().events.len(), 2);
}

#[test]
fn the_bytes_hold_the_revision_in_every_form() {
    let store = Memory::new(Clock::system());
    let made = put(&store, "a", 1);
    let whole = made.parse().unwrap();
    assert_eq!(whole["metadata"]["resourceVersion"], made.revision.to_string());
    let item: serde_json::Value = serde_json::from_slice(&[b"{", &*made.item()].concat()).unwrap();
    assert!(item.get("kind").is_none() && item["metadata"] == whole["metadata"] && item["value"] == 1);
    let meta: serde_json::Value = serde_json::from_slice(&made.metadata()).unwrap();
    assert_eq!(meta, whole["metadata"]);
    let line: serde_json::Value = serde_json::from_slice(&made.line(EventKind::Added).unwrap()).unwrap();
    assert_eq!((&line["type"], &line["object"]), (&json!("ADDED"), &whole));
    assert!(made.line(EventKind::Modified).is_none());
    let deleted_at = made.deleted_at(123_456_789);
    assert_eq!(deleted_at.parse().unwrap()["metadata"]["resourceVersion"], "123456789");
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&deleted_at.metadata()).unwrap()["name"], "a");
}

#[test]
fn a_state_that_says_the_same_is_recognised_whatever_its_revision() {
    let store = Memory::new(Clock::system());
    let made = put(&store, "a", 1);
    assert!(state(&key("a"), 1).draft.is_unchanged_from(&made));
    assert!(!state(&key("a"), 2).draft.is_unchanged_from(&made));
}

#[test]
fn history_is_bounded_and_what_has_gone_is_said_to_be_gone() {
    let store = Memory::new(Clock::system());
    for value in 0..150 {
        put(&store, "a", value);
    }
    let current = store.revision();
    assert!(matches!(store.events(&collection(), 1, 1000), Err(Unavailable::Compacted { .. })));
    assert_eq!(store.events(&collection(), current - 100, 1000).unwrap().events.len(), 100);
    assert!(matches!(store.events(&collection(), current + 1, 1), Err(Unavailable::Future { .. })));
    let range = Range { at: Some(1), ..Range::default() };
    assert!(matches!(store.list(&collection(), &range, None), Err(Unavailable::Compacted { .. })));
}

#[test]
fn events_come_in_batches_without_a_gap() {
    let store = Memory::new(Clock::system());
    for value in 0..20 {
        put(&store, "a", value);
    }
    let mut after = 1;
    let mut seen = Vec::new();
    while after < store.revision() {
        let batch = store.events(&collection(), after, 7).unwrap();
        seen.extend(batch.events.iter().map(|event| event.revision));
        after = batch.reached;
    }
    assert_eq!(seen, (2..=21).collect::<Vec<_>>());
}

/// Writes of few objects: name, and what becomes of it.
fn writes() -> impl Strategy<Value = Vec<(u8, Option<i64>)>> {
    prop::collection::vec((0..6_u8, prop::option::weighted(0.7, 0..100_i64)), 0..60)
}

proptest! {
    #[test]
    fn a_list_at_a_revision_is_what_a_list_was_then(writes in writes(), limit in 0..4_usize) {
        let store = Memory::new(Clock::system());
        let list = |at: Option<u64>, limit: usize, from: Option<ObjectKey>| {
            let range = Range { at, limit, from, namespace: "n" };
            let page = store.list(&collection(), &range, None).unwrap();
            (page.objects.iter().map(|object| (object.key.clone(), object.revision)).collect::<Vec<_>>(), page.remaining)
        };
        let mut then = vec![(store.revision(), list(None, 0, None).0)];
        for (name, value) in writes {
            let name = format!("o{name}");
            match value {
                Some(value) => { put(&store, &name, value); }
                None => remove(&store, &name),
            }
            then.push((store.revision(), list(None, 0, None).0));
        }
        for (revision, want) in then {
            prop_assert_eq!(&list(Some(revision), 0, None).0, &want);
            let mut paged = Vec::new();
            let mut from = None;
            loop {
                let (page, remaining) = list(Some(revision), limit, from.clone());
                let last = page.last().map(|(key, _)| key.clone());
                paged.extend(page);
                let Some(last) = last.filter(|_| remaining > 0) else { break };
                from = Some(ObjectKey::new(&last.namespace, &format!("{}\0", last.name)));
            }
            prop_assert_eq!(paged, want);
        }
    }
}

/// A collection whose objects go after an hour.
fn fleeting() -> Collection {
    Collection { ttl_seconds: Some(3600), ..collection() }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_written_often_has_one_expiry_and_goes_after_its_last_write() {
    let store = Memory::new(Clock::starting_at(steersman_base::Time::from_unix(0)));
    let write = |value: i64| {
        let held = store.get(&fleeting(), &key("a"));
        let expect = held.map_or(Expect::Absent, |held| Expect::Revision(held.revision));
        store.commit(&fleeting(), &key("a"), expect, Change::Put(state(&key("a"), value))).unwrap();
    };
    for value in 0..500 {
        write(value);
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    }
    assert_eq!(store.held().0, 1, "one object, one expiry");
    tokio::time::sleep(std::time::Duration::from_secs(3590)).await;
    assert!(store.get(&fleeting(), &key("a")).is_some(), "counted from its last write");
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    assert!(store.get(&fleeting(), &key("a")).is_none());
    assert_eq!(store.held().0, 0);
    write(0);
    store.commit(&fleeting(), &key("a"), Expect::Revision(store.revision()), Change::Delete(None)).unwrap();
    assert_eq!(store.held().0, 0, "what is deleted does not expire");
}

#[test]
fn the_history_of_all_resources_together_is_bounded_and_counts_what_it_keeps() {
    let store = Memory::new(Clock::system());
    const SHELVES: usize = 12;
    let value = "x".repeat(2 << 20);
    let object = json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}, "value": value});
    let large = NewState { draft: Draft::encode(&object, true), labels: StringMap::default(), fields: Box::default() };
    for _ in 0..20 {
        for number in 0..SHELVES {
            let collection = Collection { name: Istr::new(&format!("things{number}")), ..collection() };
            let held = store.get(&collection, &key("a"));
            let expect = held.map_or(Expect::Absent, |held| Expect::Revision(held.revision));
            store.commit(&collection, &key("a"), expect, Change::Put(large.clone())).unwrap();
        }
    }
    let (_, bytes, _) = store.held();
    assert!(bytes <= super::HISTORY_BYTES_TOTAL_MAX && bytes > super::HISTORY_BYTES_TOTAL_MAX / 2, "{bytes}");
    let last = Collection { name: Istr::new("things0"), ..collection() };
    assert!(!store.events(&last, store.revision() - SHELVES as u64, 9).unwrap().events.is_empty(), "the newest stay");
    store.compact(store.revision());
    assert_eq!(store.held().1, 0, "what is there anyway costs no history");
}

#[test]
fn a_forgotten_collection_is_empty_and_its_history_is_compacted() {
    let store = Memory::new(Clock::system());
    put(&store, "a", 1);
    store.forget(&collection());
    assert_eq!(store.held().2, 1, "it has an object");
    let before = store.revision();
    remove(&store, "a");
    store.forget(&collection());
    assert_eq!((store.held().1, store.held().2), (0, 0));
    assert!(matches!(store.events(&collection(), before, 9), Err(Unavailable::Compacted { .. })));
    put(&store, "b", 1);
    assert!(matches!(store.events(&collection(), before, 9), Err(Unavailable::Compacted { .. })));
    assert_eq!(store.events(&collection(), store.revision() - 1, 9).unwrap().events.len(), 1);
}

#[test]
fn the_first_page_says_how_many_are_left_without_a_look_at_them() {
    let store = Memory::new(Clock::system());
    for number in 0..50 {
        put(&store, &format!("o{number:02}"), 1);
    }
    let elsewhere = ObjectKey::new("m", "x");
    store.commit(&collection(), &elsewhere, Expect::Absent, Change::Put(state(&elsewhere, 1))).unwrap();
    remove(&store, "o07");
    let page = |namespace: &'static str, limit, wanted: Option<&super::Wanted<'_>>| {
        let page = store.list(&collection(), &Range { namespace, limit, ..Range::default() }, wanted).unwrap();
        (page.objects.len(), page.remaining)
    };
    assert_eq!(page("", 1, None), (1, 49));
    assert_eq!(page("n", 1, None), (1, 48));
    assert_eq!(page("m", 1, None), (1, 0));
    assert_eq!(page("none", 1, None), (0, 0));
    let asked = std::cell::Cell::new(0);
    let wanted = |_: &super::Object| {
        asked.set(asked.get() + 1);
        true
    };
    assert_eq!(page("n", 3, Some(&wanted)), (3, 1));
    assert_eq!(asked.get(), 4, "a filter is asked until it is known whether there are more");
}
