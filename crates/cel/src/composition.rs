//! Expressions that share variables, which are expressions themselves: admission policies.
//!
//! A variable is evaluated when an expression first asks for it, and once for a set of expressions; what it costs counts for the
//! expression that asked. An error of a variable is an error of the expressions that use it, and of no others.
//!
//! Follows `apiserver/pkg/admission/plugin/cel/{composition,condition,activation}.go`.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::decls::Environment;
use crate::eval::{self, Composed};
use crate::program::{Answer, Binding, CompileError, Program, ResultType, Run};
use crate::types::Type;
use crate::validator::COST_LIMIT_PER_RULE;
use crate::value::{Map, Value};
use crate::variables::Variables;

/// The variables of a policy, and what its expressions may use besides.
///
/// ```
/// use serde_json::json;
/// use steersman_cel::{Answer, Binding, Composition, Environment, ResultType};
///
/// let mut policy = Composition::new(false);
/// policy.declare("replicas", "object.spec.replicas", Environment::New).unwrap();
/// let program = policy.compile("variables.replicas < 5", Environment::New, ResultType::Bool, true).unwrap();
/// let object = json!({"spec": {"replicas": 7}});
/// let evaluations = policy.start(&[("object", Binding::Json(&object))]);
/// assert_eq!(evaluations.run(&program).outcome, Ok(Answer::Bool(false)));
/// ```
#[derive(Debug)]
pub struct Composition {
    with_authorizer: Variables,
    without_authorizer: Variables,
    variables: Vec<Variable>,
}

/// A variable of a policy.
#[derive(Debug)]
pub(crate) struct Variable {
    name: String,
    program: Result<Program, CompileError>,
}

/// A set of expressions of one policy, evaluated about one request.
#[derive(Debug)]
pub struct Evaluations<'a> {
    declared: &'a [Variable],
    /// All that expressions may use, `variables` too.
    bindings: Vec<(&'a str, Value<'a>)>,
    state: RefCell<State<'a>>,
}

#[derive(Debug, Default)]
struct State<'a> {
    /// The values so far; none while a variable is evaluated.
    values: BTreeMap<&'a str, Option<Value<'a>>>,
    /// The cost of their evaluation since it was last taken.
    cost: u64,
}

// === impl Composition ===

impl Composition {
    /// Returns a policy that may declare variables, with `params` or without.
    #[must_use]
    pub fn new(has_params: bool) -> Self {
        Self::of(admission(has_params).composed())
    }

    /// Returns a policy in which even the name `variables` is unknown, with `params` or without.
    #[must_use]
    pub fn without_variables(has_params: bool) -> Self {
        Self::of(admission(has_params))
    }

    fn of(with_authorizer: Variables) -> Self {
        Self {
            without_authorizer: with_authorizer.clone().without_authorizer(),
            with_authorizer,
            variables: Vec::new(),
        }
    }

    /// Declares a variable that all expressions that come later may use as `variables.NAME`.
    ///
    /// # Errors
    /// What is wrong with its expression. It is declared nevertheless, and whoever uses it fails.
    pub fn declare(&mut self, name: &str, expression: &str, environment: Environment) -> Result<(), CompileError> {
        let program = self.compile(expression, environment, ResultType::Any, true);
        let of = program.as_ref().map_or(&Type::Dyn, |program| &program.result_type);
        self.with_authorizer.declare_composed(name, of);
        self.without_authorizer.declare_composed(name, of);
        let error = program.as_ref().err().cloned();
        self.variables.retain(|variable| variable.name != name);
        self.variables.push(Variable { name: name.to_owned(), program });
        error.map_or(Ok(()), Err)
    }

    /// Parses and checks an expression.
    ///
    /// # Errors
    /// What is wrong with it, in Kubernetes' words.
    pub fn compile(
        &self,
        text: &str,
        environment: Environment,
        result: ResultType,
        has_authorizer: bool,
    ) -> Result<Program, CompileError> {
        let variables = if has_authorizer { &self.with_authorizer } else { &self.without_authorizer };
        Program::new(text, variables, environment, result)
    }

    /// Returns the evaluations of expressions about one request.
    #[must_use]
    pub fn start<'a>(&'a self, bindings: &[(&'a str, Binding<'a>)]) -> Evaluations<'a> {
        let variables = ("variables", Value::Map(Map::Composed));
        let bindings = bindings.iter().map(|(name, binding)| (*name, binding.value())).chain([variables]);
        Evaluations { declared: &self.variables, bindings: bindings.collect(), state: RefCell::default() }
    }
}

fn admission(has_params: bool) -> Variables {
    let all = Variables::admission().clone();
    if has_params { all.with_dynamic("params") } else { all }
}

// === impl Evaluations ===

impl Evaluations<'_> {
    /// Runs an expression. The cost is its own and that of the variables that it was the first to use.
    #[must_use]
    pub fn run(&self, program: &Program) -> Run {
        let outcome = eval::run_composed(&program.node, &self.bindings, Some(self), COST_LIMIT_PER_RULE);
        let spent = std::mem::take(&mut self.state.borrow_mut().cost);
        Run { outcome: Answer::of(outcome.value), cost: outcome.cost.saturating_add(spent) }
    }
}

impl<'a> Composed<'a> for Evaluations<'a> {
    fn value(&self, name: &str) -> Option<Value<'a>> {
        let Variable { name, program } = self.declared.iter().find(|variable| variable.name == name)?;
        match self.state.borrow().values.get(name.as_str()) {
            Some(Some(value)) => return Some(value.clone()),
            Some(None) => return Some(Value::error(format!("composited variable {name:?} uses itself"))),
            None => {}
        }
        let program = match program {
            Ok(program) => program,
            Err(error) => {
                return Some(Value::error(format!("composited variable {name:?} fails to compile: {error}")));
            }
        };
        self.state.borrow_mut().values.insert(name, None);
        let outcome = eval::run_composed(&program.node, &self.bindings, Some(self), COST_LIMIT_PER_RULE);
        let value = match outcome.value {
            Value::Error(error) => Value::error(format!("composited variable {name:?} fails to evaluate: {error}")),
            value => value,
        };
        let mut state = self.state.borrow_mut();
        state.cost = state.cost.saturating_add(outcome.cost);
        state.values.insert(name, Some(value.clone()));
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(variables: &[(&str, &str)]) -> Composition {
        let mut policy = Composition::new(true);
        for (name, expression) in variables {
            let _ = policy.declare(name, expression, Environment::New);
        }
        policy
    }

    fn run(policy: &Composition, expressions: &[&str]) -> Vec<Run> {
        let object = json!({"spec": {"replicas": 3}});
        let evaluations = policy.start(&[("object", Binding::Json(&object)), ("params", Binding::Null)]);
        let compiled = expressions.iter().map(|text| {
            policy
                .compile(text, Environment::New, ResultType::Any, false)
                .unwrap_or_else(|error| panic!("{text}: {error}"))
        });
        compiled.map(|program| evaluations.run(&program)).collect()
    }

    #[test]
    fn variables_are_evaluated_once_and_by_whoever_asks_first() {
        let policy = policy(&[("replicas", "object.spec.replicas"), ("double", "variables.replicas * 2")]);
        let runs = run(&policy, &["true", "variables.double == 6", "variables.double == 6", "has(variables.replicas)"]);
        assert!(runs[1..].iter().all(|run| run.outcome == Ok(Answer::Bool(true))), "{runs:?}");
        assert_eq!(runs[0].cost, 0, "what nobody asks for costs nothing");
        assert!(runs[1].cost > runs[2].cost, "{runs:?}");
    }

    #[test]
    fn an_error_of_a_variable_is_one_of_those_who_use_it() {
        let policy = policy(&[("gone", "object.spec.gone"), ("wrong", "nonsense(1)")]);
        let runs = run(&policy, &["variables.gone == 1", "variables.wrong == 1", "true || variables.gone == 1"]);
        let message = |run: &Run| run.outcome.clone().unwrap_err();
        assert_eq!(message(&runs[0]), "composited variable \"gone\" fails to evaluate: no such key: gone");
        assert!(message(&runs[1]).starts_with("composited variable \"wrong\" fails to compile: compilation failed: "));
        assert_eq!(runs[2].outcome, Ok(Answer::Bool(true)));
    }

    #[test]
    fn a_variable_that_uses_itself_ends() {
        let policy = policy(&[("me", "dyn(variables)['me']"), ("all", "variables")]);
        let runs = run(&policy, &["variables.me == 1", "dyn(variables.all)['all'] == 1"]);
        assert!(runs.iter().all(|run| run.outcome.is_err() || run.outcome == Ok(Answer::Bool(false))), "{runs:?}");
    }

    #[test]
    fn messages_have_no_authorizer_and_no_unknown_variables() {
        let policy = policy(&[("a", "1")]);
        let compile = |text: &str, has: bool| policy.compile(text, Environment::New, ResultType::Any, has).is_ok();
        assert!(compile("authorizer.path('/healthz').check('get').allowed()", true));
        assert!(!compile("authorizer.path('/healthz').check('get').allowed()", false));
        assert!(compile("variables.a + 1 == 2", false));
        assert!(!compile("variables.b == 2", true));
        assert!(!compile("variables.a == 'text'", true));
    }
}
