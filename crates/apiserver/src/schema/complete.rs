//! The zero values that Go writes even so.
//!
//! Go leaves a field out if its tag says `omitempty` and it is empty, but a struct never is; `omitzero` leaves out zero
//! structs too. Lists and maps that are empty come back from etcd as nil, which is `null` where it is written.

use serde_json::{Map, Value};

use crate::schema::scalar;
use crate::schema::table::{Field, Omit, Shape, Struct};

pub(super) fn complete(schema: &'static Struct, object: &mut Map<String, Value>) {
    for field in &schema.fields {
        match object.get_mut(field.name) {
            Some(value) => within(&field.shape, value),
            None => {
                if let Some(zero) = always_written(field) {
                    object.insert(field.name.to_owned(), zero);
                }
            }
        }
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

/// What an absent field is written as, if it is.
fn always_written(field: &Field) -> Option<Value> {
    let is_struct = matches!(
        field.shape,
        Shape::Struct(_) | Shape::Time | Shape::MicroTime | Shape::Quantity | Shape::IntOrString | Shape::Any
    ) && !is_list_or_map(field.go);
    let written = match field.omit {
        Omit::Never => true,
        Omit::Empty => is_struct && !field.pointer,
        Omit::Zero => false,
    };
    if !written {
        return None;
    }
    if field.pointer {
        return Some(Value::Null);
    }
    let mut zero = scalar::zero(&field.shape);
    within(&field.shape, &mut zero);
    Some(zero)
}

fn is_list_or_map(go: &str) -> bool {
    go.starts_with("[]") || go.starts_with("map[")
}
