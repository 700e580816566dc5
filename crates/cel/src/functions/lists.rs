//! Lists, maps, sets and optionals.

use std::cmp::Ordering;

use super::{Op, value_or};
use crate::value::{List, Trait, Value};

/// The longest list that `lists.range` makes.
const RANGE_MAX: i64 = 1_000_000;

pub(super) fn singleton(name: &str) -> Option<(Op, Option<Trait>)> {
    Some(match name {
        "sort" => (|args| sort_by(&args[0], &args[0]), Some(Trait::Lister)),
        "@sortByAssociatedKeys" => (|args| sort_by(&args[0], &args[1]), Some(Trait::Lister)),
        _ => return None,
    })
}

pub(super) fn overload(id: &str) -> Option<Op> {
    let templated = |suffix: &str| id.starts_with("list_") && id.ends_with(suffix);
    Some(match id {
        "list_a_index_of_int" => |args| index_of(args, |found| found.first().copied()),
        "list_a_last_index_of_int" => |args| index_of(args, |found| found.last().copied()),
        "list_includes_dyn_dyn" => |args| {
            Value::Bool(match &args[0] {
                Value::List(list) => list.values().iter().any(|item| item.method_equal(&args[1]).is_true()),
                value => value.method_equal(&args[1]).is_true(),
            })
        },
        "list_slice" => slice,
        "list_flatten" => |args| flatten_call(&args[0], Some(1)),
        "list_flatten_int" => |args| flatten_call(&args[0], args[1].as_int()),
        "lists_range" => range,
        "list_reverse" => |args| {
            let mut values = values(&args[0]);
            values.reverse();
            Value::list(values)
        },
        "list_distinct" => distinct,
        "list_first" => |args| optional(values(&args[0]).into_iter().next()),
        "list_last" => |args| optional(values(&args[0]).pop()),
        "list_sets_contains_list" => |args| contains_all(&args[0], &args[1]),
        "list_sets_equivalent_list" => |args| {
            let contains = contains_all(&args[0], &args[1]);
            if contains.is_true() { contains_all(&args[1], &args[0]) } else { contains }
        },
        "list_sets_intersects_list" => |args| {
            let Some(right) = args[1].as_list() else { return Value::no_such_overload() };
            Value::Bool(values(&args[0]).iter().any(|item| right.contains(item).is_true()))
        },
        "optional_of" => |args| Value::some(args[0].clone()),
        "optional_ofNonZeroValue" => |args| {
            if args[0].is_zero() { Value::Optional(None) } else { Value::some(args[0].clone()) }
        },
        "optional_none" => |_| Value::Optional(None),
        "optional_value" => |args| match &args[0] {
            Value::Optional(Some(value)) => (**value).clone(),
            _ => Value::error("optional.none() dereference"),
        },
        "optional_hasValue" => |args| Value::Bool(matches!(&args[0], Value::Optional(Some(_)))),
        "optional_unwrap" | "optional_unwrapOpt" => unwrap,
        "@mapInsert_map_key_value" => |args| match &args[0] {
            Value::Map(map) => map.insert(&args[1], args[2].clone()),
            _ => Value::no_such_overload(),
        },
        "@mapInsert_map_map" => insert_all,
        _ if templated("_is_sorted_bool") => is_sorted,
        "list_int_sum_int" => |args| sum(&args[0], Value::Int(0)),
        "list_uint_sum_uint" => |args| sum(&args[0], Value::Uint(0)),
        "list_double_sum_double" => |args| sum(&args[0], Value::Double(0.0)),
        "list_duration_sum_duration" => |args| sum(&args[0], Value::Duration(0)),
        _ if id.starts_with("list_") && id.contains("_max_") => |args| extreme(&args[0], "max", Ordering::Less),
        _ if id.starts_with("list_") && id.contains("_min_") => |args| extreme(&args[0], "min", Ordering::Greater),
        _ => return None,
    })
}

fn values<'a>(value: &Value<'a>) -> Vec<Value<'a>> {
    value.as_list().map(List::values).unwrap_or_default()
}

fn optional(value: Option<Value<'_>>) -> Value<'_> {
    value.map_or(Value::Optional(None), Value::some)
}

fn index_of<'a>(args: &[Value<'a>], pick: fn(&[usize]) -> Option<usize>) -> Value<'a> {
    let places: Vec<usize> = values(&args[0])
        .iter()
        .enumerate()
        .filter(|(_, item)| item.method_equal(&args[1]).is_true())
        .map(|(at, _)| at)
        .collect();
    Value::Int(pick(&places).map_or(-1, |at| at as i64))
}

fn slice<'a>(args: &[Value<'a>]) -> Value<'a> {
    let (Some(list), Some(start), Some(end)) = (args[0].as_list(), args[1].as_int(), args[2].as_int()) else {
        return Value::no_such_overload();
    };
    let refused = |why: String| Value::error(format!("cannot slice({start}, {end}), {why}"));
    if start < 0 || end < 0 {
        return refused("negative indexes not supported".to_owned());
    }
    if start > end {
        return refused("start index must be less than or equal to end index".to_owned());
    }
    if (list.len() as i64) < end {
        return refused(format!("list is length {}", list.len()));
    }
    Value::list((start..end).filter_map(|at| list.get(at as usize)).collect())
}

fn flatten_call<'a>(value: &Value<'a>, depth: Option<i64>) -> Value<'a> {
    let (Value::List(list), Some(depth)) = (value, depth) else { return value.or_no_such_overload() };
    value_or(flatten(list, depth), Value::list)
}

fn flatten<'a>(list: &List<'a>, depth: i64) -> Result<Vec<Value<'a>>, String> {
    if depth < 0 {
        return Err("level must be non-negative".to_owned());
    }
    let mut flat = Vec::new();
    for value in list.values() {
        match value {
            Value::List(inner) if depth > 0 => flat.extend(flatten(&inner, depth - 1)?),
            value => flat.push(value),
        }
    }
    Ok(flat)
}

fn range<'a>(args: &[Value<'a>]) -> Value<'a> {
    let size = args[0].as_int().unwrap_or_default();
    if size < 0 {
        return Value::error(format!("lists.range: size must be non-negative, got {size}"));
    }
    if size > RANGE_MAX {
        return Value::error(format!("lists.range: size {size} exceeds maximum allowed ({RANGE_MAX})"));
    }
    Value::list((0..size).map(Value::Int).collect())
}

fn distinct<'a>(args: &[Value<'a>]) -> Value<'a> {
    let mut unique: Vec<Value<'a>> = Vec::new();
    for value in values(&args[0]) {
        if !unique.iter().any(|seen| value.method_equal(seen).is_true()) {
            unique.push(value);
        }
    }
    Value::list(unique)
}

fn contains_all<'a>(list: &Value<'a>, sublist: &Value<'a>) -> Value<'a> {
    let Some(list) = list.as_list() else { return Value::no_such_overload() };
    for item in values(sublist) {
        let contains = list.contains(&item);
        if !contains.is_true() {
            return contains;
        }
    }
    Value::Bool(true)
}

fn unwrap<'a>(args: &[Value<'a>]) -> Value<'a> {
    let mut unwrapped = Vec::new();
    for value in values(&args[0]) {
        match value {
            Value::Optional(Some(value)) => unwrapped.push((*value).clone()),
            Value::Optional(None) => {}
            value => return Value::error(format!("value {} is not optional", value.text())),
        }
    }
    Value::list(unwrapped)
}

fn insert_all<'a>(args: &[Value<'a>]) -> Value<'a> {
    let (mut target, Value::Map(update)) = (args[0].clone(), &args[1]) else { return Value::no_such_overload() };
    for (key, value) in update.entries() {
        let Value::Map(map) = &target else { return Value::no_such_overload() };
        let inserted = map.insert(&key, value);
        if inserted.is_error() {
            return inserted;
        }
        target = inserted;
    }
    target
}

fn is_sorted<'a>(args: &[Value<'a>]) -> Value<'a> {
    let values = values(&args[0]);
    if let Some(odd) = values.iter().find(|value| !value.has(Trait::Comparer)) {
        return odd.or_no_such_overload();
    }
    Value::Bool(values.windows(2).all(|pair| !matches!(pair[0].compare(&pair[1]), Ok(Ordering::Greater))))
}

fn sum<'a>(list: &Value<'a>, zero: Value<'a>) -> Value<'a> {
    let mut total = zero;
    for value in values(list) {
        if !value.has(Trait::Adder) {
            return value.or_no_such_overload();
        }
        let Some((add, _)) = super::arithmetic::singleton("_+_") else { return Value::no_such_overload() };
        total = add(&[total, value]);
        if total.is_error() {
            return total;
        }
    }
    total
}

fn extreme<'a>(list: &Value<'a>, name: &str, replaced_when: Ordering) -> Value<'a> {
    let mut found: Option<Value<'a>> = None;
    for value in values(list) {
        if !value.has(Trait::Comparer) {
            return value.or_no_such_overload();
        }
        let better = match &found {
            None => true,
            Some(found) => found.compare(&value) == Ok(replaced_when),
        };
        if better {
            found = Some(value);
        }
    }
    found.unwrap_or_else(|| Value::error(format!("{name} called on empty list")))
}

fn sort_by<'a>(list: &Value<'a>, keys: &Value<'a>) -> Value<'a> {
    let items = values(list);
    let keys = values(keys);
    if items.len() != keys.len() {
        return Value::error(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} \
             elements respectively",
            items.len(),
            keys.len()
        ));
    }
    let Some(first) = keys.first() else { return list.clone() };
    if !first.has(Trait::Comparer) {
        return Value::error("list elements must be comparable");
    }
    let name = first.type_name();
    if keys.iter().any(|key| key.type_name() != name) {
        return Value::error("list elements must have the same type");
    }
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|left, right| keys[*left].compare(&keys[*right]).unwrap_or(Ordering::Equal));
    Value::list(order.into_iter().map(|at| items[at].clone()).collect())
}

impl PartialEq for Value<'_> {
    /// Whether they are the same error or equal values; only for comparing outcomes.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Value::Error(left), Value::Error(right)) => left == right,
            _ => self.type_name() == other.type_name() && self.text() == other.text(),
        }
    }
}
