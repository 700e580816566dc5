//! Values as Go's `%v` prints them in errors.

use super::{List, Map, Value};
use crate::{gofmt, gotime};

impl Value<'_> {
    /// As `%v` prints it.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Null => "0".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Uint(value) => value.to_string(),
            Self::Double(value) => gofmt::float_g(*value),
            Self::String(text) => text.as_str().to_owned(),
            Self::Bytes(bytes) => {
                let numbers: Vec<String> = bytes.iter().map(u8::to_string).collect();
                format!("[{}]", numbers.join(" "))
            }
            Self::Timestamp(time) => time.rfc3339(),
            Self::Duration(nanos) => gotime::duration_text(*nanos),
            Self::Type(of) => of.describe(),
            Self::List(list) => {
                let items: Vec<String> = list.values().iter().map(Value::text).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Map(map) => {
                let entry = |(key, value): (Value<'_>, Value<'_>)| format!("{}: {}", key.text(), value.text());
                let entries: Vec<String> = map.entries().into_iter().map(entry).collect();
                format!("{{{}}}", entries.join(", "))
            }
            Self::Optional(None) => "optional.none()".to_owned(),
            Self::Optional(Some(value)) => format!("optional({})", value.text()),
            Self::Opaque(opaque) => opaque.text(),
            Self::Authz(authz) => authz.runtime_type().name().to_owned(),
            Self::Made(made) => made.type_name.to_string(),
            Self::Preserved(json) => json.to_string(),
            Self::Error(message) => message.to_string(),
        }
    }

    /// The name of the Go type that cel-go has for such values.
    pub(crate) fn go_type(&self) -> &'static str {
        match self {
            Self::Null => "types.Null",
            Self::Bool(_) => "types.Bool",
            Self::Int(_) => "types.Int",
            Self::Uint(_) => "types.Uint",
            Self::Double(_) => "types.Double",
            Self::String(_) => "types.String",
            Self::Bytes(_) => "types.Bytes",
            Self::Timestamp(_) => "types.Timestamp",
            Self::Duration(_) => "types.Duration",
            Self::Type(_) => "*types.Type",
            Self::List(list) if list.is_json() => "*common.unstructuredList",
            Self::List(List::Plain(_)) => "*common.reflectSchemalessTypedList",
            Self::List(_) => "*types.baseList",
            Self::Map(map) if map.is_json() => "*common.unstructuredMap",
            Self::Map(Map::Plain(_)) => "*common.reflectSchemalessTypedStruct",
            Self::Map(_) => "*types.baseMap",
            Self::Optional(_) => "*types.Optional",
            Self::Opaque(opaque) => opaque.go_type(),
            Self::Authz(authz) => authz.go_type(),
            Self::Made(made) if made.is_operation() => "*mutation.JSONPatchVal",
            Self::Made(_) => "*dynamic.ObjectVal",
            Self::Preserved(_) => "*common.unknownPreserved",
            Self::Error(_) => "*types.Err",
        }
    }
}
