//! Maps: objects and maps of the object, and those that expressions make.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::{Str, Value, from_json, from_plain_json};
use crate::escape;
use crate::schema::Schema;

/// A map.
#[derive(Clone, Debug)]
pub(crate) enum Map<'a> {
    /// An object or map of the object.
    Json {
        values: &'a serde_json::Map<String, Json>,
        schema: &'a Schema,
    },
    /// An object or map of an object without a schema.
    Plain(&'a serde_json::Map<String, Json>),
    Values(Arc<BTreeMap<Key, Value<'a>>>),
    /// The variables of a policy, which the evaluator knows.
    Composed,
}

/// A key of a map that an expression made. Numbers of different types are different keys, but found by each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    Bool(bool),
    Int(i64),
    Uint(u64),
    /// The bits of a number.
    Double(u64),
    String(Arc<str>),
    /// Anything else, by how it prints.
    Other(String),
}

// === impl Map ===

impl<'a> Map<'a> {
    pub(crate) fn is_json(&self) -> bool {
        matches!(self, Self::Json { .. })
    }

    /// Whether it is of an object, with a schema or without.
    pub(crate) fn is_of_object(&self) -> bool {
        matches!(self, Self::Json { .. } | Self::Plain(_))
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Plain(values) => values.len(),
            Self::Json { values, .. } => values.len(),
            Self::Values(values) => values.len(),
            Self::Composed => 0,
        }
    }

    /// Returns the schema of a property of an object or of a value of a map.
    pub(crate) fn property_schema(schema: &'a Schema, name: &str) -> Option<&'a Schema> {
        match &schema.properties {
            Some(properties) => properties.get(name).map(|property| &**property),
            None if schema.embedded_resource => None,
            None => schema.additional_schema().map(|values| &**values),
        }
    }

    /// The value of a key, or an error if keys are of another type.
    pub(crate) fn find(&self, key: &Value<'_>) -> Option<Value<'a>> {
        match self {
            Self::Json { values, schema } => {
                let Some(name) = key.as_str() else {
                    return Some(match key {
                        Value::Error(message) => Value::Error(message.clone()),
                        _ => Value::no_such_overload(),
                    });
                };
                let is_object = schema.properties.is_some();
                let name = if is_object { escape::unescape(name)? } else { name.into() };
                let value = values.get(&*name)?;
                if is_object && value.is_null() {
                    return None;
                }
                Some(from_json(value, Self::property_schema(schema, &name)?))
            }
            Self::Plain(values) => match key {
                Value::String(name) => values.get(name.as_str()).map(from_plain_json),
                Value::Error(message) => Some(Value::Error(message.clone())),
                other => Some(Value::error(format!("unsupported map key type: {}", other.go_type()))),
            },
            Self::Values(values) => find(values, key),
            Self::Composed => None,
        }
    }

    pub(crate) fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Self::Json { values, schema } => {
                let is_object = schema.properties.is_some();
                let known = values.keys().filter(|name| Self::property_schema(schema, name).is_some());
                let key = |name: &'a String| match escape(name) {
                    Some(escaped) if is_object => Value::string(escaped.into_owned()),
                    _ => Value::String(Str::Borrowed(name)),
                };
                known.map(key).collect()
            }
            Self::Plain(values) => values.keys().map(|name| Value::String(Str::Borrowed(name))).collect(),
            Self::Values(values) => values.keys().map(Key::value).collect(),
            Self::Composed => Vec::new(),
        }
    }

    /// Keys and values.
    pub(crate) fn entries(&self) -> Vec<(Value<'a>, Value<'a>)> {
        let keys = self.keys();
        keys.into_iter().filter_map(|key| self.find(&key).map(|value| (key, value))).collect()
    }

    /// This map and one more entry.
    pub(crate) fn insert(&self, key: &Value<'a>, value: Value<'a>) -> Value<'a> {
        if self.find(key).is_some() {
            return Value::error(format!("insert failed: key {} already exists", key.text()));
        }
        let mut values: BTreeMap<Key, Value<'a>> =
            self.entries().into_iter().map(|(key, value)| (Key::new(&key), value)).collect();
        values.insert(Key::new(key), value);
        Value::Map(Self::Values(Arc::new(values)))
    }
}

fn find<'a>(values: &BTreeMap<Key, Value<'a>>, key: &Value<'_>) -> Option<Value<'a>> {
    let found = |key: Key| values.get(&key).cloned();
    if let Some(value) = found(Key::new(key)) {
        return Some(value);
    }
    match key {
        Value::Double(number) => {
            let int = Some(*number as i64).filter(|int| *int as f64 == *number && *int != i64::MAX);
            let uint = Some(*number as u64).filter(|uint| *uint as f64 == *number && *uint != u64::MAX);
            int.and_then(|int| found(Key::Int(int))).or_else(|| uint.and_then(|uint| found(Key::Uint(uint))))
        }
        Value::Int(int) => u64::try_from(*int).ok().and_then(|uint| found(Key::Uint(uint))),
        Value::Uint(uint) => i64::try_from(*uint).ok().and_then(|int| found(Key::Int(int))),
        _ => None,
    }
}

// === impl Key ===

impl Key {
    pub(crate) fn new(value: &Value<'_>) -> Self {
        match value {
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::Uint(value) => Self::Uint(*value),
            Value::Double(value) => Self::Double(if *value == 0.0 { 0 } else { value.to_bits() }),
            Value::String(text) => Self::String(text.as_str().into()),
            value => Self::Other(format!("{} {}", value.type_name(), value.text())),
        }
    }

    fn value<'a>(&self) -> Value<'a> {
        match self {
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Uint(value) => Value::Uint(*value),
            Self::Double(bits) => Value::Double(f64::from_bits(*bits)),
            Self::String(text) => Value::string(text.clone()),
            Self::Other(text) => Value::string(text.as_str()),
        }
    }
}
