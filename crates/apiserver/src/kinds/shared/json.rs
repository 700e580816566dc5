//! Reading and changing JSON the way Go reads and changes its structs: what is absent, null or of another type is the
//! zero value.
//!
//! Reading by `value["key"]` never panics; writing goes through the functions here, which leave alone what is no object.

use serde_json::{Map, Value};

use crate::field::Path;

/// A string, or `""`.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A number, or 0.
pub(crate) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

/// A boolean, or false.
pub(crate) fn flag(value: &Value) -> bool {
    value.as_bool().unwrap_or_default()
}

/// The items of a list, if it is one.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The entries of a map, if it is one, in the order of their keys.
pub(crate) fn entries(value: &Value) -> Vec<(&str, &Value)> {
    let mut entries: Vec<_> = value.as_object().into_iter().flatten().map(|(key, value)| (&**key, value)).collect();
    entries.sort_by_key(|entry| entry.0);
    entries
}

/// Whether a pointer would not be nil.
pub(crate) fn is_set(value: &Value) -> bool {
    !value.is_null()
}

/// Whether this is the zero value of its type.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(value) => value.is_empty(),
        Value::Array(value) => value.is_empty(),
        Value::Object(value) => value.is_empty(),
    }
}

/// Whether two values are the same to Go: empty, null and absent are alike at every depth
/// (`apiequality.Semantic.DeepEqual` on structs without `omitempty` in the way).
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(a), Value::Object(b)) => {
            a.iter().all(|(key, value)| same(value, b.get(key).unwrap_or(&Value::Null)))
                && b.iter().all(|(key, value)| a.contains_key(key) || is_hollow(value))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        _ => left == right || (is_hollow(left) && is_hollow(right)),
    }
}

/// Whether nothing is in it but emptiness.
fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.values().all(is_hollow),
        Value::Bool(_) | Value::Number(_) => false,
        other => is_empty(other),
    }
}

/// Calls `f` with every item of a list and its path.
pub(crate) fn each<'a>(list: &'a Value, path: &Path, mut f: impl FnMut(&'a Value, &Path)) {
    for (index, item) in items(list).iter().enumerate() {
        f(item, &path.index(index));
    }
}

/// Calls `f` with every item of the list at `key`, to change it.
pub(crate) fn each_mut(value: &mut Value, key: &str, mut f: impl FnMut(&mut Value)) {
    for item in value.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
        f(item);
    }
}

/// The object at `key`, to change it, if there is one.
pub(crate) fn object_mut<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    value.get_mut(key).filter(|value| value.is_object())
}

/// The object at `key`, made if it is not there. Of what is no object itself, a scratch value that is thrown away.
pub(crate) fn made<'a>(value: &'a mut Value, key: &str, scratch: &'a mut Value) -> &'a mut Value {
    let Some(map) = value.as_object_mut() else { return scratch };
    let field = map.entry(key).or_insert_with(|| Value::Object(Map::new()));
    if field.is_null() {
        *field = Value::Object(Map::new());
    }
    if field.is_object() { field } else { scratch }
}

/// Calls `f` with the object at `key`, made if it is not there.
pub(crate) fn with(value: &mut Value, key: &str, f: impl FnOnce(&mut Value)) {
    f(made(value, key, &mut Value::Null));
}

/// Sets a field.
pub(crate) fn set(value: &mut Value, key: &str, field: impl Into<Value>) {
    if let Some(map) = value.as_object_mut() {
        map.insert(key.to_owned(), field.into());
    }
}

/// Removes a field.
pub(crate) fn unset(value: &mut Value, key: &str) -> Option<Value> {
    value.as_object_mut().and_then(|map| map.remove(key))
}

/// Sets a field that is absent or null: the default of a pointer.
pub(crate) fn default_to(value: &mut Value, key: &str, field: impl Into<Value>) {
    if value[key].is_null() {
        set(value, key, field);
    }
}

/// Sets a field that is zero: the default of a plain value.
pub(crate) fn default_zero_to(value: &mut Value, key: &str, field: impl Into<Value>) {
    if is_empty(&value[key]) {
        set(value, key, field);
    }
}

/// Sets a field to what it is in `from`, or removes it if it is not there.
pub(crate) fn copy(value: &mut Value, from: &Value, key: &str) {
    match from.get(key) {
        Some(field) => set(value, key, field.clone()),
        None => {
            unset(value, key);
        }
    }
}
