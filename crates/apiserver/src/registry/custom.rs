//! Custom resources: objects that a CustomResourceDefinition describes.
//!
//! 1. Fields that the schema does not know are dropped, with a warning or an error as the request asks.
//! 2. Fields that the schema gives a default get it.
//! 3. Values are not checked yet: that is a later issue.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::field::Errors;
use crate::findings::{FINDINGS_MAX, Findings, unknown_field};
use crate::kinds::shared::meta;
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

/// How many bytes the defaults of a schema may add to one object: as many as a body may have.
const FILLED_BYTES_MAX: usize = 3 << 20;
/// How many properties are looked at to fill them in; those of the schema count again for each object in a list.
const FILL_STEPS_MAX: usize = 1 << 22;

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
        let mut findings = duplicates;
        if let Some(map) = object.as_object_mut().filter(|_| !self.preserves_unknown) {
            let kept = keep_aside(map);
            let mut pruner = Pruner::default();
            pruner.map(map, &self.schema);
            Filler::default().map(map, &self.schema).map_err(|TooMuch| {
                format!(
                    "the defaults of its schema add more than {FILLED_BYTES_MAX} bytes to the object, or are too many"
                )
            })?;
            map.extend(kept);
            findings.extend(pruner.unknown.into_sentences());
            findings.truncate(FINDINGS_MAX);
        }
        match validation {
            FieldValidation::Ignore => Ok(Vec::new()),
            FieldValidation::Warn => Ok(findings),
            FieldValidation::Strict if findings.is_empty() => Ok(Vec::new()),
            FieldValidation::Strict => Err(format!("strict decoding error: {}", findings.join(", "))),
        }
    }

    /// What is wrong with the object.
    pub(crate) fn validate(&self, object: &Value, old: Option<&Value>) -> Errors {
        let mut errors = Errors::default();
        meta::validate_custom(object, old, &mut errors);
        errors
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

/// Drops what a schema does not know.
#[derive(Default)]
struct Pruner {
    /// Where we are; one buffer for the whole walk.
    path: String,
    unknown: Findings,
}

/// Fills in defaults, and stops when they are too many.
#[derive(Default)]
struct Filler {
    steps: usize,
    bytes: usize,
}

/// The defaults of a schema make more of an object than is taken.
struct TooMuch;

// === impl Pruner ===

impl Pruner {
    fn value(&mut self, value: &mut Value, schema: &Value) {
        match value {
            Value::Object(map) => {
                if schema["x-kubernetes-embedded-resource"] == Value::Bool(true) {
                    let kept = keep_aside(map);
                    self.map(map, schema);
                    map.extend(kept);
                } else {
                    self.map(map, schema);
                }
            }
            Value::Array(items) => {
                let length = self.path.len();
                let of_items = &schema["items"];
                for (at, item) in items.iter_mut().enumerate() {
                    // Writing to a string does not fail.
                    let _ = write!(self.path, "[{at}]");
                    self.value(item, of_items);
                    self.path.truncate(length);
                }
            }
            _ => {}
        }
    }

    fn map(&mut self, map: &mut Map<String, Value>, schema: &Value) {
        let of_others = schema.get("additionalProperties").filter(|others| **others != Value::Bool(false));
        let mut dropped = Vec::new();
        let length = self.path.len();
        for (name, value) in map.iter_mut() {
            let known = schema["properties"].get(name).or(of_others);
            if let Some(known) = known {
                self.enter(name);
                self.value(value, known);
                self.path.truncate(length);
            } else if !is_open(schema) {
                dropped.push(name.clone());
            }
        }
        for name in dropped {
            map.remove(&name);
            self.enter(&name);
            self.unknown.add(|| unknown_field(&self.path));
            self.path.truncate(length);
        }
    }

    fn enter(&mut self, name: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
    }
}

// === impl Filler ===

impl Filler {
    fn map(&mut self, map: &mut Map<String, Value>, schema: &Value) -> Result<(), TooMuch> {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            self.step()?;
            if !map.contains_key(name) && !property["default"].is_null() {
                map.insert(name.clone(), self.copy(&property["default"])?);
            }
            if let Some(value) = map.get_mut(name) {
                self.value(value, property)?;
            }
        }
        if let Some(others) = schema.get("additionalProperties") {
            let named = |name: &str| schema["properties"].get(name).is_some();
            for (_, value) in map.iter_mut().filter(|(name, _)| !named(name)) {
                self.value(value, others)?;
            }
        }
        Ok(())
    }

    fn value(&mut self, value: &mut Value, schema: &Value) -> Result<(), TooMuch> {
        match value {
            Value::Object(map) => self.map(map, schema)?,
            Value::Array(items) => {
                for item in items {
                    self.value(item, &schema["items"])?;
                }
            }
            Value::Null if !schema["default"].is_null() && schema["nullable"] != Value::Bool(true) => {
                *value = self.copy(&schema["default"])?;
            }
            _ => {}
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), TooMuch> {
        self.steps += 1;
        if self.steps > FILL_STEPS_MAX { Err(TooMuch) } else { Ok(()) }
    }

    fn copy(&mut self, default: &Value) -> Result<Value, TooMuch> {
        self.bytes += match default {
            Value::Array(_) | Value::Object(_) => default.to_string().len(),
            Value::String(text) => text.len(),
            _ => 1,
        };
        if self.bytes > FILLED_BYTES_MAX { Err(TooMuch) } else { Ok(default.clone()) }
    }
}
