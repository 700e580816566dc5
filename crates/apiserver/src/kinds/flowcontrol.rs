//! The group `flowcontrol.apiserver.k8s.io`: FlowSchemas and priority levels.

mod flow_schema;
mod priority_level_configuration;

use serde_json::Value;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::json::{each, text};
use crate::kinds::{Kinds, NameRule, Rules};
use crate::registry::strategy::Strategy;

/// The kinds of the group `flowcontrol.apiserver.k8s.io`.
pub(super) const KINDS: Kinds =
    &[("FlowSchema", &flow_schema::RULES), ("PriorityLevelConfiguration", &priority_level_configuration::RULES)];

/// The common rules of both kinds.
const COMMON: Rules = Rules::named(NameRule::Subdomain)
    .rechecked()
    .status_validated(|new, _, errors| conditions(&new["status"], errors))
    .status_resets(&["metadata", "spec"])
    .with_strategy(Strategy::GENERATION);

/// Checks the conditions of a status.
fn conditions(status: &Value, errors: &mut Errors) {
    let mut types: Vec<&str> = Vec::new();
    each(&status["conditions"], &Path::new("status").child("conditions"), |condition, path| {
        let path = path.child("type");
        let kind = text(&condition["type"]);
        if types.contains(&kind) {
            errors.push(FieldError::duplicate(&path, kind));
        }
        types.push(kind);
        if kind.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
    });
}
