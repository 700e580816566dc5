//! Lists: of the object, made by expressions, and sums of both.

use std::sync::Arc;

use serde_json::Value as Json;

use super::{Value, from_json, from_plain_json};
use crate::schema::Schema;

/// The maximum number of items in a sum of lists: the cost of one expression.
const LENGTH_MAX: usize = 1_000_000;

/// A list.
#[derive(Clone, Debug)]
pub(crate) enum List<'a> {
    /// A list of the object.
    Json {
        items: &'a [Json],
        schema: &'a Schema,
    },
    /// A list of an object without a schema.
    Plain(&'a [Json]),
    Values(Arc<Vec<Value<'a>>>),
    /// One after the other, and how many items both have.
    Concat(Arc<(List<'a>, List<'a>)>, usize),
    /// The sum of a set of the object and another list.
    Set(Arc<Vec<Value<'a>>>),
    /// The sum of a list of the object with keys and another list.
    Keyed(Arc<Vec<Value<'a>>>, Arc<[String]>),
}

/// The relation of the items of a list.
pub(crate) enum ListKind<'l> {
    Plain,
    Set,
    Keyed(&'l Arc<[String]>),
}

// === impl List ===

impl<'a> List<'a> {
    pub(crate) fn kind(&self) -> ListKind<'_> {
        match self {
            Self::Json { schema, .. } => match &*schema.list_type {
                "set" => ListKind::Set,
                "map" => ListKind::Keyed(&schema.escaped_map_keys),
                _ => ListKind::Plain,
            },
            Self::Set(_) => ListKind::Set,
            Self::Keyed(_, keys) => ListKind::Keyed(keys),
            _ => ListKind::Plain,
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        matches!(self, Self::Json { .. })
    }

    /// Whether it is a list of an object, with a schema or without.
    pub(crate) fn is_of_object(&self) -> bool {
        matches!(self, Self::Json { .. } | Self::Plain(_))
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Plain(items) => items.len(),
            Self::Json { items, .. } => items.len(),
            Self::Values(values) | Self::Set(values) | Self::Keyed(values, _) => values.len(),
            Self::Concat(_, len) => *len,
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Self::Plain(items) => items.get(index).map(from_plain_json),
            Self::Json { items, schema } => {
                let items_schema = schema.items.as_deref()?;
                items.get(index).map(|item| from_json(item, items_schema))
            }
            Self::Values(values) | Self::Set(values) | Self::Keyed(values, _) => values.get(index).cloned(),
            Self::Concat(both, _) => {
                let (first, second) = &**both;
                if index < first.len() { first.get(index) } else { second.get(index - first.len()) }
            }
        }
    }

    pub(crate) fn values(&self) -> Vec<Value<'a>> {
        match self {
            Self::Values(values) | Self::Set(values) | Self::Keyed(values, _) => values.to_vec(),
            Self::Concat(both, len) => {
                let mut values = Vec::with_capacity(*len);
                // Sums nest to the left, as deep as an expression is long.
                let mut rest = vec![&both.1, &both.0];
                while let Some(list) = rest.pop() {
                    match list {
                        Self::Concat(both, _) => rest.extend([&both.1, &both.0]),
                        list => values.extend(list.values()),
                    }
                }
                values
            }
            Self::Json { .. } | Self::Plain(_) => (0..self.len()).filter_map(|index| self.get(index)).collect(),
        }
    }

    /// This list and the other, as `+` makes it.
    pub(crate) fn add(&self, other: &Self) -> Value<'a> {
        match self.kind() {
            ListKind::Set => return add_to_set(self.values(), other),
            ListKind::Keyed(keys) => return add_to_keyed(self.values(), other, keys),
            ListKind::Plain => {}
        }
        match self {
            Self::Json { .. } => {
                let mut values = self.values();
                values.extend(other.values());
                Value::list(values)
            }
            _ if self.len() == 0 => Value::List(other.clone()),
            _ if other.len() == 0 => Value::List(self.clone()),
            // Whoever went through it would exceed the limit of costs; a sum costs nothing, and could double again and again.
            _ if self.len().saturating_add(other.len()) > LENGTH_MAX => {
                Value::error("operation cancelled: actual cost limit exceeded")
            }
            _ => Value::List(Self::Concat(Arc::new((self.clone(), other.clone())), self.len() + other.len())),
        }
    }

    /// Whether an item equals the value, which may be an error.
    pub(crate) fn contains(&self, value: &Value<'a>) -> Value<'a> {
        match self {
            Self::Json { .. } => {
                let mut error = None;
                for item in self.values() {
                    match item.method_equal(value) {
                        Value::Bool(true) => return Value::Bool(true),
                        Value::Bool(false) => {}
                        other => error = error.or(Some(other.or_no_such_overload())),
                    }
                }
                error.unwrap_or(Value::Bool(false))
            }
            Self::Concat(both, _) => {
                let first = both.0.contains(value);
                if first.is_true() {
                    return first;
                }
                let second = both.1.contains(value);
                if second.is_true() || !first.is_error() { second } else { first }
            }
            _ => Value::Bool(self.values().iter().any(|item| value.method_equal(item).is_true())),
        }
    }
}

const NOT_SCALAR: &str = "listSet operations are only supported on lists of scalar values";

/// Returns the key of a member of a set.
pub(super) fn set_key<'a>(value: &Value<'a>) -> Result<String, Value<'a>> {
    match value {
        Value::List(_) | Value::Map(_) => Err(Value::error(NOT_SCALAR)),
        Value::Error(message) => Ok(format!("error {message}")),
        Value::Timestamp(time) => Ok(format!("time {} {} {}", time.seconds, time.nanos, time.offset)),
        Value::Double(number) => Ok(format!("double {number:?}")),
        value => Ok(format!("{} {}", value.type_name(), value.text())),
    }
}

fn add_to_set<'a>(mut values: Vec<Value<'a>>, other: &List<'a>) -> Value<'a> {
    let mut seen = std::collections::HashSet::new();
    for value in &values {
        match set_key(value) {
            Ok(key) => seen.insert(key),
            Err(error) => return error,
        };
    }
    for value in other.values() {
        match set_key(&value) {
            Ok(key) => {
                if seen.insert(key) {
                    values.push(value);
                }
            }
            Err(error) => return error,
        }
    }
    Value::List(List::Set(Arc::new(values)))
}

/// Returns the key of an item of a list with keys.
pub(super) fn map_key(item: &Value<'_>, keys: &[String]) -> Vec<Option<String>> {
    let property = |key: &String| {
        let Value::Map(map) = item else { return None };
        let found = map.find(&Value::string(key.as_str()))?;
        if found.is_error() { None } else { Some(format!("{} {}", found.type_name(), found.text())) }
    };
    keys.iter().map(property).collect()
}

fn add_to_keyed<'a>(mut values: Vec<Value<'a>>, other: &List<'a>, keys: &Arc<[String]>) -> Value<'a> {
    let mut places = std::collections::HashMap::new();
    for (at, value) in values.iter().enumerate() {
        places.insert(map_key(value, keys), at);
    }
    for value in other.values() {
        match places.get(&map_key(&value, keys)) {
            Some(at) => values[*at] = value,
            None => values.push(value),
        }
    }
    Value::List(List::Keyed(Arc::new(values), keys.clone()))
}
