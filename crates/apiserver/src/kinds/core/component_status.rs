//! ComponentStatuses: those of a new cluster, in which only the storage runs.

use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;
use crate::table::{Cell, TableRow, cell};

/// The rules of ComponentStatuses.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .with_strategy(Strategy { warning: Some("v1 ComponentStatus is deprecated in v1.19+"), ..Strategy::DEFAULT })
    .printed(&[Cell::Name, Cell::Made(health), Cell::Text("/conditions/0/message"), Cell::Text("/conditions/0/error")]);

fn health(row: &TableRow<'_>) -> String {
    match row.condition("/conditions", "Healthy").map(|condition| cell::text(condition, "status")) {
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
        None => "Unknown",
    }
    .to_owned()
}
