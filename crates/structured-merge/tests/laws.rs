//! Laws that hold for every field set and every object of a small world.

use proptest::prelude::*;
use serde_json::{Value, json};
use steersman_structured_merge::{Duplicates, FieldManager, FieldSet, OneVersion, Path, PathElement, Schema, Writer};

const API_VERSION: &str = "test.example/v1";

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::from),
        (-3_i64..3).prop_map(Value::from),
        prop_oneof![(-40_i32..40).prop_map(|eighths| f64::from(eighths) / 8.0), Just(1e21), Just(1e-7)]
            .prop_map(Value::from),
        "[ab<\"\\\\é\u{2028}\n]{0,3}".prop_map(Value::from),
        Just(Value::Null),
    ]
}

fn element() -> impl Strategy<Value = PathElement> {
    prop_oneof![
        4 => "[abc.\"]{1,2}".prop_map(PathElement::field),
        2 => prop::collection::btree_map("[kl]", scalar(), 1..3)
            .prop_map(|keys| PathElement::key(keys.into_iter().map(|(name, value)| (name.into(), value)))),
        1 => scalar().prop_map(PathElement::value),
        1 => (0_i64..3).prop_map(PathElement::Index),
    ]
}

fn set() -> impl Strategy<Value = FieldSet> {
    let path = prop::collection::vec(element(), 1..4).prop_map(Path);
    prop::collection::vec(path, 0..12).prop_map(FieldSet::from_paths)
}

fn schema() -> Schema {
    let text = json!({"type": "string"});
    let item = json!({"type": "object", "properties": {
        "k": text, "port": {"type": "integer", "default": 80}, "v": text,
        "inner": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
    }});
    let spec = json!({"type": "object", "properties": {
        "text": text,
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "port"],
            "items": item},
        "map": {"type": "object", "additionalProperties": text},
        "atomic": {"type": "object", "additionalProperties": text, "x-kubernetes-map-type": "atomic"},
        "struct": {"type": "object", "properties": {"a": text, "b": text}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    Schema::custom_resource(Some(&json!({"type": "object", "properties": {"spec": spec}}))).expect("structural")
}

/// Maps of a few words, so that objects meet.
fn words(least: usize) -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[ab]", "[xy]", least..3).prop_map(|map| json!(map))
}

/// A configuration whose containers have at least so many items.
fn config(least: usize) -> impl Strategy<Value = Value> {
    let set = prop::collection::btree_set("[abcd]", least..4).prop_map(|set| json!(set)).prop_shuffle_list();
    let item = (prop::option::of(80_i64..82), prop::option::of("[xy]"), prop::collection::btree_set("[ab]", 0..2));
    let keyed = prop::collection::btree_map("[abc]", item, least..3).prop_map(|items| {
        let items = items.into_iter().map(|(k, (port, v, inner))| {
            let mut item = json!({"k": k, "inner": inner});
            port.into_iter().for_each(|port| item["port"] = json!(port));
            v.into_iter().for_each(|v| item["v"] = json!(v));
            item
        });
        Value::Array(items.collect())
    });
    let fields = (
        prop::option::of("[xy]".prop_map(Value::from)),
        prop::option::of(set),
        prop::option::of(keyed.prop_shuffle_list()),
        prop::option::of(words(least)),
        prop::option::of(words(least)),
        prop::option::of(words(least)),
        prop::option::of((words(least), words(least)).prop_map(|(a, b)| json!({"a": a, "b": b, "list": [a]}))),
    );
    fields.prop_map(|(text, set, keyed, map, atomic, fields, free)| {
        let mut object = json!({"apiVersion": API_VERSION, "kind": "Thing", "metadata": {"name": "n"}, "spec": {}});
        let named = [("text", text), ("set", set), ("keyed", keyed), ("map", map), ("atomic", atomic), ("free", free)];
        for (name, value) in named {
            value.into_iter().for_each(|value| object["spec"][name] = value);
        }
        fields.into_iter().for_each(|value| object["spec"]["struct"] = value);
        object
    })
}

trait ShuffleList: Strategy<Value = Value> + Sized {
    /// The same list in any order.
    fn prop_shuffle_list(self) -> impl Strategy<Value = Value> {
        self.prop_flat_map(|list| Just(list.as_array().cloned().unwrap_or_default()).prop_shuffle())
            .prop_map(Value::Array)
    }
}

impl<S: Strategy<Value = Value>> ShuffleList for S {}

fn fields(versions: &OneVersion) -> FieldManager<'_> {
    FieldManager { api_version: API_VERSION, kind: "Thing", subresource: "", versions, filters: &[] }
}

fn versions() -> OneVersion {
    OneVersion { api_version: API_VERSION.to_owned(), schema: schema() }
}

fn writer<'a>(manager: &'a str, now: &'a str) -> Writer<'a> {
    Writer { manager, now }
}

proptest! {
    #[test]
    fn what_is_printed_is_read_again(set in set()) {
        prop_assert_eq!(&FieldSet::from_value(&set.to_value()), &Ok(set.clone()));
        prop_assert_eq!(FieldSet::parse(set.to_json().as_bytes()), Ok(set));
    }

    #[test]
    fn elements_are_read_again_and_keep_their_order(a in element(), b in element()) {
        let again = |element: &PathElement| PathElement::parse(&element.to_text()).ok().flatten();
        prop_assert_eq!(again(&a), Some(a.clone()));
        prop_assert_eq!(again(&a).cmp(&again(&b)), Some(a).cmp(&Some(b)));
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), text in "[\\{\\}\":,.fkvi0-9a\\[\\]]{0,40}") {
        let _ = FieldSet::parse(&bytes);
        let _ = FieldSet::parse(text.as_bytes());
        let _ = PathElement::parse(&text);
    }

    #[test]
    fn sets_follow_the_laws_of_sets(a in set(), b in set(), c in set()) {
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.union(&b).union(&c), a.union(&b.union(&c)));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.union(&a), a.clone());
        prop_assert_eq!(a.intersection(&a), a.clone());
        prop_assert!(a.difference(&a).is_empty());
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
        prop_assert_eq!(a.difference(&b.union(&c)), a.difference(&b).difference(&c));
        prop_assert_eq!(a.union(&b).intersection(&c), a.intersection(&c).union(&b.intersection(&c)));
        prop_assert_eq!(a.recursive_difference(&b).difference(&a.difference(&b)), FieldSet::default());
        prop_assert_eq!(a.leaves().difference(&a), FieldSet::default());
        prop_assert_eq!(a.union(&b).len() + a.intersection(&b).len(), a.len() + b.len());
        prop_assert_eq!(FieldSet::from_paths(a.paths()), a.clone());
        prop_assert!(a.paths().iter().all(|path| a.contains(path)));
    }

    #[test]
    fn a_merge_has_all_of_the_configuration_and_is_done_once(live in config(0), new in config(0)) {
        let schema = schema();
        let merged = schema.merge(&live, &new).expect("they fit");
        prop_assert_eq!(schema.validate(&merged, Duplicates::Refused), Ok(()));
        prop_assert_eq!(schema.merge(&merged, &new).expect("they fit"), merged.clone());
        // Empty lists and objects add nothing to what is there, so they leave no trace in the merged object.
        let mentioned = schema.to_field_set(&new).expect("it fits").leaves();
        let had = schema.to_field_set(&live).expect("it fits");
        let has = schema.to_field_set(&merged).expect("it fits");
        let missing = mentioned.difference(&has);
        prop_assert!(missing.paths().iter().all(|path| has.paths().iter().any(|longer| longer.0.starts_with(&path.0))));
        prop_assert!(has.leaves().difference(&had.union(&schema.to_field_set(&new).expect("it fits"))).is_empty());
    }

    #[test]
    fn nothing_differs_from_itself_and_changes_are_distinguished(a in config(0), b in config(0)) {
        let schema = schema();
        prop_assert!(schema.compare(&a, &a).expect("they fit").is_same());
        let there = schema.compare(&a, &b).expect("they fit");
        let back = schema.compare(&b, &a).expect("they fit");
        prop_assert_eq!(&there.added, &back.removed);
        prop_assert_eq!(&there.modified, &back.modified);
        prop_assert!(there.added.intersection(&there.removed).is_empty());
        prop_assert!(there.added.intersection(&there.modified).is_empty());
    }

    #[test]
    fn an_apply_that_is_repeated_changes_nothing(live in config(0), new in config(0)) {
        let versions = versions();
        let fields = fields(&versions);
        let created = fields.apply(None, &live, writer("one", "2026-01-01T00:00:00Z"), false).expect("nothing to conflict");
        let first = fields.apply(Some(&created.object), &new, writer("two", "2026-01-02T00:00:00Z"), true);
        let first = first.expect("forced");
        let again = fields.apply(Some(&first.object), &new, writer("two", "2026-01-03T00:00:00Z"), false);
        let again = again.expect("it owns all it says");
        prop_assert!(!again.changed);
        prop_assert_eq!(again.object, first.object);
    }

    #[test]
    fn what_one_manager_adds_and_gives_up_is_gone(mut live in config(1), new in config(1)) {
        // Upstream loses the owner of an empty object that others fill and leave.
        live["spec"]["text"] = json!("x");
        let versions = versions();
        let fields = fields(&versions);
        let one = writer("one", "2026-01-01T00:00:00Z");
        let two = writer("two", "2026-01-02T00:00:00Z");
        let created = fields.apply(None, &live, one, false).expect("nothing to conflict").object;
        // Only what does not change the other's fields comes back as it was.
        let Ok(added) = fields.apply(Some(&created), &new, two, false) else {
            return Ok(());
        };
        let nothing = json!({"apiVersion": API_VERSION, "kind": "Thing", "metadata": {"name": "n"}});
        let back = fields.apply(Some(&added.object), &nothing, two, false).expect("giving up is no conflict").object;
        let owned = versions.schema.to_field_set(&live).expect("it fits");
        let left = versions.schema.to_field_set(&back).expect("it fits");
        let over = left.difference(&owned).paths();
        let own = ["managedFields"].map(|name| Path::of_fields(["metadata", name]));
        prop_assert!(over.iter().all(|path| own.contains(path)), "{:?} is left", over);
        prop_assert_eq!(&back["metadata"]["managedFields"], &created["metadata"]["managedFields"]);
    }
}

#[test]
fn a_list_of_many_keyed_items_is_merged_in_the_order_of_the_configuration() {
    let item = |number: usize| json!({"k": format!("{number:05}"), "v": "x"});
    let object = |numbers: &mut dyn Iterator<Item = usize>| {
        let items: Vec<Value> = numbers.map(item).collect();
        json!({"apiVersion": API_VERSION, "kind": "Thing", "metadata": {"name": "n"}, "spec": {"keyed": items}})
    };
    let count = 10_000;
    let live = object(&mut (0..count));
    let new = object(&mut (0..count).rev().step_by(2));
    let versions = versions();
    let fields = fields(&versions);
    let created = fields.apply(None, &live, writer("one", "2026-01-01T00:00:00Z"), false).expect("created").object;
    let applied = fields.apply(Some(&created), &new, writer("two", "2026-01-02T00:00:00Z"), false).expect("applied");
    let items = applied.object["spec"]["keyed"].as_array().expect("a list");
    assert_eq!(items.len(), count);
    let first = &new["spec"]["keyed"][0];
    assert_eq!(items.iter().filter(|item| *item == first).count(), 1);
}

#[test]
fn deep_objects_are_refused_before_the_stack_ends() {
    let mut deep = json!("x");
    for _ in 0..1000 {
        deep = json!({"a": deep});
    }
    let object = json!({"apiVersion": API_VERSION, "kind": "Thing", "metadata": {"name": "n"}, "spec": {"free": deep}});
    let versions = versions();
    let fields = fields(&versions);
    let error = fields.apply(None, &object, writer("one", "2026-01-01T00:00:00Z"), false).expect_err("too deep");
    assert!(error.to_string().contains("nested more than 120 levels"), "{error}");
    let mut new = object.clone();
    assert!(fields.update(None, &mut new, writer("one", "2026-01-01T00:00:00Z")).is_err());
    assert_eq!(new, object, "the object is stored as it is, without managers");
}

/// Found by `cargo xtask fuzz`.
#[test]
fn a_fraction_in_a_field_set_is_the_same_when_it_is_read_again() {
    let once = FieldSet::parse(br#"{"v:51294e99":{}}"#).expect("a set").to_json();
    let again = FieldSet::parse(once.as_bytes()).expect("a set").to_json();
    assert_eq!(once, again);
}
