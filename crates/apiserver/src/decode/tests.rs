//! Bodies good and bad; the messages are Go's.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ContentType, json as any_json, object, plain, tree};
use crate::recorded;

#[test]
fn the_recorded_bad_bodies_get_the_recorded_messages() {
    for id in ["bad-json", "empty-body"] {
        let recorded = recorded::get(id);
        let error = object(&recorded.body, ContentType::Json).expect_err("it is no JSON");
        assert_eq!(error.message("ConfigMap"), recorded.answer["message"], "{id}");
    }
}

#[test]
fn broken_json_is_described_as_go_does() {
    for (text, want) in [
        ("", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        ("x", "invalid character 'x' looking for beginning of value"),
        ("{x", "invalid character 'x' looking for beginning of object key string"),
        ("{\"a\" 1}", "invalid character '1' after object key"),
        ("{\"a\":1 2}", "invalid character '2' after object key:value pair"),
        ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("{} {}", "invalid character '{' after top-level value"),
        ("\"a\nb\"", "invalid character '\\n' in string literal"),
        ("\"\\x\"", "invalid character 'x' in string escape code"),
        ("\"\\u12g4\"", "invalid character 'g' in \\u hexadecimal character escape"),
        ("trux", "invalid character 'x' in literal true (expecting 'e')"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1ex", "invalid character 'x' in exponent of numeric literal"),
        ("'", "invalid character '\\'' looking for beginning of value"),
        ("01", "invalid character '1' after top-level value"),
    ] {
        assert_eq!(any_json(text.as_bytes()).map(|decoded| decoded.value), Err(want.to_owned()), "{text:?}");
    }
}

#[test]
fn deep_nesting_is_refused() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    assert_eq!(any_json(deep.as_bytes()).map(|decoded| decoded.value), Err("exceeded max depth".to_owned()));
    assert!(object(deep.as_bytes(), ContentType::Yaml).is_err());
    let deep = "{\"a\":".repeat(5_000) + "1" + &"}".repeat(5_000);
    assert_eq!(any_json(deep.as_bytes()).map(|decoded| decoded.value), Err("exceeded max depth".to_owned()));
}

#[test]
fn invalid_utf8_and_half_surrogates_become_replacement_characters() {
    for (text, want) in [
        (&b"{\"a\":\"x\xff\xfey\"}"[..], "x\u{fffd}\u{fffd}y"),
        (&b"{\"a\":\"\\ud800x\"}"[..], "\u{fffd}x"),
        (&b"{\"a\":\"\\\\ud800\"}"[..], "\\ud800"),
        (&b"{\"a\":\"\\ud83d\\ude00\\udc00\"}"[..], "\u{1f600}\u{fffd}"),
    ] {
        assert_eq!(any_json(text).expect("Go takes it").value, json!({"a": want}));
    }
}

#[test]
fn what_is_no_object_is_refused() {
    for (text, want) in [
        (
            "[]",
            "json: cannot unmarshal array into Go value of type struct { APIVersion string \
                \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }",
        ),
        ("{\"kind\": 1}", "json: cannot unmarshal number into Go struct field .kind of type string"),
    ] {
        let error = object(text.as_bytes(), ContentType::Json).expect_err("it is no object");
        assert_eq!(error.to_string(), format!("couldn't get version/kind; json parse error: {want}"));
    }
    assert_eq!(object(b"null", ContentType::Json).expect("Go takes it").value, json!({}));
}

#[test]
fn duplicate_keys_are_found_where_they_are() {
    let body = br#"{"a": 1, "b": [{"c": 1, "c": 2}, {"c": 1}], "a": {"x": 1}, "a": 3}"#;
    let decoded = object(body, ContentType::Json).expect("it is JSON");
    assert_eq!(decoded.value, json!({"a": 3, "b": [{"c": 2}, {"c": 1}]}));
    assert_eq!(decoded.duplicates, ["duplicate field \"b[0].c\"", "duplicate field \"a\""]);
}

#[test]
fn yaml_is_read_as_go_reads_it() {
    for (name, text, want) in [
        (
            "an object",
            "metadata:\n  name: y6\ndata:\n  a: b\n",
            json!({"metadata": {"name": "y6"}, "data": {"a": "b"}}),
        ),
        ("an octal mode", "mode: 0644\n", json!({"mode": 420})),
        (
            "scalars",
            "a: 1\nb: 1.5\nc: true\nd: null\ne: ~\nf: \"1\"\ng: 1e3\n",
            json!({"a": 1, "b": 1.5, "c": true, "d": null, "e": null, "f": "1", "g": 1000.0}),
        ),
        ("old booleans", "a: yes\nb: off\n", json!({"a": true, "b": false})),
        ("keys that are no strings", "1: a\ntrue: b\n", json!({"1": "a", "true": "b"})),
        ("anchors", "a: &x {b: 1}\nc: *x\n", json!({"a": {"b": 1}, "c": {"b": 1}})),
        ("merge keys", "a: &x {b: 1}\nc: {<<: *x, d: 2}\n", json!({"a": {"b": 1}, "c": {"b": 1, "d": 2}})),
        ("the first of two documents", "a: 1\n---\na: 2\n", json!({"a": 1})),
        ("JSON", "{\"a\": [1, {\"b\": \"c\"}]}", json!({"a": [1, {"b": "c"}]})),
        ("a block of text", "a: |\n  x\n  y\n", json!({"a": "x\ny\n"})),
    ] {
        assert_eq!(object(text.as_bytes(), ContentType::Yaml).map(|decoded| decoded.value), Ok(want), "{name}");
    }
}

#[test]
fn duplicate_keys_in_yaml_are_findings() {
    let decoded = object(b"data:\n  a: b\n  a: c\n", ContentType::Yaml).expect("the last one counts");
    assert_eq!(decoded.value, json!({"data": {"a": "c"}}));
    assert_eq!(decoded.duplicates, ["yaml: unmarshal errors:\n  line 3: key \"a\" already set in map"]);
}

#[test]
fn aliases_that_stand_for_too_much_are_refused_in_go_yamls_words() {
    let line = |at: usize| format!("a{at}: &a{at} [{}]\n", vec![format!("*a{}", at - 1); 9].join(","));
    let bomb = format!("a0: &a0 [x,x,x,x,x,x,x,x,x]\n{}", (1..10).map(line).collect::<String>());
    let long = format!("a: &x {}\nb: [{}]\n", "x".repeat(30_000), vec!["*x"; 2_000].join(","));
    let keys = format!("a: &x {{{}: 1}}\nb: [{}]\n", "k".repeat(900), vec!["*x"; 2_000].join(","));
    for text in [bomb, long, keys] {
        let error = object(text.as_bytes(), ContentType::Yaml).expect_err("a bomb");
        assert_eq!(error.to_string(), "yaml: document contains excessive aliasing");
    }
    // What people write: a block used a hundred times.
    let block = format!("a: &x {{b: 1, c: [1, 2]}}\nl: [{}]\n", vec!["*x"; 100].join(","));
    let decoded = object(block.as_bytes(), ContentType::Yaml).expect("a few aliases");
    assert_eq!(decoded.value["l"].as_array().map(Vec::len), Some(100));
}

#[test]
fn broken_yaml_names_the_line() {
    let error = object(b"a: b\nc: d: e\n", ContentType::Yaml).expect_err("it is no YAML");
    assert!(error.to_string().starts_with("yaml: line 2: "), "{error}");
    assert!(error.message("Pod").ends_with(" (613a20620a633a20643a20650a)"), "{}", error.message("Pod"));
}

/// What both readings make of a JSON text that counts as YAML.
fn assert_same_in_yaml(text: &str) {
    assert!(plain::is_same_in_yaml(text), "{text}");
    assert_eq!(tree::from_yaml(text), tree::from_other_yaml(text), "{text}");
}

#[test]
fn json_that_is_applied_is_read_as_the_yaml_parser_would_read_it() {
    for text in [
        r##"{"a":"yes","b":"null","c":"~","d":"0644","e":"1e3","f":"2001-01-01","g":"!!str x","h":"&x","i":"*x","j":"# x"}"##,
        r#"{"a":"\"\\\/\n\r\t\u0026\u0000","<<":{"b":1},"=":1,"":2,"? x":{},"- x":[],"k: v":[[],{}]}"#,
        r#"{"a":0,"b":-1,"c":999999999999999999,"d":true,"e":false,"f":null,"g":"ä€😀  ","h":[1,-2,"x",null]}"#,
        "{\"a\": [\n1,\n{\n\"b\":   \"c\"\n}\n]\n}\n",
        "{}",
        "{ }",
        "{\"a\":{},\"b\":[ ]}",
    ] {
        assert_same_in_yaml(text);
    }
    let deepest = 62;
    assert_same_in_yaml(&format!("{{\"a\":{}{}}}", "[".repeat(deepest), "]".repeat(deepest)));
    assert_same_in_yaml(&format!("{{\"{}\":1}}", "k".repeat(990)));
    assert_same_in_yaml(&format!("{{\"a\":[1{}]}}", ",1".repeat(500_000)));
    for text in [
        "{\"a\":1.0}",
        "{\"a\":1e3}",
        "{\"a\":-0}",
        "{\"a\":1234567890123456789}",
        "{\"a\" :1}",
        "{\"a\"\n:1}",
        "{\"a\":\t1}",
        "{\"a\":\"\u{85}\"}",
        "{\"a\":\"\\ud83d\\ude00\"}",
        "{\"a\":\"\\b\"}",
        "{a: &x 1}",
        "a: 1",
        "[]",
        " {}",
    ] {
        assert!(!plain::is_same_in_yaml(text), "{text}");
    }
}

#[test]
fn duplicate_keys_of_json_that_is_applied_are_findings_of_yaml() {
    let decoded = super::yaml(b"{\"data\":{\"a\":1,\"a\":2}}").expect("the last one counts");
    assert_eq!(decoded.value, json!({"data": {"a": 2}}));
    assert_eq!(decoded.duplicates, ["yaml: unmarshal errors:\n  line 1: key \"a\" already set in map"]);
}

fn any_tree() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["[ -~]{0,8}", "[a-z<>&'\"\\\\:#{}*!%@`|?-]{0,4}", any::<String>()];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1000..1000_i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(text.clone(), inner, 0..6).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn text_like_json() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(&b"{}[]\",:\\u0123d8ef truefalsn-.E+\n\x00\xff&*|<!%@#?"[..]), 0..60)
}

proptest! {
    #[test]
    fn json_means_the_same_in_yaml(tree in any_tree(), is_pretty: bool) {
        let tree = json!({"a": tree});
        let text = if is_pretty { format!("{tree:#}") } else { tree.to_string() };
        prop_assert_eq!(tree::from_yaml(&text), tree::from_other_yaml(&text));
    }

    #[test]
    fn text_means_the_same_in_yaml(bytes in text_like_json()) {
        let text = format!("{{\"a\":{}}}", String::from_utf8_lossy(&bytes));
        prop_assert_eq!(tree::from_yaml(&text), tree::from_other_yaml(&text));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..60), text_like_json()]) {
        let _ = object(&bytes, ContentType::Json);
        let _ = object(&bytes, ContentType::Yaml);
    }

    #[test]
    fn json_that_serde_takes_go_takes_too(bytes in text_like_json()) {
        if serde_json::from_slice::<Value>(&bytes).is_ok() {
            prop_assert_eq!(super::go_json::syntax_error(&bytes), None);
        }
    }
}
