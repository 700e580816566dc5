//! The zero values that Go writes even so.
//!
//! Go leaves a field out if its tag says `omitempty` and it is empty, but a struct never is; `omitzero` leaves out zero
//! structs too. Lists and maps that are empty come back from etcd as nil, which is `null` where it is written.

use serde_json::{Map, Value};

use crate::schema::scalar;
use crate::schema::table::{Field, Omit, Shape, Struct};

pub(super) fn complete(schema: &'static Struct, object: &mut Map<String, Value>) {
    // By what is there: most structs have many more fields than an object of them has.
    for (name, value) in object.iter_mut().filter(|(_, value)| holds_values(value)) {
        if let Some(field) = schema.field(name) {
            within(&field.shape, value);
        }
    }
    for field in schema.written.iter().filter_map(|at| schema.fields.get(*at)) {
        if !object.contains_key(field.name) {
            object.insert(field.name.to_owned(), written_zero(field));
        }
    }
}

/// Whether completion would change nothing.
pub(super) fn is_complete(schema: &'static Struct, object: &Map<String, Value>) -> bool {
    let is_there = |at: &usize| schema.fields.get(*at).is_none_or(|field| object.contains_key(field.name));
    let is_whole = |(name, value): (&String, &Value)| {
        !holds_values(value) || schema.field(name).is_none_or(|field| is_complete_within(&field.shape, value))
    };
    schema.written.iter().all(is_there) && object.iter().all(is_whole)
}

/// [`is_complete`] of a value.
fn is_complete_within(shape: &Shape, value: &Value) -> bool {
    match (shape, value) {
        (Shape::Struct(id) | Shape::StructOr(id), Value::Object(object)) => is_complete(id.schema(), object),
        (Shape::List(element), Value::Array(elements)) if has_structs(element) => {
            elements.iter().all(|value| is_complete_within(element, value))
        }
        (Shape::Map(element), Value::Object(entries)) if has_structs(element) => {
            entries.values().all(|value| is_complete_within(element, value))
        }
        _ => true,
    }
}

/// Whether there may be something to complete within a value.
fn holds_values(value: &Value) -> bool {
    matches!(value, Value::Object(_) | Value::Array(_))
}

/// Whether an object would be the same as a complete one if it were completed, as far as `is_compared` says of its fields.
pub(super) fn completes_to(
    schema: &'static Struct,
    object: &Map<String, Value>,
    complete: &Map<String, Value>,
    is_compared: fn(&str) -> bool,
) -> bool {
    let is_same = |(name, value): (&String, &Value)| {
        let Some(wanted) = complete.get(name) else { return false };
        schema.field(name).map_or_else(|| value == wanted, |field| completes_within(&field.shape, value, wanted))
    };
    if !object.iter().filter(|(name, _)| is_compared(name)).all(is_same) {
        return false;
    }
    // All that the object lacks is what completion adds.
    let is_added = |(name, value): (&String, &Value)| {
        object.contains_key(name) || schema.field(name).and_then(always_written).as_ref() == Some(value)
    };
    let is_there = |field: &Field| {
        object.contains_key(field.name) || complete.contains_key(field.name) || always_written(field).is_none()
    };
    complete.iter().filter(|(name, _)| is_compared(name)).all(is_added)
        && schema.fields.iter().filter(|field| is_compared(field.name)).all(is_there)
}

/// [`completes_to`] of a value.
fn completes_within(shape: &Shape, value: &Value, complete: &Value) -> bool {
    match (shape, value, complete) {
        (Shape::Struct(id) | Shape::StructOr(id), Value::Object(value), Value::Object(complete)) => {
            completes_to(id.schema(), value, complete, |_| true)
        }
        (Shape::List(element), Value::Array(values), Value::Array(complete)) if has_structs(element) => {
            values.len() == complete.len()
                && values.iter().zip(complete).all(|(value, complete)| completes_within(element, value, complete))
        }
        (Shape::Map(element), Value::Object(values), Value::Object(complete)) if has_structs(element) => {
            let is_same = |(key, value): (&String, &Value)| {
                complete.get(key).is_some_and(|complete| completes_within(element, value, complete))
            };
            values.len() == complete.len() && values.iter().all(is_same)
        }
        _ => value == complete,
    }
}

fn within(shape: &Shape, value: &mut Value) {
    match (shape, value) {
        (Shape::Struct(id) | Shape::StructOr(id), Value::Object(object)) => complete(id.schema(), object),
        (Shape::List(element), Value::Array(elements)) if has_structs(element) => {
            elements.iter_mut().for_each(|value| within(element, value));
        }
        (Shape::Map(element), Value::Object(entries)) if has_structs(element) => {
            entries.values_mut().for_each(|value| within(element, value));
        }
        _ => {}
    }
}

fn has_structs(shape: &Shape) -> bool {
    match shape {
        Shape::Struct(_) | Shape::StructOr(_) => true,
        Shape::List(element) | Shape::Map(element) => has_structs(element),
        _ => false,
    }
}

/// Returns the value that is written for an absent field, if there is one.
fn always_written(field: &Field) -> Option<Value> {
    is_always_written(field).then(|| written_zero(field))
}

/// Returns the value that is written for an absent field that is always written.
fn written_zero(field: &Field) -> Value {
    if field.pointer {
        return Value::Null;
    }
    let mut zero = scalar::zero(&field.shape);
    within(&field.shape, &mut zero);
    zero
}

/// Whether a field is written even if it is absent.
pub(super) fn is_always_written(field: &Field) -> bool {
    let is_struct = matches!(
        field.shape,
        Shape::Struct(_) | Shape::Time | Shape::MicroTime | Shape::Quantity | Shape::IntOrString | Shape::Any
    ) && !is_list_or_map(field.go);
    match field.omit {
        Omit::Never => true,
        Omit::Empty => is_struct && !field.pointer,
        Omit::Zero => false,
    }
}

fn is_list_or_map(go: &str) -> bool {
    go.starts_with("[]") || go.starts_with("map[")
}
