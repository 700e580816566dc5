//! Custom resources: objects that a CustomResourceDefinition describes.
//!
//! 1. Fields that the schema does not know are dropped, with a warning or an error as the request asks.
//! 2. Fields that the schema gives a default get it.
//! 3. Values are not checked yet: that is a later issue.

use serde_json::{Map, Value};

use crate::field::FieldError;
use crate::kinds;
use crate::schema::FieldValidation;

/// What a definition says about one version of its resource.
#[derive(Debug)]
pub struct Custom {
    /// `openAPIV3Schema`
    pub schema: Value,
    /// Whether unknown fields are kept everywhere.
    pub preserves_unknown: bool,
    /// The version in which objects are stored.
    pub storage_version: String,
    /// Paths of the scale subresource: replicas wanted, replicas there, selector.
    pub scale: Option<ScalePaths>,
    /// Whether the definition is being deleted.
    pub is_terminating: bool,
    /// `additionalPrinterColumns`
    pub columns: Vec<Value>,
}

/// Where the scale of a custom resource is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// `specReplicasPath`
    pub spec: String,
    /// `statusReplicasPath`
    pub status: String,
    /// `labelSelectorPath`
    pub selector: String,
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

// === impl Custom ===

impl Custom {
    /// Drops what the schema does not know and adds its defaults.
    ///
    /// # Errors
    /// If a field is unknown and the request wants none.
    pub(crate) fn check(
        &self,
        object: &mut Value,
        duplicates: Vec<String>,
        validation: FieldValidation,
    ) -> Result<Vec<String>, String> {
        let mut unknown = duplicates;
        if let Some(map) = object.as_object_mut().filter(|_| !self.preserves_unknown) {
            let kept = keep_aside(map);
            prune_map(map, &self.schema, "", &mut unknown);
            fill(map, &self.schema);
            map.extend(kept);
        }
        match validation {
            FieldValidation::Ignore => Ok(Vec::new()),
            FieldValidation::Warn => Ok(unknown),
            FieldValidation::Strict if unknown.is_empty() => Ok(Vec::new()),
            FieldValidation::Strict => Err(format!("strict decoding error: {}", unknown.join(", "))),
        }
    }

    /// What is wrong with the object.
    pub(crate) fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        kinds::validate("", "", object, old)
    }
}

/// Takes out what every object has and no schema describes.
fn keep_aside(map: &mut Map<String, Value>) -> Vec<(String, Value)> {
    let names = ["apiVersion", "kind", "metadata"];
    names.into_iter().filter_map(|name| map.remove_entry(name)).collect()
}

fn is_open(schema: &Value) -> bool {
    schema[PRESERVE] == Value::Bool(true)
}

fn prune(value: &mut Value, schema: &Value, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if schema["x-kubernetes-embedded-resource"] == Value::Bool(true) {
                let kept = keep_aside(map);
                prune_map(map, schema, path, unknown);
                map.extend(kept);
            } else {
                prune_map(map, schema, path, unknown);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                prune(item, &schema["items"], &format!("{path}[{at}]"), unknown);
            }
        }
        _ => {}
    }
}

fn prune_map(map: &mut Map<String, Value>, schema: &Value, path: &str, unknown: &mut Vec<String>) {
    let child = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let of_others = schema.get("additionalProperties").filter(|others| **others != Value::Bool(false));
    let mut dropped = Vec::new();
    for (name, value) in map.iter_mut() {
        if let Some(property) = schema["properties"].get(name) {
            prune(value, property, &child(name), unknown);
        } else if let Some(others) = of_others {
            prune(value, others, &child(name), unknown);
        } else if !is_open(schema) {
            dropped.push(name.clone());
        }
    }
    for name in dropped {
        map.remove(&name);
        unknown.push(format!("unknown field {:?}", child(&name)));
    }
}

fn fill(map: &mut Map<String, Value>, schema: &Value) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if !map.contains_key(name) && !property["default"].is_null() {
            map.insert(name.clone(), property["default"].clone());
        }
        if let Some(value) = map.get_mut(name) {
            fill_value(value, property);
        }
    }
    if let Some(others) = schema.get("additionalProperties") {
        let named = |name: &str| schema["properties"].get(name).is_some();
        map.iter_mut().filter(|(name, _)| !named(name)).for_each(|(_, value)| fill_value(value, others));
    }
}

fn fill_value(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(map) => fill(map, schema),
        Value::Array(items) => items.iter_mut().for_each(|item| fill_value(item, &schema["items"])),
        Value::Null if !schema["default"].is_null() && schema["nullable"] != Value::Bool(true) => {
            *value = schema["default"].clone();
        }
        _ => {}
    }
}
