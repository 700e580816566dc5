//! A cell: where its value comes from.

use serde_json::Value;
use steersman_base::{MicroTime, Time};

use crate::table::duration;

/// The value of one column. Paths are JSON pointers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell {
    /// The object's name.
    Name,
    /// The age of the object.
    Age,
    /// A text; empty if it is absent.
    Text(&'static str),
    /// A text, or another one if it is absent.
    TextOr(&'static str, &'static str),
    /// A number; zero if it is absent.
    Int(&'static str),
    /// A boolean, or another one if it is absent.
    Bool(&'static str, bool),
    /// The number of elements of a list or a map.
    Count(&'static str),
    /// A field of all elements of a list, separated by commas: the list, and the field.
    Joined(&'static str, &'static str),
    /// A text that a function makes.
    Made(fn(&TableRow<'_>) -> String),
    /// A value that a function makes.
    Value(fn(&TableRow<'_>) -> Value),
}

/// An object that is printed.
pub(crate) struct TableRow<'a> {
    /// The object.
    pub(crate) object: &'a Value,
    /// The list that the object is in; empty if it is printed alone.
    pub(crate) list: &'a [&'a Value],
    /// The time of the request.
    pub(crate) now: Time,
}

// === impl Cell ===

impl Cell {
    /// Returns the value for an object.
    pub(crate) fn render(self, row: &TableRow<'_>) -> Value {
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

// === impl TableRow ===

impl<'a> TableRow<'a> {
    /// Returns the value at a path, unless it is null.
    pub(crate) fn at(&self, path: &str) -> Option<&'a Value> {
        self.object.pointer(path).filter(|value| !value.is_null())
    }

    /// Returns the text at a path; empty if it is absent.
    pub(crate) fn text(&self, path: &str) -> &'a str {
        self.at(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the number at a path; 0 if it is absent.
    pub(crate) fn int(&self, path: &str) -> i64 {
        self.at(path).and_then(Value::as_i64).unwrap_or_default()
    }

    /// Returns the list at a path; empty if it is absent.
    pub(crate) fn list_at(&self, path: &str) -> &'a [Value] {
        self.at(path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the number of elements of the list or map at a path.
    pub(crate) fn count(&self, path: &str) -> usize {
        match self.at(path) {
            Some(Value::Array(elements)) => elements.len(),
            Some(Value::Object(entries)) => entries.len(),
            _ => 0,
        }
    }

    /// Returns how long ago the time at this path was.
    pub(crate) fn since(&self, path: &str) -> String {
        since(self.now, self.text(path))
    }

    /// Whether the object is being deleted.
    pub(crate) fn is_terminating(&self) -> bool {
        self.at("/metadata/deletionTimestamp").is_some()
    }

    /// Returns the condition of this type.
    pub(crate) fn condition(&self, path: &str, kind: &str) -> Option<&'a Value> {
        self.list_at(path).iter().find(|condition| text(condition, "type") == kind)
    }
}

/// Returns how long ago a time was, with or without microseconds.
pub(crate) fn since(now: Time, time: &str) -> String {
    seconds_of(time).map_or_else(|| "<unknown>".to_owned(), |time| duration::human(now.unix() - time))
}

/// Returns the seconds since 1970 of a time, with or without microseconds.
pub(crate) fn seconds_of(time: &str) -> Option<i64> {
    let seconds = |time: &str| time.parse::<Time>().ok().map(Time::unix);
    let micros = |time: &str| time.parse::<MicroTime>().ok().map(|time| time.to_seconds().unix());
    seconds(time).or_else(|| micros(time))
}

/// Returns a text of an element; empty if it is absent.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a field of all elements, or the elements themselves if the field is empty, separated by commas.
pub(crate) fn joined(list: &[Value], field: &str) -> String {
    let of = |element| if field.is_empty() { Value::as_str(element).unwrap_or_default() } else { text(element, field) };
    list.iter().map(of).collect::<Vec<_>>().join(",")
}

/// Returns the first texts of a list, and the number of the others: `a,b + 2 more...`.
pub(crate) fn first_of(list: &[String], shown_max: usize, separator: &str) -> String {
    let shown = list.iter().take(shown_max).map(String::as_str).collect::<Vec<_>>().join(separator);
    if list.len() > shown_max { format!("{shown} + {} more...", list.len() - shown_max) } else { shown }
}

/// Returns an int-or-string as text.
pub(crate) fn int_or_string(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
