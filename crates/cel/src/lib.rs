//! Kubernetes' CEL as of 1.37.
//!
//! The language in which custom resources say what is valid (`x-kubernetes-validations`), and admission policies, match
//! conditions and device selectors say what applies. This crate parses expressions, checks their types, estimates what
//! they may cost, runs them and counts what they do cost: all of it as cel-go and Kubernetes do, to the words of errors.
//! No I/O, no clock, no client.
//!
//! ```
//! use serde_json::json;
//! use steersman_cel::{COST_BUDGET_PER_OBJECT, DefinitionCheck, Schema, Validator, check_definition};
//!
//! let schema = Schema::new(&json!({"type": "object", "properties": {"spec": {
//!     "type": "object",
//!     "properties": {"replicas": {"type": "integer"}, "max": {"type": "integer"}},
//!     "x-kubernetes-validations": [
//!         {"rule": "self.replicas <= self.max", "messageExpression": "'at most %d'.format([self.max])"},
//!         {"rule": "self.max >= oldSelf.max", "message": "max may not shrink"},
//!     ],
//! }}}));
//! assert!(check_definition(&schema, &DefinitionCheck::of_new("spec.validation.openAPIV3Schema")).is_empty());
//!
//! let rules = Validator::new(&schema, true);
//! let old = json!({"spec": {"replicas": 1, "max": 5}});
//! let new = json!({"spec": {"replicas": 4, "max": 3}});
//! let verdict = rules.validate(&new, Some(&old), true, COST_BUDGET_PER_OBJECT);
//! let errors: Vec<String> = verdict.errors.iter().map(ToString::to_string).collect();
//! assert_eq!(errors, ["spec: Invalid value: at most 3", "spec: Invalid value: max may not shrink"]);
//! ```
//!
//! # Guarantees
//!
//! 1. Expressions that kube-apiserver 1.37 accepts are accepted, and those that it refuses are refused; values, errors
//!    and costs are the same (`tests/upstream.rs`, recorded from upstream's own code).
//! 2. Whatever an expression, a schema or an object is, time, memory and stack are bounded: expressions by their length
//!    and nesting, running them by its cost, patterns by matching in linear time.
//! 3. Objects are not copied: values are looked at in place, as far as an expression goes.

mod ast;
mod authz;
mod checker;
mod composition;
mod cost;
mod decl_type;
mod decls;
mod definition;
mod escape;
mod eval;
mod expression;
mod field_path;
mod functions;
mod gofmt;
mod goregex;
mod gotime;
mod lexer;
mod made;
mod opaque;
mod parser;
mod plan;
mod program;
mod rules;
mod schema;
mod source;
mod type_check;
mod types;
mod validator;
mod value;
mod variables;

pub use authz::{AuthorizationCheck, AuthorizationDecision, Authorizer};
pub use composition::{Composition, Evaluations};
pub use decls::Environment;
pub use definition::{DefinitionCheck, check_definition};
pub use escape::{escape, is_reserved};
pub use expression::{Evaluation, Expression};
pub use made::{Mutation, MutationError, MutationRun};
pub use program::{Answer, Binding, CompileError, Program, ResultType, Run};
pub use schema::Schema;
pub use type_check::{KnownType, TypeCheck};
pub use validator::{COST_BUDGET_PER_OBJECT, COST_LIMIT_PER_RULE, Validator, Verdict};
pub use variables::Variables;
