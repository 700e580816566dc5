//! A cell: where its value comes from.

use serde_json::Value;
use steersman_base::{MicroTime, Time};

use crate::table::duration;

/// One column's value. Paths are JSON pointers.
#[derive(Clone, Copy)]
pub(super) enum Cell {
    /// The object's name.
    Name,
    /// How long ago the object was created.
    Age,
    /// A text; empty if it is absent.
    Text(&'static str),
    /// A text, or what stands for its absence.
    TextOr(&'static str, &'static str),
    /// A number; zero if it is absent.
    Int(&'static str),
    /// A truth value, and what its absence means.
    Bool(&'static str, bool),
    /// How many elements a list or a map has.
    Count(&'static str),
    /// Names of a list's elements, separated by commas: the list, and the field.
    Joined(&'static str, &'static str),
    /// A text that is put together.
    Made(fn(&Row<'_>) -> String),
    /// Any value that is put together.
    Value(fn(&Row<'_>) -> Value),
}

/// An object that is being printed.
pub(super) struct Row<'a> {
    pub(super) object: &'a Value,
    /// The list it is in; empty if it is printed alone.
    pub(super) list: &'a [&'a Value],
    pub(super) now: Time,
}

// === impl Cell ===

impl Cell {
    pub(super) fn render(self, row: &Row<'_>) -> Value {
        match self {
            Self::Name => row.text("/metadata/name").into(),
            Self::Age => row.since("/metadata/creationTimestamp").into(),
            Self::Text(path) => row.text(path).into(),
            Self::TextOr(path, otherwise) => {
                Some(row.text(path)).filter(|text| !text.is_empty()).unwrap_or(otherwise).into()
            }
            Self::Int(path) => row.int(path).into(),
            Self::Bool(path, otherwise) => row.at(path).and_then(Value::as_bool).unwrap_or(otherwise).into(),
            Self::Count(path) => row.count(path).into(),
            Self::Joined(path, field) => joined(row.list_at(path), field).into(),
            Self::Made(make) => make(row).into(),
            Self::Value(make) => make(row),
        }
    }
}

// === impl Row ===

impl<'a> Row<'a> {
    pub(super) fn at(&self, path: &str) -> Option<&'a Value> {
        self.object.pointer(path).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, path: &str) -> &'a str {
        self.at(path).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn int(&self, path: &str) -> i64 {
        self.at(path).and_then(Value::as_i64).unwrap_or_default()
    }

    pub(super) fn list_at(&self, path: &str) -> &'a [Value] {
        self.at(path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn count(&self, path: &str) -> usize {
        match self.at(path) {
            Some(Value::Array(elements)) => elements.len(),
            Some(Value::Object(entries)) => entries.len(),
            _ => 0,
        }
    }

    /// How long ago the time at this path was.
    pub(super) fn since(&self, path: &str) -> String {
        since(self.now, self.text(path))
    }

    /// Whether the object is being deleted.
    pub(super) fn is_terminating(&self) -> bool {
        self.at("/metadata/deletionTimestamp").is_some()
    }

    /// The condition of this type.
    pub(super) fn condition(&self, path: &str, kind: &str) -> Option<&'a Value> {
        self.list_at(path).iter().find(|condition| text(condition, "type") == kind)
    }
}

/// How long ago a time was that is written as a time or a time with microseconds.
pub(super) fn since(now: Time, time: &str) -> String {
    seconds_of(time).map_or_else(|| "<unknown>".to_owned(), |time| duration::human(now.unix() - time))
}

pub(super) fn seconds_of(time: &str) -> Option<i64> {
    let seconds = |time: &str| time.parse::<Time>().ok().map(Time::unix);
    let micros = |time: &str| time.parse::<MicroTime>().ok().map(|time| time.to_seconds().unix());
    seconds(time).or_else(|| micros(time))
}

/// A text of an element; empty if it is absent.
pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A field of all elements, or the elements themselves if the field is empty, separated by commas.
pub(super) fn joined(list: &[Value], field: &str) -> String {
    let of = |element| if field.is_empty() { Value::as_str(element).unwrap_or_default() } else { text(element, field) };
    list.iter().map(of).collect::<Vec<_>>().join(",")
}

/// At most so many of a list, and how many there are besides: `a,b + 2 more...`.
pub(super) fn first_of(list: &[String], shown_max: usize, separator: &str) -> String {
    let shown = list.iter().take(shown_max).map(String::as_str).collect::<Vec<_>>().join(separator);
    if list.len() > shown_max { format!("{shown} + {} more...", list.len() - shown_max) } else { shown }
}

/// An int-or-string as text.
pub(super) fn int_or_string(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
