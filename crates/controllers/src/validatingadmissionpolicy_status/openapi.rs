//! Pure: schemas of kinds, from OpenAPI documents.

use serde_json::{Map, Value, json};

use super::kinds::VersionKind;

const REFERENCE: &str = "#/components/schemas/";
/// The format of values that are numbers or texts, in built-in kinds; definitions have an extension.
const INT_OR_STRING: &str = "int-or-string";
const X_INT_OR_STRING: &str = "x-kubernetes-int-or-string";
/// The depth to which references are followed. Kinds of Kubernetes have half of that.
const DEPTH_MAX: usize = 64;

/// Returns the path of the document of a group and version, from the index of documents.
pub(super) fn path<'a>(index: &'a Value, document: &str) -> Option<&'a str> {
    index["paths"][document]["serverRelativeURL"].as_str()
}

/// Returns the schema of a kind with all references replaced by what they refer to; none if the document does not have it. A
/// schema within itself is an object without fields.
pub(super) fn schema(document: &Value, kind: &VersionKind) -> Option<Value> {
    let schemas = document["components"]["schemas"].as_object()?;
    let is_kind = |of: &Value| of["group"] == *kind.group && of["version"] == *kind.version && of["kind"] == *kind.kind;
    let names = |schema: &Value| {
        schema["x-kubernetes-group-version-kind"].as_array().is_some_and(|kinds| kinds.iter().any(is_kind))
    };
    let (name, root) = schemas.iter().find(|(_, schema)| names(schema))?;
    let mut visited = vec![name.as_str()];
    populated(schemas, &mut visited, root)
}

/// Returns the schema without references; none if one leads nowhere.
fn populated<'a>(schemas: &'a Map<String, Value>, visited: &mut Vec<&'a str>, schema: &'a Value) -> Option<Value> {
    let Some(name) = reference(schema) else { return below(schemas, visited, schema) };
    if visited.contains(&name) || visited.len() >= DEPTH_MAX {
        return Some(json!({"type": "object"}));
    }
    let resolved = schemas.get(name)?;
    visited.push(name);
    let found = below(schemas, visited, resolved);
    visited.pop();
    found
}

fn below<'a>(schemas: &'a Map<String, Value>, visited: &mut Vec<&'a str>, schema: &'a Value) -> Option<Value> {
    let Some(fields) = schema.as_object() else { return Some(schema.clone()) };
    let mut found = Map::new();
    for (field, value) in fields {
        let value = match field.as_str() {
            "properties" => {
                let mut properties = Map::new();
                for (name, property) in value.as_object().into_iter().flatten() {
                    properties.insert(name.clone(), populated(schemas, visited, property)?);
                }
                Value::Object(properties)
            }
            "additionalProperties" | "items" if value.is_object() => populated(schemas, visited, value)?,
            // What expressions do not depend on, or what is text for people.
            "description" | "default" | "allOf" | "oneOf" | "anyOf" | "not" => continue,
            _ => value.clone(),
        };
        found.insert(field.clone(), value);
    }
    if schema["format"] == INT_OR_STRING {
        found.insert(X_INT_OR_STRING.to_owned(), true.into());
    }
    Some(Value::Object(found))
}

/// Returns what a schema refers to. With a description of its own, the reference is wrapped in `allOf`.
fn reference(schema: &Value) -> Option<&str> {
    if let Some(reference) = schema["$ref"].as_str() {
        return reference.strip_prefix(REFERENCE);
    }
    schema["allOf"].as_array()?.iter().find_map(reference)
}
