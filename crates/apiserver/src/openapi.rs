//! OpenAPI documents, generated from the tables of schemas and resources.
//!
//! They hold what clients work with, not what people read: structure, merge keys, kinds, verbs and their parameters,
//! but no descriptions. kubectl needs of them, in version 3:
//!
//! 1. that a `patch` of a kind takes `fieldValidation` and `dryRun`, or it validates by itself (`create`, `apply`);
//! 2. that it takes strategic merge patches, and the merge keys of the kind (`apply` on the client's side);
//! 3. the kind of a resource's path, and its schema (`explain`).
//!
//! Version 2 has all definitions for clients from before, and no paths.

mod paths;
mod protobuf;
mod schemas;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use crate::openapi::schemas::Dialect;
use crate::registry::{Row, built_in};
use crate::schema;

/// The title of the documents.
const VERSION: &str = "v1.37.1";

/// Returns the response of `/openapi/v3`: where each group's document is.
#[must_use]
pub fn v3_index() -> Value {
    let groups: BTreeSet<String> = built_in().iter().map(|row| document_of(row)).collect();
    let hash = hash();
    let place = |group: String| {
        let url = format!("/openapi/v3/{group}?hash={hash:016X}");
        (group, json!({"serverRelativeURL": url}))
    };
    json!({"paths": groups.into_iter().map(place).collect::<Map<_, _>>()})
}

/// Returns the document of `/openapi/v3/<path>`, for example `apis/apps/v1`.
#[must_use]
pub fn v3_document(path: &str) -> Option<Value> {
    let rows: Vec<&Row> = built_in().iter().map(AsRef::as_ref).filter(|row| document_of(row) == path).collect();
    let (group, version) = rows.first().map(|row| (&*row.resource.group, &*row.resource.version))?;
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION},
        "paths": paths::of(&rows),
        "components": {
            "schemas": schemas::reachable(group, version, &rows),
            "securitySchemes": {
                "BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"},
            },
        },
    }))
}

/// Returns the response of `/openapi/v2`.
#[must_use]
pub fn v2() -> Value {
    let definitions: Map<String, Value> = schema::documents()
        .filter_map(|(name, text)| Some((name.to_owned(), schemas::document(text, Dialect::V2)?)))
        .collect();
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": VERSION},
        "paths": {},
        "definitions": definitions,
    })
}

/// Returns the document of `/openapi/v2` as protobuf.
#[must_use]
pub fn v2_protobuf() -> Vec<u8> {
    protobuf::encode(&v2())
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
        // FNV-1a, over everything that the documents are made of.
        let texts = schema::documents().map(|(_, text)| text).chain([VERSION, env!("CARGO_PKG_VERSION")]);
        texts
            .flat_map(str::bytes)
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    })
}
