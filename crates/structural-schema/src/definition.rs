//! Whether the schema of a definition is accepted.
//!
//! 1. [`structural`]: it is structural: each value has a known type, and what is nested under `allOf`, `anyOf`, `oneOf` and
//!    `not` only restricts values that are described outside.
//! 2. [`openapi`]: it has no field that is not supported, and its extensions fit together.
//! 3. [`defaults`]: its defaults are valid, and nothing in them would be pruned.
//! 4. Patterns are regular expressions by Go's rules ([`crate::pattern`]).
//! 5. Rules of `x-kubernetes-validations` are checked for their form; whether the expressions compile, and defaults keep
//!    them, is the caller's work ([`RuleChecks`]), for schemas that are structural and whose defaults are valid.
//! 6. At most [`ERRORS_MAX`] errors are reported.
//!
//! Follows `validateCustomResourceDefinitionValidation` of `apiextensions-apiserver/pkg/apis/apiextensions/validation`.

mod defaults;
mod openapi;
mod structural;

use serde_json::Value;
use steersman_base::validation::FieldError;

use crate::path::Path;
use crate::schema::{Schema, TypeName};

/// The maximum number of reported errors of one schema.
pub const ERRORS_MAX: usize = 128;

/// The requirements for a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requirements {
    /// Whether the version has a status subresource, which restricts what may stand at the root.
    pub has_status: bool,
    /// Whether types must be known.
    pub valid_types: bool,
    /// Whether the schema must be structural.
    pub structural: bool,
    /// Whether items of sets must be atomic.
    pub atomic_sets: bool,
    /// Whether keys of lists of type `map` must be required or have a default, and items may not be null.
    pub map_keys: bool,
}

/// Checks rules of `x-kubernetes-validations`. Schemas are given as they are written.
pub trait RuleChecks {
    /// Returns the errors of the rules of a schema about its default. An object is one that has metadata.
    fn default(&mut self, written: &Value, default: &Value, is_object: bool, path: &str) -> Vec<FieldError>;

    /// Returns the errors of the rules of a whole schema. Rules are not compiled where it has one of the `known`
    /// errors, at their place or below.
    fn definition(&mut self, written: &Value, path: &str, known: &[FieldError]) -> Vec<FieldError>;
}

/// Rules are checked for their form only.
struct FormOnly;

/// The errors of a schema.
#[derive(Default)]
struct Errors(Vec<FieldError>);

/// Checks the schema that is at `path`.
#[must_use]
pub fn validate_definition(
    schema: &Schema,
    written: &Value,
    path: &str,
    requirements: Requirements,
) -> Vec<FieldError> {
    validate_definition_with_rules(schema, written, path, requirements, &mut FormOnly)
}

/// Checks the schema that is at `path`, and its rules.
#[must_use]
pub fn validate_definition_with_rules(
    schema: &Schema,
    written: &Value,
    path: &str,
    requirements: Requirements,
    rules: &mut dyn RuleChecks,
) -> Vec<FieldError> {
    let root = Path::root(path);
    let mut errors = Errors::default();
    let mut compiles_rules = false;
    if requirements.has_status {
        status_root(schema, written, &root, &mut errors);
    }
    if schema.nullable {
        errors.push(FieldError::forbidden(format!("{root}.nullable"), "nullable cannot be true at the root"));
    }
    let mut unsupported = None;
    if requirements.structural {
        match structural::unsupported(schema) {
            Some(problem) => unsupported = Some(FieldError::invalid(root.field(), "", problem)),
            None => {
                let mut found = structural::validate(schema, &root);
                if found.is_empty() {
                    found = defaults::validate(schema, written, &root, rules);
                }
                compiles_rules = found.is_empty();
                errors.extend(found);
            }
        }
    }
    let found = openapi::validate(schema, &root, requirements);
    let about_rules =
        if compiles_rules && schema.has_rules() { rules.definition(written, path, &found) } else { Vec::new() };
    errors.extend(found);
    errors.extend(about_rules);
    if errors.0.is_empty() {
        errors.extend(unsupported);
    }
    errors.0
}

/// Why a schema is not structural: the text of the condition `NonStructuralSchema` is made of these.
#[must_use]
pub fn structural_problems(schema: &Schema, path: &str) -> Vec<FieldError> {
    let root = Path::root(path);
    match structural::unsupported(schema) {
        Some(problem) => vec![FieldError::invalid(root.field(), "", problem)],
        None => structural::validate(schema, &root),
    }
}

/// Checks the root of a schema with a status subresource: keywords that would be lost for the status are refused.
fn status_root(schema: &Schema, written: &Value, root: &Path<'_>, errors: &mut Errors) {
    const ALLOWED: &str = "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength \
        MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example \
        XPreserveUnknownFields XValidations]";
    let values = schema.values();
    let unsupported = schema.unsupported.as_deref();
    let is_first = unsupported.is_some_and(|it| it.id || it.schema || it.reference.is_some());
    if !is_first && schema.type_name != TypeName::None && schema.type_name != TypeName::Object {
        let detail =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        errors.push(FieldError::invalid(root.child("type").field(), schema.type_name.as_str(), detail));
        return;
    }
    let is_other = schema.nullable
        || schema.default.is_some()
        || !values.one_of_values.is_empty()
        || values.max_properties.is_some()
        || values.min_properties.is_some()
        || !(values.all_of.is_empty() && values.any_of.is_empty() && values.one_of.is_empty())
        || values.not.is_some()
        || schema.additional.is_some()
        || schema.is_embedded
        || schema.is_int_or_string
        || schema.topology.is_some()
        || unsupported.is_some_and(|it| it.item_list.is_empty());
    if is_first || is_other {
        let detail =
            format!("only {ALLOWED} fields are allowed at the root of the schema if the status subresource is enabled");
        errors.push(FieldError::invalid(root.field(), written.clone(), detail));
    }
}

// === impl Requirements ===

impl Requirements {
    /// Returns the requirements for a new definition.
    #[must_use]
    pub const fn of_new(has_status: bool) -> Self {
        Self { has_status, valid_types: true, structural: true, atomic_sets: true, map_keys: true }
    }

    /// Returns the requirements for a changed definition: nothing that one of its old schemas does not keep.
    #[must_use]
    pub fn of_update(has_status: bool, old: &[&Schema]) -> Self {
        let any = |wanted: fn(&Schema) -> bool| old.iter().any(|schema| schema.any(&mut |it| wanted(it)));
        Self {
            has_status,
            valid_types: !any(|schema| matches!(schema.type_name, TypeName::Other(_))),
            structural: old.iter().all(|schema| structural_problems(schema, "").is_empty()),
            atomic_sets: !any(openapi::has_granular_set_items),
            map_keys: !any(openapi::has_loose_map_keys),
        }
    }
}

// === impl FormOnly ===

impl RuleChecks for FormOnly {
    fn default(&mut self, _: &Value, _: &Value, _: bool, _: &str) -> Vec<FieldError> {
        Vec::new()
    }

    fn definition(&mut self, _: &Value, _: &str, _: &[FieldError]) -> Vec<FieldError> {
        Vec::new()
    }
}

// === impl Errors ===

impl Errors {
    fn push(&mut self, error: FieldError) {
        if self.0.len() < ERRORS_MAX {
            self.0.push(error);
        }
    }
}

impl Extend<FieldError> for Errors {
    fn extend<I: IntoIterator<Item = FieldError>>(&mut self, errors: I) {
        errors.into_iter().for_each(|error| self.push(error));
    }
}
