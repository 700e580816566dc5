//! Values and texts as Go has them.

use serde_json::Value;

/// The kind of a value in Go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Null,
    Bool,
    Int(i64),
    Float(f64),
    String,
    Array,
    Object,
}

// === impl Kind ===

impl Kind {
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Bool,
            Value::Number(number) => match number.as_i64() {
                Some(number) => Self::Int(number),
                None => Self::Float(number.as_f64().unwrap_or_default()),
            },
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }

    /// The type of JSON schema.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "boolean",
            Self::Int(_) => "integer",
            Self::Float(_) => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    /// The format of numbers.
    pub(crate) fn format_name(self) -> &'static str {
        match self {
            Self::Int(_) => "int64",
            Self::Float(_) => "float64",
            _ => "",
        }
    }
}

/// A number as `%v` prints a float64.
pub(crate) fn go_float(number: f64) -> String {
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// A float64 as Go converts it to an int64 on the processors that matter.
#[expect(clippy::cast_possible_truncation, reason = "Go's conversion cuts too")]
pub(crate) fn go_int(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}

/// Whether a number is whole, or so close that go-openapi calls it so.
pub(crate) fn is_whole(number: f64) -> bool {
    const SAFE_MAX: f64 = 9_007_199_254_740_991.0;
    const EPSILON: f64 = 1e-9;
    if !number.is_finite() || number.abs() > SAFE_MAX {
        return false;
    }
    let rounded = number.round();
    if number == rounded {
        return true;
    }
    rounded != 0.0 && (number - rounded).abs() < EPSILON * rounded.abs()
}
