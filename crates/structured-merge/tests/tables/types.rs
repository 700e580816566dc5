//! What lists and maps of each type do.

use serde_json::json;
use steersman_structured_merge::{Duplicates, FieldSet, Path};

use super::{apply, schema};

#[test]
fn a_field_set_has_leaves_items_map_members_and_empty_objects() {
    let rows = [
        (json!({"text": "x"}), r#"{"f:text":{}}"#),
        (json!({"text": null}), r#"{"f:text":{}}"#),
        (json!({"set": ["b", "a"]}), r#"{"f:set":{"v:\"a\"":{},"v:\"b\"":{}}}"#),
        (json!({"set": []}), "{}"),
        (json!({"list": []}), r#"{"f:list":{}}"#),
        (json!({"map": {}}), r#"{"f:map":{}}"#),
        (json!({"map": {"a": "1"}}), r#"{"f:map":{"f:a":{}}}"#),
        (json!({"atomic": {"a": "1"}}), r#"{"f:atomic":{}}"#),
        (
            json!({"ports": [{"port": 80}]}),
            r#"{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}"#,
        ),
        (json!({"either": "25%"}), r#"{"f:either":{}}"#),
        (json!({"free": {"a": {"b": 1}, "c": [1]}}), r#"{"f:free":{"f:a":{".":{},"f:b":{}},"f:c":{}}}"#),
        (
            json!({"template": {"kind": "A", "metadata": {"finalizers": ["f"]}}}),
            r#"{"f:template":{"f:kind":{},"f:metadata":{"f:finalizers":{"v:\"f\"":{}}}}}"#,
        ),
    ];
    for (spec, want) in rows {
        let set = schema().to_field_set(&json!({"spec": spec})).expect("it fits");
        let want = if want == "{}" { "{}".to_owned() } else { format!(r#"{{"f:spec":{want}}}"#) };
        assert_eq!(set.to_json(), want, "{spec}");
    }
}

#[test]
fn a_merge_joins_sets_and_keyed_lists_and_replaces_what_is_atomic() {
    let rows = [
        ("scalar", json!({"text": "a"}), json!({"text": "b"}), json!({"text": "b"})),
        ("null", json!({"text": "a"}), json!({"text": null}), json!({"text": null})),
        ("set", json!({"set": ["a", "b"]}), json!({"set": ["c", "b"]}), json!({"set": ["a", "c", "b"]})),
        ("set order", json!({"set": ["a", "b", "c"]}), json!({"set": ["c", "a"]}), json!({"set": ["b", "c", "a"]})),
        ("empty set", json!({"set": ["a"]}), json!({"set": []}), json!({"set": ["a"]})),
        ("no set yet", json!({}), json!({"set": []}), json!({"set": []})),
        ("list", json!({"list": ["a", "b"]}), json!({"list": ["c"]}), json!({"list": ["c"]})),
        ("map", json!({"map": {"a": "1"}}), json!({"map": {"b": "2"}}), json!({"map": {"a": "1", "b": "2"}})),
        ("empty map", json!({"map": {"a": "1"}}), json!({"map": {}}), json!({"map": {"a": "1"}})),
        ("atomic", json!({"atomic": {"a": "1"}}), json!({"atomic": {"b": "2"}}), json!({"atomic": {"b": "2"}})),
        (
            "keyed by default",
            json!({"ports": [{"port": 80, "protocol": "TCP", "name": "a"}]}),
            json!({"ports": [{"port": 80}, {"port": 80, "protocol": "UDP"}]}),
            json!({"ports": [{"port": 80, "protocol": "TCP", "name": "a"}, {"port": 80, "protocol": "UDP"}]}),
        ),
        (
            "kind of value",
            json!({"free": {"a": [1]}}),
            json!({"free": {"a": {"b": 1}}}),
            json!({"free": {"a": {"b": 1}}}),
        ),
    ];
    for (name, live, config, want) in rows {
        let merged = schema().merge(&json!({"spec": live}), &json!({"spec": config})).expect(name);
        assert_eq!(merged, json!({"spec": want}), "{name}");
    }
}

#[test]
fn a_configuration_that_does_not_fit_is_refused_in_upstreams_words() {
    let rows = [
        (json!({"nope": 1}), ".spec.nope: field not declared in schema"),
        (json!({"text": 1}), ".spec.text: expected string, got &value.valueUnstructured{Value:1}"),
        (json!({"number": "1"}), ".spec.number: expected numeric (int or float), got string"),
        (json!({"flag": "x"}), ".spec.flag: expected boolean, got &{x}"),
        (json!({"map": "x"}), ".spec.map: expected map, got &{x}"),
        (json!({"set": {"a": 1}}), ".spec.set: expected list, got &{map[a:1]}"),
        (json!({"set": ["a", "a"]}), r#".spec.set: duplicate entries for key [="a"]"#),
        (
            json!({"set": [null]}),
            ".spec.set: element 0: associative list without keys has an element that's an explicit null",
        ),
        (
            json!({"ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]}),
            r#".spec.ports: duplicate entries for key [port=80,protocol="TCP"]"#,
        ),
        (json!({"ports": [1]}), ".spec.ports: element 0: associative list with keys may not have non-map elements"),
        (
            json!({"list": [1, "a", true]}),
            "errors:\n  .spec.list[0]: expected string, got &value.valueUnstructured{Value:1}\n  .spec.list[2]: expected string, got &value.valueUnstructured{Value:true}",
        ),
    ];
    for (spec, want) in rows {
        let error = apply(None, &spec, "one").expect_err(want).to_string();
        assert_eq!(error, format!("failed to create typed patch object (/n; test.example/v1, Kind=Thing): {want}"));
    }
    let twice = json!({"spec": {"set": ["a", "a"]}});
    assert_eq!(schema().validate(&twice, Duplicates::Allowed), Ok(()), "stored objects may have duplicates");
}

#[test]
fn what_has_become_atomic_is_owned_as_a_whole() {
    let set = FieldSet::from_paths(
        [["spec", "atomic", "a"], ["spec", "map", "a"], ["spec", "free", "a"]].map(Path::of_fields),
    );
    let want = r#"{"f:spec":{"f:atomic":{},"f:free":{"f:a":{}},"f:map":{"f:a":{}}}}"#;
    assert_eq!(schema().reconcile(set).to_json(), want);
}

#[test]
fn items_are_extracted_and_removed_by_a_set() {
    let live = json!({"spec": {"text": "a", "set": ["x", "y"], "map": {"a": "1", "b": "2"}, "ports": [{"port": 1, "name": "n"}]}});
    let mentioned = json!({"spec": {"set": ["y"], "map": {"b": "2"}, "ports": [{"port": 1}]}});
    let set = schema().to_field_set(&mentioned).expect("it fits");
    let leaves = set.leaves();
    assert_eq!(schema().extract(&live, &leaves), mentioned);
    let mut rest = live.clone();
    schema().remove(&mut rest, &leaves);
    assert_eq!(rest, json!({"spec": {"text": "a", "set": ["x"], "map": {"a": "1"}, "ports": [{"name": "n"}]}}));
}
