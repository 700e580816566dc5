//! Checks the rules of a definition's schema when the definition comes. Follows
//! `apiextensions-apiserver/pkg/apis/apiextensions/validation`.

use std::sync::Arc;

use serde_json::Value as Json;
use steersman_base::validation::{FieldError, FieldErrorKind};

use crate::decl_type::{self, DeclType, Shape};
use crate::decls::Environment;
use crate::escape;
use crate::field_path;
use crate::rules::{self, CompiledRule, Rule};
use crate::schema::{Schema, SchemaType};

/// The maximum estimated cost of one rule of a definition.
const COST_MAX_PER_RULE: u64 = 10_000_000;
/// The maximum estimated cost of all rules of a definition.
const COST_MAX: u64 = 100_000_000;
/// The number of the most expensive rules that are named.
const NAMED_MAX: usize = 4;

const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// A definition whose rules are checked.
pub struct DefinitionCheck<'a> {
    /// The path of the schema, such as `spec.validation.openAPIV3Schema`.
    pub path: &'a str,
    /// The expressions that the definition had before an update: those may use whatever this version knows, new ones only
    /// what the version before knows.
    pub stored: &'a dyn Fn(&str) -> bool,
    /// Whether the schema is wrong at a path or below: rules are not compiled there.
    pub is_wrong: &'a dyn Fn(&str) -> bool,
    /// Whether an update leaves the schema as it is: then a rule may cost more than new ones.
    pub is_unchanged: bool,
}

/// Returns the errors of the rules of a schema; empty if there are none.
///
/// The schema must be a structural one, or errors here may make little sense.
#[must_use]
pub fn check_definition(schema: &Schema, check: &DefinitionCheck<'_>) -> Vec<FieldError> {
    let environment = |expression: &str| {
        if (check.stored)(expression) { Environment::Stored } else { Environment::New }
    };
    let mut checker = Checker { check, environment: &environment, errors: Vec::new(), total: 0, expensive: Vec::new() };
    let place = Place { declared: None, in_scope: false, cardinality: Some(1), uncorrelatable: None };
    checker.check(schema, check.path, &place, true);
    checker.check_total(check.path);
    checker.errors
}

struct Checker<'s> {
    check: &'s DefinitionCheck<'s>,
    environment: &'s dyn Fn(&str) -> Environment,
    errors: Vec<FieldError>,
    total: u64,
    expensive: Vec<(u64, String)>,
}

/// The facts known from the parents of a schema.
#[derive(Clone)]
struct Place {
    /// The type of the values here, if one above has rules.
    declared: Option<Arc<DeclType>>,
    in_scope: bool,
    /// The maximum number of values here for one object, if it is bounded.
    cardinality: Option<u64>,
    /// The list above whose items cannot be distinguished in an update.
    uncorrelatable: Option<String>,
}

// === impl DefinitionCheck ===

impl<'a> DefinitionCheck<'a> {
    /// The check of a new definition in which nothing else is wrong.
    #[must_use]
    pub fn of_new(path: &'a str) -> Self {
        Self { path, stored: &|_| false, is_wrong: &|_| false, is_unchanged: false }
    }
}

// === impl Checker ===

impl Checker<'_> {
    fn check(&mut self, schema: &Schema, path: &str, place: &Place, is_root: bool) {
        let in_scope = place.in_scope || !schema.rules.is_empty();
        let declared = match &place.declared {
            Some(declared) => Some(declared.clone()),
            None if in_scope => decl_type::declare(schema, is_root || schema.embedded_resource),
            None => None,
        };
        let below = match declared.as_ref().map(|declared| &declared.shape) {
            Some(Shape::List(of) | Shape::Map(of)) => Some(of.clone()),
            _ => None,
        };
        let elements = max_elements(schema);
        let cardinality = place.cardinality.and_then(|count| elements.map(|max| count.saturating_mul(max)));
        let child = |declared: Option<Arc<DeclType>>, uncorrelatable: Option<String>| Place {
            declared,
            in_scope,
            cardinality,
            uncorrelatable,
        };
        if let Some(values) = schema.additional_schema() {
            let place = child(below.clone(), place.uncorrelatable.clone());
            self.check(values, &format!("{path}.additionalProperties"), &place, false);
        }
        for (name, property) in schema.properties.iter().flatten() {
            let field = escape(name).and_then(|name| {
                declared.as_ref().and_then(|declared| declared.step(&name).map(|field| Arc::new(field.clone())))
            });
            let correlatable = matches!(schema.map_type.as_deref(), None | Some("granular" | "atomic"));
            let uncorrelatable = place.uncorrelatable.clone().or_else(|| (!correlatable).then(|| path.to_owned()));
            self.check(property, &format!("{path}.properties[{name}]"), &child(field, uncorrelatable), false);
        }
        if let Some(items) = &schema.items {
            let keyed = &*schema.list_type == "map";
            let uncorrelatable = place.uncorrelatable.clone().or_else(|| (!keyed).then(|| path.to_owned()));
            self.check(items, &format!("{path}.items"), &child(below, uncorrelatable), false);
        }
        let syntax_before = self.errors.len();
        for (at, rule) in schema.rules.iter().enumerate() {
            self.check_syntax(rule, schema, &format!("{path}.x-kubernetes-validations[{at}]"));
        }
        if self.errors.len() == syntax_before && !schema.rules.is_empty() && !(self.check.is_wrong)(path) {
            self.check_rules(schema, path, place, declared.as_deref());
        }
    }

    fn check_syntax(&mut self, rule: &Rule, schema: &Schema, path: &str) {
        let trimmed_rule = rule.rule.trim();
        let trimmed_message = rule.message.trim();
        let breaks = |text: &str| text.contains(['\n', '\r']);
        let message_path = format!("{path}.message");
        if trimmed_rule.is_empty() {
            self.errors.push(FieldError::required(format!("{path}.rule"), "rule is not specified"));
        } else if !rule.message.is_empty() && trimmed_message.is_empty() {
            let detail = "must be non-empty if specified";
            self.errors.push(FieldError::invalid(message_path, rule.message.as_str(), detail));
        } else if breaks(trimmed_message) {
            let detail = "must not contain line breaks";
            self.errors.push(FieldError::invalid(message_path, rule.message.as_str(), detail));
        } else if breaks(trimmed_rule) && trimmed_message.is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            self.errors.push(FieldError::required(message_path, detail));
        }
        if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            self.errors.push(FieldError::required(format!("{path}.messageExpression"), detail));
        }
        if let Some(reason) = rule.reason.as_deref().filter(|reason| !REASONS.contains(reason)) {
            self.errors.push(FieldError::not_supported(format!("{path}.reason"), reason, &REASONS));
        }
        let mut wrong_path = |detail: &str| {
            self.errors.push(FieldError::invalid(format!("{path}.fieldPath"), rule.field_path.as_str(), detail));
        };
        if !rule.field_path.is_empty() && rule.field_path.trim().is_empty() {
            wrong_path("must be non-empty if specified");
        }
        if breaks(&rule.field_path) {
            wrong_path("must not contain line breaks");
        }
        if !rule.field_path.is_empty() && field_path::normalize(&rule.field_path, schema).is_err() {
            wrong_path("must be a valid path");
        }
    }

    fn check_rules(&mut self, schema: &Schema, path: &str, place: &Place, declared: Option<&DeclType>) {
        let Some(declared) = declared else {
            self.errors.push(FieldError {
                kind: FieldErrorKind::Internal,
                field: format!("{path}.x-kubernetes-validations"),
                value: None,
                detail: "internal error: failed to construct type information for x-kubernetes-validations rules: \
                         unable to convert structural schema to CEL declarations"
                    .to_owned(),
            });
            return;
        };
        let compiled = rules::compile(&schema.rules, schema, declared, self.environment);
        for (at, (rule, compiled)) in schema.rules.iter().zip(&compiled).enumerate() {
            self.check_rule(rule, compiled, &format!("{path}.x-kubernetes-validations[{at}]"), place);
        }
    }

    fn check_rule(&mut self, rule: &Rule, compiled: &CompiledRule, path: &str, place: &Place) {
        let rule_path = format!("{path}.rule");
        let cost = compiled.max_cost.saturating_mul(place.cardinality.unwrap_or(compiled.max_cardinality));
        self.check_cost(&rule_path, "estimated rule cost", cost);
        if let Some(error) = &compiled.error {
            self.errors.push(with_rule(&rule_path, rule, error));
        }
        let message_path = format!("{path}.messageExpression");
        if let Some(error) = &compiled.message_error {
            self.errors.push(with_rule(&message_path, rule, error));
        } else if compiled.message.is_some() {
            self.check_cost(&message_path, "estimated messageExpression cost", compiled.message_max_cost);
        }
        if compiled.uses_old_self {
            if let Some(above) = &place.uncorrelatable {
                let detail =
                    format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {above}");
                self.errors.push(FieldError::invalid(rule_path, rule.rule.as_str(), detail));
            }
        } else if let Some(optional) = rule.optional_old_self {
            let detail = "may not be set if oldSelf is not used in rule";
            self.errors.push(FieldError::invalid(format!("{path}.optionalOldSelf"), optional, detail));
        }
    }

    fn check_cost(&mut self, path: &str, name: &str, cost: u64) {
        if cost > COST_MAX_PER_RULE && !self.check.is_unchanged {
            self.errors.push(FieldError::forbidden(path, too_expensive(name, cost, COST_MAX_PER_RULE)));
        }
        self.total = self.total.saturating_add(cost);
        // What is less than a hundredth of all that is allowed is not worth naming.
        if cost >= COST_MAX / 100 {
            self.expensive.push((cost, path.to_owned()));
            self.expensive.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.expensive.truncate(NAMED_MAX);
        }
    }

    fn check_total(&mut self, path: &str) {
        if self.total <= COST_MAX {
            return;
        }
        for (_, path) in std::mem::take(&mut self.expensive) {
            let detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            self.errors.push(FieldError::forbidden(path, detail));
        }
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        self.errors.push(FieldError::forbidden(path, too_expensive(name, self.total, COST_MAX)));
    }
}

fn max_elements(schema: &Schema) -> Option<u64> {
    let bound = |max: Option<i64>| max.map(|max| u64::try_from(max).unwrap_or(0));
    match schema.kind {
        SchemaType::Object if schema.additional.is_some() => bound(schema.max_properties),
        SchemaType::Array => bound(schema.max_items),
        _ => Some(1),
    }
}

fn too_expensive(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// An error that shows the rule, as upstream's internal type prints it. Its fields have an order that a JSON value has
/// not, so it is part of the detail.
fn with_rule(path: &str, rule: &Rule, error: &str) -> FieldError {
    let text = |text: &str| {
        let escaped = Json::from(text).to_string();
        escaped.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
    };
    let reason = rule.reason.as_deref().map_or_else(|| "null".to_owned(), text);
    let optional = rule.optional_old_self.map_or_else(|| "null".to_owned(), |optional| optional.to_string());
    let shown = format!(
        r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{reason},"FieldPath":{},"OptionalOldSelf":{optional}}}"#,
        text(&rule.rule),
        text(&rule.message),
        text(&rule.message_expression),
        text(&rule.field_path),
    );
    FieldError {
        kind: FieldErrorKind::Invalid,
        field: path.to_owned(),
        value: None,
        detail: format!("{shown}: {error}"),
    }
}
