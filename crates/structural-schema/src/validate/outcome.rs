//! What a schema says about a value.

use serde_json::Value;
use steersman_base::go::quote;
use steersman_base::validation::{FieldError, FieldErrorKind};

use crate::path::{NO_PATH, Path};

/// The maximum number of kept problems of an object.
pub const PROBLEMS_MAX: usize = 128;
/// The maximum number of bytes of the values that errors show; the error that exceeds it is the last.
const SHOWN_BYTES_MAX: usize = 1 << 20;

/// Problems, and how much of the schema matches: of several schemas, the one that matches most is blamed.
#[derive(Default)]
pub(super) struct Outcome<'a> {
    problems: Vec<Problem<'a>>,
    matches: usize,
}

struct Problem<'a> {
    /// The path, unless the problem is with several schemas together.
    path: Option<String>,
    message: String,
    bad: Bad<'a>,
}

/// A problem, and the value that is shown.
pub(super) enum Bad<'a> {
    /// The value as it is.
    Held(&'a Value),
    /// Something about the value.
    Value(Value),
    /// The value has another type or format; this is what is shown.
    Type(String),
    /// The value is not there.
    Missing,
    /// The value is not in the `enum`.
    NotOneOf(&'a Value, &'a [Value]),
    /// A text of more than so many characters.
    TooLong(i64),
    /// So many items or properties where there may be so many.
    TooMany(i64, i64),
}

// === impl Outcome ===

impl<'a> Outcome<'a> {
    pub(super) fn is_valid(&self) -> bool {
        self.problems.is_empty()
    }

    pub(super) fn matches(&self) -> usize {
        self.matches
    }

    pub(super) fn count(&mut self) {
        self.matches += 1;
    }

    /// The same matches without the problems.
    pub(super) fn forgiven(self) -> Self {
        Self { problems: Vec::new(), matches: self.matches }
    }

    /// Adds another outcome; a problem that is known is not added again.
    pub(super) fn merge(&mut self, other: Self) {
        self.matches += other.matches;
        if self.problems.is_empty() {
            self.problems = other.problems;
        } else {
            other.problems.into_iter().for_each(|problem| self.push(problem));
        }
    }

    /// Adds a problem of the value at a path.
    pub(super) fn add(&mut self, path: &Path<'_>, bad: Bad<'a>, message: impl FnOnce(&str) -> String) {
        if self.problems.len() < PROBLEMS_MAX {
            let path = path.to_string();
            let message = message(&path);
            self.push(Problem { path: Some(path), message, bad });
        }
    }

    /// Adds the problem of a value that has another type.
    pub(super) fn add_type(&mut self, path: &Path<'_>, want: &str, is: &str) {
        let bad = Bad::Type(is.to_owned());
        self.add(path, bad, |at| format!("{at} in body must be of type {want}: {}", quote(is)));
    }

    /// Adds a problem that has no path of its own.
    pub(super) fn add_composite(&mut self, message: impl FnOnce() -> String) {
        if self.problems.len() < PROBLEMS_MAX {
            self.push(Problem { path: None, message: message(), bad: Bad::Value("".into()) });
        }
    }

    fn push(&mut self, problem: Problem<'a>) {
        let is_known = || self.problems.iter().any(|known| known.message == problem.message);
        if self.problems.len() < PROBLEMS_MAX && !is_known() {
            self.problems.push(problem);
        }
    }

    /// The problems as field errors, underneath `prefix`.
    pub(super) fn into_errors(self, prefix: &str) -> Vec<FieldError> {
        let mut left = SHOWN_BYTES_MAX;
        let mut errors = Vec::new();
        for problem in self.problems {
            let held = match &problem.bad {
                Bad::Held(value) | Bad::NotOneOf(value, _) => size(value),
                _ => 0,
            };
            errors.push(problem.into_error(prefix));
            match left.checked_sub(held) {
                Some(rest) => left = rest,
                None => break,
            }
        }
        errors
    }
}

/// A bound in words.
fn at_most(words: &str, max: i64, unit: &str) -> String {
    let plural = if max == 1 { "" } else { "s" };
    format!("{words} {max} {unit}{plural}")
}

/// About how many bytes a value has as text.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(_) | Value::Object(_) => value.to_string().len(),
        _ => 8,
    }
}

// === impl Problem ===

impl Problem<'_> {
    fn into_error(self, prefix: &str) -> FieldError {
        let name = self.path.as_deref().map(|path| path.strip_prefix('.').unwrap_or(path)).unwrap_or_default();
        let field = match (prefix, name) {
            ("", "") => NO_PATH.to_owned(),
            (prefix, "") => prefix.to_owned(),
            ("", name) => name.to_owned(),
            (prefix, name) => format!("{prefix}.{name}"),
        };
        let with = |kind, value, detail| FieldError { kind, field: field.clone(), value, detail };
        match self.bad {
            Bad::Held(value) => with(FieldErrorKind::Invalid, Some(value.clone()), self.message),
            Bad::Value(value) => with(FieldErrorKind::Invalid, Some(value), self.message),
            Bad::Type(shown) => with(FieldErrorKind::TypeInvalid, Some(shown.into()), self.message),
            Bad::Missing => with(FieldErrorKind::Required, None, String::new()),
            Bad::NotOneOf(value, allowed) => {
                let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let allowed: Vec<_> = allowed.iter().map(|value| quote(&text(value))).collect();
                let detail = format!("supported values: {}", allowed.join(", "));
                with(FieldErrorKind::NotSupported, Some(value.clone()), detail)
            }
            Bad::TooLong(max) => {
                let detail =
                    if max < 0 { "value is too long".to_owned() } else { at_most("may not be more than", max, "byte") };
                with(FieldErrorKind::TooLong, None, detail)
            }
            Bad::TooMany(count, max) => {
                let detail =
                    if max < 0 { "has too many items".to_owned() } else { at_most("must have at most", max, "item") };
                with(FieldErrorKind::TooMany, Some(count.into()), detail)
            }
        }
    }
}
