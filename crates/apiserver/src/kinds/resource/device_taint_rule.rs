//! DeviceTaintRules.

use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::{Strategy, USER_METADATA};
use crate::table::Cell;

/// The rules of DeviceTaintRules.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .status_resets(&["metadata", "spec"])
    .with_strategy(Strategy { status_keeps_metadata: USER_METADATA, ..Strategy::DEFAULT })
    .printed(&[
        Cell::Name,
        Cell::Text("/spec/taint/key"),
        Cell::Text("/spec/taint/value"),
        Cell::Text("/spec/taint/effect"),
        Cell::Made(|row| {
            let path = "/spec/taint/timeAdded";
            if row.at(path).is_some() { row.since(path) } else { String::new() }
        }),
        Cell::Age,
    ]);
