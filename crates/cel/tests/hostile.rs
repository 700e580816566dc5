//! Expressions, schemas and objects that are made to hurt: bounded time, memory and stack.

use serde_json::json;
use steersman_cel::{COST_BUDGET_PER_OBJECT, COST_LIMIT_PER_RULE, Environment, Expression, Schema, Validator};

fn schema() -> Schema {
    Schema::new(&json!({"type": "object", "properties": {
        "s": {"type": "string"},
        "list": {"type": "array", "items": {"type": "integer"}},
    }}))
}

fn refused(text: &str) -> String {
    match Expression::new(text, &schema(), Environment::New) {
        Ok(_) => panic!("accepted"),
        Err(error) => error,
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |open: &str, middle: &str, close: &str, depth: usize| {
        format!("{}{middle}{}", open.repeat(depth), close.repeat(depth))
    };
    let limit = "ERROR: <input>:-1:0: expression recursion limit exceeded: 250";
    let deep = "ERROR: <input>:-1:0: max recursion depth exceeded";
    assert_eq!(refused(&nested("(", "1", ")", 20_000)), limit);
    assert_eq!(refused(&nested("[", "1", "]", 20_000)), limit);
    assert_eq!(refused(&nested("{'a':", "1", "}", 10_000)), limit);
    assert_eq!(refused(&nested("f(", "1", ")", 10_000)), limit);
    assert_eq!(refused(&format!("1{}", "+1".repeat(40_000))), deep);
    assert_eq!(refused(&format!("self{}", ".a".repeat(40_000))), deep);
    assert_eq!(refused(&format!("self{}", "[0]".repeat(30_000))), deep);
    let inner = nested("(", "1", ")", 200);
    assert!(Expression::new(&format!("{inner} == 1"), &schema(), Environment::New).is_ok());
    // Long chains that are not deep are fine.
    let chain = vec!["true"; 10_000].join(" && ");
    assert!(Expression::new(&chain, &schema(), Environment::New).is_ok());
    assert!(refused(&"!".repeat(99_999)).contains("Syntax error"));
}

#[test]
fn macros_that_double_are_bounded() {
    let chain = format!("optional.of(1){}", ".optMap(x, x)".repeat(60));
    assert!(refused(&chain).contains("too large"));
    let doubles = format!("[1]{}", ".map(x, {x: x})".repeat(60));
    assert!(refused(&doubles).contains("too complex"));
}

#[test]
fn running_stops_at_its_limit() {
    let object = json!({"s": "a".repeat(100_000), "list": (0..2000).collect::<Vec<_>>()});
    let loops = "self.list.all(a, self.list.all(b, self.list.all(c, a + b + c >= 0)))";
    let expression = Expression::new(loops, &schema(), Environment::New).expect("compiles");
    let stopped = expression.evaluate(&object, None, COST_LIMIT_PER_RULE);
    assert_eq!(stopped.outcome, Err("operation cancelled: actual cost limit exceeded".to_owned()));
    assert!(stopped.cost <= COST_LIMIT_PER_RULE + 10);
    let pattern = Expression::new("self.s.matches('(a+)+$')", &schema(), Environment::New).expect("compiles");
    assert_eq!(pattern.evaluate(&object, None, COST_LIMIT_PER_RULE).outcome, Ok("bool true".to_owned()));
    let grows = "self.list.map(x, self.s + self.s).size() > 0";
    let expression = Expression::new(grows, &schema(), Environment::New).expect("compiles");
    assert!(expression.evaluate(&object, None, COST_LIMIT_PER_RULE).outcome.is_err());
}

#[test]
fn the_budget_of_an_object_is_shared() {
    let schema = Schema::new(&json!({"type": "array", "items": {
        "type": "string",
        "x-kubernetes-validations": [{"rule": "self.matches('^(x+x+)+y$')"}],
    }}));
    let rules = Validator::new(&schema, false);
    let object = json!(vec!["x".repeat(1000); 5000]);
    let verdict = rules.validate(&object, None, false, COST_BUDGET_PER_OBJECT / 100);
    assert_eq!(verdict.remaining_budget, -1);
    assert!(verdict.errors.last().is_some_and(|error| error.to_string().contains("running out of cost budget")));
}
