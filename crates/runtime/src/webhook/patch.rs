//! The patch for a handler's changes.
//!
//! A handler's type may know fewer fields than the object has, and may write fields that the object does not have. So
//! three values are compared: the object as it was sent, the type's representation of it before, and after. Only the
//! differences between the two representations are changed in the sent object.

use json_patch::Patch;
use serde::Serialize;
use serde_json::{Map, Value};

use super::Denial;

/// Returns a type's representation of an object.
pub(super) fn shown<K: Serialize>(object: &K) -> Result<Value, Denial> {
    serde_json::to_value(object).map_err(|error| Denial::internal(format!("the object cannot be written: {error}")))
}

/// Returns the patch of `sent`.
pub(super) fn between(sent: &Value, before: &Value, after: &Value) -> Patch {
    json_patch::diff(sent, &carried(sent, before, after))
}

/// Returns `sent` with the changes from `before` to `after`.
fn carried(sent: &Value, before: &Value, after: &Value) -> Value {
    if before == after {
        return sent.clone();
    }
    match (sent, before, after) {
        (Value::Object(sent), Value::Object(before), Value::Object(after)) => fields(sent, before, after),
        (Value::Array(sent), Value::Array(before), Value::Array(after)) if sent.len() == before.len() => {
            elements(sent, before, after)
        }
        _ => after.clone(),
    }
}

fn fields(sent: &Map<String, Value>, before: &Map<String, Value>, after: &Map<String, Value>) -> Value {
    let mut result = sent.clone();
    result.retain(|name, _| !before.contains_key(name) || after.contains_key(name));
    for (name, after) in after {
        let before = before.get(name);
        if before == Some(after) {
            continue;
        }
        let value = match (sent.get(name), before) {
            (Some(sent), Some(before)) => carried(sent, before, after),
            _ => after.clone(),
        };
        result.insert(name.clone(), value);
    }
    result.into()
}

/// Elements move when others are added or removed, so each is searched: at its old position, by its old value, then by
/// its name.
fn elements(sent: &[Value], before: &[Value], after: &[Value]) -> Value {
    let same_length = before.len() == after.len();
    let element = |(index, after): (usize, &Value)| {
        let name = after.get("name");
        let named = |before: &Value| name.is_some() && before.get("name") == name;
        let origin = (before.get(index) == Some(after))
            .then_some(index)
            .or_else(|| before.iter().position(|before| before == after))
            .or_else(|| before.iter().position(named))
            .or_else(|| (same_length && name.is_none()).then_some(index));
        origin.map_or_else(|| after.clone(), |origin| carried(&sent[origin], &before[origin], after))
    };
    after.iter().enumerate().map(element).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_a_handler_changed_is_changed() {
        // name, sent, before, after, want
        let rows = [
            (
                "nothing",
                json!({"a": 1, "x": 2}),
                json!({"a": 1, "d": []}),
                json!({"a": 1, "d": []}),
                json!({"a": 1, "x": 2}),
            ),
            ("a field", json!({"a": 1, "x": 2}), json!({"a": 1}), json!({"a": 3}), json!({"a": 3, "x": 2})),
            ("a new field", json!({"x": 2}), json!({}), json!({"a": {"b": 1}}), json!({"a": {"b": 1}, "x": 2})),
            ("a field that goes", json!({"a": 1, "x": 2}), json!({"a": 1}), json!({}), json!({"x": 2})),
            (
                "a field that only the type wrote",
                json!({"x": 2}),
                json!({"labels": {}, "d": 0}),
                json!({"labels": {"a": "b"}, "d": 0}),
                json!({"labels": {"a": "b"}, "x": 2}),
            ),
            (
                "a null that the type does not show",
                json!({"a": null}),
                json!({}),
                json!({"a": {"b": 1}}),
                json!({"a": {"b": 1}}),
            ),
            (
                "a deep field beside unknown ones",
                json!({"spec": {"a": 1, "x": 2}, "y": 3}),
                json!({"spec": {"a": 1}}),
                json!({"spec": {"a": 2}}),
                json!({"spec": {"a": 2, "x": 2}, "y": 3}),
            ),
            (
                "an element in front",
                json!([{"name": "a", "x": 1}, {"name": "b", "x": 2}]),
                json!([{"name": "a"}, {"name": "b"}]),
                json!([{"name": "c"}, {"name": "a"}, {"name": "b", "i": 1}]),
                json!([{"name": "c"}, {"name": "a", "x": 1}, {"name": "b", "x": 2, "i": 1}]),
            ),
            (
                "an element without name",
                json!([{"a": 1, "x": 1}, {"a": 2, "x": 2}]),
                json!([{"a": 1}, {"a": 2}]),
                json!([{"a": 1}, {"a": 3}]),
                json!([{"a": 1, "x": 1}, {"a": 3, "x": 2}]),
            ),
            (
                "an element that goes",
                json!([{"a": 1, "x": 1}, {"a": 2, "x": 2}]),
                json!([{"a": 1}, {"a": 2}]),
                json!([{"a": 2}]),
                json!([{"a": 2, "x": 2}]),
            ),
            ("another type of value", json!({"a": "1"}), json!({"a": "1"}), json!({"a": [1]}), json!({"a": [1]})),
            ("keys with slashes", json!({"a/b~": 1}), json!({"a/b~": 1}), json!({"a/b~": 2}), json!({"a/b~": 2})),
        ];
        for (name, sent, before, after, want) in rows {
            let patch = between(&sent, &before, &after);
            let mut patched = sent.clone();
            json_patch::patch(&mut patched, &patch).unwrap();
            assert_eq!(patched, want, "{name}: {patch}");
            assert_eq!(patch.0.is_empty(), sent == want, "{name}: {patch}");
        }
    }
}
