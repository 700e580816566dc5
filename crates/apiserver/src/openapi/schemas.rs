//! Schemas as components (version 3) or definitions (version 2).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::openapi::descriptions;
use crate::registry::Row;
use crate::schema;

/// The version of OpenAPI in which a schema is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    V2,
    V3,
}

/// The schemas that every group uses besides its own kinds.
const COMMON: [&str; 3] = [
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
];

/// The schemas of the kinds of a group and version, these, and all that they refer to.
pub(super) fn reachable(group: &str, version: &str, rows: &[&Row], used: &[&'static str]) -> Map<String, Value> {
    let texts: BTreeMap<&str, &str> = schema::documents().collect();
    let subresources = rows.iter().flat_map(|row| &row.subresources).filter_map(|subresource| {
        let (group, version) = subresource.answer.as_ref()?;
        schema::name_of(group, version, &subresource.kind)
    });
    let names = schema::names_in(group, version).chain(subresources).chain(COMMON);
    let mut open: Vec<String> = names.chain(used.iter().copied()).map(str::to_owned).collect();
    let mut found = Map::new();
    while let Some(name) = open.pop() {
        if found.contains_key(&name) {
            continue;
        }
        let text = texts.get(name.as_str());
        let Some(mut schema) = text.and_then(|text| serde_json::from_str(text).ok()) else { continue };
        schema::collect_references(&schema, &mut open);
        descriptions::describe(&name, &mut schema);
        found.insert(name, rewritten(schema, Dialect::V3));
    }
    found
}

/// A schema as it is written in a document.
pub(super) fn document(name: &str, text: &str, dialect: Dialect) -> Option<Value> {
    let mut schema = serde_json::from_str(text).ok()?;
    descriptions::describe(name, &mut schema);
    Some(rewritten(schema, dialect))
}

/// A reference to a schema.
pub(super) fn reference(name: &str, dialect: Dialect) -> Value {
    let place = match dialect {
        Dialect::V2 => "definitions",
        Dialect::V3 => "components/schemas",
    };
    json!({"$ref": format!("#/{place}/{name}")})
}

fn rewritten(schema: Value, dialect: Dialect) -> Value {
    let mut entries = match schema {
        Value::Object(entries) => entries,
        Value::Array(elements) => return elements.into_iter().map(|element| rewritten(element, dialect)).collect(),
        other => return other,
    };
    if let Some(Value::String(name)) = entries.get("$ref") {
        let reference = reference(name, dialect);
        // What stands beside a reference is ignored in version 3.
        return match (dialect, entries.len()) {
            (_, 1) => reference,
            (Dialect::V2, _) => {
                entries.extend(reference.as_object().cloned().unwrap_or_default());
                Value::Object(entries)
            }
            (Dialect::V3, _) => {
                entries.remove("$ref");
                entries.insert("allOf".to_owned(), Value::Array(vec![reference]));
                Value::Object(entries)
            }
        };
    }
    // Version 2 has no alternatives; those that there are can be written as a string.
    if dialect == Dialect::V2 && entries.remove("oneOf").is_some() {
        entries.insert("type".to_owned(), "string".into());
    }
    // A property may be named like a keyword, so only what holds schemas is gone through.
    for (name, value) in &mut entries {
        match (name.as_str(), &mut *value) {
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(|property| *property = rewritten(property.take(), dialect));
            }
            ("items" | "additionalProperties" | "allOf" | "oneOf", _) => *value = rewritten(value.take(), dialect),
            _ => {}
        }
    }
    Value::Object(entries)
}
