//! Operators.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Op;
use crate::goregex;
use crate::types::Type;
use crate::value::{Trait, Value};

/// The implementation of a function that has one for all overloads, and what its first argument must be able to do.
pub(super) fn singleton(name: &str) -> Option<(Op, Option<Trait>)> {
    Some(match name {
        "!_" => (
            |args| match &args[0] {
                Value::Bool(value) => Value::Bool(!value),
                other => other.or_no_such_overload(),
            },
            None,
        ),
        "-_" => (negate, Some(Trait::Negator)),
        "_+_" => (add, Some(Trait::Adder)),
        "_-_" => (subtract, Some(Trait::Subtractor)),
        "_*_" => (multiply, Some(Trait::Multiplier)),
        "_/_" => (divide, Some(Trait::Divider)),
        "_%_" => (modulo, Some(Trait::Modder)),
        "_<_" => (|args| compare(args, Ordering::is_lt), Some(Trait::Comparer)),
        "_<=_" => (|args| compare(args, Ordering::is_le), Some(Trait::Comparer)),
        "_>_" => (|args| compare(args, Ordering::is_gt), Some(Trait::Comparer)),
        "_>=_" => (|args| compare(args, Ordering::is_ge), Some(Trait::Comparer)),
        "@in" => (
            |args| match &args[1] {
                Value::List(list) => list.contains(&args[0]),
                Value::Map(map) => match map.find(&args[0]) {
                    Some(error @ Value::Error(_)) if map.is_of_object() => error,
                    found => Value::Bool(found.is_some()),
                },
                other => other.or_no_such_overload(),
            },
            None,
        ),
        "size" => (
            |args| Value::Int(args[0].size().and_then(|size| i64::try_from(size).ok()).unwrap_or(0)),
            Some(Trait::Sizer),
        ),
        "type" => (|args| args[0].convert(&Type::Type(None)), None),
        "dyn" => (|args| args[0].clone(), None),
        "matches" => (matches, Some(Trait::Matcher)),
        _ => return None,
    })
}

fn matches<'a>(args: &[Value<'a>]) -> Value<'a> {
    match (args[0].as_str(), args[1].as_str()) {
        (Some(text), Some(pattern)) => {
            super::value_or(goregex::compile(pattern), |regex| Value::Bool(regex.is_match(text)))
        }
        _ => args[1].or_no_such_overload(),
    }
}

fn compare<'a>(args: &[Value<'a>], holds: fn(Ordering) -> bool) -> Value<'a> {
    match args[0].compare(&args[1]) {
        Ok(order) => Value::Bool(holds(order)),
        Err(error) => error,
    }
}

fn int<'a>(value: Option<i64>) -> Value<'a> {
    value.map_or_else(|| Value::error("integer overflow"), Value::Int)
}

fn uint<'a>(value: Option<u64>) -> Value<'a> {
    value.map_or_else(|| Value::error("unsigned integer overflow"), Value::Uint)
}

fn duration<'a>(value: Option<i64>) -> Value<'a> {
    value.map_or_else(|| Value::error("integer overflow"), Value::Duration)
}

fn negate<'a>(args: &[Value<'a>]) -> Value<'a> {
    match &args[0] {
        Value::Int(value) => int(value.checked_neg()),
        Value::Double(value) => Value::Double(-value),
        Value::Duration(value) => duration(value.checked_neg()),
        other => other.or_no_such_overload(),
    }
}

fn add<'a>(args: &[Value<'a>]) -> Value<'a> {
    match (&args[0], &args[1]) {
        (Value::Int(left), Value::Int(right)) => int(left.checked_add(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_add(*right)),
        (Value::Double(left), Value::Double(right)) => Value::Double(left + right),
        (Value::String(left), Value::String(right)) => Value::string(format!("{}{}", left.as_str(), right.as_str())),
        (Value::Bytes(left), Value::Bytes(right)) => Value::Bytes(Arc::from([left.as_ref(), right.as_ref()].concat())),
        (Value::Duration(left), Value::Duration(right)) => duration(left.checked_add(*right)),
        (Value::Duration(span), Value::Timestamp(time)) | (Value::Timestamp(time), Value::Duration(span)) => {
            time.add(*span).map_or_else(|| Value::error("timestamp overflow"), Value::Timestamp)
        }
        (Value::List(left), Value::List(right)) => left.add(right),
        (_, other) => other.or_no_such_overload(),
    }
}

fn subtract<'a>(args: &[Value<'a>]) -> Value<'a> {
    match (&args[0], &args[1]) {
        (Value::Int(left), Value::Int(right)) => int(left.checked_sub(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_sub(*right)),
        (Value::Double(left), Value::Double(right)) => Value::Double(left - right),
        (Value::Duration(left), Value::Duration(right)) => duration(left.checked_sub(*right)),
        (Value::Timestamp(time), Value::Duration(span)) => match span.checked_neg() {
            Some(span) => time.add(span).map_or_else(|| Value::error("timestamp overflow"), Value::Timestamp),
            None => duration(None),
        },
        (Value::Timestamp(left), Value::Timestamp(right)) => duration(left.since(*right)),
        (_, other) => other.or_no_such_overload(),
    }
}

fn multiply<'a>(args: &[Value<'a>]) -> Value<'a> {
    match (&args[0], &args[1]) {
        (Value::Int(left), Value::Int(right)) => int(left.checked_mul(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_mul(*right)),
        (Value::Double(left), Value::Double(right)) => Value::Double(left * right),
        (_, other) => other.or_no_such_overload(),
    }
}

fn divide<'a>(args: &[Value<'a>]) -> Value<'a> {
    match (&args[0], &args[1]) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Value::error("division by zero"),
        (Value::Int(left), Value::Int(right)) => int(left.checked_div(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_div(*right)),
        (Value::Double(left), Value::Double(right)) => Value::Double(left / right),
        (_, other) => other.or_no_such_overload(),
    }
}

fn modulo<'a>(args: &[Value<'a>]) -> Value<'a> {
    match (&args[0], &args[1]) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Value::error("modulus by zero"),
        (Value::Int(left), Value::Int(right)) => int(left.checked_rem(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_rem(*right)),
        (_, other) => other.or_no_such_overload(),
    }
}
