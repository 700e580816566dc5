//! Values that are no structs: what they may be, their canonical form, and their zero.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use steersman_base::{MicroTime, Quantity, Time};

use crate::decode::type_name;
use crate::schema::check::Zero;
use crate::schema::table::Shape;

/// Why a value is not what its field holds.
pub(super) enum Fault {
    /// It is of another JSON type: `string`, `number 1.5`.
    Type(String),
    /// It is of another JSON type than a type that reads itself expects, and which that is.
    InnerType(String, &'static str),
    /// It is of the right type, but cannot be read.
    Value(String),
    /// A type that reads itself cannot read it.
    Stop(String),
}

/// Brings a value into the form that decoding and encoding gives it.
pub(super) fn normalise(shape: &Shape, value: &mut Value) -> Result<Zero, Fault> {
    let wrong = |value: &Value| Fault::Type(type_name(value).to_owned());
    let zero = match (shape, &*value) {
        (Shape::String, Value::String(text)) => text.is_empty(),
        (Shape::Bool, Value::Bool(value)) => !value,
        (Shape::Bytes, Value::String(text)) => {
            let (bytes, canonical) = bytes(text)?;
            if let Some(canonical) = canonical {
                *value = Value::String(canonical);
            }
            bytes == 0
        }
        // A list of numbers is a byte slice too; nobody writes them so.
        (Shape::Bytes, Value::Array(elements)) if elements.is_empty() => true,
        (Shape::Int32, Value::Number(number)) => {
            let number =
                number.as_i64().filter(|number| i32::try_from(*number).is_ok()).ok_or_else(|| unfit(number))?;
            number == 0
        }
        (Shape::Int64, Value::Number(number)) => number.as_i64().ok_or_else(|| unfit(number))? == 0,
        (Shape::Float, Value::Number(number)) => {
            let float = number.as_f64().unwrap_or_default();
            *value = number_of(float);
            float == 0.0
        }
        (Shape::Time, Value::String(text)) => {
            let time: Time = text.parse().map_err(|_| unparsable_time(text, "2006-01-02T15:04:05Z07:00"))?;
            *value = Value::String(time.to_string());
            false
        }
        (Shape::MicroTime, Value::String(text)) => {
            let time: MicroTime =
                text.parse().map_err(|_| unparsable_time(text, "2006-01-02T15:04:05.000000Z07:00"))?;
            *value = Value::String(time.to_string());
            false
        }
        (Shape::Time | Shape::MicroTime, other) => {
            return Err(Fault::InnerType(type_name(other).to_owned(), "string"));
        }
        (Shape::IntOrString, Value::String(_)) => false,
        (Shape::IntOrString, Value::Number(number)) => {
            let fits = number.as_i64().filter(|number| i32::try_from(*number).is_ok());
            fits.ok_or_else(|| Fault::InnerType(format!("number {number}"), "int32"))? == 0
        }
        (Shape::IntOrString, other) => return Err(Fault::InnerType(type_name(other).to_owned(), "int32")),
        (Shape::Quantity, Value::String(text)) => {
            let quantity = quantity(text.trim())?;
            *value = Value::String(quantity.to_string());
            quantity.is_zero()
        }
        (Shape::Quantity, other) => {
            let quantity = quantity(&other.to_string())?;
            *value = Value::String(quantity.to_string());
            quantity.is_zero()
        }
        (_, other) => return Err(wrong(other)),
    };
    Ok(Zero::of(zero))
}

/// The value of a field that nobody has set.
pub(super) fn zero(shape: &Shape) -> Value {
    match shape {
        Shape::Struct(_) => Value::Object(Map::new()),
        Shape::List(_) | Shape::Map(_) | Shape::Bytes | Shape::Time | Shape::MicroTime => Value::Null,
        Shape::StructOr(_) | Shape::Any => Value::Null,
        Shape::String => Value::String(String::new()),
        Shape::Bool => Value::Bool(false),
        Shape::Int32 | Shape::Int64 | Shape::Float | Shape::IntOrString => Value::from(0),
        Shape::Quantity => Value::String("0".to_owned()),
    }
}

/// Returns the number of bytes of this text, and its canonical text if that is another.
fn bytes(text: &str) -> Result<(usize, Option<String>), Fault> {
    // Go's decoder skips line ends.
    let without_line_ends = text.contains(['\r', '\n']).then(|| text.replace(['\r', '\n'], ""));
    let bytes = STANDARD.decode(without_line_ends.as_deref().unwrap_or(text)).map_err(|error| {
        let at = match error {
            base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => at,
            base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => text.len() / 4 * 4,
        };
        Fault::Value(format!("illegal base64 data at input byte {at}"))
    })?;
    Ok((bytes.len(), without_line_ends))
}

fn quantity(text: &str) -> Result<Quantity, Fault> {
    text.parse().map_err(|_| {
        Fault::Stop(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'".to_owned(),
        )
    })
}

fn unparsable_time(text: &str, layout: &str) -> Fault {
    Fault::Stop(format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\""))
}

fn unfit(number: &serde_json::Number) -> Fault {
    Fault::Type(format!("number {number}"))
}

/// A float as Go writes it: `1`, not `1.0`.
fn number_of(float: f64) -> Value {
    // Beyond 2⁵³ not every whole number is a float, and Go writes those with an exponent from 1e21 on.
    #[allow(clippy::cast_possible_truncation, reason = "checked to be whole and in range")]
    if float.fract() == 0.0 && float.abs() < 9.0e15 { Value::from(float as i64) } else { Value::from(float) }
}
