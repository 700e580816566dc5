//! OpenAPI documents, generated from the tables of schemas and resources.
//!
//! They hold structure, merge keys, kinds, verbs and their parameters, and upstream's descriptions of kinds and fields.
//! kubectl needs of them, in version 3:
//!
//! 1. that a `patch` of a kind takes `fieldValidation` and `dryRun`, or it validates by itself (`create`, `apply`);
//! 2. that it takes strategic merge patches, and the merge keys of the kind (`apply` on the client's side);
//! 3. the kind of a resource's path, and its schema (`explain`).
//!
//! Version 2 has the same in one document, for clients from before.

mod cache;
mod custom;
mod descriptions;
mod paths;
mod protobuf;
mod schemas;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};

pub(crate) use cache::{Document, Documents, Name};

use crate::openapi::schemas::Dialect;
use crate::registry::{Row, built_in};
use crate::schema;

/// The title of the documents.
const VERSION: &str = "v1.37.1";

/// Returns the response of `/openapi/v3`: where each group's document is.
#[must_use]
pub(crate) fn v3_index(customs: &[Arc<Row>]) -> Value {
    let mut groups: BTreeMap<String, u64> = built_in().iter().map(|row| (document_of(row), hash())).collect();
    for row in customs {
        let held = groups.entry(document_of(row)).or_insert_with(hash);
        *held = with_custom(*held, row);
    }
    let place = |(group, hash): (String, u64)| {
        let url = v3_address(&group, &tag(hash));
        (group, json!({"serverRelativeURL": url}))
    };
    json!({"paths": groups.into_iter().map(place).collect::<Map<_, _>>()})
}

/// Returns the address of a document that has this tag.
pub(crate) fn v3_address(path: &str, tag: &str) -> String {
    format!("/openapi/v3/{path}?hash={tag}")
}

/// Returns the tag of a text.
pub(crate) fn tag_of(text: &str) -> String {
    tag(fold(hash(), text.bytes()))
}

/// A hash as addresses and `ETag` headers show it.
fn tag(hash: u64) -> String {
    format!("{hash:016X}")
}

/// The hash of a document that describes a custom resource, too: it changes with each definition.
fn with_custom(hash: u64, row: &Row) -> u64 {
    let custom = row.custom.as_ref().map(|custom| custom.document.to_string()).unwrap_or_default();
    let text = format!("{:?}{:?}{custom}", row.resource, row.subresources);
    fold(hash, text.bytes())
}

/// Returns the document of `/openapi/v3/<path>`, for example `apis/apps/v1`.
#[must_use]
pub(crate) fn v3_document(customs: &[Arc<Row>], path: &str) -> Option<Value> {
    let all = built_in().iter().chain(customs);
    let rows: Vec<&Row> = all.map(AsRef::as_ref).filter(|row| document_of(row) == path).collect();
    let declared = rows.iter().flat_map(|row| custom::schemas(row, Dialect::V3));
    let declared: Vec<(String, Value)> = declared.collect();
    let used: &[&'static str] = if declared.is_empty() { &[] } else { &custom::USED };
    let (group, version) = rows.first().map(|row| (&*row.resource.group, &*row.resource.version))?;
    let mut schemas = schemas::reachable(group, version, &rows, used);
    schemas.extend(declared);
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION},
        "paths": paths::of(&rows, Dialect::V3),
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"},
            },
        },
    }))
}

/// Returns the response of `/openapi/v2`.
#[must_use]
pub(crate) fn v2(customs: &[Arc<Row>]) -> Value {
    let mut definitions: Map<String, Value> = schema::documents()
        .filter_map(|(name, text)| Some((name.to_owned(), schemas::document(name, text, Dialect::V2)?)))
        .collect();
    definitions.extend(customs.iter().flat_map(|row| custom::schemas(row, Dialect::V2)));
    let rows: Vec<&Row> = built_in().iter().chain(customs).map(AsRef::as_ref).collect();
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": VERSION},
        "paths": paths::of(&rows, Dialect::V2),
        "definitions": definitions,
        "securityDefinitions": {
            "BearerToken": {
                "description": "Bearer Token authentication", "type": "apiKey", "name": "authorization", "in": "header",
            },
        },
        "security": [{"BearerToken": []}],
    })
}

/// Returns the document that describes a resource.
fn document_of(row: &Row) -> String {
    let group = &row.resource.group;
    let version = &row.resource.version;
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// Changes whenever the documents may: clients keep a document as long as its address stays.
fn hash() -> u64 {
    static HASH: OnceLock<u64> = OnceLock::new();
    *HASH.get_or_init(|| {
        // Over everything that the documents are made of.
        let texts = schema::documents().map(|(_, text)| text).chain([VERSION, env!("CARGO_PKG_VERSION")]);
        fold(0xcbf2_9ce4_8422_2325, texts.flat_map(str::bytes))
    })
}

/// FNV-1a, from a hash on.
fn fold(hash: u64, bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
