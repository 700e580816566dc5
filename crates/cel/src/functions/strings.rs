//! Strings: cel-go's string extension of version 2, and Kubernetes' patterns.

use super::{Op, format, value_or};
use crate::goregex;
use crate::value::Value;

pub(super) fn overload(id: &str) -> Option<Op> {
    Some(match id {
        "contains_string" => |args| two(args, |text, part| text.contains(part)),
        "starts_with_string" => |args| two(args, |text, prefix| text.starts_with(prefix)),
        "ends_with_string" => |args| two(args, |text, suffix| text.ends_with(suffix)),
        "string_char_at_int" => char_at,
        "string_index_of_string" => |args| index_of(str(args, 0), str(args, 1), 0),
        "string_index_of_string_int" => |args| index_of(str(args, 0), str(args, 1), int(args, 2)),
        "string_last_index_of_string" => |args| last_index_of(str(args, 0), str(args, 1), None),
        "string_last_index_of_string_int" => |args| last_index_of(str(args, 0), str(args, 1), Some(int(args, 2))),
        "string_lower_ascii" => |args| Value::string(str(args, 0).to_ascii_lowercase()),
        "string_upper_ascii" => |args| Value::string(str(args, 0).to_ascii_uppercase()),
        "string_replace_string_string" => |args| replace(args, -1),
        "string_replace_string_string_int" => |args| replace(args, int(args, 3)),
        "string_split_string" => |args| Value::strings(split(str(args, 0), str(args, 1), -1)),
        "string_split_string_int" => |args| Value::strings(split(str(args, 0), str(args, 1), int(args, 2))),
        "string_substring_int" => |args| substring(str(args, 0), int(args, 1), None),
        "string_substring_int_int" => |args| substring(str(args, 0), int(args, 1), Some(int(args, 2))),
        "string_trim" => |args| Value::string(str(args, 0).trim_matches(is_space)),
        "string_format" => format::format,
        "string_jsonpatch_escapeKey_string" => |args| Value::string(str(args, 0).replace('~', "~0").replace('/', "~1")),
        "strings_quote" => |args| Value::string(quote(str(args, 0))),
        "list_join" => |args| join(args, ""),
        "list_join_string" => |args| join(args, str(args, 1)),
        "string_find_string" => |args| {
            value_or(pattern(args), |regex| Value::string(regex.find(str(args, 0)).map_or("", |found| found.as_str())))
        },
        "string_find_all_string" => |args| find_all(args, -1),
        "string_find_all_string_int" => |args| find_all(args, int(args, 2)),
        _ => return None,
    })
}

fn str<'v>(args: &'v [Value<'_>], at: usize) -> &'v str {
    args.get(at).and_then(Value::as_str).unwrap_or_default()
}

fn int(args: &[Value<'_>], at: usize) -> i64 {
    args.get(at).and_then(Value::as_int).unwrap_or_default()
}

fn two<'a>(args: &[Value<'a>], holds: fn(&str, &str) -> bool) -> Value<'a> {
    match (args[0].as_str(), args[1].as_str()) {
        (Some(left), Some(right)) => Value::Bool(holds(left, right)),
        (None, _) => args[0].or_no_such_overload(),
        _ => args[1].or_no_such_overload(),
    }
}

/// White space as Go's `strings.TrimSpace` has it.
fn is_space(char: char) -> bool {
    char.is_whitespace() && !matches!(char, '\u{1c}'..='\u{1f}')
}

fn char_at<'a>(args: &[Value<'a>]) -> Value<'a> {
    let text = str(args, 0);
    let at = int(args, 1);
    match usize::try_from(at).ok().filter(|at| *at <= text.chars().count()) {
        Some(at) => Value::string(text.chars().nth(at).map(String::from).unwrap_or_default()),
        None => Value::error(format!("index out of range: {at}")),
    }
}

fn index_of<'a>(text: &str, part: &str, from: i64) -> Value<'a> {
    let Ok(start) = usize::try_from(from) else { return Value::error(format!("index out of range: {from}")) };
    let length = text.chars().count();
    if part.is_empty() {
        return Value::Int(if start > length { length as i64 } else { from });
    }
    let found = text
        .char_indices()
        .nth(start)
        .and_then(|(at, _)| text[at..].find(part).map(|found| start + text[at..at + found].chars().count()));
    Value::Int(found.map_or(-1, |found| found as i64))
}

fn last_index_of<'a>(text: &str, part: &str, from: Option<i64>) -> Value<'a> {
    let length = text.chars().count();
    let from = match from {
        None if part.is_empty() => return Value::Int(length as i64),
        None if text.len() < part.len() => return Value::Int(-1),
        None => length as i64 - 1,
        Some(from) => from,
    };
    let Ok(start) = usize::try_from(from) else { return Value::error(format!("index out of range: {from}")) };
    if part.is_empty() {
        return Value::Int(if start > length { length as i64 } else { from });
    }
    if start >= length {
        return Value::Int(-1);
    }
    let end = text.char_indices().nth(start + part.chars().count()).map_or(text.len(), |(at, _)| at);
    Value::Int(text[..end].rfind(part).map_or(-1, |at| text[..at].chars().count() as i64))
}

/// Places of a separator; the empty one is between all characters.
fn replace<'a>(args: &[Value<'a>], count: i64) -> Value<'a> {
    let text = str(args, 0);
    let old = str(args, 1);
    let new = str(args, 2);
    Value::string(match usize::try_from(count) {
        Ok(count) => text.replacen(old, new, count),
        Err(_) => text.replace(old, new),
    })
}

fn split(text: &str, separator: &str, count: i64) -> Vec<String> {
    if count == 0 {
        return Vec::new();
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if separator.is_empty() {
        let mut parts: Vec<String> = Vec::new();
        for (index, (at, char)) in text.char_indices().enumerate() {
            if index + 1 == count {
                parts.push(text[at..].to_owned());
                break;
            }
            parts.push(char.to_string());
        }
        return parts;
    }
    text.splitn(count, separator).map(str::to_owned).collect()
}

fn substring<'a>(text: &str, start: i64, end: Option<i64>) -> Value<'a> {
    let length = text.chars().count() as i64;
    let out_of_range = |at: i64| Value::error(format!("index out of range: {at}"));
    if let Some(end) = end.filter(|end| start > *end) {
        return Value::error(format!("invalid substring range. start: {start}, end: {end}"));
    }
    if !(0..=length).contains(&start) {
        return out_of_range(start);
    }
    let end = end.unwrap_or(length);
    if !(0..=length).contains(&end) {
        return out_of_range(end);
    }
    let part: String = text.chars().skip(start as usize).take((end - start) as usize).collect();
    Value::string(part)
}

fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

fn join<'a>(args: &[Value<'a>], separator: &str) -> Value<'a> {
    let Some(list) = args[0].as_list() else { return Value::no_such_overload() };
    let mut joined = String::new();
    for (at, value) in list.values().iter().enumerate() {
        if at > 0 {
            joined.push_str(separator);
        }
        match value.as_str() {
            Some(text) => joined.push_str(text),
            None => return Value::error(format!("join: invalid input: {}", value.text())),
        }
    }
    Value::string(joined)
}

fn pattern(args: &[Value<'_>]) -> Result<regex::Regex, String> {
    goregex::compile(str(args, 1)).map_err(|error| format!("Illegal regex: {error}"))
}

fn find_all<'a>(args: &[Value<'a>], count: i64) -> Value<'a> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    value_or(pattern(args), |regex| {
        Value::strings(regex.find_iter(str(args, 0)).take(count).map(|found| found.as_str().to_owned()))
    })
}
