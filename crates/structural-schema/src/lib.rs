//! Structural schemas of CustomResourceDefinitions as pure functions.
//!
//! A definition describes its objects by a schema, and the API server holds them to it: it refuses schemas that are not
//! structural, drops fields that a schema does not know, fills in defaults, and refuses objects that are not as described.
//! This crate has all of that and nothing else: no I/O, no clock, no storage, no HTTP.
//!
//! ```
//! use serde_json::json;
//! use steersman_structural_schema::{Requirements, Schema, default, prune, validate, validate_definition};
//!
//! let written = json!({"type": "object", "properties": {
//!     "spec": {"type": "object", "required": ["size"], "properties": {
//!         "size": {"type": "integer", "maximum": 5},
//!         "color": {"type": "string", "default": "red"},
//!     }},
//! }});
//! let schema = Schema::parse(&written)?;
//! assert!(validate_definition(&schema, &written, "spec.versions[0].schema.openAPIV3Schema", Requirements::of_new(false)).is_empty());
//!
//! let mut object = json!({"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 7, "colour": "blue"}});
//! assert_eq!(prune(&mut object, &schema), ["spec.colour"]);
//! default(&mut object, &schema)?;
//! assert_eq!(object["spec"]["color"], "red");
//! let errors = validate(&schema, &object, "");
//! assert_eq!(
//!     errors[0].to_string(),
//!     "spec.size: Invalid value: 7: spec.size in body should be less than or equal to 5"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What a write takes
//!
//! As kube-apiserver: what a client sends is pruned ([`prune`], [`prune_nulls`]), its embedded resources are coerced
//! ([`coerce`]), and defaults are filled in ([`default`]); then it is validated ([`validate`] or [`validate_update`],
//! [`validate_embedded`], [`validate_lists`]). What is read from a store is pruned, coerced and defaulted the same way, with
//! [`Malformed::Drop`].
//!
//! Rules of `x-kubernetes-validations` are kept in the schema ([`Schema::rules`]) and checked for their form. Whoever
//! evaluates them does so after the other checks, unless [`blocks_rules`] says that their errors are in the way, and
//! checks them in definitions by [`RuleChecks`].

pub mod default;
pub mod definition;
pub mod embedded;
pub mod field_path;
pub mod format;
pub mod lists;
mod path;
pub mod pattern;
pub mod prune;
pub mod schema;
mod text;
pub mod validate;

use steersman_base::validation::{FieldError, FieldErrorKind};

pub use default::{TooMuch, default};
pub use definition::{
    Requirements, RuleChecks, structural_problems, validate_definition, validate_definition_with_rules,
};
pub use embedded::{Malformed, coerce, validate_embedded};
pub use field_path::FieldPath;
pub use lists::validate_lists;
pub use prune::{prune, prune_nulls};
pub use schema::{Rule, Schema, TooDeep, TypeName};
pub use validate::{validate, validate_update};

/// The error that stands for the rules of `x-kubernetes-validations` which are not evaluated, because what they look at may
/// be of another type, missing or too large.
#[must_use]
pub fn blocks_rules(errors: impl IntoIterator<Item = FieldErrorKind>) -> Option<FieldError> {
    let blocks = |kind| {
        matches!(
            kind,
            FieldErrorKind::NotSupported
                | FieldErrorKind::Required
                | FieldErrorKind::TooLong
                | FieldErrorKind::TooMany
                | FieldErrorKind::TypeInvalid
        )
    };
    errors.into_iter().any(blocks).then(|| {
        FieldError::invalid(
            path::NO_PATH,
            serde_json::Value::Null,
            "some validation rules were not checked because the object was invalid; correct the existing errors to \
             complete validation",
        )
    })
}
