//! Values of the types of patches: `Object{…}`, `Object.spec{…}` and `JSONPatch{…}`, and the patches that they are.
//!
//! Follows `apiserver/pkg/cel/mutation` and `apiserver/pkg/admission/plugin/policy/mutating/patch` of Kubernetes 1.37. Values share
//! their parts, JSON does not: what is written has a bound of its own.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

use crate::types::Type;
use crate::value::{List, Map, Value};

/// The type of apply configurations. Those of their fields are `Object.FIELD`, and so on.
pub(crate) const OBJECT: &str = "Object";
/// The type of the operations of a JSON patch.
pub(crate) const OPERATION: &str = "JSONPatch";
/// The maximum size of a patch, in bytes of text and numbers of values: that of a request.
const SIZE_MAX: usize = 3 * 1024 * 1024;
/// The depth to which a patch may be nested.
const DEPTH_MAX: usize = 128;

static TEXT: Type = Type::String;
static ANY: Type = Type::Dyn;

/// A value that an expression has made.
#[derive(Clone, Debug)]
pub(crate) struct Made<'a> {
    pub(crate) type_name: Arc<str>,
    pub(crate) fields: BTreeMap<Arc<str>, Value<'a>>,
}

/// The patch that an expression makes.
#[derive(Clone, Debug, PartialEq)]
pub enum Mutation {
    /// A configuration to apply.
    Configuration(Json),
    /// The operations of a JSON patch.
    Operations(Vec<Json>),
}

/// Why an expression makes no patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MutationError {
    /// It cannot be evaluated.
    Evaluation(String),
    /// Its value is no patch.
    Value(String),
}

/// The result of running an expression that makes a patch.
#[derive(Clone, Debug, PartialEq)]
pub struct MutationRun {
    /// The patch, or the error.
    pub outcome: Result<Mutation, MutationError>,
    /// The cost of the evaluation.
    pub cost: u64,
}

/// A writer of JSON.
struct Writer {
    left: usize,
}

/// Whether a name is that of a type of patches.
pub(crate) fn is_type(name: &str) -> bool {
    name == OPERATION || name.strip_prefix(OBJECT).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns the type of a field. Those of objects are not known.
pub(crate) fn field_type(of: &str, field: &str) -> Option<&'static Type> {
    match (of, field) {
        (OPERATION, "op" | "path" | "from") => Some(&TEXT),
        (OPERATION, "value") => Some(&ANY),
        (OPERATION, _) => None,
        _ => Some(&ANY),
    }
}

// === impl Made ===

impl<'a> Made<'a> {
    /// Returns a value of a type, or the error that its fields are.
    pub(crate) fn value(type_name: Arc<str>, fields: BTreeMap<Arc<str>, Value<'a>>) -> Value<'a> {
        if &*type_name == OPERATION {
            let wrong = fields.iter().find(|(name, value)| &***name != "value" && value.as_str().is_none());
            if let Some((name, value)) = wrong {
                let found = go_value(value);
                return Value::error(format!("unexpected type {found} for JSONPatchType '{name}' field"));
            }
        }
        Value::Made(Arc::new(Self { type_name, fields }))
    }

    /// Whether it is an operation of a JSON patch.
    pub(crate) fn is_operation(&self) -> bool {
        &*self.type_name == OPERATION
    }

    pub(crate) fn is_equal(&self, other: &Self) -> bool {
        self.type_name == other.type_name
            && self.fields.len() == other.fields.len()
            && self
                .fields
                .iter()
                .zip(&other.fields)
                .all(|((left, value), (right, other))| left == right && value.method_equal(other).is_true())
    }

    /// Collects the types of fields that are not those of their places.
    fn check_names(&self, path: &str, errors: &mut Vec<String>, depth: usize) {
        if *self.type_name != *path {
            errors.push(format!(
                "unexpected type name {:?}, expected {path:?}, which matches field name path from root Object type",
                self.type_name
            ));
        }
        for (name, value) in &self.fields {
            check_names(value, &format!("{path}.{name}"), errors, depth + 1);
        }
    }

    /// Returns what is wrong with the types of its fields.
    fn misnamed(&self) -> Result<(), MutationError> {
        let mut errors = Vec::new();
        self.check_names(&self.type_name, &mut errors, 0);
        if errors.is_empty() {
            Ok(())
        } else {
            Err(MutationError::new(format!("type mismatch: {}", errors.join("\n"))))
        }
    }

    fn text(&self, field: &str) -> &str {
        self.fields.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns an operation of a JSON patch.
    fn operation(&self, writer: &mut Writer) -> Result<Json, MutationError> {
        let mut operation = serde_json::Map::new();
        operation.insert("op".to_owned(), self.text("op").into());
        operation.insert("path".to_owned(), self.text("path").into());
        if !self.text("from").is_empty() {
            operation.insert("from".to_owned(), self.text("from").into());
        }
        if let Some(value) = self.fields.get("value") {
            if let Value::Made(made) = value {
                made.misnamed()?;
            }
            let unwritable = |why: String| {
                let what = "JSONPath valueExpression evaluated to a type that could not marshal to JSON";
                MutationError::new(format!("{what}: {why}"))
            };
            operation.insert("value".to_owned(), writer.value(value, 0).map_err(unwritable)?);
        }
        Ok(operation.into())
    }
}

/// Collects the types of fields below a value that are not those of their places. Lists and maps have no names.
fn check_names(value: &Value<'_>, path: &str, errors: &mut Vec<String>, depth: usize) {
    if depth > DEPTH_MAX || errors.len() > 100 {
        return;
    }
    match value {
        Value::Made(made) => made.check_names(path, errors, depth),
        Value::List(List::Values(items)) => items.iter().for_each(|item| check_names(item, path, errors, depth + 1)),
        Value::Map(Map::Values(values)) => values.values().for_each(|item| check_names(item, path, errors, depth + 1)),
        _ => {}
    }
}

// === impl Mutation ===

impl Mutation {
    /// Reads the value of an expression.
    pub(crate) fn of(value: &Value<'_>) -> Result<Self, MutationError> {
        let mut writer = Writer { left: SIZE_MAX };
        match value {
            Value::Error(error) => Err(MutationError::Evaluation(error.to_string())),
            Value::Made(made) if !made.is_operation() => {
                made.misnamed()?;
                writer.made(made, 0).map(Self::Configuration).map_err(MutationError::new)
            }
            Value::List(list) => {
                let operation = |item: Value<'_>| match &item {
                    Value::Made(made) if made.is_operation() => made.operation(&mut writer),
                    _ => Err(MutationError::new(
                        "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch".to_owned(),
                    )),
                };
                list.values().into_iter().map(operation).collect::<Result<_, _>>().map(Self::Operations)
            }
            other => Err(MutationError::new(format!(
                "unsupported return type from ApplyConfiguration expression: {}",
                other.type_name()
            ))),
        }
    }
}

// === impl MutationError ===

impl MutationError {
    fn new(message: String) -> Self {
        Self::Value(message)
    }
}

impl fmt::Display for MutationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Evaluation(why) | Self::Value(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for MutationError {}

// === impl Writer ===

impl Writer {
    /// Counts what is written.
    fn spend(&mut self, size: usize, depth: usize) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err(format!("it is nested more than {DEPTH_MAX} levels deep"));
        }
        self.left = self.left.checked_sub(size + 1).ok_or("it is too large")?;
        Ok(())
    }

    fn made(&mut self, made: &Made<'_>, depth: usize) -> Result<Json, String> {
        self.spend(made.fields.len(), depth)?;
        let field = |(name, value): (&Arc<str>, &Value<'_>)| {
            self.spend(name.len(), depth)?;
            Ok((name.to_string(), self.field(value, depth + 1)?))
        };
        made.fields.iter().map(field).collect::<Result<serde_json::Map<_, _>, String>>().map(Json::Object)
    }

    /// A field of an object. Within its lists and maps upstream takes scalars and objects, but no literals of lists and maps.
    fn field(&mut self, value: &Value<'_>, depth: usize) -> Result<Json, String> {
        let items: Vec<&Value<'_>> = match value {
            Value::List(List::Values(items)) => items.iter().collect(),
            Value::Map(Map::Values(values)) => values.values().collect(),
            _ => Vec::new(),
        };
        for item in items {
            match item {
                Value::List(List::Values(_)) => return Err("proto: invalid type: []ref.Val".to_owned()),
                Value::Map(Map::Values(_)) => return Err("proto: invalid type: map[ref.Val]ref.Val".to_owned()),
                _ => {}
            }
        }
        self.value(value, depth)
    }

    fn value(&mut self, value: &Value<'_>, depth: usize) -> Result<Json, String> {
        self.spend(0, depth)?;
        Ok(match value {
            Value::Null => Json::Null,
            Value::Bool(flag) => (*flag).into(),
            Value::Int(number) => (*number).into(),
            Value::Uint(number) => (*number).into(),
            Value::Double(number) => (*number).into(),
            Value::String(text) => {
                self.spend(text.as_str().len(), depth)?;
                text.as_str().into()
            }
            Value::Bytes(bytes) => {
                self.spend(bytes.len(), depth)?;
                STANDARD.encode(bytes).into()
            }
            Value::Timestamp(_) | Value::Duration(_) => value.text().into(),
            Value::List(list) => {
                let items = list.values();
                Json::Array(items.iter().map(|item| self.value(item, depth + 1)).collect::<Result<_, _>>()?)
            }
            Value::Map(map) => Json::Object(self.entries(map, depth)?),
            Value::Made(made) if !made.is_operation() => self.made(made, depth)?,
            other => return Err(format!("unsupported type {}", other.type_name())),
        })
    }

    fn entries(&mut self, map: &Map<'_>, depth: usize) -> Result<serde_json::Map<String, Json>, String> {
        let entry = |(key, value): (Value<'_>, Value<'_>)| {
            let Some(name) = key.as_str() else {
                return Err(format!("map key {:?} is of type {}, not string", key.text(), key.go_type()));
            };
            self.spend(name.len(), depth)?;
            Ok((name.to_owned(), self.value(&value, depth + 1)?))
        };
        map.entries().into_iter().map(entry).collect()
    }
}

/// The name of the Go type of the value that a value of CEL holds.
fn go_value(value: &Value<'_>) -> &'static str {
    match value {
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Uint(_) => "uint64",
        Value::Double(_) => "float64",
        Value::Bytes(_) => "[]uint8",
        Value::Null => "structpb.NullValue",
        Value::List(_) => "[]ref.Val",
        Value::Map(_) => "map[ref.Val]ref.Val",
        other => other.go_type(),
    }
}
