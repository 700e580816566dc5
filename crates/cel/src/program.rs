//! Expressions over declared variables: match conditions, and policies to come.
//!
//! Follows `apiserver/pkg/admission/plugin/cel/{compile,activation}.go`.

use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::ast::{Expr, Kind};
use crate::authz::{AuthorizationCheck, Authorizer, Authz};
use crate::checker;
use crate::decls::Environment;
use crate::eval;
use crate::made;
use crate::plan::{self, Node};
use crate::types::Type;
use crate::value::{Value, from_plain_json};
use crate::variables::Variables;

/// A compiled expression.
pub struct Program {
    pub(crate) node: Node,
    pub(crate) result_type: Type,
    pub(crate) uses: Uses,
}

/// The parts of an expression that need stack when it is evaluated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uses {
    /// The depth to which the expression is nested.
    pub(crate) height: usize,
    /// The variables of the policy that it names.
    pub(crate) variables: Vec<Arc<str>>,
    /// Whether it may use any of them.
    pub(crate) any_variable: bool,
}

/// The type that an expression must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultType {
    /// A condition.
    Bool,
    /// A message.
    String,
    /// A text, or `null`: the value of an audit annotation.
    StringOrNull,
    /// A condition about attributes, whose types are not known beforehand.
    BoolOrAny,
    /// `Object`: an apply configuration.
    Configuration,
    /// A list of `JSONPatch`: operations.
    Operations,
    /// Any type.
    Any,
}

/// Why an expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// It is wrong, in cel-go's words.
    #[error("{0}")]
    Invalid(String),
    /// It is right, but no program can be made of it.
    #[error("{0}")]
    Internal(String),
}

/// The value of a variable.
#[derive(Clone, Debug)]
pub enum Binding<'a> {
    /// `null`.
    Null,
    /// JSON without a schema: numbers are integers if they are written so.
    Json(&'a Json),
    /// The authority that answers authorization checks.
    Authorizer(&'a dyn Authorizer),
    /// The same, asked about this resource.
    ResourceCheck(&'a dyn Authorizer, Box<AuthorizationCheck>),
}

/// The value of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A condition holds, or does not.
    Bool(bool),
    /// A text.
    String(String),
    /// `null`.
    Null,
    /// Any other value, as Go prints it.
    Other(String),
}

/// The result of running a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The value, or the error.
    pub outcome: Result<Answer, String>,
    /// The cost of the evaluation.
    pub cost: u64,
}

// === impl Program ===

impl Program {
    /// Parses and checks an expression.
    ///
    /// # Errors
    /// What is wrong with it, in Kubernetes' words.
    pub fn new(
        text: &str,
        variables: &Variables,
        environment: Environment,
        result: ResultType,
    ) -> Result<Self, CompileError> {
        let checked = checker::compile(text, &variables.scope(environment))
            .map_err(|issues| CompileError::Invalid(format!("compilation failed: {issues}")))?;
        let found = checked.type_of(checked.expr.id);
        let wanted = result.types();
        if !wanted.is_empty() && !wanted.contains(found) {
            return Err(CompileError::Invalid(other_type(&wanted, found)));
        }
        let result_type = found.clone();
        let node = plan::plan(&checked)
            .map_err(|error| CompileError::Internal(format!("program instantiation failed: {error}")))?;
        let mut uses = Uses::default();
        uses.look_at(&checked.expr, 1);
        Ok(Self { node, result_type, uses })
    }

    /// Runs the expression, until it has cost more than the limit. Variables that are not bound are errors where they are used.
    #[must_use]
    pub fn run(&self, bindings: &[(&str, Binding<'_>)], cost_limit: u64) -> Run {
        let variables: Vec<(&str, Value<'_>)> =
            bindings.iter().map(|(name, binding)| (*name, binding.value())).collect();
        let outcome = eval::run(&self.node, &variables, cost_limit);
        let answer = Answer::of(outcome.value);
        Run { outcome: answer, cost: outcome.cost }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").finish_non_exhaustive()
    }
}

// === impl Uses ===

impl Uses {
    fn look_at(&mut self, expr: &Expr, depth: usize) {
        self.height = self.height.max(depth);
        let is_variables =
            |expr: &Expr| matches!(&expr.kind, Kind::Ident(name) if name.trim_start_matches('.') == "variables");
        match &expr.kind {
            Kind::Select { operand, field, .. } if is_variables(operand) => self.variables.push(field.clone()),
            _ if is_variables(expr) => self.any_variable = true,
            _ => expr.children(&mut |child| self.look_at(child, depth + 1)),
        }
    }
}

/// Returns the sentence about an expression of another type than is wanted.
fn other_type(wanted: &[Type], found: &Type) -> String {
    match wanted {
        [one, Type::Any] => {
            format!("must evaluate to {} or the unknown type, not {}", one.describe(), found.describe())
        }
        [one] => format!("must evaluate to {} but got {}", one.describe(), found.describe()),
        several => {
            let names: Vec<_> = several.iter().map(Type::describe).collect();
            format!("must evaluate to one of [{}] but got {}", names.join(" "), found.describe())
        }
    }
}

// === impl ResultType ===

impl ResultType {
    /// Returns the types of which one is wanted; none if all are.
    fn types(self) -> Vec<Type> {
        match self {
            Self::Bool => vec![Type::Bool],
            Self::String => vec![Type::String],
            Self::StringOrNull => vec![Type::String, Type::Null],
            Self::BoolOrAny => vec![Type::Bool, Type::Any],
            Self::Configuration => vec![Type::Struct(made::OBJECT.into())],
            Self::Operations => vec![Type::list(Type::Struct(made::OPERATION.into()))],
            Self::Any => Vec::new(),
        }
    }
}

// === impl Answer ===

impl Answer {
    pub(crate) fn of(value: Value<'_>) -> Result<Self, String> {
        match value {
            Value::Error(error) => Err(error.to_string()),
            Value::Bool(flag) => Ok(Self::Bool(flag)),
            Value::String(text) => Ok(Self::String(text.as_str().to_owned())),
            Value::Null => Ok(Self::Null),
            value => Ok(Self::Other(value.text())),
        }
    }
}

// === impl Binding ===

impl<'a> Binding<'a> {
    pub(crate) fn value(&self) -> Value<'a> {
        match self {
            Self::Null => Value::Null,
            Self::Json(json) => from_plain_json(json),
            Self::Authorizer(authorizer) => Value::authz(Authz::authorizer(*authorizer)),
            Self::ResourceCheck(authorizer, check) => Value::authz(Authz::resource(*authorizer, (**check).clone())),
        }
    }
}
