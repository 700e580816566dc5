//! Operations on JSON values that know the value's type.
//!
//! 1. **Field sets.** [`Schema::to_field_set`] has every leaf, every item of a keyed list or set, every member of a map
//!    that is no field of a struct, and every empty object.
//! 2. **Merge.** [`Schema::merge`] never removes: items of keyed lists and sets are joined, atomic values replaced. Items
//!    keep the order of the applied list, and those only the live list has stay between their neighbours.
//! 3. **Comparison.** [`Schema::compare`] puts a path into at most one of added, modified and removed; equal values have
//!    none.
//! 4. **Removal.** [`Schema::remove`] and [`Schema::extract`] take items apart by a field set, in place.
//! 5. **Bounded.** No value that is nested more than [`DEPTH_MAX`] levels is walked, at most [`ERRORS_MAX`] errors are
//!    reported, and a list of n items costs O(n log n).
//!
//! Follows `typed/` of structured-merge-diff v6, its error texts included.

mod atomics;
mod compare;
mod fields;
mod items;
mod merge;
mod reconcile;
mod remove;
mod validate;

use std::fmt;

use serde_json::Value;

pub use compare::Comparison;

use crate::path::PathElement;
use crate::schema::{Scalar, Schema, TypeId, Types};
use crate::set::{DEPTH_MAX, FieldSet};
use crate::value;

/// The maximum number of reported errors of one object.
pub const ERRORS_MAX: usize = 100;

/// An error against the schema, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationError {
    /// The path; empty for the object itself.
    pub path: String,
    /// The error.
    pub message: String,
}

/// Errors of one object; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationErrors(pub Vec<ValidationError>);

/// Whether a set or keyed list may have the same item twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// Stored objects may.
    Allowed,
    /// Applied configurations may not.
    Refused,
}

impl Schema {
    /// Checks a value against the schema.
    ///
    /// # Errors
    ///
    /// Every violation that was found, at most [`ERRORS_MAX`].
    pub fn validate(&self, object: &Value, duplicates: Duplicates) -> Result<(), ValidationErrors> {
        self.types.validate(object, self.root, duplicates)
    }

    /// Every field and item that the value mentions.
    ///
    /// # Errors
    ///
    /// The value does not fit the schema.
    pub fn to_field_set(&self, object: &Value) -> Result<FieldSet, ValidationErrors> {
        self.types.to_field_set(object, self.root)
    }

    /// The live object with the configuration laid over it. Removes nothing.
    ///
    /// # Errors
    ///
    /// The values do not fit the schema.
    pub fn merge(&self, live: &Value, config: &Value) -> Result<Value, ValidationErrors> {
        self.types.merge_root(live, config, self.root)
    }

    /// Returns the paths of atomic maps, structs and lists in a configuration: they would replace what is there as a whole.
    #[must_use]
    pub fn atomics(&self, config: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.types.atomics(config, self.root, "", 0, &mut found);
        found
    }

    /// Returns the fields that changed between two objects.
    ///
    /// # Errors
    ///
    /// The values do not fit the schema.
    pub fn compare(&self, old: &Value, new: &Value) -> Result<Comparison, ValidationErrors> {
        self.types.compare_root(old, new, self.root)
    }

    /// Removes these fields and items from the object. A container that held nothing else becomes null.
    pub fn remove(&self, object: &mut Value, items: &FieldSet) {
        self.types.remove(object, items, self.root, 0);
    }

    /// The object with these fields and items only.
    pub fn extract(&self, object: &Value, items: &FieldSet) -> Value {
        self.types.extract(object, items, self.root, 0)
    }

    /// Adapts a field set that was written under an older schema: what has become atomic since is owned as a whole.
    #[must_use]
    pub fn reconcile(&self, set: FieldSet) -> FieldSet {
        self.types.reconcile_root(set, self.root)
    }

    /// Whether a leaf of the set may have something below it in a [plain](Schema::is_plain) object: an empty object or list
    /// that is no leaf once it is filled.
    pub(crate) fn may_fill(&self, set: &FieldSet) -> bool {
        self.types.may_fill(set, self.root)
    }

    /// Whether no operation finds an error in the value: every item of a set or keyed list has a name, scalars are of their
    /// types, and all that may be a scalar is one.
    pub(crate) fn is_plain(&self, object: &Value) -> bool {
        self.types.is_plain(object, self.root, 0)
    }

    /// The set with the struct fields that lead to its paths.
    #[must_use]
    pub(crate) fn with_named_fields(&self, set: &FieldSet) -> FieldSet {
        self.types.with_named_fields(set, self.root)
    }
}

// === impl ValidationErrors ===

impl ValidationErrors {
    fn one(message: impl Into<String>) -> Self {
        Self(vec![ValidationError { path: String::new(), message: message.into() }])
    }

    fn too_deep() -> Self {
        Self::one(format!("object is nested more than {DEPTH_MAX} levels deep"))
    }

    fn extend(&mut self, more: Self) {
        let room = ERRORS_MAX.saturating_sub(self.0.len());
        self.0.extend(more.0.into_iter().take(room));
    }

    fn under(mut self, element: &PathElement) -> Self {
        let prefix = element.to_string();
        for error in &mut self.0 {
            error.path.insert_str(0, &prefix);
        }
        self
    }

    fn is_full(&self) -> bool {
        self.0.len() >= ERRORS_MAX
    }

    fn into_result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for ValidationErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = |f: &mut fmt::Formatter<'_>, error: &ValidationError| match error.path.as_str() {
            "" => f.write_str(&error.message),
            path => write!(f, "{path}: {}", error.message),
        };
        if let [error] = self.0.as_slice() {
            return one(f, error);
        }
        f.write_str("errors:")?;
        for error in &self.0 {
            f.write_str("\n  ")?;
            one(f, error)?;
        }
        Ok(())
    }
}

impl std::error::Error for ValidationErrors {}

// === what the operations have in common ===

/// The error of a type that nothing can have.
fn invalid_atom() -> ValidationErrors {
    ValidationErrors::one("schema error: invalid atom: inlined")
}

/// Returns the error of a value for a scalar type. Null fits every one.
fn check_scalar(scalar: Scalar, value: Option<&Value>, side: &str) -> Option<ValidationErrors> {
    let value = value.filter(|value| !value.is_null())?;
    let mut shown = String::new();
    let message = match (scalar, value) {
        (Scalar::Numeric, Value::Number(_))
        | (Scalar::String, Value::String(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Untyped, Value::Number(_) | Value::String(_) | Value::Bool(_)) => return None,
        (Scalar::Numeric, _) => format!("{side}expected numeric (int or float), got {}", value::go_type(value)),
        (Scalar::String, _) => {
            value::go_syntax(value, &mut shown);
            format!("{side}expected string, got &value.valueUnstructured{{Value:{shown}}}")
        }
        (Scalar::Boolean, _) => {
            value::go_plain(value, &mut shown);
            format!("{side}expected boolean, got &{{{shown}}}")
        }
        (Scalar::Untyped, _) => {
            value::go_plain(value, &mut shown);
            format!("{side}expected any scalar, got &{{{shown}}}")
        }
    };
    Some(ValidationErrors::one(message))
}

/// The type of an item below an element, for operations on field sets.
fn type_below(types: &Types, ty: TypeId, element: &PathElement) -> TypeId {
    let atom = types.atom(ty);
    match (element, &atom.map, &atom.list) {
        (PathElement::Field(name), Some(map), _) => map.member(name),
        (PathElement::Key(_), _, Some(list)) => list.element,
        _ => TypeId::NONE,
    }
}
