//! Errors that name the field and the value, as the API server reports them.

use std::fmt;

use serde_json::Value;

/// One field that is wrong: which, why, and what it held.
///
/// Prints as upstream's `field.Error`: `spec.selector: Invalid value: "a b": …`.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// In which way it is wrong.
    pub kind: FieldErrorKind,
    /// Path of the field, such as `spec.selector.matchExpressions[0].key`.
    pub field: String,
    /// The value of the field, unless the kind of error says enough.
    pub value: Option<Value>,
    /// The problem in a sentence; may be empty.
    pub detail: String,
}

/// The kind of a field error; [`reason`](FieldErrorKind::reason) is the value for `Status.details.causes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldErrorKind {
    /// The value refers to something that is not there.
    NotFound,
    /// A value is missing.
    Required,
    /// The value must be unique and is not.
    Duplicate,
    /// The value is malformed or out of bounds.
    Invalid,
    /// The value is none of those that are known.
    NotSupported,
    /// The value is well-formed, but not allowed here.
    Forbidden,
    /// The value is too long.
    TooLong,
    /// The list has too many items.
    TooMany,
    /// The value has another type.
    TypeInvalid,
    /// The value could not be validated.
    Internal,
}

/// All that is wrong with an object, in the order of its fields; never empty.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldErrors(Vec<FieldError>);

// === impl FieldError ===

impl FieldError {
    /// The value is malformed.
    #[must_use]
    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self { kind: FieldErrorKind::Invalid, field: field.into(), value: Some(value.into()), detail: detail.into() }
    }

    /// A value is missing.
    #[must_use]
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind: FieldErrorKind::Required, field: field.into(), value: None, detail: detail.into() }
    }

    /// The field may not be set here.
    #[must_use]
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind: FieldErrorKind::Forbidden, field: field.into(), value: None, detail: detail.into() }
    }

    /// The value is none of the `supported` ones.
    #[must_use]
    pub fn not_supported(field: impl Into<String>, value: impl Into<Value>, supported: &[&str]) -> Self {
        let quoted: Vec<_> = supported.iter().map(|value| format!("{value:?}")).collect();
        let detail = if quoted.is_empty() { String::new() } else { format!("supported values: {}", quoted.join(", ")) };
        Self { kind: FieldErrorKind::NotSupported, field: field.into(), value: Some(value.into()), detail }
    }
}

impl std::error::Error for FieldError {}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.kind)?;
        if let Some(value) = &self.value {
            write!(f, ": {value}")?;
        }
        if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
    }
}

// === impl FieldErrorKind ===

impl FieldErrorKind {
    /// The machine-readable name, as in `Status.details.causes[].reason`.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
        }
    }
}

impl fmt::Display for FieldErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Internal => "Internal error",
        })
    }
}

// === impl FieldErrors ===

impl FieldErrors {
    /// `Ok` if nothing is wrong.
    ///
    /// # Errors
    /// With these errors, if there are any.
    pub fn check(errors: Vec<FieldError>) -> Result<(), Self> {
        if errors.is_empty() { Ok(()) } else { Err(Self(errors)) }
    }

    /// The errors one by one.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &FieldError> {
        self.0.iter()
    }
}

impl From<FieldError> for FieldErrors {
    fn from(error: FieldError) -> Self {
        Self(vec![error])
    }
}

impl IntoIterator for FieldErrors {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl std::error::Error for FieldErrors {}

/// One error as it is, several in brackets, as upstream prints an aggregate.
impl fmt::Display for FieldErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            [only] => fmt::Display::fmt(only, f),
            several => {
                let texts: Vec<_> = several.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", texts.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_field_value_and_reason() {
        let check = |error: FieldError, want: &str| assert_eq!(error.to_string(), want);
        check(FieldError::invalid("spec.a", "x y", "is bad"), r#"spec.a: Invalid value: "x y": is bad"#);
        check(FieldError::invalid("spec.a", -1, ""), "spec.a: Invalid value: -1");
        check(
            FieldError::invalid("values", vec!["a", "b"], "too many"),
            r#"values: Invalid value: ["a","b"]: too many"#,
        );
        check(FieldError::required("spec.b", ""), "spec.b: Required value");
        check(FieldError::forbidden("spec.b", "may not change"), "spec.b: Forbidden: may not change");
        check(
            FieldError::not_supported("op", "x", &["in", "notin"]),
            r#"op: Unsupported value: "x": supported values: "in", "notin""#,
        );
    }

    #[test]
    fn several_errors_print_in_brackets() {
        let errors =
            FieldErrors::check(vec![FieldError::required("a", ""), FieldError::required("b", "")]).unwrap_err();
        assert_eq!(errors.to_string(), "[a: Required value, b: Required value]");
        assert_eq!(FieldErrors::check(vec![]), Ok(()));
    }
}
