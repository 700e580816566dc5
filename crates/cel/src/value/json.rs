//! Values of the object, through their schemas. Follows `apiserver/pkg/cel/common/valuesunstructured.go`.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use serde_json::Value as Json;

use super::{List, Map, Str, Value};
use crate::gotime::{self, Timestamp};
use crate::schema::{Schema, SchemaType};

/// The value that a schema makes of JSON.
pub(crate) fn from_json<'a>(json: &'a Json, schema: &'a Schema) -> Value<'a> {
    if json.is_null() {
        if schema.nullable {
            return Value::Null;
        }
        return Value::error("invalid data, got null for schema with nullable=false");
    }
    if schema.int_or_string {
        return match json {
            Json::String(text) => Value::String(Str::Borrowed(text)),
            json => json.as_i64().map_or_else(
                || Value::error("invalid data, expected XIntOrString value to be either a string or integer"),
                Value::Int,
            ),
        };
    }
    let invalid = |expected: &str| Value::error(format!("invalid data, expected {expected}, got {}", go_type(json)));
    match schema.kind {
        SchemaType::Object => match json {
            Json::Object(values) => {
                Value::Map(Map::Json { values, schema: schema.resource_view.as_deref().unwrap_or(schema) })
            }
            _ => Value::error("invalid data, expected a map for the provided schema with type=object"),
        },
        SchemaType::Array => array(json, schema),
        SchemaType::String => json.as_str().map_or_else(|| invalid("string"), |text| string(text, &schema.format)),
        SchemaType::Number => json.as_f64().map_or_else(|| invalid("float"), Value::Double),
        SchemaType::Integer => json.as_i64().map_or_else(|| invalid("int"), Value::Int),
        SchemaType::Boolean => json.as_bool().map_or_else(|| invalid("bool"), Value::Bool),
        SchemaType::Other if schema.preserve_unknown_fields => Value::Preserved(json),
        SchemaType::Other => Value::error(format!(
            "invalid type, expected object, array, number, integer, boolean or string, or no type with \
             x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got {}",
            schema.type_name
        )),
    }
}

/// The value of JSON without a schema. Follows `apiserver/pkg/cel/common/valuesschemalesstyped.go`.
pub(crate) fn from_plain_json(json: &Json) -> Value<'_> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => number
            .as_i64()
            .map(Value::Int)
            .or_else(|| number.as_f64().map(Value::Double))
            .unwrap_or_else(|| Value::error("invalid number")),
        Json::String(text) => Value::String(Str::Borrowed(text)),
        Json::Array(items) => Value::List(List::Plain(items)),
        Json::Object(values) => Value::Map(Map::Plain(values)),
    }
}

fn array<'a>(json: &'a Json, schema: &'a Schema) -> Value<'a> {
    let Json::Array(items) = json else {
        return Value::error("invalid data, expected an array for the provided schema with type=array");
    };
    if schema.items.is_none() {
        return Value::error("invalid array type, expected Items with a non-empty Schema");
    }
    match &*schema.list_type {
        "" | "map" | "set" | "atomic" => Value::List(List::Json { items, schema }),
        other => {
            Value::error(format!("invalid x-kubernetes-list-type, expected 'map', 'set' or 'atomic' but got {other}"))
        }
    }
}

fn string<'a>(text: &'a str, format: &str) -> Value<'a> {
    match format {
        "duration" => gotime::parse_duration_format(text).map_or_else(
            || Value::error(format!("Invalid duration {text}: unable to parse {text} as duration")),
            Value::Duration,
        ),
        "date" => Timestamp::parse_date(text)
            .map_or_else(|| Value::error(format!("Invalid date formatted string {text}")), Value::Timestamp),
        "date-time" => Timestamp::parse_date_time(text)
            .map_or_else(|| Value::error(format!("Invalid date-time formatted string {text}")), Value::Timestamp),
        "byte" => {
            let text: String = text.chars().filter(|char| !matches!(char, '\n' | '\r')).collect();
            URL_SAFE.decode(&text).map_or_else(
                |_| Value::error(format!("Invalid byte formatted string {text}")),
                |bytes| Value::Bytes(Arc::from(bytes)),
            )
        }
        _ => Value::String(Str::Borrowed(text)),
    }
}

/// The type that Go's JSON decoder makes of a value.
fn go_type(json: &Json) -> &'static str {
    match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_i64() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    }
}
