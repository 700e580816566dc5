//! Custom resources: objects that a CustomResourceDefinition describes.
//!
//! 1. What a client sends is pruned, its embedded resources are coerced, and it gets the defaults of the schema, in this
//!    order ([`Custom::check`]); unknown fields are a warning or an error as the request asks.
//! 2. It is validated by the schema of the version it is written in ([`Custom::validate`]): what has not changed is not held
//!    against an update. A write of the status is held to the schema of the status only.
//! 3. What is stored under an older schema, or written in another version, is pruned and defaulted when it is read
//!    ([`Custom::reshape`]).
//! 4. Rules of `x-kubernetes-validations` are compiled once for a definition ([`CustomRules`]) and evaluated after the other
//!    checks, within a budget for the object; what fails for a value that an update leaves as it is, is a warning.

use std::sync::OnceLock;

use std::sync::Arc;

use serde_json::{Map, Value};
use steersman_cel::{COST_BUDGET_PER_OBJECT, Validator};
use steersman_structural_schema::{
    self as structural, Malformed, Schema, coerce, prune, prune_nulls, validate_embedded, validate_lists,
};

use super::conversion::Conversion;
use crate::field::{Errors, FieldError, Path};
use crate::findings::{FINDINGS_MAX, unknown_field};
use crate::kinds::shared::meta;
use crate::schema::FieldValidation;

/// The cost, by estimate, from which rules are heavy: a few milliseconds.
const HEAVY_COST: u64 = 100_000;

/// The properties of one version of a definition's resource.
#[derive(Debug)]
pub(crate) struct Custom {
    /// `openAPIV3Schema`, as it is written.
    pub document: Value,
    /// `openAPIV3Schema`, as objects are held to it.
    pub schema: CustomSchema,
    /// The rules of the schema.
    pub rules: CustomRules,
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
    /// `selectableFields`: their paths, without the leading point.
    pub selectable: Vec<String>,
    /// The warning to users of this version.
    pub warning: Option<String>,
    /// The webhook that converts objects between versions; none if versions differ in name only.
    pub conversion: Option<Arc<Conversion>>,
    /// Whether stored objects may not be what the schema says: it has changed, or versions have different ones.
    pub is_reshaped: bool,
}

/// The treatment of a null that the schema does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nulls {
    /// It is dropped, as in a body.
    Drop,
    /// It stays, and is an error, as in an object to which a configuration was applied.
    Keep,
}

/// A schema, read when the first object needs it: definitions that nobody uses hold what is written in them, and no more.
#[derive(Debug, Default)]
pub(crate) struct CustomSchema(OnceLock<Schema>);

/// Rules of `x-kubernetes-validations`, compiled when the first object needs them.
#[derive(Debug, Default)]
pub(crate) struct CustomRules(OnceLock<Validator>);

/// The paths of the scale of a custom resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    /// `specReplicasPath`
    pub spec: String,
    /// `statusReplicasPath`
    pub status: String,
    /// `labelSelectorPath`
    pub selector: String,
}

// === impl Custom ===

impl Custom {
    /// Returns the schema.
    pub(crate) fn schema(&self) -> &Schema {
        self.schema.0.get_or_init(|| Schema::parse(&self.document).unwrap_or_default())
    }

    /// Drops what the schema does not know and adds its defaults.
    ///
    /// # Errors
    /// If a field is unknown and the request wants none, or an embedded resource cannot be read.
    pub(crate) fn check(
        &self,
        object: &mut Value,
        duplicates: Vec<String>,
        validation: FieldValidation,
        nulls: Nulls,
    ) -> Result<Vec<String>, String> {
        let mut findings = duplicates;
        let kept = keep_aside(object);
        let mut unknown = Vec::new();
        if !self.preserves_unknown {
            unknown = prune(object, self.schema());
        }
        if !self.preserves_unknown && nulls == Nulls::Drop {
            prune_nulls(object, self.schema());
        }
        let coerced = coerce(object, self.schema(), Malformed::Refuse).map_err(|problem| problem.to_string());
        let filled = structural::default(object, self.schema()).map_err(|problem| problem.to_string());
        put_back(object, kept);
        unknown.extend(coerced?);
        filled?;
        findings.extend(unknown.iter().map(|path| unknown_field(path)));
        findings.truncate(FINDINGS_MAX);
        match validation {
            FieldValidation::Ignore => Ok(Vec::new()),
            FieldValidation::Warn => Ok(findings),
            FieldValidation::Strict if findings.is_empty() => Ok(Vec::new()),
            FieldValidation::Strict => Err(format!("strict decoding error: {}", findings.join(", "))),
        }
    }

    /// Brings a stored object into the form of this version.
    pub(crate) fn reshape(&self, object: &mut Value) {
        let kept = keep_aside(object);
        if !self.preserves_unknown {
            prune(object, self.schema());
            prune_nulls(object, self.schema());
        }
        // What cannot be read is dropped, and an object that defaults would make too large stays without them.
        let _ = coerce(object, self.schema(), Malformed::Drop);
        let before = object.clone();
        if structural::default(object, self.schema()).is_err() {
            *object = before;
        }
        put_back(object, kept);
    }

    /// Checks the object, or its status if only that is written. Errors that it had before are warnings.
    pub(crate) fn validate(
        &self,
        object: &Value,
        old: Option<&Value>,
        is_status: bool,
        warnings: &mut Vec<String>,
    ) -> Errors {
        let mut errors = Errors::default();
        meta::validate_custom(object, old, &mut errors);
        let found = match (old, is_status) {
            (Some(old), true) => self.status(object, old),
            (Some(old), false) => structural::validate_update(self.schema(), object, old, ""),
            (None, _) => structural::validate(self.schema(), object, ""),
        };
        errors.extend(found.into_iter().map(FieldError::from));
        if let Some(scale) = &self.scale {
            if !is_status {
                replicas(object, &scale.spec, &mut errors);
            }
            replicas(object, &scale.status, &mut errors);
        }
        if !is_status {
            errors.extend(validate_embedded(self.schema(), object).into_iter().map(FieldError::from));
        }
        if old.is_none_or(|old| validate_lists(self.schema(), old).is_empty()) {
            errors.extend(validate_lists(self.schema(), object).into_iter().map(FieldError::from));
        }
        let rules = self.rules.of(&self.document);
        if !rules.is_empty() {
            if let Some(blocked) = structural::blocks_rules(errors.iter().map(|error| error.kind)) {
                errors.push(blocked.into());
            } else {
                let verdict = rules.validate(object, old, old.is_some(), COST_BUDGET_PER_OBJECT);
                errors.extend(verdict.errors.into_iter().map(FieldError::from));
                warnings.extend(verdict.warnings);
            }
        }
        errors
    }

    /// Whether the rules may cost much, or are yet to be compiled, or the schema is yet to be read.
    pub(crate) fn has_heavy_rules(&self) -> bool {
        match (self.rules.0.get(), self.schema.0.get()) {
            (Some(rules), _) => rules.max_cost() > HEAVY_COST,
            (None, Some(schema)) => schema.has_rules(),
            (None, None) => true,
        }
    }

    fn status(&self, object: &Value, old: &Value) -> Vec<steersman_base::validation::FieldError> {
        let (Some(schema), Some(status)) = (self.schema().properties.get("status"), object.get("status")) else {
            return Vec::new();
        };
        structural::validate_update(schema, status, old.get("status").unwrap_or(&Value::Null), "status")
    }
}

// === impl CustomRules ===

impl CustomRules {
    fn of(&self, document: &Value) -> &Validator {
        self.0.get_or_init(|| Validator::new(&steersman_cel::Schema::new(document), true))
    }
}

/// Removes and returns the fields that every object has and no schema describes.
fn keep_aside(object: &mut Value) -> Vec<(String, Value)> {
    let Some(map) = object.as_object_mut() else { return Vec::new() };
    let names = ["apiVersion", "kind", "metadata"];
    names.into_iter().filter_map(|name| map.remove_entry(name)).collect()
}

fn put_back(object: &mut Value, kept: Vec<(String, Value)>) {
    if let Some(map) = object.as_object_mut() {
        map.extend(kept);
    }
}

/// A number of replicas is absent, or a number that there can be.
fn replicas(object: &Value, path: &str, errors: &mut Errors) {
    let at = Path::new(path);
    let mut held = object;
    for name in path.split('.').filter(|name| !name.is_empty()) {
        let Some(map) = held.as_object() else {
            return errors.push(accessor_error(&at, path, held, "map[string]interface{}"));
        };
        match map.get(name) {
            Some(value) => held = value,
            None => return,
        }
    }
    match held.as_i64() {
        None => errors.push(accessor_error(&at, path, held, "int64")),
        Some(count) if count < 0 => errors.push(FieldError::invalid(&at, count, "should be a non-negative integer")),
        Some(count) if count > i64::from(i32::MAX) => {
            errors.push(FieldError::invalid(&at, count, format!("should be less than or equal to {}", i32::MAX)));
        }
        Some(_) => {}
    }
}

fn accessor_error(at: &Path, path: &str, held: &Value, want: &str) -> FieldError {
    let (shown, kind) = match held {
        Value::Null => ("<nil>".to_owned(), "<nil>"),
        Value::Bool(flag) => (flag.to_string(), "bool"),
        Value::Number(number) => (number.to_string(), "float64"),
        Value::String(text) => (text.clone(), "string"),
        Value::Array(_) => ("[...]".to_owned(), "[]interface {}"),
        Value::Object(_) => ("map[...]".to_owned(), "map[string]interface {}"),
    };
    FieldError::invalid(at, 0, format!("{path} accessor error: {shown} is of the type {kind}, expected {want}"))
}

/// The value at a path of fields.
pub(crate) fn value_at<'a>(object: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut names = path.split('.');
    let first = object.get(names.next()?)?;
    names.try_fold(first, |value, name| value.as_object()?.get(name))
}
