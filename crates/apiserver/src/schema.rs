//! What every kind looks like, and what decoding into it does to an object.
//!
//! Upstream decodes a body into a Go struct, works on that, and encodes it again. We keep the tree and do to it what
//! that round trip does. On the way in: [`check()`] → the kind's own defaults and validation → [`complete()`] → encode.
//!
//! 1. After [`check()`] every field is known and has the type of its schema; no value that Go cannot distinguish from an absent
//!    one is left (`null`, and zero values of fields that are no pointers: `paused: false`, `labels: {}`, `spec: {}`);
//!    quantities and times are in canonical form; defaults that the schema declares are filled in (`protocol: TCP`).
//! 2. After [`complete()`] the zero values are back that Go writes even so: `status: {}`, `resources: {}`, `name: ""`,
//!    `rules: null`. It changes nothing else and may be called again.
//! 3. Kinds without a schema (custom resources) are left alone, but for their metadata.
//!
//! The facts are in `data/schemas.tsv`: the OpenAPI schema of every type, and of every field its Go type and its JSON
//! tag, which OpenAPI does not contain. They are read on first use, type by type.

mod check;
mod complete;
mod scalar;
mod table;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub(crate) use table::{
    Field, Shape, Struct, collect_references, document, documents, find, has_struct, name_of, names_in,
};

use crate::schema::check::Checker;
use crate::schema::table::named;

/// The `fieldValidation` of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// Unknown and duplicate fields are dropped silently.
    Ignore,
    /// They are dropped with a warning each; what a request gets that does not say.
    #[default]
    Warn,
    /// They are an error.
    Strict,
}

/// Why an object does not fit its kind: 400 `BadRequest`, with [`Problem::message`] as message. It displays as
/// upstream's inner error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Problem(String);

/// The schema of a kind's metadata, which custom resources share.
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Prunes, type-checks and normalises an object, and fills in the defaults that its schema declares.
///
/// Returns the warnings for the client, one per unknown field.
///
/// # Errors
/// A value has the wrong type, or `validation` is strict and a field is unknown.
pub(crate) fn check(
    group: &str,
    version: &str,
    kind: &str,
    object: &mut Value,
    validation: FieldValidation,
) -> Result<Vec<String>, Problem> {
    check_with(group, version, kind, object, Vec::new(), validation)
}

/// [`check()`] of an object whose body had duplicate keys
/// ([`Decoded::duplicates`](crate::decode::Decoded::duplicates)): they count like unknown fields.
///
/// # Errors
/// As [`check()`].
pub(crate) fn check_with(
    group: &str,
    version: &str,
    kind: &str,
    object: &mut Value,
    duplicates: Vec<String>,
    validation: FieldValidation,
) -> Result<Vec<String>, Problem> {
    let mut checker = Checker::new(duplicates);
    match find(group, version, kind) {
        Some(schema) => checker.object(schema, object),
        None => checker.metadata(named(OBJECT_META), object),
    }
    .map_err(Problem)?;
    let findings = checker.finish().map_err(Problem)?;
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(findings),
        FieldValidation::Strict if findings.is_empty() => Ok(findings),
        FieldValidation::Strict => Err(Problem::strict(&findings)),
    }
}

/// [`check()`] of the metadata alone: of an object whose kind is not built in, whatever its kind is called.
///
/// # Errors
/// As [`check()`].
pub(crate) fn check_metadata(object: &mut Value, validation: FieldValidation) -> Result<Vec<String>, Problem> {
    check_with("", "", "", object, Vec::new(), validation)
}

/// Adds what Go writes even if it is zero: `status: {}`, `resources: {}`, `name: ""`. Call it last, before encoding.
pub(crate) fn complete(group: &str, version: &str, kind: &str, object: &mut Value) {
    if let (Some(schema), Some(object)) = (find(group, version, kind), object.as_object_mut()) {
        complete::complete(schema, object);
    }
}

/// Whether [`complete`] would change nothing.
pub(crate) fn is_complete(group: &str, version: &str, kind: &str, object: &Value) -> bool {
    match (find(group, version, kind), object.as_object()) {
        (Some(schema), Some(object)) => complete::is_complete(schema, object),
        _ => true,
    }
}

/// Whether an object would be the same as a complete one if it were [completed](complete), as far as `is_compared` says of its
/// fields. It costs less than a copy that is completed.
pub(crate) fn completes_to(
    (group, version, kind): (&str, &str, &str),
    object: &Value,
    complete: &Value,
    is_compared: fn(&str) -> bool,
) -> bool {
    let empty = Map::new();
    let schema = find(group, version, kind).unwrap_or(&table::UNKNOWN);
    complete::completes_to(
        schema,
        object.as_object().unwrap_or(&empty),
        complete.as_object().unwrap_or(&empty),
        is_compared,
    )
}

/// Whether the kind has a schema here, that is, is not a custom resource.
#[must_use]
pub(crate) fn is_known(group: &str, version: &str, kind: &str) -> bool {
    find(group, version, kind).is_some()
}

// === impl Problem ===

impl Problem {
    fn strict(findings: &[String]) -> Self {
        Self(format!("strict decoding error: {}", findings.join(", ")))
    }

    /// The whole message of the 400 that upstream answers.
    #[must_use]
    pub(crate) fn message(&self, version: &str, kind: &str) -> String {
        format!("{kind} in version {version:?} cannot be handled as a {kind}: {}", self.0)
    }
}
