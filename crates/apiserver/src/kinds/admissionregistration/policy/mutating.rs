//! Policies that change objects: `validateMutatingAdmissionPolicySpec`.

use serde_json::Value;
use steersman_cel::{Composition, ResultType};

use super::expressions::Expressions;
use super::match_resources;
use super::validating::{before, common};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::one_of;
use crate::kinds::shared::json::{each, is_set, items, text};

const PATCH_TYPES: &[&str] = &["ApplyConfiguration", "JSONPatch"];

/// Checks a MutatingAdmissionPolicy.
pub(crate) fn validate_mutating(policy: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = &policy["spec"];
    let path = Path::new("spec");
    let before = before(spec, old, &["mutations"]);
    common(spec, &before, &path, errors);
    match_resources::only_writes(&spec["matchConstraints"], &path.child("matchConstraints"), errors);
    let composition = Composition::new(is_set(&spec["paramKind"]));
    let mut expressions = Expressions { composition, before };
    expressions.variables(&spec["variables"], &path.child("variables"), errors);
    let at = path.child("mutations");
    if items(&spec["mutations"]).is_empty() {
        errors.push(FieldError::required(&at, "mutations must contain at least one item"));
    }
    each(&spec["mutations"], &at, |mutation, path| validate_mutation(mutation, &expressions, path, errors));
    one_of(&spec["reinvocationPolicy"], &["IfNeeded", "Never"], &path.child("reinvocationPolicy"), errors);
}

fn validate_mutation(mutation: &Value, expressions: &Expressions<'_>, path: &Path, errors: &mut Errors) {
    let kind = text(&mutation["patchType"]);
    one_of(&mutation["patchType"], PATCH_TYPES, &path.child("patchType"), errors);
    let (own, other, result) = match kind {
        "JSONPatch" => ("jsonPatch", "applyConfiguration", ResultType::Operations),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", ResultType::Configuration),
        _ => return,
    };
    let at = path.child(own);
    if !is_set(&mutation[own]) {
        errors.push(FieldError::required(&at, format!("must be specified when patchType is {kind}")));
    } else if text(&mutation[own]["expression"]).trim().is_empty() {
        errors.push(FieldError::required(&at.child("expression"), ""));
    } else if !errors.is_full() {
        expressions.mutation(text(&mutation[own]["expression"]), result, &at.child("expression"), errors);
    }
    if is_set(&mutation[other]) {
        let detail = format!("must not be specified when patchType is {kind}");
        errors.push(FieldError::invalid(&path.child(other), format!("{{{other}}}"), detail));
    }
}
