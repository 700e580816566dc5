//! Expressions over declared variables: match conditions, and policies to come.
//!
//! Follows `apiserver/pkg/admission/plugin/cel/{compile,activation}.go`.

use std::fmt;

use serde_json::Value as Json;

use crate::authz::{AuthorizationCheck, Authorizer, Authz};
use crate::checker;
use crate::decls::Environment;
use crate::eval;
use crate::plan::{self, Node};
use crate::types::Type;
use crate::value::{Value, from_plain_json};
use crate::variables::Variables;

/// A compiled expression.
pub struct Program {
    node: Node,
}

/// The type that an expression must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultType {
    /// A condition.
    Bool,
    /// A message.
    String,
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
        let wanted = match result {
            ResultType::Bool => Some(Type::Bool),
            ResultType::String => Some(Type::String),
            ResultType::Any => None,
        };
        if let Some(wanted) = wanted.filter(|wanted| wanted != found) {
            let why = format!("must evaluate to {} but got {}", wanted.describe(), found.describe());
            return Err(CompileError::Invalid(why));
        }
        let node = plan::plan(&checked)
            .map_err(|error| CompileError::Internal(format!("program instantiation failed: {error}")))?;
        Ok(Self { node })
    }

    /// Runs the expression, until it has cost more than the limit. Variables that are not bound are errors where they are used.
    #[must_use]
    pub fn run(&self, bindings: &[(&str, Binding<'_>)], cost_limit: u64) -> Run {
        let variables: Vec<(&str, Value<'_>)> =
            bindings.iter().map(|(name, binding)| (*name, binding.value())).collect();
        let outcome = eval::run(&self.node, &variables, cost_limit);
        let answer = match outcome.value {
            Value::Error(error) => Err(error.to_string()),
            Value::Bool(flag) => Ok(Answer::Bool(flag)),
            Value::String(text) => Ok(Answer::String(text.as_str().to_owned())),
            value => Ok(Answer::Other(value.text())),
        };
        Run { outcome: answer, cost: outcome.cost }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").finish_non_exhaustive()
    }
}

// === impl Binding ===

impl<'a> Binding<'a> {
    fn value(&self) -> Value<'a> {
        match self {
            Self::Null => Value::Null,
            Self::Json(json) => from_plain_json(json),
            Self::Authorizer(authorizer) => Value::authz(Authz::authorizer(*authorizer)),
            Self::ResourceCheck(authorizer, check) => Value::authz(Authz::resource(*authorizer, (**check).clone())),
        }
    }
}
