//! CEL expressions: parsed, type-checked and run within their cost.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use steersman_cel::{Environment, Expression, Schema};

const COST_MAX: u64 = 100_000;

fn world() -> &'static (Schema, Value) {
    static WORLD: OnceLock<(Schema, Value)> = OnceLock::new();
    WORLD.get_or_init(|| {
        let schema = Schema::new(&json!({"type": "object", "properties": {
            "name": {"type": "string", "maxLength": 64},
            "count": {"type": "integer"},
            "list": {"type": "array", "items": {"type": "string"}},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "when": {"type": "string", "format": "date-time"},
        }}));
        let object = json!({
            "name": "a", "count": 3, "list": ["x", "y"], "map": {"k": 1}, "when": "2026-11-17T00:00:00Z",
        });
        (schema, object)
    })
}

fuzz_target!(|text: &str| {
    let (schema, object) = world();
    if let Ok(expression) = Expression::new(text, schema, Environment::New) {
        let result = expression.evaluate(object, Some(object), COST_MAX);
        let again = expression.evaluate(object, Some(object), COST_MAX);
        assert_eq!((result.outcome, result.cost), (again.outcome, again.cost), "the same expression, run twice");
    }
});
