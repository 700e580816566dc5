//! Schemas and objects that are made to be expensive are answered soon.

use std::fmt::Write;

use serde_json::{Map, Value, json};
use steersman_structural_schema::definition::ERRORS_MAX;
use steersman_structural_schema::prune::UNKNOWN_MAX;
use steersman_structural_schema::schema::DEPTH_MAX;
use steersman_structural_schema::validate::PROBLEMS_MAX;
use steersman_structural_schema::{
    Requirements, Schema, TooDeep, TooMuch, default, prune, validate, validate_definition, validate_lists,
};

fn object(properties: Map<String, Value>) -> Value {
    let mut schema = json!({"type": "object"});
    schema["properties"] = Value::Object(properties);
    schema
}

#[test]
fn a_schema_of_thousands_of_wrong_properties_is_refused_with_a_few_errors() {
    let written = object((0..20_000).map(|n| (n.to_string(), json!({"pattern": "("}))).collect());
    let schema = Schema::parse(&written).expect("not deep");
    let errors = validate_definition(&schema, &written, "s", Requirements::of_new(true));
    assert_eq!(errors.len(), ERRORS_MAX);
    let values: Map<String, Value> = (0..20_000).map(|n| (n.to_string(), json!(n))).collect();
    assert_eq!(prune(&mut json!({"x": values}), &schema).len(), 1);
}

#[test]
fn a_schema_that_is_too_deep_is_refused() {
    let nested =
        |depth: usize| (0..depth).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
    assert!(Schema::parse(&nested(DEPTH_MAX - 1)).is_ok());
    assert_eq!(Schema::parse(&nested(DEPTH_MAX)), Err(TooDeep));
}

#[test]
fn patterns_that_are_catastrophic_elsewhere_match_in_linear_time() {
    let schema = Schema::parse(&json!({"type": "string", "pattern": "^(a+)+$"})).expect("not deep");
    let text = format!("{}b", "a".repeat(20_000));
    assert_eq!(validate(&schema, &json!(text), "").len(), 1);
}

#[test]
fn a_schema_full_of_patterns_ends_at_its_budget() {
    let pattern = |n: usize| format!("^(\\pL{{40}}|\\pN{{40}}){n}$");
    let properties = (0..2000).map(|n| (n.to_string(), json!({"type": "string", "pattern": pattern(n)}))).collect();
    let written = object(properties);
    let schema = Schema::parse(&written).expect("not deep");
    let errors = validate_definition(&schema, &written, "s", Requirements::of_new(false));
    assert_eq!(errors.len(), ERRORS_MAX);
    assert!(errors[0].detail.contains("expression too large"), "{}", errors[0]);
}

#[test]
fn an_object_with_thousands_of_wrong_items_has_a_few_problems() {
    let of_items = json!({"type": "string", "anyOf": [{"maxLength": 1}, {"pattern": "^x"}]});
    let written = json!({"type": "array", "items": of_items, "x-kubernetes-list-type": "set"});
    let schema = Schema::parse(&written).expect("not deep");
    let items: Vec<_> = (0..40_000).map(|n| format!("item {}", n / 2)).collect();
    let value = json!(items);
    assert_eq!(validate(&schema, &value, "").len(), PROBLEMS_MAX);
    assert_eq!(validate_lists(&schema, &value).len(), PROBLEMS_MAX);
}

#[test]
fn errors_that_show_their_value_show_only_so_much() {
    let mut text = String::new();
    (0..20_000).for_each(|n| write!(text, "{n} ").expect("a string takes it"));
    let field = json!({"type": "string", "minLength": 1_000_000});
    let names: Vec<_> = (0..100).map(|n| format!("f{n}")).collect();
    let schema = Schema::parse(&object(names.iter().map(|name| (name.clone(), field.clone())).collect()));
    let value: Map<String, Value> = names.into_iter().map(|name| (name, json!(text))).collect();
    let errors = validate(&schema.expect("not deep"), &Value::Object(value), "");
    let shown: usize = errors.iter().map(|error| error.to_string().len()).sum();
    assert!(shown < 2 << 20, "{shown} bytes are shown");
}

#[test]
fn unknown_fields_are_few_and_defaults_are_bounded() {
    let schema = Schema::parse(&json!({"type": "object", "properties": {
        "list": {"type": "array", "items": {"type": "object", "properties": {
            "a": {"type": "string", "default": "x".repeat(1000)},
        }}},
    }}))
    .expect("not deep");
    let unknown: Map<String, Value> = (0..10_000).map(|n| (format!("u{n}"), Value::Null)).collect();
    assert_eq!(prune(&mut Value::Object(unknown), &schema).len(), UNKNOWN_MAX);
    let mut large = json!({"list": vec![json!({}); 10_000]});
    assert_eq!(default(&mut large, &schema), Err(TooMuch));
}
