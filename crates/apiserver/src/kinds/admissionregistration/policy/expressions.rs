//! The expressions of a policy: variables, validations, messages, audit annotations.

use serde_json::Value;
use steersman_base::validation::qualified_name;
use steersman_cel::{Composition, ResultType, is_reserved};

use crate::field::{Errors, FieldError, Path};
use crate::kinds::admissionregistration::match_conditions::{Before, compile_error};
use crate::kinds::shared::check::{one_of_if_set, problems};
use crate::kinds::shared::json::{each, items, text};

const ANNOTATIONS_MAX: usize = 20;
const ANNOTATION_BYTES_MAX: usize = 5 * 1024;
const REASONS: &[&str] = &["Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized"];

/// The checker of the expressions of one policy.
pub(super) struct Expressions<'a> {
    pub(super) composition: Composition,
    pub(super) before: Before<'a>,
}

impl Expressions<'_> {
    /// Checks the variables, which all other expressions may use.
    pub(super) fn variables(&mut self, variables: &Value, path: &Path, errors: &mut Errors) {
        each(variables, path, |variable, path| {
            if errors.is_full() {
                return;
            }
            let name = text(&variable["name"]);
            let at = path.child("name");
            if name.trim().is_empty() {
                errors.push(FieldError::required(&at, "name is not specified"));
            } else if !is_identifier(name) {
                errors.push(FieldError::invalid(&at, name, "must be a valid CEL identifier"));
            }
            let expression = text(&variable["expression"]);
            let at = path.child("expression");
            if expression.trim().is_empty() {
                return errors.push(FieldError::required(&at, "expression is not specified"));
            }
            let declared = self.composition.declare(name, expression, self.before.environment(expression));
            compile_error(declared.err(), expression, &at, errors);
        });
    }

    /// Checks the validations.
    pub(super) fn validations(&self, validations: &Value, path: &Path, errors: &mut Errors) {
        each(validations, path, |validation, path| {
            if errors.is_full() {
                return;
            }
            let expression = text(&validation["expression"]);
            let at = path.child("expression");
            if expression.trim().is_empty() {
                errors.push(FieldError::required(&at, "expression is not specified"));
            } else {
                self.check(expression, ResultType::Bool, true, &at, errors);
            }
            let expression = text(&validation["messageExpression"]);
            let at = path.child("messageExpression");
            if !expression.is_empty() && expression.trim().is_empty() {
                errors.push(FieldError::invalid(&at, expression, "must be non-empty if specified"));
            } else if !expression.is_empty() {
                self.check(expression, ResultType::String, false, &at, errors);
            }
            message(text(&validation["message"]), &path.child("message"), errors);
            one_of_if_set(&validation["reason"], REASONS, &path.child("reason"), errors);
        });
    }

    /// Checks the audit annotations of a policy with this name.
    pub(super) fn annotations(&self, annotations: &Value, policy: &str, path: &Path, errors: &mut Errors) {
        if items(annotations).len() > ANNOTATIONS_MAX {
            let detail = format!("must not have more than {ANNOTATIONS_MAX} auditAnnotations");
            errors.push(FieldError::invalid(path, annotations.clone(), detail));
        }
        let mut seen: Vec<&str> = Vec::new();
        each(annotations, path, |annotation, path| {
            if errors.is_full() {
                return;
            }
            let key = text(&annotation["key"]);
            let at = path.child("key");
            if policy.is_empty() {
                errors.push(FieldError::invalid(&at, key, "requires metadata.name be non-empty"));
            } else {
                let name = format!("{policy}/{key}");
                problems(&name, qualified_name(&name), &at, errors);
            }
            self.annotation(text(&annotation["valueExpression"]), &path.child("valueExpression"), errors);
            if seen.contains(&key) {
                errors.push(FieldError::duplicate(&at, key));
            }
            seen.push(key);
        });
    }

    fn annotation(&self, expression: &str, path: &Path, errors: &mut Errors) {
        let trimmed = expression.trim();
        if trimmed.is_empty() {
            errors.push(FieldError::required(path, "valueExpression is not specified"));
        } else if trimmed.len() > ANNOTATION_BYTES_MAX {
            errors.push(FieldError::required(path, format!("must not exceed {ANNOTATION_BYTES_MAX} bytes in length")));
        } else {
            let environment = self.before.environment(expression);
            let compiled = self.composition.compile(trimmed, environment, ResultType::StringOrNull, true);
            compile_error(compiled.err(), expression, path, errors);
        }
    }

    /// Checks an expression that makes a patch.
    pub(super) fn mutation(&self, expression: &str, result: ResultType, path: &Path, errors: &mut Errors) {
        let environment = self.before.environment(expression);
        let compiled = self.composition.compile_mutation(expression, environment, result);
        compile_error(compiled.err(), expression, path, errors);
    }

    fn check(&self, expression: &str, result: ResultType, has_authorizer: bool, path: &Path, errors: &mut Errors) {
        let environment = self.before.environment(expression);
        let compiled = self.composition.compile(expression, environment, result, has_authorizer);
        compile_error(compiled.err(), expression, path, errors);
    }
}

fn message(message: &str, path: &Path, errors: &mut Errors) {
    let trimmed = message.trim();
    if !message.is_empty() && trimmed.is_empty() {
        errors.push(FieldError::invalid(path, message, "must be non-empty if specified"));
    } else if trimmed.contains(['\n', '\r']) {
        errors.push(FieldError::invalid(path, message, "must not contain line breaks"));
    }
}

/// Whether a name is an identifier of CEL.
fn is_identifier(name: &str) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    name.as_bytes().first().is_some_and(is_letter)
        && name.bytes().all(|byte| is_letter(&byte) || byte.is_ascii_digit())
        && !is_reserved(name)
}
