//! Runs the rules of a schema against objects. Follows
//! `apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go`.
//!
//! 1. A rule runs wherever its schema has a value that is not null; one with `oldSelf` only where there was one before.
//! 2. What rules cost is taken from a budget for the object; when it is used up, no more rules run.
//! 3. In an update, a rule without `oldSelf` that fails for a value that did not change is a warning.

mod correlate;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;
use steersman_base::validation::{FieldError, FieldErrorKind};

use crate::decl_type::{self, DeclType, Shape};
use crate::decls::Environment;
use crate::escape;
use crate::eval::{self, Outcome};
use crate::rules::{self, CompiledRule, Rule};
use crate::schema::Schema;
use crate::value::{Value, from_json};
use correlate::{KeyedItems, Ratchet};

/// The maximum cost of one run of a rule.
pub const COST_LIMIT_PER_RULE: u64 = 1_000_000;
/// The maximum cost of all rules together for one object.
pub const COST_BUDGET_PER_OBJECT: i64 = 10_000_000;
/// The number of items that a list without a bound is taken to have, where the cost of all is estimated.
const UNBOUNDED_ITEMS: u64 = 100_000;
/// Longest message that an expression may make, in bytes.
const MESSAGE_LENGTH_MAX: usize = 5 * 1024;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The rules of a schema, ready to run.
pub struct Validator {
    root: Option<Node>,
}

/// The result of the rules for an object.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Why the object is refused; empty if it is not.
    pub errors: Vec<FieldError>,
    /// Errors that the previous version of the object has too.
    pub warnings: Vec<String>,
    /// The rest of the budget; negative if rules were left out.
    pub remaining_budget: i64,
}

/// The rules at a place of a schema, and below it.
struct Node {
    schema: Arc<Schema>,
    /// The schema of values here as rules see it.
    value_schema: Arc<Schema>,
    rules: Vec<Rule>,
    compiled: Vec<CompiledRule>,
    /// Why no rule could be compiled.
    compilation_error: Option<&'static str>,
    any_uses_old_self: bool,
    /// The most that these rules and those below can cost for one object, by estimate.
    max_cost: u64,
    items: Option<Box<Node>>,
    additional: Option<Box<Node>>,
    properties: BTreeMap<String, Node>,
    all_of: Vec<Node>,
}

/// One validation: what is left of the budget, and what was found.
struct Run {
    budget: i64,
    errors: Vec<FieldError>,
    warnings: Vec<String>,
}

/// No more rules may run.
struct Stop;

// === impl Validator ===

impl Validator {
    /// Compiles the rules of a schema. Rules that are wrong fail when they run.
    #[must_use]
    pub fn new(schema: &Schema, is_resource_root: bool) -> Self {
        if !schema.has_rules() {
            return Self { root: None };
        }
        let declared = decl_type::declare(schema, is_resource_root);
        let schema = Arc::new(schema.clone());
        Self { root: Node::new(&schema, &schema, is_resource_root, declared.as_ref()) }
    }

    /// Whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// The most that the rules can cost for one object, by estimate.
    #[must_use]
    pub fn max_cost(&self) -> u64 {
        self.root.as_ref().map_or(0, |root| root.max_cost)
    }

    /// Runs the rules against an object.
    ///
    /// With `ratcheting`, which updates have, what fails for values that did not change is a warning.
    #[must_use]
    pub fn validate(&self, object: &Json, old: Option<&Json>, ratcheting: bool, budget: i64) -> Verdict {
        self.validate_at("", object, old, ratcheting, budget)
    }

    /// [`validate`](Self::validate) for a part of an object, which is at `path`.
    #[must_use]
    pub fn validate_at(&self, path: &str, object: &Json, old: Option<&Json>, ratcheting: bool, budget: i64) -> Verdict {
        let Some(root) = &self.root else {
            return Verdict { remaining_budget: budget, ..Verdict::default() };
        };
        let ratchet = match old {
            Some(old) if ratcheting => Ratchet::new(object, old, &root.schema),
            _ => Ratchet::default(),
        };
        let mut run = Run { budget, errors: Vec::new(), warnings: Vec::new() };
        if root.validate(&mut run, path, object, old, &ratchet).is_err() {
            run.budget = -1;
        }
        Verdict { errors: run.errors, warnings: run.warnings, remaining_budget: run.budget }
    }
}

impl std::fmt::Debug for Validator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Validator").field("is_empty", &self.is_empty()).finish_non_exhaustive()
    }
}

// === impl Node ===

impl Node {
    /// The rules of one schema for values of another, which are the same but within `allOf`.
    fn new(
        rules: &Schema,
        schema: &Arc<Schema>,
        is_resource_root: bool,
        declared: Option<&Arc<DeclType>>,
    ) -> Option<Self> {
        let stored = |_: &str| Environment::Stored;
        let (compiled, compilation_error) = match declared {
            Some(declared) => (rules::compile(&rules.rules, schema, declared, &stored), None),
            None if rules.rules.is_empty() => (Vec::new(), None),
            None => (Vec::new(), Some("failed to convert to declType for CEL validation rules")),
        };
        let below = declared.and_then(|declared| match &declared.shape {
            Shape::List(of) | Shape::Map(of) => Some(of),
            _ => None,
        });
        let child = |rules: &Schema, schema: &Arc<Schema>, declared: Option<&Arc<DeclType>>| {
            Self::new(rules, schema, schema.embedded_resource, declared).map(Box::new)
        };
        let items = match (&rules.items, &schema.items) {
            (Some(rules), Some(items)) => child(rules, items, below),
            _ => None,
        };
        let additional = match (rules.additional_schema(), schema.additional_schema()) {
            (Some(rules), Some(values)) => child(rules, values, below),
            _ => None,
        };
        let properties = Self::properties(rules, schema, declared.map(|declared| &**declared));
        let all_of: Vec<Self> =
            rules.all_of.iter().filter_map(|rules| Self::new(rules, schema, is_resource_root, declared)).collect();
        let empty = compiled.is_empty()
            && compilation_error.is_none()
            && items.is_none()
            && additional.is_none()
            && properties.is_empty()
            && all_of.is_empty();
        let many = |max: Option<i64>| max.and_then(|max| u64::try_from(max).ok()).unwrap_or(UNBOUNDED_ITEMS);
        let own = compiled.iter().map(|rule| rule.max_cost);
        let below = [(&items, schema.max_items), (&additional, schema.max_properties)];
        let below = below.map(|(node, max)| node.as_ref().map_or(0, |node| node.max_cost.saturating_mul(many(max))));
        let nested = properties.values().chain(&all_of).map(|node| node.max_cost);
        let max_cost = own.chain(below).chain(nested).fold(0, u64::saturating_add);
        let value_schema = if is_resource_root { Arc::new(schema.with_type_and_object_meta()) } else { schema.clone() };
        (!empty).then(|| Self {
            schema: schema.clone(),
            value_schema,
            rules: rules.rules.clone(),
            max_cost,
            any_uses_old_self: compiled.iter().any(|rule| rule.uses_old_self),
            compiled,
            compilation_error,
            items,
            additional,
            properties,
            all_of,
        })
    }

    fn properties(rules: &Schema, schema: &Schema, declared: Option<&DeclType>) -> BTreeMap<String, Self> {
        let mut nodes = BTreeMap::new();
        for (name, rules) in rules.properties.iter().flatten() {
            let Some(property) = schema.properties.as_ref().and_then(|properties| properties.get(name)) else {
                continue;
            };
            let of = match escape(name) {
                Some(escaped) => declared.and_then(|declared| match &declared.shape {
                    Shape::Object(fields) => fields.get(&*escaped).cloned(),
                    _ => None,
                }),
                None => decl_type::declare(property, property.embedded_resource),
            };
            let Some(of) = of else { continue };
            if let Some(node) = Self::new(rules, property, property.embedded_resource, Some(&of)) {
                nodes.insert(name.clone(), node);
            }
        }
        nodes
    }

    fn validate<'j>(
        &'j self,
        run: &mut Run,
        path: &str,
        value: &'j Json,
        old: Option<&'j Json>,
        ratchet: &Ratchet<'j>,
    ) -> Result<(), Stop> {
        if value.is_null() {
            return Ok(());
        }
        self.run_rules(run, path, value, old.filter(|old| !old.is_null()), ratchet)?;
        for node in &self.all_of {
            node.validate(run, path, value, old, &ratchet.of_all_of())?;
        }
        match value {
            Json::Array(values) => {
                let Some(items) = &self.items else { return Ok(()) };
                let old_items = KeyedItems::new(&self.schema, old.and_then(Json::as_array).map(Vec::as_slice));
                for (at, value) in values.iter().enumerate() {
                    let path = format!("{path}[{at}]");
                    items.validate(run, &path, value, old_items.get(value), &ratchet.index(at))?;
                }
            }
            Json::Object(values) => self.validate_object(run, path, values, old, ratchet)?,
            _ => {}
        }
        Ok(())
    }

    fn validate_object<'j>(
        &'j self,
        run: &mut Run,
        path: &str,
        values: &'j serde_json::Map<String, Json>,
        old: Option<&'j Json>,
        ratchet: &Ratchet<'j>,
    ) -> Result<(), Stop> {
        let correlatable = matches!(self.schema.map_type.as_deref(), None | Some("granular" | "atomic"));
        let old_value = |name: &str| old.filter(|_| correlatable).and_then(|old| old.get(name));
        if let Some(node) = &self.additional {
            for (name, value) in values {
                let path = format!("{path}[{name}]");
                node.validate(run, &path, value, old_value(name), &ratchet.key(name))?;
            }
        }
        for (name, value) in values {
            if let Some(node) = self.properties.get(name) {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                node.validate(run, &path, value, old_value(name), &ratchet.key(name))?;
            }
        }
        Ok(())
    }

    fn run_rules<'j>(
        &'j self,
        run: &mut Run,
        path: &str,
        value: &'j Json,
        old: Option<&'j Json>,
        ratchet: &Ratchet<'j>,
    ) -> Result<(), Stop> {
        let type_name = &*self.schema.type_name;
        if let Some(error) = self.compilation_error {
            run.errors.push(invalid(path, type_name, format!("rule compiler initialization error: {error}")));
            return Ok(());
        }
        if self.compiled.is_empty() {
            return Ok(());
        }
        if run.budget <= 0 {
            run.errors.push(invalid(path, type_name, OUT_OF_BUDGET));
            return Err(Stop);
        }
        let self_value = from_json(value, &self.value_schema);
        let old_value = old.filter(|_| self.any_uses_old_self).map(|old| from_json(old, &self.value_schema));
        let mut variables = vec![("self", self_value.clone())];
        variables.extend(old_value.clone().map(|old| ("oldSelf", old)));
        let mut optional_variables = vec![("self", self_value)];
        if self.any_uses_old_self {
            optional_variables.push(("oldSelf", old_value.map_or(Value::Optional(None), Value::some)));
        }
        for (rule, compiled) in self.rules.iter().zip(&self.compiled) {
            if let Some(error) = &compiled.error {
                run.errors.push(invalid(path, type_name, format!("rule compile error: {error}")));
                continue;
            }
            let Some(program) = &compiled.program else { continue };
            let optional = rule.optional_old_self == Some(true);
            if compiled.uses_old_self && old.is_none() && !optional {
                continue;
            }
            let outcome =
                eval::run(program, if optional { &optional_variables } else { &variables }, COST_LIMIT_PER_RULE);
            run.spend(&outcome).map_err(|Stop| {
                run.errors.push(invalid(path, type_name, OUT_OF_BUDGET));
                Stop
            })?;
            match &outcome.value {
                Value::Error(error) => self.failed_to_run(run, path, rule, &outcome, error)?,
                Value::Bool(true) => {}
                _ => self.violated(run, path, value, rule, compiled, &variables, ratchet)?,
            }
        }
        Ok(())
    }

    fn failed_to_run(
        &self,
        run: &mut Run,
        path: &str,
        rule: &Rule,
        outcome: &Outcome<'_>,
        error: &str,
    ) -> Result<(), Stop> {
        let name = rule.name();
        let detail = if outcome.exhausted {
            format!(
                "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {name}"
            )
        } else if error.starts_with("no such overload") {
            format!(
                "'{error}': call arguments did not match a supported operator, function or macro signature for rule: {name}"
            )
        } else {
            format!("{error} evaluating rule: {name}")
        };
        run.errors.push(invalid(path, &self.schema.type_name, detail));
        if outcome.exhausted { Err(Stop) } else { Ok(()) }
    }

    #[expect(clippy::too_many_arguments, reason = "the facts about a violation, once")]
    fn violated<'j>(
        &'j self,
        run: &mut Run,
        path: &str,
        value: &Json,
        rule: &Rule,
        compiled: &'j CompiledRule,
        variables: &[(&str, Value<'j>)],
        ratchet: &Ratchet<'j>,
    ) -> Result<(), Stop> {
        let path = match &compiled.field_path {
            Some(field) if path.is_empty() => field.clone(),
            Some(field) => format!("{path}.{field}"),
            None => path.to_owned(),
        };
        let ratchets = !compiled.uses_old_self && ratchet.is_unchanged();
        let mut detail = None;
        if let Some(message) = &compiled.message {
            match message_of(run, message, &rule.message_expression, variables) {
                Ok(message) => detail = message,
                Err(problem) => {
                    run.add(invalid(&path, &self.schema.type_name, problem), ratchets);
                    return Err(Stop);
                }
            }
        }
        let detail = detail.unwrap_or_else(|| {
            if rule.message.is_empty() { format!("failed rule: {}", rule.name()) } else { rule.name().to_owned() }
        });
        let omitted = matches!(&*self.schema.type_name, "object" | "array");
        let value = (!omitted).then(|| value.clone());
        run.add(by_reason(&path, value, detail, rule.reason.as_deref()), ratchets);
        Ok(())
    }
}

/// The message that an expression makes; none if it fails or is no message, an error if rules must stop.
fn message_of<'j>(
    run: &mut Run,
    program: &'j crate::plan::Node,
    expression: &str,
    variables: &[(&str, Value<'j>)],
) -> Result<Option<String>, String> {
    let outcome = eval::run(program, variables, COST_LIMIT_PER_RULE);
    if i64::try_from(outcome.cost).map_or(true, |cost| cost > run.budget) {
        return Err("messageExpression evaluation failed due to running out of cost budget, no further validation \
                    rules will be run"
            .to_owned());
    }
    if outcome.exhausted {
        return Err(format!(
            "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
            crate::gofmt::quote(expression)
        ));
    }
    run.budget -= outcome.cost as i64;
    let message = outcome
        .value
        .as_str()
        .map(str::trim)
        .filter(|message| !message.is_empty() && message.len() <= MESSAGE_LENGTH_MAX && !message.contains('\n'));
    Ok(message.map(str::to_owned))
}

fn display_path(path: &str) -> String {
    if path.is_empty() { "<nil>".to_owned() } else { path.to_owned() }
}

fn invalid(path: &str, type_name: &str, detail: impl Into<String>) -> FieldError {
    FieldError::invalid(display_path(path), type_name, detail)
}

fn by_reason(path: &str, value: Option<Json>, detail: String, reason: Option<&str>) -> FieldError {
    let field = display_path(path);
    match reason {
        Some("FieldValueForbidden") => FieldError::forbidden(field, detail),
        Some("FieldValueRequired") => FieldError::required(field, detail),
        Some("FieldValueDuplicate") => {
            FieldError { kind: FieldErrorKind::Duplicate, field, value, detail: String::new() }
        }
        _ => FieldError { kind: FieldErrorKind::Invalid, field, value, detail },
    }
}

// === impl Run ===

impl Run {
    fn spend(&mut self, outcome: &Outcome<'_>) -> Result<(), Stop> {
        match i64::try_from(outcome.cost) {
            Ok(cost) if cost <= self.budget => {
                self.budget -= cost;
                Ok(())
            }
            _ => Err(Stop),
        }
    }

    fn add(&mut self, error: FieldError, ratchets: bool) {
        if ratchets {
            self.warnings.push(error.to_string());
        } else {
            self.errors.push(error);
        }
    }
}
