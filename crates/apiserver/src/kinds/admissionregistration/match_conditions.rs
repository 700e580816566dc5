//! Match conditions of webhooks: `pkg/apis/admissionregistration/validation/validation.go`.

use serde_json::Value;
use steersman_base::validation::qualified_name;
use steersman_cel::{CompileError, Environment, Program, ResultType, Variables};

use crate::field::{Errors, FieldError, FieldErrorKind, Path};
use crate::kinds::shared::json::{each, items, text};

const COUNT_MAX: usize = 64;

/// The match conditions of the stored configuration.
#[derive(Default)]
pub(crate) struct Before<'a> {
    /// Whether no condition of any webhook changes; then none is checked again.
    is_same: bool,
    /// Expressions may go on using what is too new for others.
    expressions: Vec<&'a str>,
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
}

/// Checks the match conditions of a webhook.
pub(crate) fn validate(conditions: &Value, before: &Before<'_>, path: &Path, errors: &mut Errors) {
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
        expression(text(&condition["expression"]).trim(), before, &path.child("expression"), errors);
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

fn expression(expression: &str, before: &Before<'_>, path: &Path, errors: &mut Errors) {
    if expression.is_empty() {
        return errors.push(FieldError::required(path, ""));
    }
    let is_stored = before.expressions.contains(&expression);
    let environment = if is_stored { Environment::Stored } else { Environment::New };
    match Program::new(expression, Variables::admission(), environment, ResultType::Bool) {
        Ok(_) => {}
        Err(CompileError::Invalid(detail)) => errors.push(FieldError::invalid(path, expression, detail)),
        Err(CompileError::Internal(detail)) => {
            errors.push(FieldError { kind: FieldErrorKind::Internal, path: path.clone(), value: None, detail });
        }
    }
}
