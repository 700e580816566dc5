//! JSON values as upstream sees them: one order over all of them, equality by number, and Go's ways to print them.
//!
//! Follows `value/value.go` of structured-merge-diff v6. Where upstream compares an integer with a float by rounding the
//! integer, the comparison here is exact, so that the order is total.

use std::cmp::Ordering;
use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

/// A number as Go's decoder gives it: an `int64` where it fits, else a `float64`.
#[derive(Clone, Copy)]
enum Num {
    Int(i64),
    Float(f64),
}

/// The total order: numbers, strings, booleans, lists, objects, null.
pub(crate) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(num(a), num(b)),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => compare_lists(a, b),
        (Value::Object(a), Value::Object(b)) => compare_objects(a, b),
        _ => rank(a).cmp(&rank(b)),
    }
}

/// Whether two values are the same, where `1` and `1.0` are.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(num(a), num(b)) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            let is_same = |((left, a), (right, b)): ((&String, &Value), (&String, &Value))| {
                if left == right { Some(equal(a, b)) } else { None }
            };
            let mut pairs = a.iter().zip(b).map(is_same);
            a.len() == b.len()
                && match pairs.find(|same| *same != Some(true)) {
                    None => true,
                    Some(Some(_)) => false,
                    // The maps have other members, or an order of their own.
                    Some(None) => a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b))),
                }
        }
        _ => a == b,
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn num(number: &Number) -> Num {
    match number.as_i64() {
        Some(int) => Num::Int(int),
        None => Num::Float(number.as_f64().unwrap_or_default()),
    }
}

fn compare_numbers(a: Num, b: Num) -> Ordering {
    match (a, b) {
        (Num::Int(a), Num::Int(b)) => a.cmp(&b),
        (Num::Float(a), Num::Float(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (Num::Int(a), Num::Float(b)) => compare_int_float(a, b),
        (Num::Float(a), Num::Int(b)) => compare_int_float(b, a).reverse(),
    }
}

fn compare_int_float(int: i64, float: f64) -> Ordering {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    if float >= TWO_TO_63 {
        return Ordering::Less;
    }
    if float < -TWO_TO_63 {
        return Ordering::Greater;
    }
    let whole = float.trunc();
    // In range, as checked above.
    #[allow(clippy::cast_possible_truncation)]
    let by_whole = int.cmp(&(whole as i64));
    by_whole.then_with(|| 0.0.partial_cmp(&(float - whole)).unwrap_or(Ordering::Equal))
}

fn compare_lists(a: &[Value], b: &[Value]) -> Ordering {
    let differing = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne());
    differing.unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn compare_objects(a: &Map<String, Value>, b: &Map<String, Value>) -> Ordering {
    let a = sorted(a);
    let b = sorted(b);
    let pairs = a.iter().zip(&b);
    let differing = pairs.map(|(a, b)| a.0.cmp(b.0).then_with(|| compare(a.1, b.1))).find(|order| order.is_ne());
    differing.unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// The members by name, whatever the order in which the map holds them.
pub(crate) fn in_order(map: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    // Maps are sorted, unless another crate has asked serde_json for the order of insertion.
    let is_sorted = map.keys().is_sorted();
    let others = if is_sorted { Vec::new() } else { sorted(map) };
    map.iter().take(if is_sorted { map.len() } else { 0 }).chain(others)
}

/// The members by name, whatever the order in which the map holds them.
pub(crate) fn sorted(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut members: Vec<_> = map.iter().collect();
    if !members.is_sorted_by_key(|(name, _)| *name) {
        members.sort_unstable_by_key(|(name, _)| *name);
    }
    members
}

// === printing ===

/// The value in a path: `"name"`, `80`, `true`.
pub(crate) fn in_path(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => go_number(number, out),
        Value::String(text) => quote(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                in_path(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            for (name, member) in sorted(members) {
                out.push_str(name);
                out.push('=');
                in_path(member, out);
            }
        }
    }
}

/// Writes the value as Go prints it with `%v`.
pub(crate) fn go_plain(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => go_number(number, out),
        Value::String(text) => out.push_str(text),
        Value::Array(items) => joined(items, ["[", " ", "]"], out, go_plain),
        Value::Object(members) => joined(sorted(members), ["map[", " ", "]"], out, |(name, member), out| {
            out.push_str(name);
            out.push(':');
            go_plain(member, out);
        }),
    }
}

/// Writes the value as Go prints it with `%#v`.
pub(crate) fn go_syntax(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("interface {}(nil)"),
        Value::Bool(_) | Value::Number(_) => go_plain(value, out),
        Value::String(text) => quote(text, out),
        Value::Array(items) => {
            joined(items, ["[]interface {}{", ", ", "}"], out, go_syntax);
        }
        Value::Object(members) => {
            joined(sorted(members), ["map[string]interface {}{", ", ", "}"], out, |(name, member), out| {
                quote(name, out);
                out.push(':');
                go_syntax(member, out);
            });
        }
    }
}

/// Writes items between an opening and a closing text, with a separator.
fn joined<T>(
    items: impl IntoIterator<Item = T>,
    [open, separator, close]: [&str; 3],
    out: &mut String,
    mut write: impl FnMut(T, &mut String),
) {
    out.push_str(open);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push_str(separator);
        }
        write(item, out);
    }
    out.push_str(close);
}

/// The Go type of a decoded value, as `%T` prints it.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) => match num(number) {
            Num::Int(_) => "int64",
            Num::Float(_) => "float64",
        },
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn go_number(number: &Number, out: &mut String) {
    match num(number) {
        Num::Int(int) => push_int(int, out),
        // `%v` is `%g`, but keeps plain digits up to 10²¹.
        Num::Float(float) => push_float(float, out, 1e-4, 1e21, 2),
    }
}

fn push_int(int: i64, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{int}");
}

/// Plain digits for `low <= |float| < high`, else an exponent of at least so many digits.
fn push_float(float: f64, out: &mut String, low: f64, high: f64, digits_min: usize) {
    let size = float.abs();
    if size == 0.0 || (low..high).contains(&size) {
        let _ = write!(out, "{float}");
        return;
    }
    let text = format!("{float:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    let _ = write!(out, "{digits}e{sign}{exponent:0>digits_min$}");
}

/// A string as `strconv.Quote` writes it.
pub(crate) fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if is_print(c) => out.push(c),
            c if u32::from(c) < 0x80 => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c if u32::from(c) < 0x1_0000 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => {
                let _ = write!(out, "\\U{:08x}", u32::from(c));
            }
        }
    }
    out.push('"');
}

/// Whether Go's `unicode.IsPrint` lets a character through; the space is the only white space that is printable.
pub(crate) fn is_print(c: char) -> bool {
    c == ' ' || !(c.is_control() || c.is_whitespace() || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{feff}'))
}

/// The encoder of Go that writes JSON; both escape `<`, `>` and `&`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoder {
    /// `encoding/json`: `1e-9`
    Standard,
    /// `json-iterator`, which writes path elements: `1e-09`
    Iterator,
}

/// The value as JSON.
pub(crate) fn json_escaped(value: &Value, encoder: Encoder, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => match num(number) {
            Num::Int(int) => push_int(int, out),
            Num::Float(float) => {
                let digits_min = if encoder == Encoder::Standard { 1 } else { 2 };
                push_float(float, out, 1e-6, 1e21, digits_min);
            }
        },
        Value::String(text) => json_string(text, Escape::Html, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                json_escaped(item, encoder, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (index, (name, member)) in sorted(members).into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                json_string(name, Escape::Html, out);
                out.push(':');
                json_escaped(member, encoder, out);
            }
            out.push('}');
        }
    }
}

/// The characters that are escaped in a JSON string besides quotes, backslashes and control characters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escape {
    Plain,
    /// `<`, `>`, `&` and the two separators that are line ends in JavaScript.
    Html,
}

pub(crate) fn json_string(text: &str, escape: Escape, out: &mut String) {
    out.push('"');
    // Beyond ASCII there are letters that JavaScript takes for the end of a line.
    let is_plain = |byte: u8| {
        byte >= b' '
            && byte.is_ascii()
            && !matches!(byte, b'"' | b'\\')
            && (escape == Escape::Plain || !matches!(byte, b'<' | b'>' | b'&'))
    };
    if text.bytes().all(is_plain) {
        out.push_str(text);
        out.push('"');
        return;
    }
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' || (escape == Escape::Html && matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}')) => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
