//! What is wrong with a field, in upstream's words.

use std::collections::HashSet;
use std::fmt::{self, Write};

use serde_json::Value;
use steersman_base::go::quote;

pub(crate) use steersman_base::validation::FieldErrorKind;

/// The path of a field: `spec.containers[0].image`, `metadata.labels[app]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Path(String);

/// One thing that is wrong with an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldError {
    /// The kind of the error; the `reason` of a cause.
    pub kind: FieldErrorKind,
    /// The path of the field.
    pub path: Path,
    /// The value of the field, where upstream shows it.
    pub value: Option<Shown>,
    /// The rest of the sentence.
    pub detail: String,
}

/// The maximum number of errors of one object that are kept. Upstream keeps all; nobody reads so many.
pub(crate) const ERRORS_MAX: usize = 100;
/// The maximum bytes that they may show before no more are kept: some show whole lists.
pub(crate) const ERRORS_BYTES_MAX: usize = 1 << 20;

/// The errors of an object: the first [`ERRORS_MAX`] errors, or fewer if they are long. The others are counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Errors {
    kept: Vec<FieldError>,
    bytes: usize,
    dropped: usize,
}

/// A bad value, as an error shows it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shown {
    /// As JSON, with sorted keys.
    Json(Value),
    /// As this text: for values that upstream prints with the keys in the order of its Go structs.
    Text(String),
}

// === impl Path ===

impl Path {
    /// The object itself.
    #[must_use]
    pub(crate) fn root() -> Self {
        Self::default()
    }

    /// A field of the object: `spec`.
    #[must_use]
    pub(crate) fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// A field underneath: `.containers`.
    #[must_use]
    pub(crate) fn child(&self, name: &str) -> Self {
        if self.0.is_empty() { Self::new(name) } else { self.then([".", name]) }
    }

    /// An element of a list: `[0]`.
    #[must_use]
    pub(crate) fn index(&self, index: usize) -> Self {
        const DIGITS_MAX: usize = 20;
        let mut path = String::with_capacity(self.0.len() + DIGITS_MAX + 2);
        path.push_str(&self.0);
        // Writing to a string does not fail.
        let _ = write!(path, "[{index}]");
        Self(path)
    }

    /// The path with more text. Validation makes paths of all fields, and needs almost none.
    fn then<const N: usize>(&self, parts: [&str; N]) -> Self {
        let mut path = String::with_capacity(self.0.len() + parts.iter().map(|part| part.len()).sum::<usize>());
        path.push_str(&self.0);
        parts.iter().for_each(|part| path.push_str(part));
        Self(path)
    }

    /// An entry of a map: `[app]`.
    #[must_use]
    pub(crate) fn key(&self, key: &str) -> Self {
        self.then(["[", key, "]"])
    }

    /// The path as text.
    #[must_use]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl FieldError ===

impl FieldError {
    fn with(kind: FieldErrorKind, path: &Path, value: Option<Shown>, detail: impl Into<String>) -> Self {
        Self { kind, path: path.clone(), value, detail: detail.into() }
    }

    /// A value that is malformed or out of bounds.
    #[must_use]
    pub(crate) fn invalid(path: &Path, value: impl Into<Shown>, detail: impl Into<String>) -> Self {
        Self::with(FieldErrorKind::Invalid, path, Some(value.into()), detail)
    }

    /// A value that is malformed, and is not shown.
    #[must_use]
    pub(crate) fn invalid_unshown(path: &Path, detail: impl Into<String>) -> Self {
        Self::with(FieldErrorKind::Invalid, path, None, detail)
    }

    /// A value that must be there and is not.
    #[must_use]
    pub(crate) fn required(path: &Path, detail: impl Into<String>) -> Self {
        Self::with(FieldErrorKind::Required, path, None, detail)
    }

    /// A value that may not be there.
    #[must_use]
    pub(crate) fn forbidden(path: &Path, detail: impl Into<String>) -> Self {
        Self::with(FieldErrorKind::Forbidden, path, None, detail)
    }

    /// A value that is there twice.
    #[must_use]
    pub(crate) fn duplicate(path: &Path, value: impl Into<Shown>) -> Self {
        Self::with(FieldErrorKind::Duplicate, path, Some(value.into()), "")
    }

    /// A reference to something that is not there.
    #[must_use]
    pub(crate) fn not_found(path: &Path, value: impl Into<Shown>) -> Self {
        Self::with(FieldErrorKind::NotFound, path, Some(value.into()), "")
    }

    /// A value that is none of the `supported` ones, which are shown in this order.
    #[must_use]
    pub(crate) fn not_supported(path: &Path, value: impl Into<Shown>, supported: &[&str]) -> Self {
        let quoted: Vec<_> = supported.iter().map(|value| format!("{value:?}")).collect();
        let detail = if quoted.is_empty() { String::new() } else { format!("supported values: {}", quoted.join(", ")) };
        Self::with(FieldErrorKind::NotSupported, path, Some(value.into()), detail)
    }

    /// A value of more than so many bytes.
    #[must_use]
    pub(crate) fn too_long(path: &Path, bytes_max: usize) -> Self {
        Self::with(FieldErrorKind::TooLong, path, None, format!("may not be more than {bytes_max} bytes"))
    }

    /// A list of more than so many items.
    #[must_use]
    pub(crate) fn too_many(path: &Path, count: usize, count_max: usize) -> Self {
        let detail = format!("must have at most {count_max} items");
        Self::with(FieldErrorKind::TooMany, path, Some(Value::from(count).into()), detail)
    }

    /// About how many bytes it shows.
    fn len(&self) -> usize {
        let shown = match &self.value {
            Some(Shown::Json(Value::String(text)) | Shown::Text(text)) => text.len(),
            Some(Shown::Json(value @ (Value::Array(_) | Value::Object(_)))) => value.to_string().len(),
            Some(Shown::Json(_)) | None => 0,
        };
        self.path.0.len() + shown + self.detail.len()
    }

    /// Returns the error without the field: the `message` of a cause.
    #[must_use]
    pub(crate) fn body(&self) -> String {
        let mut body = self.kind.to_string();
        if let Some(value) = &self.value {
            body.push_str(": ");
            body.push_str(&value.to_string());
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

impl From<steersman_base::validation::FieldError> for FieldError {
    fn from(error: steersman_base::validation::FieldError) -> Self {
        Self { kind: error.kind, path: Path(error.field), value: error.value.map(Shown::Json), detail: error.detail }
    }
}

// === impl Errors ===

impl Errors {
    /// Adds an error, or counts it if there are enough.
    pub(crate) fn push(&mut self, error: FieldError) {
        if self.is_full() {
            self.dropped += 1;
            return;
        }
        self.bytes += error.len();
        self.kept.push(error);
    }

    /// Changes the details of the errors from this one on.
    pub(crate) fn reword(&mut self, from: usize, reword: impl Fn(&str) -> String) {
        for error in self.kept.iter_mut().skip(from) {
            error.detail = reword(&error.detail);
        }
    }

    /// Whether further errors are only counted. Who makes errors that show much asks first.
    #[must_use]
    pub(crate) fn is_full(&self) -> bool {
        self.kept.len() >= ERRORS_MAX || self.bytes >= ERRORS_BYTES_MAX
    }

    /// Returns the number of errors that were found, whether they were kept or not.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.kept.len() + self.dropped
    }

    /// Whether there are none.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Keeps those that are wanted.
    pub(crate) fn retain(&mut self, wanted: impl FnMut(&FieldError) -> bool) {
        self.kept.retain(wanted);
    }

    /// The errors without those that were said before: upstream says the same thing once.
    #[must_use]
    pub(crate) fn without_repeats(mut self) -> Self {
        let mut seen = HashSet::new();
        self.kept.retain(|error| seen.insert((error.kind.to_string(), error.to_string())));
        self
    }
}

impl std::ops::Deref for Errors {
    type Target = [FieldError];
    fn deref(&self) -> &[FieldError] {
        &self.kept
    }
}

impl Extend<FieldError> for Errors {
    fn extend<I: IntoIterator<Item = FieldError>>(&mut self, errors: I) {
        errors.into_iter().for_each(|error| self.push(error));
    }
}

impl IntoIterator for Errors {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;
    fn into_iter(self) -> Self::IntoIter {
        self.kept.into_iter()
    }
}

// === impl Shown ===

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(Value::String(text)) if text.chars().any(char::is_control) => f.write_str(&quote(text)),
            Self::Json(value) => fmt::Display::fmt(value, f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl<V: Into<Value>> From<V> for Shown {
    fn from(value: V) -> Self {
        Self::Json(value.into())
    }
}
