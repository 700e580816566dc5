//! What a definition says about its versions: schemas, subresources, columns, selectable fields, deprecation, conversion.
//!
//! What all versions have in common, upstream moves to the spec before it looks at it, and its errors name that place: the
//! schema of a definition with one version is `spec.validation.openAPIV3Schema`.

use std::collections::HashSet;

use serde_json::Value;
use steersman_structural_schema::{Requirements, Schema, TypeName, field_path, validate_definition_with_rules};

use super::rules::{self, Rules};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::admissionregistration::client_config;
use crate::kinds::shared::json::{each, flag, is_set, items, text};
use crate::registry::conversion::REVIEW_VERSIONS;

/// The maximum number of selectable fields.
const SELECTABLE_MAX: usize = 8;
/// The maximum number of letters of a warning.
const WARNING_LETTERS_MAX: usize = 256;

const COLUMN_TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: &[&str] = &["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// The definition before an update.
struct Before<'a> {
    versions: &'a [Value],
    schemas: Vec<Schema>,
    /// The expressions of its rules.
    expressions: HashSet<String>,
}

/// Checks the versions of a definition, and its conversion.
pub(super) fn validate(spec: &Value, old: Option<&Value>, path: &Path, errors: &mut Errors) {
    let versions = items(&spec["versions"]);
    let before = Before::new(old);
    let is_common = |field: &str| versions.windows(2).all(|pair| pair[0][field] == pair[1][field]);
    let at = path.child("versions");
    for (index, version) in versions.iter().enumerate() {
        let at = at.index(index);
        deprecation(version, &at, errors);
        if !is_common("schema") {
            let path = at.child("schema").child("openAPIV3Schema");
            schema(version, has_status(version), &before, &path, errors);
        }
        if !is_common("subresources") {
            scale(&version["subresources"]["scale"], &at.child("subresources"), errors);
        }
        if !is_common("additionalPrinterColumns") {
            columns(&version["additionalPrinterColumns"], &at.child("additionalPrinterColumns"), errors);
        }
        if !is_common("selectableFields") {
            selectable(version, &at.child("selectableFields"), errors);
        }
    }
    if let Some(first) = versions.first() {
        if is_common("schema") {
            let path = path.child("validation").child("openAPIV3Schema");
            schema(first, versions.iter().any(has_status), &before, &path, errors);
        }
        if is_common("subresources") {
            scale(&first["subresources"]["scale"], &path.child("subresources"), errors);
        }
        if is_common("additionalPrinterColumns") {
            columns(&first["additionalPrinterColumns"], &path.child("additionalPrinterColumns"), errors);
        }
        if is_common("selectableFields") {
            selectable(first, &path.child("selectableFields"), errors);
        }
    }
    conversion(spec, path, errors);
}

fn has_status(version: &Value) -> bool {
    version["subresources"].get("status").is_some_and(|status| !status.is_null())
}

fn schema(version: &Value, has_status: bool, before: &Before<'_>, path: &Path, errors: &mut Errors) {
    let written = &version["schema"]["openAPIV3Schema"];
    if !is_set(written) {
        return;
    }
    let requirements = match &*before.schemas {
        [] => Requirements::of_new(has_status),
        old => Requirements::of_update(has_status, &old.iter().collect::<Vec<_>>()),
    };
    match Schema::parse(written) {
        Ok(schema) => {
            let mut rules = Rules::new(&before.expressions, before.has_schema(version));
            let found = validate_definition_with_rules(&schema, written, path.as_str(), requirements, &mut rules);
            errors.extend(found.into_iter().map(FieldError::from));
        }
        Err(problem) => errors.push(FieldError::invalid(path, "", problem.to_string())),
    }
}

fn deprecation(version: &Value, path: &Path, errors: &mut Errors) {
    let Some(warning) = version["deprecationWarning"].as_str() else { return };
    let mut wrong = |detail: String| {
        errors.push(FieldError::invalid(&path.child("deprecationWarning"), warning, detail));
    };
    if !flag(&version["deprecated"]) {
        return wrong("can only be set for deprecated versions".to_owned());
    }
    if warning.len() > WARNING_LETTERS_MAX {
        wrong(format!("must be <= {WARNING_LETTERS_MAX} characters long"));
    }
    if warning.is_empty() {
        wrong("must not be an empty string".to_owned());
    }
    if let Some((at, _)) = warning.char_indices().find(|(_, c)| c.is_control()) {
        wrong(format!("must only contain printable UTF-8 characters; non-printable character found at index {at}"));
    }
}

fn scale(scale: &Value, path: &Path, errors: &mut Errors) {
    if !is_set(scale) {
        return;
    }
    for (field, within) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        let at = path.child("scale").child(field);
        let held = text(&scale[field]);
        if held.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else if simple_path(held, &at, errors) && !held.starts_with(within) {
            let detail = format!("should be a json path under {}", within.trim_end_matches('.'));
            errors.push(FieldError::invalid(&at, held, detail));
        }
    }
    let selector = text(&scale["labelSelectorPath"]);
    let at = path.child("scale").child("labelSelectorPath");
    let is_within = selector.starts_with(".spec.") || selector.starts_with(".status.");
    if !selector.is_empty() && simple_path(selector, &at, errors) && !is_within {
        errors.push(FieldError::invalid(&at, selector, "should be a json path under either .spec or .status"));
    }
}

fn simple_path(path: &str, at: &Path, errors: &mut Errors) -> bool {
    let is_right = path.starts_with('.');
    if !is_right {
        errors.push(FieldError::invalid(at, path, "must be a simple json path starting with ."));
    }
    is_right
}

fn columns(columns: &Value, path: &Path, errors: &mut Errors) {
    each(columns, path, |column, path| {
        if text(&column["name"]).is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        let kind = text(&column["type"]);
        let at = path.child("type");
        let detail = format!("must be one of {}", COLUMN_TYPES.join(","));
        if kind.is_empty() {
            errors.push(FieldError::required(&at, detail));
        } else if !COLUMN_TYPES.contains(&kind) {
            errors.push(FieldError::invalid(&at, kind, detail));
        }
        let format = text(&column["format"]);
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.push(FieldError::invalid(&path.child("format"), format, detail));
        }
        let held = text(&column["jsonPath"]);
        let at = path.child("JSONPath");
        if held.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else {
            simple_path(held, &at, errors);
        }
    });
}

fn selectable(version: &Value, path: &Path, errors: &mut Errors) {
    let Ok(schema) = Schema::parse(&version["schema"]["openAPIV3Schema"]) else { return };
    let mut seen: Vec<Vec<String>> = Vec::new();
    each(&version["selectableFields"], path, |field, path| {
        let at = path.child("jsonPath");
        let held = text(&field["jsonPath"]);
        if held.is_empty() {
            return errors.push(FieldError::required(&at, ""));
        }
        let found = match field_path::resolve(held, &schema, false) {
            Ok(found) => found,
            Err(problem) => {
                return errors.push(FieldError::invalid(&at, held, format!("is an invalid path: {problem}")));
            }
        };
        if found.fields.first().is_some_and(|first| first == "metadata") {
            errors.push(FieldError::invalid(&at, held, "must not point to fields in metadata"));
        }
        if !matches!(found.schema.type_name, TypeName::String | TypeName::Boolean | TypeName::Integer) {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                          formats are allowed.";
            errors.push(FieldError::invalid(&at, held, detail));
        }
        if seen.contains(&found.fields) {
            errors.push(FieldError::duplicate(&at, held));
        } else {
            seen.push(found.fields);
        }
    });
    if seen.len() > SELECTABLE_MAX {
        errors.push(FieldError::too_many(path, seen.len(), SELECTABLE_MAX));
    }
}

fn conversion(spec: &Value, path: &Path, errors: &mut Errors) {
    let conversion = &spec["conversion"];
    let strategy = text(&conversion["strategy"]);
    let at = path.child("conversion");
    if strategy.is_empty() {
        errors.push(FieldError::required(&at.child("strategy"), ""));
    } else if !matches!(strategy, "None" | "Webhook") {
        errors.push(FieldError::not_supported(&at.child("strategy"), strategy, &["None", "Webhook"]));
    }
    let webhook = &conversion["webhook"];
    if strategy != "Webhook" {
        if is_set(webhook) {
            let detail = "should not be set when strategy is not set to Webhook";
            errors.push(FieldError::forbidden(&at.child("webhookClientConfig"), detail));
        }
        return;
    }
    let config = &webhook["clientConfig"];
    if is_set(config) {
        client_config::validate(config, &at.child("webhookClientConfig"), errors);
    } else {
        let detail = "required when strategy is set to Webhook";
        errors.push(FieldError::required(&at.child("webhookClientConfig"), detail));
    }
    let at = at.child("conversionReviewVersions");
    client_config::review_versions(&webhook["conversionReviewVersions"], &REVIEW_VERSIONS, "", &at, errors);
}

// === impl Before ===

impl<'a> Before<'a> {
    fn new(spec: Option<&'a Value>) -> Self {
        let versions = spec.map_or(&[][..], |spec| items(&spec["versions"]));
        let parsed = versions.iter().map(|version| Schema::parse(&version["schema"]["openAPIV3Schema"]));
        let schemas: Vec<Schema> = parsed.filter_map(Result::ok).collect();
        Self { versions, expressions: rules::expressions(&schemas), schemas }
    }

    /// Whether a version had the same schema.
    fn has_schema(&self, version: &Value) -> bool {
        self.versions.iter().any(|old| old["name"] == version["name"] && old["schema"] == version["schema"])
    }
}
