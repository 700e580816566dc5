//! Rules of `x-kubernetes-validations` in a definition: whether they compile, what they cost, and whether defaults keep
//! them.

use std::collections::HashSet;

use serde_json::Value;
use steersman_base::validation::FieldError;
use steersman_cel::{COST_BUDGET_PER_OBJECT, DefinitionCheck, Validator, check_definition};
use steersman_structural_schema::{RuleChecks, Schema};

/// The rules of one schema of a definition.
pub(super) struct Rules<'a> {
    /// The expressions that the definition had before.
    stored: &'a HashSet<String>,
    /// Whether the definition had this schema before.
    is_unchanged: bool,
    /// The cost that is left for all defaults together.
    budget: i64,
}

/// The expressions of schemas.
pub(super) fn expressions(schemas: &[Schema]) -> HashSet<String> {
    let mut found = HashSet::new();
    for schema in schemas {
        schema.any(&mut |schema| {
            let texts = schema.rules().iter().flat_map(|rule| [&rule.rule, &rule.message_expression]);
            found.extend(texts.filter(|text| !text.is_empty()).cloned());
            false
        });
    }
    found
}

// === impl Rules ===

impl<'a> Rules<'a> {
    pub(super) fn new(stored: &'a HashSet<String>, is_unchanged: bool) -> Self {
        Self { stored, is_unchanged, budget: COST_BUDGET_PER_OBJECT }
    }
}

impl RuleChecks for Rules<'_> {
    /// A default must be right for an object that has it already, and for one that gets it.
    fn default(&mut self, written: &Value, default: &Value, is_object: bool, path: &str) -> Vec<FieldError> {
        if self.budget < 0 {
            return Vec::new();
        }
        let rules = Validator::new(&steersman_cel::Schema::new(written), is_object);
        let kept = rules.validate_at(path, default, Some(default), false, self.budget);
        let mut left = kept.remaining_budget;
        let mut errors = kept.errors;
        if errors.is_empty() {
            let added = rules.validate_at(path, default, None, false, self.budget);
            left = left.min(added.remaining_budget);
            errors = added.errors;
        }
        self.budget = left;
        errors
    }

    fn definition(&mut self, written: &Value, path: &str, known: &[FieldError]) -> Vec<FieldError> {
        let check = DefinitionCheck {
            path,
            stored: &|expression| self.stored.contains(expression),
            is_wrong: &|path| known.iter().any(|error| error.field.starts_with(path)),
            is_unchanged: self.is_unchanged,
        };
        let mut errors = check_definition(&steersman_cel::Schema::new(written), &check);
        // The form of rules is checked with the rest of the schema, too.
        errors.retain(|error| !known.contains(error));
        errors
    }
}
