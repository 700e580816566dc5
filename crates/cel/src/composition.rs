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
use crate::made::{Mutation, MutationRun};
use crate::program::{Answer, Binding, CompileError, Program, ResultType, Run, Uses};
use crate::types::Type;
use crate::validator::COST_LIMIT_PER_RULE;
use crate::value::{Map, Value};
use crate::variables::Variables;

/// The depth to which variables that use each other may be nested: their evaluation has to fit on the stack of a thread.
const LEVEL_MAX: usize = 1000;
/// The depth that a variable adds.
const LEVEL_OF_VARIABLE: usize = 8;

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
    with_patches: Variables,
    variables: Vec<Variable>,
}

/// A variable of a policy.
#[derive(Debug)]
pub(crate) struct Variable {
    name: String,
    program: Result<Program, CompileError>,
    /// The depth to which its evaluation and its value may be nested, with those of the variables that it uses.
    level: usize,
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
            with_patches: with_authorizer.clone().with_patches(),
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
        let level = program.as_ref().map_or(0, |program| self.level(&program.uses));
        let program = match program {
            Ok(_) if level > LEVEL_MAX => Err(CompileError::Invalid(
                "compilation failed: variables that use each other are nested too deep".into(),
            )),
            program => program,
        };
        let of = program.as_ref().map_or(&Type::Dyn, |program| &program.result_type);
        self.with_authorizer.declare_composed(name, of);
        self.without_authorizer.declare_composed(name, of);
        self.with_patches.declare_composed(name, of);
        let error = program.as_ref().err().cloned();
        self.variables.retain(|variable| variable.name != name);
        self.variables.push(Variable { name: name.to_owned(), program, level });
        error.map_or(Ok(()), Err)
    }

    /// Returns how deep the evaluation of a variable is nested.
    fn level(&self, uses: &Uses) -> usize {
        let is_used =
            |variable: &&Variable| uses.any_variable || uses.variables.iter().any(|used| **used == *variable.name);
        let used = self.variables.iter().filter(is_used).map(|variable| variable.level).max();
        uses.height + LEVEL_OF_VARIABLE + used.unwrap_or_default()
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

    /// Parses and checks an expression that makes a patch, with the types of patches and `jsonpatch.escapeKey`.
    ///
    /// # Errors
    /// What is wrong with it, in Kubernetes' words.
    pub fn compile_mutation(
        &self,
        text: &str,
        environment: Environment,
        result: ResultType,
    ) -> Result<Program, CompileError> {
        Program::new(text, &self.with_patches, environment, result)
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

    /// Runs an expression that makes a patch.
    #[must_use]
    pub fn mutate(&self, program: &Program) -> MutationRun {
        let outcome = eval::run_composed(&program.node, &self.bindings, Some(self), COST_LIMIT_PER_RULE);
        let spent = std::mem::take(&mut self.state.borrow_mut().cost);
        MutationRun { outcome: Mutation::of(&outcome.value), cost: outcome.cost.saturating_add(spent) }
    }
}

impl<'a> Composed<'a> for Evaluations<'a> {
    fn value(&self, name: &str) -> Option<Value<'a>> {
        let Variable { name, program, .. } = self.declared.iter().find(|variable| variable.name == name)?;
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

    fn mutated(policy: &Composition, text: &str, of: ResultType) -> Result<Mutation, String> {
        let object = json!({"metadata": {"name": "a"}, "spec": {"replicas": 3}});
        let program = policy.compile_mutation(text, Environment::New, of).map_err(|error| error.to_string())?;
        policy.start(&[("object", Binding::Json(&object))]).mutate(&program).outcome.map_err(|error| error.to_string())
    }

    #[test]
    fn expressions_make_patches() {
        let policy = policy(&[("name", "object.metadata.name")]);
        let config = |text: &str| match mutated(&policy, text, ResultType::Configuration) {
            Ok(Mutation::Configuration(config)) => Ok(config),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error),
        };
        let misnamed = "type mismatch: unexpected type name \"Object.b\", expected \"Object.a\", which matches field name \
                        path from root Object type";
        let rows = [
            ("Object{}", Ok(json!({}))),
            (
                "Object{a: Object.a{b: variables.name, c: [Object.a.c{d: 1.5}]}}",
                Ok(json!({"a": {"b": "a", "c": [{"d": 1.5}]}})),
            ),
            ("Object{a: {'b': true}, ?b: optional.of(1), ?c: optional.none()}", Ok(json!({"a": {"b": true}, "b": 1}))),
            ("Object{a: object.spec}", Ok(json!({"a": {"replicas": 3}}))),
            ("Object{a: Object.b{}}", Err(misnamed.to_owned())),
            ("Object{a: [[1]]}", Err("proto: invalid type: []ref.Val".to_owned())),
            ("Object{a: object.none}", Err("no such key: none".to_owned())),
            ("Object.a{}", Err("must evaluate to Object but got Object.a".to_owned())),
        ];
        for (text, want) in rows {
            assert_eq!(config(text), want, "{text}");
        }
        let operations = "[JSONPatch{op: 'add', path: '/a/' + jsonpatch.escapeKey('x/~y'), value: Object.spec{n: 1}},
                           JSONPatch{op: 'move', from: '/b', path: '/c'}]";
        let want = vec![
            json!({"op": "add", "path": "/a/x~1~0y", "value": {"n": 1}}),
            json!({"op": "move", "from": "/b", "path": "/c"}),
        ];
        assert_eq!(mutated(&policy, operations, ResultType::Operations), Ok(Mutation::Operations(want)));
        let plain = policy.compile("jsonpatch.escapeKey('a')", Environment::New, ResultType::Any, true);
        assert!(plain.is_err(), "only patches have the function");
    }

    #[test]
    fn variables_that_double_or_nest_without_end_are_bounded() {
        let names: Vec<String> = (0..400).map(|number| format!("v{number}")).collect();
        let chained = |first: &str, next: &dyn Fn(&str) -> String, count: usize| {
            let mut policy = Composition::new(false);
            let mut declared = policy.declare("v0", first, Environment::New);
            for pair in names[..count].windows(2) {
                declared = declared.and(policy.declare(&pair[1], &next(&pair[0]), Environment::New));
            }
            (policy, declared)
        };
        let last = |policy: &Composition, text: &str| {
            let program = policy.compile(text, Environment::New, ResultType::Any, true).unwrap();
            policy.start(&[]).run(&program).outcome
        };
        let (policy, declared) = chained("[1]", &|before| format!("variables.{before} + variables.{before}"), 40);
        assert_eq!(declared, Ok(()));
        let limit = "operation cancelled: actual cost limit exceeded";
        assert!(last(&policy, "variables.v39.all(x, x == 1)").unwrap_err().contains(limit));
        let (policy, declared) = chained("[dyn(1)]", &|before| format!("[dyn(variables.{before})]"), 50);
        assert_eq!(declared, Ok(()));
        assert_eq!(last(&policy, "size(variables.v49) == 1"), Ok(Answer::Bool(true)));
        for next in ["[dyn(variables.V)]", "[dyn(dyn(variables)['V'])]"] {
            let (_, declared) = chained("[dyn(1)]", &|before| next.replace('V', before), 400);
            let error = declared.unwrap_err().to_string();
            assert!(error.contains("nested too deep"), "{next}: {error}");
        }
        let nested = |before: &str| format!("{}dyn(variables.{before}){}", "[dyn(".repeat(60), ")]".repeat(60));
        let (policy, _) = chained("[dyn(1)]", &nested, 7);
        assert_eq!(last(&policy, "size(variables.v6) == 1"), Ok(Answer::Bool(true)));
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
