//! One expression about one object, by itself: for what is not a rule of a schema, and for tests.

use std::sync::Arc;

use serde_json::Value as Json;

use crate::checker::{self, Scope};
use crate::cost;
use crate::decl_type::{self, StructTypes};
use crate::decls::Environment;
use crate::eval;
use crate::plan::{self, Node};
use crate::schema::Schema;
use crate::value::{Value, from_json};

/// A compiled expression with the variables `self` and `oldSelf`.
pub struct Expression {
    program: Node,
    schema: Arc<Schema>,
    /// The type of its result, such as `bool`.
    pub result_type: String,
    /// The most that a run can cost, by estimate.
    pub max_cost: u64,
    /// Whether it looks at the object as it was before.
    pub uses_old_self: bool,
}

/// The result of an evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// The value as text, or the error.
    pub outcome: Result<String, String>,
    /// The cost of the evaluation.
    pub cost: u64,
}

impl Expression {
    /// Parses and checks an expression about values of a schema.
    ///
    /// # Errors
    /// What is wrong with it, in cel-go's words.
    pub fn new(text: &str, schema: &Schema, environment: Environment) -> Result<Self, String> {
        let declared = decl_type::declare(schema, false).ok_or("the schema describes nothing for expressions")?;
        let mut structs = StructTypes::default();
        let self_type = declared.named("selfType", &mut structs);
        let scope = Scope {
            environment,
            variables: vec![("self".into(), self_type.clone()), ("oldSelf".into(), self_type)],
            structs: Arc::new(structs),
        };
        let checked = checker::compile(text, &scope)?;
        let program = plan::plan(&checked).map_err(|error| format!("program instantiation failed: {error}"))?;
        Ok(Self {
            program,
            schema: Arc::new(schema.clone()),
            result_type: checked.type_of(checked.expr.id).to_string(),
            max_cost: cost::estimate(&checked, &declared).max,
            uses_old_self: checked.uses("oldSelf"),
        })
    }

    /// Runs the expression.
    #[must_use]
    pub fn evaluate(&self, object: &Json, old: Option<&Json>, cost_limit: u64) -> Evaluation {
        let mut variables = vec![("self", from_json(object, &self.schema))];
        variables.extend(old.map(|old| ("oldSelf", from_json(old, &self.schema))));
        let outcome = eval::run(&self.program, &variables, cost_limit);
        let result = match outcome.value {
            Value::Error(error) => Err(error.to_string()),
            value => Ok(format!("{} {}", value.type_name(), value.text())),
        };
        Evaluation { outcome: result, cost: outcome.cost }
    }
}
