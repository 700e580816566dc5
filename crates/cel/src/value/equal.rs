//! Equality and order.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use serde_json::Value as Json;

use super::list::{ListKind, map_key, set_key};
use super::{List, Map, Value};

impl<'a> Value<'a> {
    /// Returns the result of `==`: null equals only null.
    pub(crate) fn equal(&self, other: &Self) -> Self {
        match (self, other) {
            (Value::Null, Value::Null) => Value::Bool(true),
            (Value::Null, _) | (_, Value::Null) => Value::Bool(false),
            _ => self.method_equal(other),
        }
    }

    /// Returns the result of cel-go's method `Equal`.
    pub(crate) fn method_equal(&self, other: &Self) -> Self {
        Value::Bool(match (self, other) {
            (Value::Error(_), _) => return self.clone(),
            (Value::Null, other) => matches!(other, Value::Null),
            (Value::Bool(left), Value::Bool(right)) => left == right,
            (Value::Int(_) | Value::Uint(_) | Value::Double(_), Value::Int(_) | Value::Uint(_) | Value::Double(_)) => {
                self.numeric_order(other) == Some(Ordering::Equal)
            }
            (Value::String(left), Value::String(right)) => left.as_str() == right.as_str(),
            (Value::Bytes(left), Value::Bytes(right)) => left == right,
            (Value::Timestamp(left), Value::Timestamp(right)) => left.moment() == right.moment(),
            (Value::Duration(left), Value::Duration(right)) => left == right,
            (Value::Type(left), Value::Type(right)) => left.name() == right.name(),
            (Value::Optional(left), Value::Optional(right)) => match (left, right) {
                (Some(left), Some(right)) => return left.method_equal(right),
                (left, right) => left.is_none() && right.is_none(),
            },
            (Value::Opaque(left), other) => return left.equal(other),
            (Value::Authz(_), other) => return other.or_no_such_overload(),
            (Value::Preserved(left), Value::Preserved(right)) => deep_equal(left, right),
            (Value::Made(left), Value::Made(right)) => left.is_equal(right),
            (Value::List(left), Value::List(right)) => return list_equal(left, right),
            (Value::Map(left), Value::Map(right)) => return map_equal(left, right),
            // Those of the object know nothing of other types.
            (Value::List(list), other) if list.is_of_object() || !matches!(list.kind(), ListKind::Plain) => {
                return other.or_no_such_overload();
            }
            (Value::Map(map), other) if map.is_of_object() => return other.or_no_such_overload(),
            _ => false,
        })
    }

    /// The order of two numbers, of whichever types; none if one is not a number.
    fn numeric_order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
            (Value::Uint(left), Value::Uint(right)) => Some(left.cmp(right)),
            (Value::Double(left), Value::Double(right)) => left.partial_cmp(right),
            (Value::Int(left), Value::Uint(right)) => Some(i128::from(*left).cmp(&i128::from(*right))),
            (Value::Uint(left), Value::Int(right)) => Some(i128::from(*left).cmp(&i128::from(*right))),
            (Value::Double(left), Value::Int(right)) => {
                double_order(*left, *right as f64, i64::MIN as f64, i64::MAX as f64)
            }
            (Value::Double(left), Value::Uint(right)) => double_order(*left, *right as f64, 0.0, u64::MAX as f64),
            (Value::Int(_) | Value::Uint(_), Value::Double(_)) => other.numeric_order(self).map(Ordering::reverse),
            _ => None,
        }
    }

    /// The order of two values, or the error of values that have none.
    pub(crate) fn compare(&self, other: &Self) -> Result<Ordering, Self> {
        match (self, other) {
            (Value::Int(_) | Value::Uint(_) | Value::Double(_), Value::Int(_) | Value::Uint(_) | Value::Double(_)) => {
                self.numeric_order(other).ok_or_else(|| Value::error("NaN values cannot be ordered"))
            }
            (Value::Double(left), _) if left.is_nan() => Err(Value::error("NaN values cannot be ordered")),
            (Value::Bool(left), Value::Bool(right)) => Ok(left.cmp(right)),
            (Value::String(left), Value::String(right)) => Ok(left.as_str().cmp(right.as_str())),
            (Value::Bytes(left), Value::Bytes(right)) => Ok(left.cmp(right)),
            (Value::Timestamp(left), Value::Timestamp(right)) => Ok(left.moment().cmp(&right.moment())),
            (Value::Duration(left), Value::Duration(right)) => Ok(left.cmp(right)),
            _ => Err(other.or_no_such_overload()),
        }
    }
}

fn double_order(left: f64, right: f64, min: f64, max: f64) -> Option<Ordering> {
    if left < min {
        return Some(Ordering::Less);
    }
    if left > max {
        return Some(Ordering::Greater);
    }
    left.partial_cmp(&right)
}

fn list_equal<'a>(left: &List<'a>, right: &List<'a>) -> Value<'a> {
    if left.len() != right.len() {
        return Value::Bool(false);
    }
    match left.kind() {
        ListKind::Set => return set_equal(left, right),
        ListKind::Keyed(keys) => return keyed_equal(left, right, keys),
        ListKind::Plain => {}
    }
    let mut error = None;
    for (left_item, right_item) in left.values().into_iter().zip(right.values()) {
        if let List::Plain(_) = left {
            if !left_item.method_equal(&right_item).is_true() {
                return Value::Bool(false);
            }
            continue;
        }
        if left.is_json() {
            let equal = left_item.method_equal(&right_item);
            if !equal.is_true() {
                return equal;
            }
        } else {
            match left_item.equal(&right_item) {
                Value::Bool(false) => return Value::Bool(false),
                equal @ Value::Error(_) if matches!(left, List::Concat(..)) => error = error.or(Some(equal)),
                _ => {}
            }
        }
    }
    error.unwrap_or(Value::Bool(true))
}

fn set_equal<'a>(left: &List<'a>, right: &List<'a>) -> Value<'a> {
    let mut members = HashSet::new();
    for value in left.values() {
        match set_key(&value) {
            Ok(key) => members.insert(key),
            Err(error) => return error,
        };
    }
    let mut seen = HashSet::new();
    for value in right.values() {
        match set_key(&value) {
            Ok(key) if members.contains(&key) => seen.insert(key),
            Ok(_) => return Value::Bool(false),
            Err(error) => return error,
        };
    }
    Value::Bool(seen.len() == members.len())
}

fn keyed_equal<'a>(left: &List<'a>, right: &List<'a>, keys: &[String]) -> Value<'a> {
    let items: HashMap<_, _> = left.values().into_iter().map(|item| (map_key(&item, keys), item)).collect();
    let mut seen = HashSet::new();
    for item in right.values() {
        let key = map_key(&item, keys);
        let Some(ours) = items.get(&key) else { return Value::Bool(false) };
        let equal = ours.method_equal(&item);
        if !equal.is_true() {
            return equal;
        }
        seen.insert(key);
    }
    Value::Bool(seen.len() == items.len())
}

fn map_equal<'a>(left: &Map<'a>, right: &Map<'a>) -> Value<'a> {
    if left.len() != right.len() {
        return Value::Bool(false);
    }
    if let Map::Plain(_) = left {
        let is_same = |(key, value): (Value<'a>, Value<'a>)| {
            right.find(&key).is_some_and(|other| value.method_equal(&other).is_true())
        };
        return Value::Bool(left.entries().into_iter().all(is_same));
    }
    let Map::Json { values, schema } = left else {
        for (key, value) in left.entries() {
            let Some(other) = right.find(&key) else { return Value::Bool(false) };
            if value.equal(&other).is_false() {
                return Value::Bool(false);
            }
        }
        return Value::Bool(true);
    };
    for (name, value) in *values {
        if Map::property_schema(schema, name).is_some() {
            let key = Value::string(name.as_str());
            match (left.find(&key), right.find(&key)) {
                (Some(left), Some(right)) => {
                    let equal = left.method_equal(&right);
                    if !equal.is_true() {
                        return equal;
                    }
                }
                (None, None) => {}
                _ => return Value::Bool(false),
            }
        } else {
            let Map::Json { values: others, .. } = right else { return Value::no_such_overload() };
            if others.get(name).is_some_and(|other| !deep_equal(value, other)) {
                return Value::Bool(false);
            }
        }
    }
    Value::Bool(true)
}

/// Equality of JSON as `equality.Semantic` has it: empty lists and maps equal absent ones.
fn deep_equal(left: &Json, right: &Json) -> bool {
    left == right
}
