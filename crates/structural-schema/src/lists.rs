//! Lists of type `set` and `map` hold nothing twice. Follows `apiextensions-apiserver/pkg/apiserver/schema/listtype`.

use std::collections::HashMap;

use serde_json::{Map, Value};
use steersman_base::validation::{FieldError, FieldErrorKind};

use crate::path::Path;
use crate::schema::Schema;
use crate::validate::PROBLEMS_MAX;

/// Checks the lists of an object: an item that is there again is reported once.
#[must_use]
pub fn validate_lists(schema: &Schema, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    value(schema, object, &Path::root(""), &mut errors);
    errors
}

fn value(schema: &Schema, object: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match object {
        Value::Object(map) => {
            if let Some(others) = schema.additional_schema() {
                for (name, entry) in map {
                    value(others, entry, &path.key(name), errors);
                }
            }
            for (name, entry) in map {
                if let Some(property) = schema.properties.get(name) {
                    value(property, entry, &path.child(name), errors);
                }
            }
        }
        Value::Array(list) => {
            match schema.list_type() {
                "set" => set(list, path, errors),
                "map" => keyed(list, schema.list_map_keys(), path, errors),
                _ => {}
            }
            if let Some(of_items) = &schema.items {
                for (at, item) in list.iter().enumerate() {
                    value(of_items, item, &path.index(at), errors);
                }
            }
        }
        _ => {}
    }
}

fn set(list: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for at in repeated(list.iter().map(ToString::to_string)) {
        push(FieldErrorKind::Duplicate, &path.index(at), list[at].clone(), "", errors);
    }
}

fn keyed(list: &[Value], keys: &[String], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(at) = list.iter().position(|item| !item.is_object() && !item.is_null()) {
        let detail = "must be an object for an array of list-type map";
        push(FieldErrorKind::Invalid, &path.index(at), list[at].clone(), detail, errors);
        return;
    }
    let key_of = |item: &Value| {
        let fields = keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
        Value::Object(fields.collect::<Map<_, _>>())
    };
    for at in repeated(list.iter().map(|item| key_of(item).to_string())) {
        push(FieldErrorKind::Duplicate, &path.index(at), key_of(&list[at]), "", errors);
    }
}

/// Returns the index of the first text that repeats another.
fn repeated(texts: impl ExactSizeIterator<Item = String>) -> Vec<usize> {
    if texts.len() <= 1 {
        return Vec::new();
    }
    let mut times: HashMap<String, usize> = HashMap::with_capacity(texts.len());
    let mut repeated = Vec::new();
    for (at, text) in texts.enumerate() {
        let seen = times.entry(text).or_default();
        *seen += 1;
        if *seen == 2 {
            repeated.push(at);
        }
    }
    repeated
}

fn push(kind: FieldErrorKind, path: &Path<'_>, value: Value, detail: &str, errors: &mut Vec<FieldError>) {
    if errors.len() < PROBLEMS_MAX {
        errors.push(FieldError { kind, field: path.field(), value: Some(value), detail: detail.to_owned() });
    }
}
