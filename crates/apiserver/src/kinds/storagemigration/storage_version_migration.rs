//! StorageVersionMigrations.

use serde_json::Value;

use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::{Strategy, USER_METADATA};
use crate::table::{Cell, cell};

/// The rules of StorageVersionMigrations.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .status_resets(&["metadata", "spec"])
    .with_strategy(Strategy { unconditional_update: false, status_keeps_metadata: USER_METADATA, ..Strategy::DEFAULT })
    .printed(&[
        Cell::Name,
        Cell::Made(|row| match row.text("/spec/resource/group") {
            "" => row.text("/spec/resource/resource").to_owned(),
            group => format!("{}.{group}", row.text("/spec/resource/resource")),
        }),
        Cell::Made(|row| {
            let is_true = |condition: &&Value| cell::text(condition, "status") == "True";
            let known = ["Running", "Failed", "Succeeded"];
            let mut conditions =
                row.list_at("/status/conditions").iter().filter(is_true).map(|it| cell::text(it, "type"));
            conditions.rfind(|kind| known.contains(kind)).unwrap_or("Unknown").to_owned()
        }),
    ]);
