//! Paths, field sets, and how they are written.

use serde_json::json;
use steersman_structured_merge::{FieldSet, Path, PathElement};

#[test]
fn elements_have_the_names_that_upstream_gives_them() {
    let rows = [
        (PathElement::field("a.b/c\""), "f:a.b/c\"", ".a.b/c\""),
        (PathElement::key([("name".into(), json!("x"))]), r#"k:{"name":"x"}"#, r#"[name="x"]"#),
        (
            PathElement::key([("z".into(), json!(true)), ("a".into(), json!(80))]),
            r#"k:{"a":80,"z":true}"#,
            "[a=80,z=true]",
        ),
        (PathElement::value(json!("a<b>&\"\n")), r#"v:"a\u003cb\u003e\u0026\"\n""#, r#"[="a<b>&\"\n"]"#),
        (PathElement::value(json!(1e21)), "v:1e+21", "[=1e+21]"),
        (PathElement::value(json!(1e-7)), "v:1e-07", "[=1e-07]"),
        (PathElement::value(json!(0.00001)), "v:0.00001", "[=1e-05]"),
        (PathElement::value(json!({"b": [1, 2.5], "a": null})), r#"v:{"a":null,"b":[1,2.5]}"#, "[=a=nullb=[1,2.5]]"),
        (PathElement::Index(7), "i:7", "[7]"),
    ];
    for (element, text, shown) in rows {
        assert_eq!(element.to_text(), text);
        assert_eq!(element.to_string(), shown);
        assert_eq!(PathElement::parse(text), Ok(Some(element)), "{text}");
    }
    assert_eq!(PathElement::parse("x:new"), Ok(None), "kinds to come are skipped");
    for garbage in ["", "f", "fa", "é:", "v:", "v:{", "v:1 2", "k:[]", "k:1", "k:{\"a\"}", "i:", "i:x", "i:1.5"] {
        assert!(PathElement::parse(garbage).is_err(), "{garbage}");
    }
}

#[test]
fn members_are_written_fields_first_then_keys_values_and_places_by_number() {
    let key = |port: i64| PathElement::key([("port".into(), json!(port))]);
    let elements = [
        PathElement::Index(10),
        PathElement::Index(9),
        PathElement::value(json!("a")),
        PathElement::value(json!(10)),
        PathElement::value(json!(9)),
        key(443),
        key(80),
        PathElement::field("b"),
        PathElement::field("B"),
    ];
    let set = FieldSet::from_paths(elements.map(|element| Path(vec![element])));
    let want = r#"{"f:B":{},"f:b":{},"k:{\"port\":80}":{},"k:{\"port\":443}":{},"v:9":{},"v:10":{},"v:\"a\"":{},"i:9":{},"i:10":{}}"#;
    assert_eq!(set.to_json(), want);
}

#[test]
fn a_parent_that_is_owned_itself_has_a_dot() {
    let set = FieldSet::from_paths([Path::of_fields(["a"]), Path::of_fields(["a", "b"]), Path::of_fields(["c", "d"])]);
    assert_eq!(set.to_json(), r#"{"f:a":{".":{},"f:b":{}},"f:c":{"f:d":{}}}"#);
    assert_eq!(set.to_value(), json!({"f:a": {".": {}, "f:b": {}}, "f:c": {"f:d": {}}}));
    assert_eq!(set.leaves().to_json(), r#"{"f:a":{"f:b":{}},"f:c":{"f:d":{}}}"#);
    let parent = FieldSet::from_paths([Path::of_fields(["a"])]);
    assert_eq!(set.difference(&parent).to_json(), r#"{"f:a":{"f:b":{}},"f:c":{"f:d":{}}}"#);
    assert_eq!(set.recursive_difference(&parent).to_json(), r#"{"f:c":{"f:d":{}}}"#);
}

#[test]
fn garbage_is_no_field_set() {
    for text in ["", "[]", "1", "{", "{}x", r#"{"f:a":1}"#, r#"{"f:a":[]}"#, r#"{"x":{}}"#, r#"{"k:1":{}}"#] {
        assert!(FieldSet::parse(text.as_bytes()).is_err(), "{text}");
    }
    for (text, want) in [("{}", "{}"), ("null", "{}"), (r#"{"f:a":null}"#, r#"{"f:a":{}}"#), (r#"{"x:a":{}}"#, "{}")] {
        assert_eq!(FieldSet::parse(text.as_bytes()).expect(text).to_json(), want);
    }
    let deep = format!("{}{}", r#"{"f:a":"#.repeat(125), "{}".to_owned() + &"}".repeat(125));
    assert!(FieldSet::parse(deep.as_bytes()).is_err());
    assert!(FieldSet::parse(&vec![b' '; (3 << 20) + 1]).is_err());
}
