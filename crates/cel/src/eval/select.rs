//! What keys select from values, and other steps that look only at values.

use std::sync::Arc;

use crate::plan::Call;
use crate::value::{Key, List, Map, Value};

/// The first argument with the others added to it, in place if nobody else has it.
pub(super) fn grow<'a>(args: Vec<Value<'a>>) -> Value<'a> {
    let mut args = args.into_iter();
    let (Some(first), Some(second), third) = (args.next(), args.next(), args.next()) else {
        return Value::no_such_overload();
    };
    match (first, second) {
        (Value::List(List::Values(mut values)), Value::List(added)) => {
            Arc::make_mut(&mut values).extend(added.values());
            Value::List(List::Values(values))
        }
        (Value::Map(Map::Values(mut values)), second) => {
            let entries = match (third, second) {
                (Some(value), key) => vec![(key, value)],
                (None, Value::Map(map)) => map.entries(),
                (None, other) => return other.or_no_such_overload(),
            };
            for (key, value) in entries {
                if Map::Values(values.clone()).find(&key).is_some() {
                    return Value::error(format!("insert failed: key {} already exists", key.text()));
                }
                Arc::make_mut(&mut values).insert(Key::new(&key), value);
            }
            Value::Map(Map::Values(values))
        }
        (_, other) => other.or_no_such_overload(),
    }
}

/// Returns the value that a key selects: an error if it cannot, nothing if it may be absent and is.
pub(super) fn lookup<'a>(
    value: &Value<'a>,
    key: &Value<'a>,
    may_be_absent: bool,
) -> Result<Option<Value<'a>>, Value<'a>> {
    if !matches!(key, Value::String(_) | Value::Int(_) | Value::Uint(_) | Value::Bool(_) | Value::Double(_)) {
        return Err(Value::error(format!("invalid qualifier type: {}", key.go_type())));
    }
    let no_such_key = || Value::error(format!("no such key: {}", key.text()));
    match value {
        Value::Error(_) => Err(value.clone()),
        Value::Map(map) => match map.find(key) {
            Some(error @ Value::Error(_)) => Err(error),
            None if !may_be_absent => Err(no_such_key()),
            found => Ok(found),
        },
        Value::List(list) => {
            let unsupported = || Value::error(format!("unsupported index value {} in list", key.text()));
            let index = match key {
                Value::Int(index) => *index,
                Value::Uint(index) => i64::try_from(*index).map_err(|_| unsupported())?,
                Value::Double(index) if *index as i64 as f64 == *index => *index as i64,
                Value::Double(_) => return Err(unsupported()),
                other => {
                    let of = other.runtime_type();
                    return Err(Value::error(format!("unsupported index type '{}' in list", of.describe())));
                }
            };
            let found = usize::try_from(index).ok().and_then(|index| list.get(index));
            match found {
                None if !may_be_absent => Err(Value::error(format!("index out of bounds: {}", key.text()))),
                found => Ok(found),
            }
        }
        // Operations have fields; objects that are made have none to look at, as upstream.
        Value::Made(made) if made.is_operation() => match key.as_str().and_then(|name| made.fields.get(name)) {
            None if !may_be_absent => Err(no_such_key()),
            found => Ok(found.cloned()),
        },
        _ if may_be_absent => Ok(None),
        _ => Err(no_such_key()),
    }
}

/// A call with a pattern that was compiled beforehand.
pub(super) fn by_pattern<'a>(call: &Call, regex: &regex::Regex, args: &[Value<'a>]) -> Value<'a> {
    let Some(text) = args.first().and_then(Value::as_str) else {
        return Value::no_such_overload();
    };
    match call.function {
        "matches" => Value::Bool(regex.is_match(text)),
        "find" => Value::string(regex.find(text).map_or("", |found| found.as_str())),
        _ => {
            let count = match args.get(2) {
                None => -1,
                Some(Value::Int(count)) => *count,
                Some(other) => return other.or_no_such_overload(),
            };
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            Value::strings(regex.find_iter(text).take(count).map(|found| found.as_str().to_owned()))
        }
    }
}
