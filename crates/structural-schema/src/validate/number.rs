//! Bounds of numbers. Go holds whole numbers and fractions in different types, and compares a whole number with a bound that
//! it has cut to a whole number; so does this.

use serde_json::Value;

use super::outcome::{Bad, Outcome};
use crate::path::Path;
use crate::schema::{TypeName, Values};
use crate::text::{Kind, go_float, go_int, is_whole};

/// A number as Go holds it.
#[derive(Clone, Copy)]
enum Number {
    Int(i64),
    Float(f64),
}

/// A bound: which field, how it is named in messages, and whether a number may not be beyond or at it.
struct Bound {
    limit: f64,
    name: &'static str,
    is_exclusive: bool,
    is_maximum: bool,
}

struct Checked<'p> {
    type_name: &'p TypeName,
    format: &'p str,
    number: Number,
}

/// Checks a number against its type, format, bounds and `multipleOf`.
pub(super) fn check<'a>(
    (type_name, format): (&TypeName, &str),
    values: &Values,
    kind: Kind,
    path: &Path<'_>,
) -> Outcome<'a> {
    let number = match kind {
        Kind::Int(number) => Number::Int(number),
        Kind::Float(number) => Number::Float(number),
        _ => return Outcome::default(),
    };
    let checked = Checked { type_name, format, number };
    let mut result = Outcome::default();
    checked.fits(number, "Checked", path, &mut result);
    if let Some(factor) = values.multiple_of {
        checked.multiple_of(factor, path, &mut result);
    }
    if let Some(limit) = values.minimum {
        let is_exclusive = values.is_minimum_exclusive;
        let bound = Bound { limit, name: "Minimum boundary", is_exclusive, is_maximum: false };
        checked.bound(&bound, path, &mut result);
    }
    if let Some(limit) = values.maximum {
        let is_exclusive = values.is_maximum_exclusive;
        let bound = Bound { limit, name: "Maximum boundary", is_exclusive, is_maximum: true };
        checked.bound(&bound, path, &mut result);
    }
    result.count();
    result
}

// === impl Checked ===

impl Checked<'_> {
    /// Whether a number is one of the type and format; a problem is added if not.
    fn fits(&self, number: Number, name: &str, path: &Path<'_>, result: &mut Outcome<'_>) -> bool {
        let is_fitting = match (self.type_name, self.format, number) {
            (TypeName::Integer, "int32", Number::Int(number)) => i32::try_from(number).is_ok(),
            (TypeName::Integer, "int32", Number::Float(number)) => {
                number.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number)
            }
            (TypeName::Integer, _, Number::Float(number)) => {
                number.fract() == 0.0 && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number)
            }
            #[expect(clippy::cast_possible_truncation, reason = "whether it is too large is the question")]
            (TypeName::Number, "float", Number::Float(number)) => (number as f32).is_finite(),
            _ => true,
        };
        if !is_fitting {
            let type_name = self.type_name.as_str();
            let format = match self.format {
                "" => "(default format)".to_owned(),
                format => format!("with format {format}"),
            };
            result.add_composite(|| format!("{name} value must be of type {type_name} {format} in {path}"));
        }
        is_fitting
    }

    fn multiple_of(&self, factor: f64, path: &Path<'_>, result: &mut Outcome<'_>) {
        let is_native = self.fits(Number::Float(factor), "MultipleOf", path, result);
        let (is_multiple, shown_factor, is_positive, factor_value) = match self.number {
            Number::Int(number) if is_native => {
                let whole = go_int(factor);
                (whole > 0 && number % whole == 0, whole.to_string(), whole > 0, Value::from(whole))
            }
            number => {
                let number = number.as_f64();
                let times = if factor < 1.0 { 1.0 / factor * number } else { number / factor };
                (is_whole(times), go_float(factor), factor > 0.0, float_value(factor))
            }
        };
        if !is_positive {
            result.add(path, Bad::Value(factor_value), |at| {
                format!("factor MultipleOf declared for {at} must be positive: {shown_factor}")
            });
        } else if !is_multiple {
            let shown = self.shown(is_native);
            result.add(path, Bad::Value(shown), |at| format!("{at} in body should be a multiple of {shown_factor}"));
        }
    }

    fn bound(&self, bound: &Bound, path: &Path<'_>, result: &mut Outcome<'_>) {
        let is_native = self.fits(Number::Float(bound.limit), bound.name, path, result);
        let (order, limit) = match self.number {
            Number::Int(number) if is_native => {
                let limit = go_int(bound.limit);
                (Some(number.cmp(&limit)), limit.to_string())
            }
            number => (number.as_f64().partial_cmp(&bound.limit), go_float(bound.limit)),
        };
        let is_beyond = match (order, bound.is_maximum) {
            (None, _) => false,
            (Some(order), true) => order.is_gt() || bound.is_exclusive && order.is_eq(),
            (Some(order), false) => order.is_lt() || bound.is_exclusive && order.is_eq(),
        };
        if is_beyond {
            let than = match (bound.is_maximum, bound.is_exclusive) {
                (true, false) => "less than or equal to",
                (true, true) => "less than",
                (false, false) => "greater than or equal to",
                (false, true) => "greater than",
            };
            let shown = self.shown(is_native);
            result.add(path, Bad::Value(shown), |at| format!("{at} in body should be {than} {limit}"));
        }
    }

    /// The number as errors show it: as a fraction, if it was compared as one.
    fn shown(&self, is_native: bool) -> Value {
        match self.number {
            Number::Int(number) if is_native => number.into(),
            number => float_value(number.as_f64()),
        }
    }
}

/// A fraction as Go prints it: without a point if it is whole.
fn float_value(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 1e15 { go_int(number).into() } else { number.into() }
}

// === impl Number ===

impl Number {
    #[expect(clippy::cast_precision_loss, reason = "Go compares so too")]
    fn as_f64(self) -> f64 {
        match self {
            Self::Int(number) => number as f64,
            Self::Float(number) => number,
        }
    }
}
