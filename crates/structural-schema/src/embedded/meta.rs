//! Metadata that any object may have: `ValidateObjectMeta` of apimachinery, where names are segments of a path.

use serde_json::{Map, Value};
use steersman_base::validation::{self, FieldError, FieldErrorKind, Problems};

use crate::path::Path;

/// The maximum number of bytes of all annotations.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// Checks metadata that has been decoded.
pub(super) fn validate(meta: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let text = |field: &str| meta.get(field).and_then(Value::as_str).unwrap_or_default();
    let mut problems = |at: &Path<'_>, value: &str, found: Problems| {
        errors.extend(found.into_iter().map(|problem| FieldError::invalid(at.field(), value, problem)));
    };
    for field in ["generateName", "name"] {
        let name = text(field);
        if !name.is_empty() {
            problems(&path.child(field), name, validation::path_segment(name));
        }
    }
    let namespace = text("namespace");
    if !namespace.is_empty() {
        problems(&path.child("namespace"), namespace, validation::dns1123_label(namespace));
    }
    let entries = |field: &str| meta.get(field).and_then(Value::as_object).into_iter().flatten();
    for (key, value) in entries("labels") {
        let value = value.as_str().unwrap_or_default();
        problems(&path.child("labels"), key, validation::qualified_name(key));
        problems(&path.child("labels"), value, validation::label_value(value));
    }
    let mut bytes = 0;
    for (key, value) in entries("annotations") {
        problems(&path.child("annotations"), key, validation::qualified_name(&key.to_lowercase()));
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        errors.push(FieldError {
            kind: FieldErrorKind::TooLong,
            field: path.child("annotations").field(),
            value: None,
            detail: format!("may not be more than {ANNOTATIONS_BYTES_MAX} bytes"),
        });
    }
    if let Some(generation) = meta.get("generation").and_then(Value::as_i64).filter(|it| *it < 0) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(path.child("generation").field(), generation, detail));
    }
    owners(meta, path, errors);
    finalizers(meta, path, errors);
}

fn owners(meta: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let at = path.child("ownerReferences");
    for (index, owner) in meta.get("ownerReferences").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let at = at.index(index);
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        for field in ["apiVersion", "kind", "name", "uid"] {
            if text(field).is_empty() {
                errors.push(FieldError::required(at.child(field).field(), "must not be empty"));
            }
        }
        let version = text("apiVersion");
        if !version.is_empty() && (version.matches('/').count() > 1 || version.ends_with('/')) {
            let detail = "must be <group>/<version> or <version>";
            errors.push(FieldError::invalid(at.child("apiVersion").field(), version, detail));
        }
    }
}

fn finalizers(meta: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let at = path.child("finalizers").field();
    let names = meta.get("finalizers").and_then(Value::as_array).into_iter().flatten();
    for name in names.filter_map(Value::as_str) {
        let found = validation::qualified_name(name);
        errors.extend(found.into_iter().map(|problem| FieldError::invalid(at.clone(), name, problem)));
    }
}
