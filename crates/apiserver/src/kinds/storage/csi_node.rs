//! CSINodes.

use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;
use crate::table::Cell;

/// The rules of CSINodes.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .status_resets(&["metadata", "spec"])
    .with_strategy(Strategy { unconditional_update: false, ..Strategy::RETURNS_DELETED })
    .printed(&[Cell::Name, Cell::Count("/spec/drivers"), Cell::Age]);
