//! Schemas and objects, compared with what upstream says about them.
//!
//! A line of `data/upstream.jsonl` is a schema and what apiextensions-apiserver v0.37.1 answered: the errors of a definition
//! with it, or what became of objects (pruned, coerced, defaulted) and their errors, for creates and for updates.

use serde_json::{Value, json};
use steersman_base::validation::FieldError;
use steersman_structural_schema::{
    Malformed, Requirements, Schema, coerce, default, prune, prune_nulls, validate, validate_definition,
    validate_embedded, validate_lists, validate_update,
};

/// The path at which the recorder had the schemas.
const PATH: &str = "spec.validation.openAPIV3Schema";

/// What is answered, in the form of the recorded answers: sorted, because upstream walks hash maps.
fn shown(errors: &[FieldError]) -> Vec<Value> {
    let mut shown: Vec<_> = errors
        .iter()
        .map(|error| json!({"reason": error.kind.reason(), "field": error.field, "message": error.to_string()}))
        .collect();
    shown.sort_by_key(|error| error["message"].as_str().unwrap_or_default().to_owned());
    shown
}

/// The value as Go writes it: a whole number has no point.
fn written(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0) {
            #[expect(clippy::cast_possible_truncation, reason = "the recorded numbers are small")]
            Some(float) if float.abs() < 1e15 => Value::from(float as i64),
            _ => Value::Number(number),
        },
        Value::Array(items) => items.into_iter().map(written).collect(),
        Value::Object(map) => Value::Object(map.into_iter().map(|(name, value)| (name, written(value))).collect()),
        other => other,
    }
}

fn definition(case: &Value) -> Value {
    let schema = Schema::parse(&case["schema"]).expect("not too deep");
    let requirements = Requirements::of_new(case["status"] == true);
    Value::Array(shown(&validate_definition(&schema, &case["schema"], PATH, requirements)))
}

fn object(schema: &Schema, pair: &Value) -> Value {
    let mut object = pair["new"].clone();
    let mut unknown = prune(&mut object, schema);
    prune_nulls(&mut object, schema);
    match coerce(&mut object, schema, Malformed::Refuse) {
        Ok(more) => unknown.extend(more),
        Err(error) => return json!({"refused": error.to_string()}),
    }
    default(&mut object, schema).expect("few defaults");
    let old = pair.get("old");
    let mut errors = match old {
        Some(old) => validate_update(schema, &object, old, ""),
        None => validate(schema, &object, ""),
    };
    errors.extend(validate_embedded(schema, &object));
    if old.is_none_or(|old| validate_lists(schema, old).is_empty()) {
        errors.extend(validate_lists(schema, &object));
    }
    let mut answer = json!({"object": written(object), "errors": shown(&errors)});
    if !unknown.is_empty() {
        answer["unknown"] = unknown.into();
    }
    answer
}

#[test]
fn schemas_and_objects_are_answered_as_upstream_answers_them() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/upstream.jsonl");
    let cases = std::fs::read_to_string(path).expect("the recorded cases");
    let mut wrong = Vec::new();
    let mut definitions = [0, 0];
    let mut objects = [0, 0];
    for (number, line) in cases.lines().enumerate() {
        let case: Value = serde_json::from_str(line).expect("a case is JSON");
        let Some(pairs) = case["objects"].as_array() else {
            let got = definition(&case);
            definitions[usize::from(case["want"] != json!([]))] += 1;
            if got != case["want"] {
                wrong.push(format!("line {number}: {}\n  is {got}\nwant {}", case["schema"], case["want"]));
            }
            continue;
        };
        let schema = Schema::parse(&case["schema"]).expect("not too deep");
        for (pair, want) in pairs.iter().zip(case["want"].as_array().into_iter().flatten()) {
            let got = object(&schema, pair);
            objects[usize::from(want["errors"] != json!([]))] += 1;
            if got != written(want.clone()) {
                wrong.push(format!("line {number}: {}\n {pair}\n  is {got}\nwant {want}", case["schema"]));
            }
        }
    }
    let first: Vec<_> = wrong.iter().take(12).cloned().collect();
    assert!(
        wrong.is_empty(),
        "{} of {definitions:?} definitions and {objects:?} objects differ; the first:\n{}",
        wrong.len(),
        first.join("\n\n")
    );
    assert!(definitions.iter().all(|count| *count >= 50), "{definitions:?} definitions, accepted and refused");
    assert!(objects.iter().all(|count| *count >= 300), "{objects:?} objects, valid and invalid");
}
