//! PriorityLevelConfigurations: `pkg/apis/flowcontrol/v1/defaults.go`.

use serde_json::Value;

use crate::kinds::shared::json::{default_to, default_zero_to, object_mut};
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;
use crate::table::{Cell, TableRow};

/// The rules of PriorityLevelConfigurations.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(|object| {
        let Some(spec) = object_mut(object, "spec") else { return };
        for (kind, shares) in [("exempt", 0), ("limited", 30)] {
            if let Some(level) = object_mut(spec, kind) {
                default_to(level, "nominalConcurrencyShares", shares);
                default_to(level, "lendablePercent", 0);
                let response = object_mut(level, "limitResponse");
                if let Some(queuing) = response.and_then(|it| object_mut(it, "queuing")) {
                    default_zero_to(queuing, "handSize", 8);
                    default_zero_to(queuing, "queues", 64);
                    default_zero_to(queuing, "queueLengthLimit", 50);
                }
            }
        }
    })
    .status_resets(&["metadata", "spec"])
    .with_strategy(Strategy::GENERATION)
    .printed(&[
        Cell::Name,
        Cell::Text("/spec/type"),
        Cell::Value(|row| or_none(row, "/spec/limited/nominalConcurrencyShares")),
        Cell::Value(|row| or_none(row, "/spec/limited/limitResponse/queuing/queues")),
        Cell::Value(|row| or_none(row, "/spec/limited/limitResponse/queuing/handSize")),
        Cell::Value(|row| or_none(row, "/spec/limited/limitResponse/queuing/queueLengthLimit")),
        Cell::Age,
    ]);

fn or_none(row: &TableRow<'_>, path: &str) -> Value {
    row.at(path).cloned().unwrap_or_else(|| "<none>".into())
}
