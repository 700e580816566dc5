//! The expressions of a policy, compiled, and what they say about a request.

use serde_json::Value;
use steersman_cel::{Answer, Binding, CompileError, Composition, Environment, Evaluations, Program, ResultType};

use super::super::attributes::{Attributes, Seen};
use super::super::conditions::{MATCH_BUDGET, Match, RequestAuthorizer, evaluate};
use super::Denial;
use super::configuration::{Policy, texts};
use crate::kinds::shared::json::{is_set, items, text};
use crate::registry::Registry;

/// The maximum cost of the validations of one policy, its messages included: upstream's `RuntimeCELCostBudget`.
pub(super) const BUDGET: u64 = 10_000_000;
/// Longer messages are not shown.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;
const REASONS: [&str; 4] = ["Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized"];

/// The expressions of a policy.
#[derive(Debug)]
pub(super) struct Compiled {
    composition: Composition,
    conditions: Vec<Compiling>,
    validations: Vec<Validation>,
    annotations: Vec<Compiling>,
    /// The expressions that make patches, of a policy that mutates.
    pub(super) mutations: Vec<Compiling>,
}

/// An expression and its program.
#[derive(Debug)]
pub(super) struct Compiling {
    pub(super) text: String,
    pub(super) program: Result<Program, CompileError>,
}

#[derive(Debug)]
struct Validation {
    expression: Compiling,
    /// `messageExpression`
    message_expression: Option<Compiling>,
    message: String,
    reason: &'static str,
}

/// The denials of a request.
#[derive(Debug, Default)]
pub(super) struct Denials {
    /// Validations that failed.
    pub(super) failed: Vec<Denial>,
    /// Audit annotations that could not be evaluated: they refuse the request whatever the binding says.
    pub(super) of_annotations: Vec<Denial>,
}

// === impl Compiled ===

impl Compiled {
    /// Compiles the spec of a policy. What does not compile fails when it is evaluated.
    pub(super) fn new(spec: &Value) -> Self {
        let mut composition = Composition::new(is_set(&spec["paramKind"]));
        for (variable, expression) in texts(spec, "variables", "expression") {
            // An error is one of the expressions that use the variable.
            let _ = composition.declare(text(&variable["name"]), expression, Environment::Stored);
        }
        let compile = |text: &str, result: ResultType, has_authorizer: bool| Compiling {
            program: composition.compile(text, Environment::Stored, result, has_authorizer),
            text: text.to_owned(),
        };
        let conditions = texts(spec, "matchConditions", "expression");
        let conditions = conditions.map(|(_, text)| compile(text, ResultType::Bool, true)).collect();
        let annotations = texts(spec, "auditAnnotations", "valueExpression");
        let annotations = annotations.map(|(_, text)| compile(text, ResultType::StringOrNull, true)).collect();
        let validations = items(&spec["validations"]).iter().map(|validation| Validation {
            expression: compile(text(&validation["expression"]), ResultType::Bool, true),
            message_expression: Some(text(&validation["messageExpression"]))
                .filter(|text| !text.is_empty())
                .map(|text| compile(text, ResultType::String, false)),
            message: text(&validation["message"]).trim().to_owned(),
            reason: REASONS.into_iter().find(|reason| validation["reason"] == *reason).unwrap_or("Invalid"),
        });
        let validations = validations.collect();
        let mutations = items(&spec["mutations"]).iter().map(|mutation| {
            let (field, result) = match text(&mutation["patchType"]) {
                "JSONPatch" => ("jsonPatch", ResultType::Operations),
                _ => ("applyConfiguration", ResultType::Configuration),
            };
            let text = text(&mutation[field]["expression"]);
            let program = composition.compile_mutation(text, Environment::Stored, result);
            Compiling { text: text.to_owned(), program }
        });
        let mutations = mutations.collect();
        Self { composition, conditions, validations, annotations, mutations }
    }
}

// === impl Compiling ===

impl Compiling {
    fn parts(&self) -> (&str, Result<&Program, &CompileError>) {
        (&self.text, self.program.as_ref())
    }
}

// === impl Policy ===

impl Policy {
    /// Evaluates the policy about a request, with one of its parameters.
    pub(super) fn evaluate(
        &self,
        registry: &Registry,
        attributes: &Attributes<'_>,
        seen: &Seen,
        param: &Value,
        namespace: &Value,
    ) -> Denials {
        let compiled = self.compiled();
        let authorizer = RequestAuthorizer { registry, user: &attributes.call.user };
        let check = || attributes.resource_check();
        match compiled.matches(&compiled.start(seen.bindings(Binding::Null, &authorizer, check()), param)) {
            Match::Yes => {}
            Match::No => return Denials::default(),
            Match::Failed(why) => return self.errors(vec![why]),
        }
        let shown = || if namespace.is_null() { Binding::Null } else { Binding::Json(namespace) };
        let decisions = compiled.start(seen.bindings(shown(), &authorizer, check()), param);
        let messages = || compiled.start(seen.bindings_without_authorizer(shown()), param);
        let failed = match compiled.failed(&decisions, &messages()) {
            Ok(failed) => failed,
            Err(why) => return self.errors(vec![why]),
        };
        let annotations = match compiled.wrong_annotations(&messages()) {
            Ok(wrong) => wrong,
            Err(why) => return self.errors(vec![why]),
        };
        let counts = |is_error: bool| !is_error || !self.is_ignored_on_failure;
        let failed = failed.into_iter().filter(|(_, is_error)| counts(*is_error)).map(|(denial, _)| denial).collect();
        let of_annotations = if self.is_ignored_on_failure { Vec::new() } else { annotations };
        Denials { failed, of_annotations }
    }

    /// Returns what is wrong if the policy cannot be evaluated.
    fn errors(&self, errors: Vec<String>) -> Denials {
        let errors = errors.into_iter().filter(|_| !self.is_ignored_on_failure);
        Denials { failed: errors.map(Denial::new).collect(), of_annotations: Vec::new() }
    }
}

impl Compiled {
    pub(super) fn start<'a>(&'a self, mut bindings: Vec<(&'a str, Binding<'a>)>, param: &'a Value) -> Evaluations<'a> {
        bindings.push(("params", Binding::Json(param)));
        self.composition.start(&bindings)
    }

    pub(super) fn matches(&self, evaluations: &Evaluations<'_>) -> Match {
        let conditions = self.conditions.iter().map(Compiling::parts);
        Match::of(evaluate(conditions, &|program| evaluations.run(program), &mut { MATCH_BUDGET }))
    }

    /// Returns the validations that failed, and whether that is because they could not be evaluated.
    fn failed(&self, evaluations: &Evaluations<'_>, messages: &Evaluations<'_>) -> Result<Vec<(Denial, bool)>, String> {
        let mut budget = BUDGET;
        let expressions = self.validations.iter().map(|validation| validation.expression.parts());
        let answers = evaluate(expressions, &|program| evaluations.run(program), &mut budget)?;
        let expressions = self.validations.iter().filter_map(|validation| validation.message_expression.as_ref());
        let texts = evaluate(expressions.map(Compiling::parts), &|program| messages.run(program), &mut budget);
        let mut texts = texts.map(Vec::into_iter);
        let mut failed = Vec::new();
        for (validation, answer) in self.validations.iter().zip(answers) {
            let text = validation.message_expression.as_ref().map(|_| match &mut texts {
                Ok(texts) => Ok(texts.next()),
                Err(why) => Err(format!("failed messageExpression: {why}")),
            });
            match (answer, text.transpose()) {
                (Err(error), _) | (Ok(_), Err(error)) => failed.push((Denial::new(error), true)),
                (Ok(Answer::Bool(true)), Ok(_)) => {}
                (Ok(_), Ok(text)) => failed.push((validation.denial(text.flatten()), false)),
            }
        }
        Ok(failed)
    }

    /// Returns the audit annotations that cannot be evaluated. What the others say is for an audit log, which there is none of.
    fn wrong_annotations(&self, evaluations: &Evaluations<'_>) -> Result<Vec<Denial>, String> {
        let expressions = self.annotations.iter().map(Compiling::parts);
        let answers = evaluate(expressions, &|program| evaluations.run(program), &mut { BUDGET })?;
        Ok(answers.into_iter().filter_map(Result::err).map(Denial::new).collect())
    }
}

// === impl Validation ===

impl Validation {
    /// Returns the denial with the best message there is.
    fn denial(&self, evaluated: Option<Result<Answer, String>>) -> Denial {
        let evaluated = match evaluated {
            Some(Ok(Answer::String(text))) => text.trim().to_owned(),
            _ => String::new(),
        };
        let is_fit = !evaluated.is_empty() && evaluated.len() <= MESSAGE_BYTES_MAX && !evaluated.contains('\n');
        let message = match (is_fit, self.message.is_empty()) {
            (true, _) => evaluated,
            (false, false) => self.message.clone(),
            (false, true) => format!("failed expression: {}", self.expression.text.trim()),
        };
        Denial { message, reason: self.reason }
    }
}
