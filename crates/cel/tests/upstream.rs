//! Expressions, rules and definitions that upstream's own code was given, with what it answered: kube-apiserver 1.37.1
//! with cel-go 0.29.2. `data/upstream.jsonl` was printed by a program that calls `apiextensions-apiserver`.

use serde::Deserialize;
use serde_json::Value;
use steersman_cel::{
    COST_BUDGET_PER_OBJECT, COST_LIMIT_PER_RULE, DefinitionCheck, Environment, Expression, Schema, Validator,
    check_definition,
};

/// What upstream was given, and its answer.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Case {
    kind: String,
    /// The name of a schema, if it is not in line.
    schema: String,
    inline: Option<Value>,
    expr: String,
    env: String,
    object: Option<Value>,
    old: Option<Value>,
    limit: u64,
    error: String,
    r#type: String,
    max: u64,
    value: String,
    fail: String,
    cost: u64,
    errors: Vec<String>,
    warnings: Vec<String>,
    budget: i64,
}

/// How many answers were compared, and how many differ.
#[derive(Default)]
struct Tally {
    cases: usize,
    other_outcome: Vec<String>,
    other_message: Vec<String>,
    other_cost: Vec<String>,
}

impl Tally {
    fn report(&self, name: &str) {
        let percent = |differing: usize| 100.0 * (self.cases - differing) as f64 / self.cases as f64;
        println!(
            "{name}: {} cases, outcome {:.1} % equal, message {:.1} %, cost {:.1} %",
            self.cases,
            percent(self.other_outcome.len()),
            percent(self.other_outcome.len() + self.other_message.len()),
            percent(self.other_cost.len()),
        );
        for text in self.other_outcome.iter().chain(&self.other_message).chain(&self.other_cost) {
            println!("  {text}");
        }
    }
}

fn cases() -> (Value, Vec<Case>) {
    let mut lines = include_str!("data/upstream.jsonl").lines();
    let shared = serde_json::from_str(lines.next().expect("a first line")).expect("JSON");
    (shared, lines.map(|line| serde_json::from_str(line).expect("a case")).collect())
}

fn compare_expression(case: &Case, shared: &Value, tally: &mut Tally) {
    let schema = Schema::new(&shared["schemas"][&case.schema]);
    let is_main = case.schema == "main";
    let object = case.object.as_ref().unwrap_or(&shared["object"]);
    let old = if is_main { Some(&shared["old"]) } else { None };
    let environment = if case.env == "stored" { Environment::Stored } else { Environment::New };
    let limit = if case.limit == 0 { COST_LIMIT_PER_RULE } else { case.limit };
    tally.cases += 1;
    let expression = match Expression::new(&case.expr, &schema, environment) {
        Ok(expression) => expression,
        Err(error) if case.error.is_empty() => {
            tally.other_outcome.push(format!("{:?} is refused: {error}", case.expr));
            return;
        }
        Err(error) => {
            if error != case.error {
                tally.other_message.push(format!("{:?}\n    want {:?}\n    got  {error:?}", case.expr, case.error));
            }
            return;
        }
    };
    if !case.error.is_empty() {
        tally.other_outcome.push(format!("{:?} is accepted, but {:?}", case.expr, case.error));
        return;
    }
    let got = expression.evaluate(object, old, limit);
    let want = if case.fail.is_empty() { Ok(case.value.clone()) } else { Err(case.fail.clone()) };
    match (&got.outcome, &want) {
        (got, want) if got == want => {}
        (Err(got), Err(want)) => {
            tally.other_message.push(format!("{:?}\n    want {want:?}\n    got  {got:?}", case.expr));
        }
        (got, want) => tally.other_outcome.push(format!("{:?}\n    want {want:?}\n    got  {got:?}", case.expr)),
    }
    if expression.result_type != case.r#type {
        tally.other_outcome.push(format!("{:?} is {}, not {}", case.expr, expression.result_type, case.r#type));
    }
    if (got.cost, expression.max_cost) != (case.cost, case.max) {
        tally.other_cost.push(format!(
            "{:?} costs {} of {}, not {} of {}",
            case.expr, got.cost, expression.max_cost, case.cost, case.max
        ));
    }
}

fn compare_lists(tally: &mut Tally, name: &str, want: &[String], got: &[String]) {
    let mut want = want.to_vec();
    let mut got = got.to_vec();
    // Upstream goes through maps in any order.
    want.sort();
    got.sort();
    let detail = format!("{name}\n    want {want:#?}\n    got  {got:#?}");
    if want.is_empty() != got.is_empty() {
        tally.other_outcome.push(detail);
    } else if want != got {
        tally.other_message.push(detail);
    }
}

fn texts(errors: &[impl ToString]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn expressions_are_refused_fail_and_cost_as_upstream() {
    let (shared, cases) = cases();
    let mut tally = Tally::default();
    for case in cases.iter().filter(|case| case.kind == "expr") {
        compare_expression(case, &shared, &mut tally);
    }
    tally.report("expressions");
    assert!(tally.cases > 1500);
    assert!(tally.other_outcome.is_empty(), "outcomes differ");
    assert!(tally.other_message.len() * 100 <= tally.cases, "more than 1 % of messages differ");
    assert!(tally.other_cost.is_empty(), "costs differ");
}

#[test]
fn rules_find_what_upstream_finds() {
    let (_, cases) = cases();
    let mut tally = Tally::default();
    for case in cases.iter().filter(|case| case.kind == "validate") {
        let schema = Schema::new(case.inline.as_ref().expect("a schema"));
        let rules = Validator::new(&schema, true);
        let budget = if case.limit == 0 { COST_BUDGET_PER_OBJECT } else { case.limit as i64 };
        let object = case.object.as_ref().expect("an object");
        let verdict = rules.validate(object, case.old.as_ref(), case.old.is_some(), budget);
        tally.cases += 1;
        let name = case.inline.as_ref().map(ToString::to_string).unwrap_or_default();
        compare_lists(&mut tally, &name, &case.errors, &texts(&verdict.errors));
        compare_lists(&mut tally, &name, &case.warnings, &verdict.warnings);
        if verdict.remaining_budget != case.budget {
            tally.other_cost.push(format!("{name}: {} left, not {}", verdict.remaining_budget, case.budget));
        }
    }
    tally.report("rules");
    assert!(tally.cases >= 50);
    assert!(tally.other_outcome.is_empty() && tally.other_message.is_empty() && tally.other_cost.is_empty());
}

#[test]
fn definitions_are_refused_as_upstream() {
    let (_, cases) = cases();
    let mut tally = Tally::default();
    for case in cases.iter().filter(|case| case.kind == "definition") {
        let schema = Schema::new(case.inline.as_ref().expect("a schema"));
        let errors = check_definition(&schema, &DefinitionCheck::of_new("spec.validation.openAPIV3Schema"));
        tally.cases += 1;
        let name = case.inline.as_ref().map(ToString::to_string).unwrap_or_default();
        compare_lists(&mut tally, &name, &case.errors, &texts(&errors));
    }
    tally.report("definitions");
    assert!(tally.cases >= 40);
    assert!(tally.other_outcome.is_empty() && tally.other_message.is_empty());
}
