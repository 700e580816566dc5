//! What running costs. Follows cel-go's `interpreter/runtimecost.go` and `apiserver/pkg/cel/library/cost.go`.
//!
//! cel-go keeps what steps came to on a stack and finds the arguments of a call there by their identities; what it does
//! not find costs nothing. The identities are kept here in the same way, so that the counts are the same.

use super::{Exhausted, Result};
use crate::ast::Id;
use crate::cost::is_constant_of_values;
use crate::opaque::Opaque;
use crate::plan::Call;
use crate::value::Value;

/// Costs of making a list and a map.
pub(super) const LIST: u64 = 10;
pub(super) const MAP: u64 = 30;
pub(super) const STRUCT: u64 = 40;
/// Cost of a character of a string, and of a pattern.
const CHAR: f64 = 0.1;
const PATTERN_CHAR: f64 = 0.25;
/// Cost of asking whether something is authorized.
const AUTHORIZATION: u64 = 350_000;

/// The cost so far.
pub(super) struct Tracker {
    pub(super) cost: u64,
    limit: u64,
    stack: Vec<Id>,
    /// The places of each step on the stack, by its identity: loops make it long, and most are not there.
    places: Vec<Vec<u32>>,
}

// === impl Tracker ===

impl Tracker {
    pub(super) fn new(limit: u64) -> Self {
        Self { cost: 0, limit, stack: Vec::new(), places: Vec::new() }
    }

    /// Notes that a step is done.
    pub(super) fn push(&mut self, id: Id) -> Result<()> {
        let index = id as usize;
        if index >= self.places.len() {
            self.places.resize_with(index + 1, Vec::new);
        }
        self.places[index].push(self.stack.len() as u32);
        self.stack.push(id);
        if self.cost > self.limit { Err(Exhausted) } else { Ok(()) }
    }

    /// Takes a step and all above it off the stack.
    pub(super) fn drop(&mut self, id: Id) -> bool {
        let Some(at) = self.places.get(id as usize).and_then(|places| places.last()).copied() else { return false };
        for id in self.stack.drain(at as usize..) {
            self.places[id as usize].pop();
        }
        true
    }

    /// Takes arguments off the stack; false if one is not there.
    pub(super) fn drop_args(&mut self, ids: impl DoubleEndedIterator<Item = Id>) -> bool {
        ids.rev().all(|id| self.drop(id))
    }
}

fn size(value: &Value<'_>) -> u64 {
    value.size().unwrap_or(1)
}

/// The size for cel-go's own costs, which looks into optionals.
fn size_within(value: &Value<'_>) -> u64 {
    match value {
        Value::Optional(Some(value)) => size_within(value),
        value => size(value),
    }
}

fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

/// The cost of going through a value.
fn traversal(value: &Value<'_>) -> u64 {
    match value {
        Value::String(text) => (text.as_str().len() as f64 * CHAR) as u64,
        Value::Bytes(bytes) => (bytes.len() as f64 * CHAR) as u64,
        Value::List(list) => list.values().iter().map(traversal).fold(0, u64::saturating_add),
        Value::Map(map) => {
            map.entries().iter().map(|(key, value)| traversal(key) + traversal(value)).fold(0, u64::saturating_add)
        }
        _ => 1,
    }
}

/// The cost of `==` and `!=`.
pub(super) fn equality(left: &Value<'_>, right: &Value<'_>, negated: bool) -> u64 {
    if !negated && matches!(left, Value::Opaque(_)) {
        return 1;
    }
    scaled(size_within(left).min(size_within(right)), CHAR)
}

/// The cost of a call.
pub(super) fn call(call: &Call, args: &[Value<'_>], result: &Value<'_>) -> u64 {
    extension(call.overload, args, result)
        .or_else(|| kubernetes(call.function, call.overload, args, result))
        .unwrap_or_else(|| standard(call.overload, args))
}

/// Costs that cel-go's extensions of lists and sets declare.
fn extension(overload: &str, args: &[Value<'_>], result: &Value<'_>) -> Option<u64> {
    let allocating = |factor: f64, size: u64| {
        let factor = if factor < 0.0 { 1.0 } else { factor };
        ((size as f64 * factor) as u64).saturating_add(1 + LIST)
    };
    let self_compare = |list: &Value<'_>| {
        let count = size(list);
        let first = list.as_list().and_then(|list| list.get(0));
        let is_text = matches!(first, Some(Value::String(_) | Value::Bytes(_)));
        allocating(if is_text { 2.0 + CHAR } else { 2.0 }, count.saturating_mul(count))
    };
    let sets = |factor: f64| 1 + (size(&args[0]).wrapping_mul(size(&args[1])) as f64 * factor) as u64;
    Some(match overload {
        "list_slice" | "lists_range" | "list_reverse" => allocating(1.0, size(result)),
        "list_flatten" => allocating(1.0, size(&args[0])),
        "list_flatten_int" => allocating(args[1].as_int().unwrap_or_default() as f64, size(&args[0])),
        "list_distinct" => self_compare(&args[0]),
        "list_sets_contains_list" | "list_sets_intersects_list" => sets(1.0),
        "list_sets_equivalent_list" => sets(2.0),
        overload if overload.ends_with("_sort") => self_compare(&args[0]),
        overload if overload.ends_with("_sortByAssociatedKeys") => self_compare(&args[1]),
        _ => return None,
    })
}

/// Costs that Kubernetes declares.
fn kubernetes(function: &str, overload: &str, args: &[Value<'_>], result: &Value<'_>) -> Option<u64> {
    let first = || args.first().map(size);
    Some(match function {
        "check" => AUTHORIZATION,
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "includes" => {
            args.first().map_or(0, traversal)
        }
        "url" | "jsonpatch.escapeKey" | "lowerAscii" | "upperAscii" | "substring" | "trim" => scaled(first()?, CHAR),
        "replace" | "split" => scaled(first()?, 2.0 * CHAR),
        "join" => scaled(size(result), 2.0 * CHAR),
        "find" | "findAll" => pattern(first()?, size(args.get(1)?)),
        "ip" if overload == "cidr_ip" => 1,
        "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => scaled(first()?, CHAR),
        "ip.isCanonical" => scaled(first()?, 2.0 * CHAR),
        "containsIP" | "containsCIDR" => {
            let cidr = first()?;
            let other = size(args.get(1)?);
            let mut cost = scaled(cidr + cidr, CHAR);
            if function == "containsCIDR" {
                cost += scaled(cidr, CHAR) + 1;
            }
            if overload.ends_with("_string") {
                cost += scaled(other, CHAR);
            }
            cost
        }
        "validate" => match args.first() {
            Some(Value::Opaque(format)) => match &**format {
                Opaque::Format(format) => pattern(size(args.get(1)?), format.regex_size),
                _ => return None,
            },
            _ => return None,
        },
        function if is_constant_of_values(function) => 1,
        _ => return None,
    })
}

fn pattern(text: u64, pattern: u64) -> u64 {
    let text = ((1.0 + text as f64) * CHAR).ceil() as u64;
    text.wrapping_mul(scaled(pattern, PATTERN_CHAR))
}

/// Costs that cel-go declares.
fn standard(overload: &str, args: &[Value<'_>]) -> u64 {
    let at = |at: usize| args.get(at).map_or(1, size_within);
    match overload {
        "starts_with_string" | "ends_with_string" => scaled(at(1), CHAR),
        "string_to_bytes" | "bytes_to_string" | "strings_quote" | "string_format" => scaled(at(0), CHAR),
        "in_list" => at(1),
        "less_string"
        | "greater_string"
        | "less_equals_string"
        | "greater_equals_string"
        | "less_bytes"
        | "greater_bytes"
        | "less_equals_bytes"
        | "greater_equals_bytes" => scaled(at(0).min(at(1)), CHAR),
        "add_string" | "add_bytes" => scaled(at(0) + at(1), CHAR),
        "matches" | "matches_string" => pattern(at(0), at(1)),
        "contains_string" => scaled(at(0), CHAR).wrapping_mul(scaled(at(1), CHAR)),
        _ => 1,
    }
}
