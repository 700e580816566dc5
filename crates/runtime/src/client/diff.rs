//! Pure: the JSON merge patch that turns one object into another.

use serde_json::{Map, Value};

/// Maps that mean the same whether they are empty or absent; any other empty object may be a choice, such as
/// `emptyDir: {}`.
const EMPTY_IS_ABSENT: [&str; 10] = [
    "annotations",
    "binaryData",
    "data",
    "labels",
    "limits",
    "matchLabels",
    "metadata",
    "nodeSelector",
    "requests",
    "stringData",
];

/// Returns the merge patch that turns `before` into `after`; `None` if they are equivalent. Null and empty lists count
/// as absent, as in Go's types.
pub(super) fn merge_patch(before: &Value, after: &Value) -> Option<Value> {
    let before = bare(before.clone());
    let after = bare(after.clone());
    let (Value::Object(before), Value::Object(after)) = (&before, &after) else {
        return (before != after).then_some(after);
    };
    let changes = changes(before, after);
    (!changes.is_empty()).then_some(Value::Object(changes))
}

fn changes(before: &Map<String, Value>, after: &Map<String, Value>) -> Map<String, Value> {
    let mut changes = Map::new();
    for (name, new) in after {
        let change = match (before.get(name), new) {
            (Some(old), new) if old == new => continue,
            (Some(Value::Object(old)), Value::Object(new)) => Value::Object(self::changes(old, new)),
            (_, new) => new.clone(),
        };
        changes.insert(name.clone(), change);
    }
    let removed = before.keys().filter(|name| !after.contains_key(*name));
    changes.extend(removed.map(|name| (name.clone(), Value::Null)));
    changes
}

/// Returns the value without null, empty lists and equivalent fields.
fn bare(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (name, bare(value)));
            Value::Object(fields.filter(|(name, value)| !is_absent(name, value)).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(bare).collect()),
        other => other,
    }
}

fn is_absent(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty() && EMPTY_IS_ABSENT.contains(&name),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_makes_one_object_of_the_other() {
        let check = |before: Value, after: Value, want: Option<Value>| {
            let patch = merge_patch(&before, &after);
            assert_eq!(patch, want, "{before} to {after}");
            let mut patched = before.clone();
            json_merge(&mut patched, &patch.unwrap_or(json!({})));
            assert_eq!(bare(patched), bare(after));
        };
        check(json!({"a": 1}), json!({"a": 1}), None);
        check(json!({"a": 1}), json!({"a": 2}), Some(json!({"a": 2})));
        check(json!({"a": 1, "b": 2}), json!({"a": 1}), Some(json!({"b": null})));
        check(json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 1, "c": 3}}), Some(json!({"a": {"c": 3}})));
        check(json!({"a": [1, 2]}), json!({"a": [1, 3]}), Some(json!({"a": [1, 3]})));
        check(json!({"a": [1]}), json!({"a": []}), Some(json!({"a": null})));
        check(json!({"a": {"b": 1}}), json!({"a": {}}), Some(json!({"a": {"b": null}})));
        check(json!({"a": {"b": 1}}), json!({"a": 1}), Some(json!({"a": 1})));
    }

    #[test]
    fn absent_null_and_empty_mean_the_same_where_go_says_so() {
        assert_eq!(merge_patch(&json!({"a": null, "b": []}), &json!({})), None);
        assert_eq!(merge_patch(&json!({"metadata": {"labels": {}}}), &json!({"metadata": {}})), None);
        let volume = json!({"volumes": [{"name": "x", "emptyDir": {}}]});
        let bare_volume = json!({"volumes": [{"name": "x"}]});
        assert_eq!(merge_patch(&bare_volume, &volume), Some(volume), "an empty object may be a choice");
    }

    /// RFC 7386, literally.
    fn json_merge(target: &mut Value, patch: &Value) {
        let Value::Object(patch) = patch else { return target.clone_from(patch) };
        if !target.is_object() {
            *target = json!({});
        }
        let Value::Object(target) = target else { return };
        for (name, value) in patch {
            match value {
                Value::Null => drop(target.remove(name)),
                value => json_merge(target.entry(name).or_insert(Value::Null), value),
            }
        }
    }
}
