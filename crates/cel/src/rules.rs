//! Rules of `x-kubernetes-validations`, compiled. Follows `apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go`.

use std::sync::Arc;

use serde_json::Value as Json;

use crate::checker::{self, Scope};
use crate::cost;
use crate::decl_type::{DeclType, REQUEST_BYTES_MAX, StructTypes};
use crate::decls::Environment;
use crate::field_path;
use crate::plan::{self, Node};
use crate::schema::Schema;
use crate::types::Type;

/// A rule as it is written in a schema.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rule {
    pub(crate) rule: String,
    pub(crate) message: String,
    pub(crate) message_expression: String,
    pub(crate) reason: Option<String>,
    pub(crate) field_path: String,
    pub(crate) optional_old_self: Option<bool>,
}

/// A rule made ready to run, or what is wrong with it.
#[derive(Default)]
pub(crate) struct CompiledRule {
    /// None if the rule is empty or wrong.
    pub(crate) program: Option<Node>,
    pub(crate) error: Option<String>,
    pub(crate) uses_old_self: bool,
    /// The most that one run can cost.
    pub(crate) max_cost: u64,
    /// The maximum number of runs of the rule for one object.
    pub(crate) max_cardinality: u64,
    pub(crate) message: Option<Node>,
    pub(crate) message_error: Option<String>,
    pub(crate) message_max_cost: u64,
    /// The path of the field that the rule names, if that is a field.
    pub(crate) field_path: Option<String>,
}

/// For which expressions an environment is: by the rule and by the expression of its message.
pub(crate) type Stored<'s> = &'s dyn Fn(&str) -> Environment;

/// The types of `self` at a place of a schema, which all rules there share.
struct Place<'t> {
    declared: &'t DeclType,
    self_type: Type,
    structs: Arc<StructTypes>,
    max_cardinality: u64,
}

/// Compiles the rules of a schema for values of a type.
pub(crate) fn compile(rules: &[Rule], schema: &Schema, declared: &DeclType, stored: Stored<'_>) -> Vec<CompiledRule> {
    if rules.is_empty() {
        return Vec::new();
    }
    let mut structs = StructTypes::default();
    let self_type = declared.named("selfType", &mut structs);
    // At least a comma between items.
    let max_cardinality = (REQUEST_BYTES_MAX / (declared.min_serialized_size + 1)) as u64;
    let place = Place { declared, self_type, structs: Arc::new(structs), max_cardinality };
    rules.iter().map(|rule| place.compile(rule, schema, stored)).collect()
}

// === impl Rule ===

impl Rule {
    pub(crate) fn new(json: &Json) -> Self {
        let text = |key: &str| json.get(key).and_then(Json::as_str).unwrap_or_default().to_owned();
        Self {
            rule: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: json.get("reason").and_then(Json::as_str).map(str::to_owned),
            field_path: text("fieldPath"),
            optional_old_self: json.get("optionalOldSelf").and_then(Json::as_bool),
        }
    }

    /// Returns the name of the rule in errors: its message, or the rule itself.
    pub(crate) fn name(&self) -> &str {
        if self.message.is_empty() { self.rule.trim() } else { self.message.trim() }
    }
}

// === impl Place ===

impl Place<'_> {
    fn scope(&self, rule: &Rule, environment: Environment) -> Scope {
        let optional = rule.optional_old_self == Some(true);
        let old = if optional { Type::optional(self.self_type.clone()) } else { self.self_type.clone() };
        Scope {
            environment,
            variables: vec![("self".into(), self.self_type.clone()), ("oldSelf".into(), old)],
            structs: self.structs.clone(),
        }
    }

    fn compile(&self, rule: &Rule, schema: &Schema, stored: Stored<'_>) -> CompiledRule {
        let mut compiled = CompiledRule::default();
        if rule.rule.trim().is_empty() {
            return compiled;
        }
        let checked = match checker::compile(&rule.rule, &self.scope(rule, stored(&rule.rule))) {
            Ok(checked) => checked,
            Err(issues) => {
                compiled.error = Some(format!("compilation failed: {issues}"));
                return compiled;
            }
        };
        if *checked.type_of(checked.expr.id) != Type::Bool {
            compiled.error = Some("cel expression must evaluate to a bool".to_owned());
            return compiled;
        }
        compiled.uses_old_self = checked.uses("oldSelf");
        match plan::plan(&checked) {
            Ok(program) => compiled.program = Some(program),
            Err(error) => {
                compiled.error = Some(format!("program instantiation failed: {error}"));
                return compiled;
            }
        }
        compiled.max_cost = cost::estimate(&checked, self.declared).max;
        compiled.max_cardinality = self.max_cardinality;
        if !rule.message_expression.is_empty()
            && let Err(error) = self.compile_message(rule, stored, &mut compiled)
        {
            compiled.message_error = Some(error);
            return compiled;
        }
        if !rule.field_path.is_empty() {
            compiled.field_path = field_path::normalize(&rule.field_path, schema).ok();
        }
        compiled
    }

    fn compile_message(&self, rule: &Rule, stored: Stored<'_>, compiled: &mut CompiledRule) -> Result<(), String> {
        let expression = &rule.message_expression;
        let checked = checker::compile(expression, &self.scope(rule, stored(expression)))
            .map_err(|issues| format!("messageExpression compilation failed: {issues}"))?;
        if *checked.type_of(checked.expr.id) != Type::String {
            return Err("messageExpression must evaluate to a string".to_owned());
        }
        let program =
            plan::plan(&checked).map_err(|error| format!("messageExpression instantiation failed: {error}"))?;
        compiled.message = Some(program);
        compiled.message_max_cost = cost::estimate(&checked, self.declared).max;
        Ok(())
    }
}
