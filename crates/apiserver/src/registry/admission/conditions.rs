//! Match conditions: expressions that must all hold for a webhook to be asked. Pure, but for what the authorizer looks up.
//!
//! Follows `apiserver/pkg/admission/plugin/webhook/matchconditions/matcher.go` of Kubernetes 1.37.

use std::fmt;
use std::sync::OnceLock;

use serde_json::Value;
use steersman_cel::{
    Answer, AuthorizationCheck, AuthorizationDecision, Authorizer, Binding, COST_LIMIT_PER_RULE, CompileError,
    Environment, Program, ResultType, Run, Variables,
};

use crate::auth::User;
use crate::auth::rbac::Attributes;
use crate::kinds::shared::json::{items, text};
use crate::registry::Registry;

/// The maximum cost of all conditions of one webhook or policy: upstream's `RuntimeCELCostBudgetMatchConditions`.
pub(super) const MATCH_BUDGET: u64 = 2_500_000;
pub(super) const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The match conditions of a webhook.
#[derive(Debug, Default)]
pub(crate) struct MatchConditions(Vec<Condition>);

#[derive(Debug)]
struct Condition {
    expression: String,
    program: OnceLock<Result<Program, CompileError>>,
}

/// Whether the conditions hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// All of them do.
    Yes,
    /// One of them does not.
    No,
    /// Some cannot be evaluated, the others hold. What went wrong.
    Failed(String),
}

/// Answers the checks of expressions about a request, by the roles of the cluster.
pub(crate) struct RequestAuthorizer<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) user: &'a User,
}

// === impl MatchConditions ===

impl MatchConditions {
    /// Reads `matchConditions`.
    pub(crate) fn read(conditions: &Value) -> Self {
        let read = |condition: &Value| Condition {
            expression: text(&condition["expression"]).to_owned(),
            program: OnceLock::new(),
        };
        Self(items(conditions).iter().map(read).collect())
    }

    /// Whether there are none, so that nobody needs to ask.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Decides whether the conditions hold. One that does not decides, even if others are errors.
    pub(crate) fn decide(&self, bindings: &[(&str, Binding<'_>)]) -> Match {
        let conditions = self.0.iter().map(|condition| (condition.expression.as_str(), condition.program()));
        Match::of(evaluate(conditions, &|program| program.run(bindings, COST_LIMIT_PER_RULE), &mut { MATCH_BUDGET }))
    }
}

/// Evaluates expressions one after the other, until they have cost more than the budget. Returns the answer of each, or what is
/// wrong with it.
///
/// # Errors
/// The budget is exceeded.
pub(super) fn evaluate<'a>(
    expressions: impl Iterator<Item = (&'a str, Result<&'a Program, &'a CompileError>)>,
    run: &dyn Fn(&Program) -> Run,
    budget: &mut u64,
) -> Result<Vec<Result<Answer, String>>, String> {
    let mut answers = Vec::new();
    for (text, program) in expressions {
        let program = match program {
            Ok(program) => program,
            Err(error) => {
                answers.push(Err(format!("compilation error: {error}")));
                continue;
            }
        };
        let run = run(program);
        *budget = budget.checked_sub(run.cost).ok_or(OUT_OF_BUDGET)?;
        answers.push(run.outcome.map_err(|error| format!("expression '{text}' resulted in error: {error}")));
    }
    Ok(answers)
}

// === impl Match ===

impl Match {
    /// Reads the answers of conditions.
    pub(super) fn of(answers: Result<Vec<Result<Answer, String>>, String>) -> Self {
        let answers = match answers {
            Ok(answers) => answers,
            Err(why) => return Self::Failed(why),
        };
        if answers.contains(&Ok(Answer::Bool(false))) {
            return Self::No;
        }
        let errors: Vec<String> = answers.into_iter().filter_map(Result::err).collect();
        match &errors[..] {
            [] => Self::Yes,
            [one] => Self::Failed(one.clone()),
            _ => Self::Failed(format!("[{}]", errors.join(", "))),
        }
    }
}

// === impl Condition ===

impl Condition {
    /// The program, which is made when it is first used.
    fn program(&self) -> Result<&Program, &CompileError> {
        let program = self.program.get_or_init(|| {
            Program::new(&self.expression, Variables::admission(), Environment::Stored, ResultType::Bool)
        });
        program.as_ref()
    }
}

// === impl RequestAuthorizer ===

impl Authorizer for RequestAuthorizer<'_> {
    fn authorize(&self, check: &AuthorizationCheck) -> AuthorizationDecision {
        let wanted = Attributes {
            verb: check.verb.clone(),
            namespace: check.namespace.clone(),
            group: check.group.clone(),
            resource: check.resource.clone(),
            subresource: check.subresource.clone(),
            name: check.name.clone(),
            path: check.path.clone(),
        };
        let account = check.service_account.as_ref().map(|(namespace, name)| User {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            groups: vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")],
            ..User::default()
        });
        let decision = self.registry.decide(account.as_ref().unwrap_or(self.user), &wanted);
        AuthorizationDecision { is_allowed: decision.is_allowed, reason: decision.reason, error: None }
    }
}

impl fmt::Debug for RequestAuthorizer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestAuthorizer").field("user", &self.user.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decided(expressions: &[&str]) -> Match {
        let conditions: Vec<Value> = expressions.iter().map(|text| json!({"name": "a", "expression": text})).collect();
        let object = json!({"spec": {"replicas": 3, "list": (0..2000).collect::<Vec<_>>()}});
        MatchConditions::read(&conditions.into()).decide(&[("object", Binding::Json(&object))])
    }

    #[test]
    fn all_must_hold_and_one_that_does_not_decides() {
        let missing = "object.spec.none == 1";
        let of_missing = "expression 'object.spec.none == 1' resulted in error: no such key: none".to_owned();
        let dear = "object.spec.list.all(x, object.spec.list.all(y, x + y >= 0))";
        let too_dear =
            format!("expression '{dear}' resulted in error: operation cancelled: actual cost limit exceeded");
        let out_of_budget =
            "validation failed due to running out of cost budget, no further validation rules will be run".to_owned();
        let uncompiled = "compilation error: must evaluate to bool but got int".to_owned();
        let rows: Vec<(Vec<&str>, Match)> = vec![
            (vec![], Match::Yes),
            (vec!["true"], Match::Yes),
            (vec!["true", "object.spec.replicas == 3"], Match::Yes),
            (vec!["true", "object.spec.replicas == 4"], Match::No),
            (vec![missing], Match::Failed(of_missing.clone())),
            (vec!["true", missing], Match::Failed(of_missing.clone())),
            (vec![missing, missing], Match::Failed(format!("[{of_missing}, {of_missing}]"))),
            (vec![missing, "false"], Match::No),
            (vec!["false", missing], Match::No),
            (vec!["1"], Match::Failed(uncompiled)),
            (vec![dear], Match::Failed(too_dear)),
            (vec![dear, "false"], Match::No),
            (vec![dear, dear, dear], Match::Failed(out_of_budget.clone())),
            (vec!["false", dear, dear, dear], Match::Failed(out_of_budget)),
        ];
        for (expressions, want) in rows {
            assert_eq!(decided(&expressions), want, "{expressions:?}");
        }
    }
}
