//! Objects inside objects: `x-kubernetes-embedded-resource`.
//!
//! 1. [`coerce`]: the metadata of an embedded resource is what Go makes of it: fields that `ObjectMeta` does not have are
//!    dropped and reported, empty ones are dropped; a field of another type is an error, or dropped for objects that are stored
//!    already.
//! 2. [`validate_embedded`]: an embedded resource has an `apiVersion` and a `kind`, and metadata that any object may have.
//!
//! Follows `apiextensions-apiserver/pkg/apiserver/schema/objectmeta`.

mod decode;
mod meta;

use serde_json::{Map, Value};
use steersman_base::validation::{FieldError, dns1035_label};

use crate::path::Path;
use crate::schema::Schema;
use crate::validate::PROBLEMS_MAX;

/// The treatment of a field that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It is an error: for what a client sends.
    Refuse,
    /// It is dropped: for what is stored.
    Drop,
}

/// Brings the metadata of embedded resources into form; returns the paths of unknown fields in it.
///
/// # Errors
/// If metadata, kind or apiVersion cannot be read, and may not be dropped.
pub fn coerce(object: &mut Value, schema: &Schema, malformed: Malformed) -> Result<Vec<String>, Box<FieldError>> {
    coerce_at(object, schema, false, "", malformed)
}

/// [`coerce`] of a value at a path, which is a whole object if `is_object`.
pub(crate) fn coerce_at(
    value: &mut Value,
    schema: &Schema,
    is_object: bool,
    prefix: &str,
    malformed: Malformed,
) -> Result<Vec<String>, Box<FieldError>> {
    let mut coercer = Coercer { malformed, unknown: Vec::new() };
    coercer.value(value, schema, is_object, &Path::root(prefix))?;
    coercer.unknown.sort_unstable();
    Ok(coercer.unknown)
}

/// Checks the embedded resources of an object.
#[must_use]
pub fn validate_embedded(schema: &Schema, object: &Value) -> Vec<FieldError> {
    validate_at(schema, object, false, "")
}

/// [`validate_embedded`] of a value at a path, which is a whole object if `is_object`.
pub(crate) fn validate_at(schema: &Schema, value: &Value, is_object: bool, prefix: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate(schema, value, is_object, &Path::root(prefix), &mut errors);
    errors.truncate(PROBLEMS_MAX);
    errors
}

struct Coercer {
    malformed: Malformed,
    unknown: Vec<String>,
}

// === impl Coercer ===

impl Coercer {
    fn value(
        &mut self,
        value: &mut Value,
        schema: &Schema,
        is_embedded: bool,
        path: &Path<'_>,
    ) -> Result<(), Box<FieldError>> {
        match value {
            Value::Object(map) => {
                if is_embedded || schema.is_embedded {
                    self.embedded(map, path)?;
                }
                for (name, value) in map.iter_mut() {
                    match schema.properties.get(name) {
                        Some(property) => self.value(value, property, false, &path.child(name))?,
                        None => {
                            if let Some(others) = schema.additional_schema() {
                                self.value(value, others, false, &path.key(name))?;
                            }
                        }
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = &schema.items else { return Ok(()) };
                for (at, item) in items.iter_mut().enumerate() {
                    self.value(item, schema, false, &path.index(at))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn embedded(&mut self, map: &mut Map<String, Value>, path: &Path<'_>) -> Result<(), Box<FieldError>> {
        for name in ["apiVersion", "kind"] {
            if map.get(name).is_some_and(|value| !value.is_string()) {
                match (self.malformed, map.remove(name)) {
                    (Malformed::Refuse, Some(value)) => {
                        let at = path.child(name).field();
                        return Err(Box::new(FieldError::invalid(at, value, "must be a string")));
                    }
                    _ => continue,
                }
            }
        }
        let Some(metadata) = map.get_mut("metadata") else { return Ok(()) };
        let at = path.child("metadata");
        match decode::object_meta(metadata, self.malformed) {
            Ok(decoded) => {
                let prefix = at.to_string();
                let left = crate::prune::UNKNOWN_MAX.saturating_sub(self.unknown.len());
                self.unknown.extend(decoded.unknown.iter().take(left).map(|name| format!("{prefix}.{name}")));
                *metadata = Value::Object(decoded.fields);
                Ok(())
            }
            Err(_) if self.malformed == Malformed::Drop => Ok(()),
            Err(problem) => Err(Box::new(FieldError::invalid(at.field(), metadata.clone(), problem))),
        }
    }
}

fn validate(schema: &Schema, value: &Value, is_embedded: bool, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if errors.len() >= PROBLEMS_MAX {
        return;
    }
    match value {
        Value::Object(map) => {
            if is_embedded || schema.is_embedded {
                embedded(map, path, errors);
            }
            for (name, value) in map {
                match schema.properties.get(name) {
                    Some(property) => validate(property, value, false, &path.child(name), errors),
                    None => {
                        if let Some(others) = schema.additional_schema() {
                            validate(others, value, false, &path.key(name), errors);
                        }
                    }
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return };
            for (at, item) in items.iter().enumerate() {
                validate(schema, item, false, &path.index(at), errors);
            }
        }
        _ => {}
    }
}

fn embedded(map: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let at = path.child(name).field();
        match map.get(name) {
            None => errors.push(FieldError::required(at, "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(at, "", "must not be empty"));
            }
            Some(Value::String(text)) if name == "kind" => {
                let wrong = dns1035_label(&text.to_lowercase());
                if !wrong.is_empty() {
                    let detail = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
                    errors.push(FieldError::invalid(at, text.as_str(), detail));
                }
            }
            Some(Value::String(text)) => {
                if text.matches('/').count() > 1 {
                    let detail = format!("unexpected GroupVersion string: {text}");
                    errors.push(FieldError::invalid(at, text.as_str(), detail));
                }
            }
            Some(other) => errors.push(FieldError::invalid(at, other.clone(), "must be a string")),
        }
    }
    if let Some(metadata) = map.get("metadata") {
        let at = path.child("metadata");
        match decode::object_meta(metadata, Malformed::Refuse) {
            Ok(decoded) => meta::validate(&decoded.fields, &at, errors),
            Err(problem) => errors.push(FieldError::invalid(at.field(), metadata.clone(), problem)),
        }
    }
}
