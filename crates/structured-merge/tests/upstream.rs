//! Writes by several managers, compared with what upstream made of them.
//!
//! A line of `data/upstream.jsonl` is a schema, a sequence of writes, and what the field manager of apimachinery v0.37.1
//! (with structured-merge-diff v6.4.2) answered to each: the object with its `managedFields` and the bytes of every
//! `FieldsV1`, or the error.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use steersman_structured_merge::{ApplyError, FieldManager, FieldSet, Filter, OneVersion, Schema, UpdateError, Writer};

const API_VERSION: &str = "test.example/v1";
const NOW: &str = "2026-11-15T20:06:52Z";

/// What a write came to, in the form of the recorded answers.
enum Outcome {
    Object(Value),
    Apply(ApplyError),
    Update(UpdateError),
}

fn write(op: &Value, live: Option<&Value>, versions: &OneVersion) -> Outcome {
    let filters = match op["subresource"].as_str() {
        Some("status") => vec![(API_VERSION, Filter::exclude_fields(["spec"]))],
        _ => Vec::new(),
    };
    let fields = FieldManager {
        api_version: API_VERSION,
        kind: "Thing",
        subresource: op["subresource"].as_str().unwrap_or_default(),
        versions,
        filters: &filters,
    };
    let writer = Writer { manager: op["manager"].as_str().unwrap_or_default(), now: NOW };
    if op["op"] == "apply" {
        return match fields.apply(live, &op["object"], writer, op["force"] == true) {
            Ok(applied) => Outcome::Object(applied.object),
            Err(error) => Outcome::Apply(error),
        };
    }
    let mut new = op["object"].clone();
    match fields.update(live, &mut new, writer) {
        Ok(()) => Outcome::Object(new),
        Err(error) => Outcome::Update(error),
    }
}

/// The object without times, and for each manager whether it had one and the bytes of its fields.
fn shown(object: &Value) -> (Value, Value) {
    let mut object = object.clone();
    let mut raws = Vec::new();
    if let Some(entries) = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut) {
        for entry in entries {
            let had = entry.as_object_mut().expect("an entry is an object").remove("time").is_some();
            let fields = FieldSet::from_value(&entry["fieldsV1"]).expect("fields that were written can be read");
            raws.push(json!({"had": had, "raw": fields.to_json()}));
        }
    }
    (object, Value::Array(raws))
}

fn lines(text: &str) -> BTreeSet<&str> {
    text.lines().map(str::trim).collect()
}

/// What is wrong with an outcome; nothing if it is as recorded.
fn mismatch(outcome: &Outcome, want: &Value) -> Option<String> {
    match outcome {
        Outcome::Object(object) => {
            let (object, raws) = shown(object);
            if want["object"] == object && want["raws"] == raws {
                return None;
            }
            Some(format!("object {object}\n raws {raws}\n want {}\n raws {}", want["object"], want["raws"]))
        }
        Outcome::Apply(error) => {
            let text = error.to_string();
            let wanted = want["error"].as_str().unwrap_or_default();
            let reason = match error {
                ApplyError::BadRequest(_) => json!("BadRequest"),
                ApplyError::Conflict(conflicts) => {
                    let mut causes: Vec<_> =
                        conflicts.0.iter().map(|c| json!(format!("{}|{}", c.path, c.message()))).collect();
                    let mut recorded = want["causes"].as_array().cloned().unwrap_or_default();
                    causes.sort_by_key(ToString::to_string);
                    recorded.sort_by_key(ToString::to_string);
                    if causes != recorded {
                        return Some(format!("causes {causes:?}, want {recorded:?}"));
                    }
                    json!("Conflict")
                }
                ApplyError::Config { .. } | ApplyError::Internal(_) => Value::Null,
            };
            // Upstream walks hash maps: it reports several errors in any order, and stops at a field that is not declared.
            let same = if text.contains("field not declared") {
                lines(wanted).iter().all(|line| lines(&text).iter().any(|ours| line.ends_with(ours)))
            } else {
                text == wanted || (wanted.contains("errors:") && lines(wanted) == lines(&text))
            };
            (!same || want["reason"] != reason).then(|| format!("error {text}\n want {want}"))
        }
        Outcome::Update(error) => want["error"].is_null().then(|| format!("error {error}\n want {want}")),
    }
}

#[test]
fn writes_of_several_managers_end_as_upstream_ends_them() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/upstream.jsonl");
    let cases = std::fs::read_to_string(path).expect("the recorded cases");
    let mut wrong = Vec::new();
    let mut count = 0;
    for (number, line) in cases.lines().enumerate() {
        let case: Value = serde_json::from_str(line).expect("a case is JSON");
        let schema = Schema::custom_resource(Some(&case["schema"])).expect("the schema is structural");
        let versions = OneVersion { api_version: API_VERSION.to_owned(), schema };
        let mut live: Option<Value> = None;
        let ops = case["ops"].as_array().expect("writes");
        for (step, op) in ops.iter().enumerate() {
            count += 1;
            let mut outcome = write(op, live.as_ref(), &versions);
            if let Outcome::Object(object) = &mut outcome {
                // The recorder gave every object that was stored a uid.
                object["metadata"]["uid"] = json!("u");
            }
            if let Some(problem) = mismatch(&outcome, &case["want"][step]) {
                wrong.push(format!("case {number}, write {step}: {problem}\n op {op}\n live {live:?}"));
                break;
            }
            if let Outcome::Object(object) = outcome {
                live = Some(object);
            }
        }
    }
    let first: Vec<_> = wrong.iter().take(5).cloned().collect();
    assert!(wrong.is_empty(), "{} of {count} writes differ; the first:\n{}", wrong.len(), first.join("\n\n"));
    assert!(count >= 350, "only {count} writes are recorded");
}
