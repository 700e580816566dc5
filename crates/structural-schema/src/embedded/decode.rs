//! `ObjectMeta` as Go reads and writes it.

use serde_json::{Map, Value};
use steersman_base::Time;
use steersman_base::go::{quote, type_name};

use super::Malformed;

/// The metadata that Go would write, and the fields that it does not know.
pub(super) struct Decoded {
    pub(super) fields: Map<String, Value>,
    pub(super) unknown: Vec<String>,
}

/// The type of a field.
#[derive(Clone, Copy)]
enum Type {
    /// A string, and how Go calls its type.
    Text(&'static str),
    Int,
    Bool,
    Time,
    TextMap,
    TextList,
    /// A list of structs: their Go type and fields.
    List(&'static str, &'static [(&'static str, Type)]),
    /// Any value.
    Any,
}

const OWNER: &[(&str, Type)] = &[
    ("apiVersion", Type::Text("string")),
    ("kind", Type::Text("string")),
    ("name", Type::Text("string")),
    ("uid", Type::Text("types.UID")),
    ("controller", Type::Bool),
    ("blockOwnerDeletion", Type::Bool),
];

const MANAGER: &[(&str, Type)] = &[
    ("manager", Type::Text("string")),
    ("operation", Type::Text("v1.ManagedFieldsOperationType")),
    ("apiVersion", Type::Text("string")),
    ("time", Type::Time),
    ("fieldsType", Type::Text("string")),
    ("fieldsV1", Type::Any),
    ("subresource", Type::Text("string")),
];

const FIELDS: &[(&str, Type)] = &[
    ("name", Type::Text("string")),
    ("generateName", Type::Text("string")),
    ("namespace", Type::Text("string")),
    ("selfLink", Type::Text("string")),
    ("uid", Type::Text("types.UID")),
    ("resourceVersion", Type::Text("string")),
    ("generation", Type::Int),
    ("creationTimestamp", Type::Time),
    ("deletionTimestamp", Type::Time),
    ("deletionGracePeriodSeconds", Type::Int),
    ("labels", Type::TextMap),
    ("annotations", Type::TextMap),
    ("ownerReferences", Type::List("v1.OwnerReference", OWNER)),
    ("finalizers", Type::TextList),
    ("managedFields", Type::List("v1.ManagedFieldsEntry", MANAGER)),
];

/// Reads metadata; what cannot be read is an error, or absent.
pub(super) fn object_meta(value: &Value, malformed: Malformed) -> Result<Decoded, String> {
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Null => return Ok(Decoded { fields: Map::new(), unknown: Vec::new() }),
        other => {
            return Err(format!("json: cannot unmarshal {} into Go value of type v1.ObjectMeta", type_name(other)));
        }
    };
    let mut decoded = Decoded { fields: Map::new(), unknown: Vec::new() };
    for (name, value) in fields {
        let Some((_, kind)) = FIELDS.iter().find(|(known, _)| known == name) else {
            decoded.unknown.push(name.clone());
            continue;
        };
        match kind.read(value, "ObjectMeta", name, name, &mut decoded.unknown) {
            Ok(Some(value)) => drop(decoded.fields.insert(name.clone(), value)),
            Ok(None) => {}
            Err(problem) if malformed == Malformed::Refuse => return Err(problem),
            Err(_) => {}
        }
    }
    Ok(decoded)
}

// === impl Type ===

impl Type {
    /// The value as Go writes it; none if it is empty. `field` is how Go names the field, `path` where it is.
    fn read(
        self,
        value: &Value,
        holder: &str,
        field: &str,
        path: &str,
        unknown: &mut Vec<String>,
    ) -> Result<Option<Value>, String> {
        let wrong = |value: &Value, of: &str| {
            Err(format!(
                "json: cannot unmarshal {} into Go struct field {holder}.{field} of type {of}",
                type_name(value)
            ))
        };
        match (self, value) {
            (_, Value::Null) => Ok(None),
            (Self::Any, value) => Ok(Some(value.clone())),
            (Self::Text(_), Value::String(text)) => Ok((!text.is_empty()).then(|| value.clone())),
            (Self::Text(of), other) => wrong(other, of),
            (Self::Bool, Value::Bool(_)) => Ok(Some(value.clone())),
            (Self::Bool, other) => wrong(other, "bool"),
            (Self::Int, Value::Number(number)) => match number.as_i64() {
                Some(0) if field == "generation" => Ok(None),
                Some(_) => Ok(Some(value.clone())),
                None => Err(format!(
                    "json: cannot unmarshal number {number} into Go struct field {holder}.{field} of type int64"
                )),
            },
            (Self::Int, other) => wrong(other, "int64"),
            (Self::Time, Value::String(text)) => match text.parse::<Time>() {
                Ok(time) => Ok(Some(time.to_string().into())),
                Err(_) => {
                    let shown = quote(&quote(text));
                    let layout = r#""\"2006-01-02T15:04:05Z07:00\"""#;
                    let rest = quote(text);
                    Err(format!("parsing time {shown} as {layout}: cannot parse {rest} as \"2006\""))
                }
            },
            (Self::Time, other) => wrong(other, "string"),
            (Self::TextMap, Value::Object(map)) => {
                match map.values().find(|value| !value.is_string() && !value.is_null()) {
                    Some(other) => wrong(other, "string"),
                    None if map.is_empty() => Ok(None),
                    None => {
                        let text = |value: &Value| Value::from(value.as_str().unwrap_or_default());
                        Ok(Some(Value::Object(map.iter().map(|(key, value)| (key.clone(), text(value))).collect())))
                    }
                }
            }
            (Self::TextMap, other) => wrong(other, "map[string]string"),
            (Self::TextList, Value::Array(list)) => match list.iter().find(|value| !value.is_string()) {
                Some(other) if !other.is_null() => wrong(other, "string"),
                _ if list.is_empty() => Ok(None),
                _ => Ok(Some(list.iter().map(|value| value.as_str().unwrap_or_default()).collect())),
            },
            (Self::TextList, other) => wrong(other, "[]string"),
            (Self::List(_, fields), Value::Array(list)) => {
                let read =
                    |(at, item): (usize, &Value)| self.item(item, fields, field, &format!("{path}[{at}]"), unknown);
                let items = list.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
                Ok((!items.is_empty()).then_some(Value::Array(items)))
            }
            (Self::List(of, _), other) => wrong(other, &format!("[]{of}")),
        }
    }

    fn item(
        self,
        item: &Value,
        fields: &[(&str, Self)],
        field: &str,
        path: &str,
        unknown: &mut Vec<String>,
    ) -> Result<Value, String> {
        let Self::List(of, _) = self else { return Ok(Value::Null) };
        let map = match item {
            Value::Object(map) => map,
            Value::Null => return Ok(Value::Object(Map::new())),
            other => {
                return Err(format!(
                    "json: cannot unmarshal {} into Go struct field ObjectMeta.{field} of type {of}",
                    type_name(other)
                ));
            }
        };
        let holder = of.strip_prefix("v1.").unwrap_or(of);
        let mut read = Map::new();
        // Fields that Go writes even if they are empty.
        if holder == "OwnerReference" {
            read.extend(["apiVersion", "kind", "name", "uid"].map(|name| (name.to_owned(), Value::from(""))));
        }
        for (name, value) in map {
            match fields.iter().find(|(known, _)| known == name) {
                None => unknown.push(format!("{path}.{name}")),
                Some((_, kind)) => {
                    let at = format!("{field}.{name}");
                    if let Some(value) = kind.read(value, "ObjectMeta", &at, path, unknown)? {
                        read.insert(name.clone(), value);
                    }
                }
            }
        }
        Ok(Value::Object(read))
    }
}
