//! The zero value of a Go type, as far as OpenAPI shows it.
//!
//! kube-openapi gives a struct field that is no pointer the default `{}`, and a scalar that is written even when it is
//! zero its zero value as default; lists, maps and pointers that are always written are required. Times that are no
//! pointers are written as `null`; which ones those are cannot be seen, but a null too many changes no field set.

use serde_json::{Map, Value};

use super::{TypeId, Types};

/// Deeper than any Go struct holds structs by value.
const DEPTH_MAX: usize = 32;

/// The value of a field of a zero struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zero {
    Absent,
    Null,
    /// The field's default.
    Default,
    /// The zero value of the field's type.
    Struct,
}

impl Zero {
    /// Returns the zero value of a property's field.
    pub(super) fn of(property: &Value, required: bool) -> Self {
        let refers = property.get("$ref").and_then(Value::as_str);
        match property.get("default") {
            Some(Value::Object(members)) if members.is_empty() && refers.is_some() => return Self::Struct,
            Some(Value::String(text)) if text.is_empty() => return Self::Default,
            Some(Value::Bool(false)) => return Self::Default,
            Some(Value::Number(number)) if number.as_f64() == Some(0.0) => return Self::Default,
            _ => {}
        }
        if refers.is_some_and(|name| name.ends_with(".meta.v1.Time") || name.ends_with(".meta.v1.MicroTime")) {
            return Self::Null;
        }
        let type_name = property.get("type").and_then(Value::as_str);
        let nothing = refers.is_some() || matches!(type_name, Some("array" | "object"));
        if required && nothing { Self::Null } else { Self::Absent }
    }
}

impl Types {
    /// The zero value of a type.
    pub(super) fn zero(&self, id: TypeId) -> Value {
        self.zero_struct(id, 0)
    }

    fn zero_struct(&self, id: TypeId, depth: usize) -> Value {
        let mut members = Map::new();
        let fields = self.atom(id).map.as_ref().map_or(&[][..], |map| &map.fields);
        for field in fields {
            let value = match field.zero {
                Zero::Absent => continue,
                Zero::Null => Value::Null,
                Zero::Default => field.default.clone().unwrap_or_default(),
                Zero::Struct if depth < DEPTH_MAX => self.zero_struct(field.ty, depth + 1),
                Zero::Struct => continue,
            };
            members.insert(field.name.as_ref().to_owned(), value);
        }
        Value::Object(members)
    }
}
