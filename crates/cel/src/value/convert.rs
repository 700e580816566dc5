//! Conversions between types.

use std::sync::Arc;

use super::Value;
use crate::gofmt;
use crate::gotime::{self, Timestamp};
use crate::types::Type;

impl<'a> Value<'a> {
    /// The value as one of another type.
    pub(crate) fn convert(&self, to: &Type) -> Self {
        if matches!(to, Type::Type(_)) {
            return match self {
                Value::Error(_) => self.clone(),
                Value::Preserved(_) => Value::error(
                    "type conversion to 'type' not supported for values preserved by \
                     x-kubernetes-preserve-unknown-fields",
                ),
                _ => Value::Type(Arc::new(self.runtime_type())),
            };
        }
        let converted = match self {
            Value::Error(_) => return self.clone(),
            Value::Bool(value) => match to {
                Type::String => Some(Value::string(value.to_string())),
                Type::Bool => Some(self.clone()),
                _ => None,
            },
            Value::Int(value) => convert_int(*value, to),
            Value::Uint(value) => convert_uint(*value, to),
            Value::Double(value) => convert_double(*value, to),
            Value::String(text) => convert_string(text.as_str(), to),
            Value::Bytes(bytes) => match to {
                Type::String => Some(match std::str::from_utf8(bytes) {
                    Ok(text) => Value::string(text),
                    Err(_) => Value::error("invalid UTF-8 in bytes, cannot convert to string"),
                }),
                Type::Bytes => Some(self.clone()),
                _ => None,
            },
            Value::Timestamp(time) => match to {
                Type::String => Some(Value::string(time.rfc3339())),
                Type::Int => Some(Value::Int(time.seconds)),
                Type::Timestamp => Some(self.clone()),
                _ => None,
            },
            Value::Duration(nanos) => match to {
                Type::String => Some(Value::string(format!("{}s", gofmt::float_f(gotime::seconds(*nanos))))),
                Type::Int => Some(Value::Int(*nanos)),
                Type::Duration => Some(self.clone()),
                _ => None,
            },
            Value::Null => match to {
                Type::String => Some(Value::string("null")),
                _ => None,
            },
            Value::Type(of) => match to {
                Type::String => Some(Value::string(of.name())),
                _ => None,
            },
            Value::Opaque(opaque) => match to {
                Type::String => opaque.as_string().map(Value::string),
                _ => None,
            },
            _ => None,
        };
        converted.unwrap_or_else(|| {
            let from = self.runtime_type();
            Value::error(format!("type conversion error from '{}' to '{}'", from.describe(), to.describe()))
        })
    }
}

const INT_OVERFLOW: &str = "integer overflow";
const UINT_OVERFLOW: &str = "unsigned integer overflow";

fn convert_int<'a>(value: i64, to: &Type) -> Option<Value<'a>> {
    Some(match to {
        Type::Int => Value::Int(value),
        Type::Uint => u64::try_from(value).map_or_else(|_| Value::error(UINT_OVERFLOW), Value::Uint),
        Type::Double => Value::Double(value as f64),
        Type::String => Value::string(value.to_string()),
        Type::Timestamp => {
            let time = Timestamp::utc(value, 0);
            if time.in_range() { Value::Timestamp(time) } else { Value::error("timestamp overflow") }
        }
        _ => return None,
    })
}

fn convert_uint<'a>(value: u64, to: &Type) -> Option<Value<'a>> {
    Some(match to {
        Type::Int => i64::try_from(value).map_or_else(|_| Value::error(INT_OVERFLOW), Value::Int),
        Type::Uint => Value::Uint(value),
        Type::Double => Value::Double(value as f64),
        Type::String => Value::string(value.to_string()),
        _ => return None,
    })
}

fn convert_double<'a>(value: f64, to: &Type) -> Option<Value<'a>> {
    Some(match to {
        Type::Int if value.is_finite() && value > i64::MIN as f64 && value < i64::MAX as f64 => {
            Value::Int(value as i64)
        }
        Type::Int => Value::error(INT_OVERFLOW),
        Type::Uint if (0.0..18_446_744_073_709_551_616.0).contains(&value) => Value::Uint(value as u64),
        Type::Uint => Value::error(UINT_OVERFLOW),
        Type::Double => Value::Double(value),
        Type::String => Value::string(gofmt::float_g(value)),
        _ => return None,
    })
}

fn convert_string<'a>(text: &str, to: &Type) -> Option<Value<'a>> {
    match to {
        Type::Int => text.parse().ok().map(Value::Int),
        // Rust takes a sign here, Go does not.
        Type::Uint => text.parse().ok().filter(|_| !text.starts_with('+')).map(Value::Uint),
        Type::Double => parse_float(text).map(Value::Double),
        Type::Bool => match text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(Value::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(Value::Bool(false)),
            _ => None,
        },
        Type::Bytes => Some(Value::Bytes(text.as_bytes().into())),
        Type::Duration => gotime::parse_duration(text).map(Value::Duration),
        Type::Timestamp => Timestamp::parse(text)
            .map(|time| if time.in_range() { Value::Timestamp(time) } else { Value::error("timestamp overflow") }),
        Type::String => Some(Value::string(text)),
        _ => None,
    }
}

/// Reads a number as `strconv.ParseFloat` does.
fn parse_float(text: &str) -> Option<f64> {
    let bare = text.strip_prefix(['+', '-']).unwrap_or(text);
    let negative = text.starts_with('-');
    let value = match bare.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => f64::INFINITY,
        "nan" if bare.len() == text.len() => f64::NAN,
        _ => {
            let digits = bare.bytes().any(|byte| byte.is_ascii_digit());
            let plain = bare.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
            if !digits || !plain {
                return None;
            }
            bare.parse().ok().filter(|value: &f64| value.is_finite())?
        }
    };
    Some(if negative { -value } else { value })
}
