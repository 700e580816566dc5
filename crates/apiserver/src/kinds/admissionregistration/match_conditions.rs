//! Match conditions of webhooks and policies: `pkg/apis/admissionregistration/validation/validation.go`.

use serde_json::Value;
use steersman_base::validation::qualified_name;
use steersman_cel::{CompileError, Environment, Program, ResultType, Variables};

use crate::field::{Errors, FieldError, FieldErrorKind, Path};
use crate::kinds::shared::json::{each, items, text};

const COUNT_MAX: usize = 64;

/// The match conditions of the stored configuration.
#[derive(Default)]
pub(crate) struct Before<'a> {
    /// Whether no condition changes; then none is checked again.
    pub(super) is_same: bool,
    /// Expressions may go on using what is too new for others.
    pub(super) expressions: Vec<&'a str>,
}

// === impl Before ===

impl<'a> Before<'a> {
    /// Reads the webhooks of a configuration that is replaced.
    pub(crate) fn read(new: &Value, old: &'a Value) -> Self {
        let new = items(&new["webhooks"]);
        let old = items(&old["webhooks"]);
        let is_same = |(new, old): (&Value, &Value)| new["matchConditions"] == old["matchConditions"];
        let conditions = old.iter().flat_map(|webhook| items(&webhook["matchConditions"]));
        Self {
            is_same: new.len() == old.len() && new.iter().zip(old).all(is_same),
            expressions: conditions.map(|condition| text(&condition["expression"])).collect(),
        }
    }

    /// Returns what an expression may use.
    pub(super) fn environment(&self, expression: &str) -> Environment {
        if self.expressions.contains(&expression) { Environment::Stored } else { Environment::New }
    }
}

/// Checks match conditions, which may use these variables.
pub(crate) fn validate(
    conditions: &Value,
    before: &Before<'_>,
    variables: &Variables,
    path: &Path,
    errors: &mut Errors,
) {
    if before.is_same {
        return;
    }
    let count = items(conditions).len();
    if count > COUNT_MAX {
        errors.push(FieldError::too_many(path, count, COUNT_MAX));
    }
    let mut names: Vec<&str> = Vec::new();
    each(conditions, path, |condition, path| {
        if errors.is_full() {
            return;
        }
        let expression = text(&condition["expression"]).trim();
        let at = path.child("expression");
        if expression.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else {
            let compiled = Program::new(expression, variables, before.environment(expression), ResultType::Bool);
            compile_error(compiled.err(), expression, &at, errors);
        }
        let name = text(&condition["name"]);
        let at = path.child("name");
        if name.is_empty() {
            return errors.push(FieldError::required(&at, ""));
        }
        for problem in qualified_name(name) {
            errors.push(FieldError::invalid(&at, name, problem));
        }
        if names.contains(&name) {
            errors.push(FieldError::duplicate(&at, name));
        } else {
            names.push(name);
        }
    });
}

/// Reports what is wrong with an expression.
pub(super) fn compile_error(error: Option<CompileError>, expression: &str, path: &Path, errors: &mut Errors) {
    match error {
        None => {}
        Some(CompileError::Invalid(detail)) => errors.push(FieldError::invalid(path, expression, detail)),
        Some(CompileError::Internal(detail)) => {
            errors.push(FieldError { kind: FieldErrorKind::Internal, path: path.clone(), value: None, detail });
        }
    }
}
