//! ServiceCIDRs.

use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::{Strategy, USER_METADATA};
use crate::table::Cell;

/// The rules of ServiceCIDRs.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .status_resets(&["metadata", "spec"])
    .with_strategy(Strategy { status_keeps_metadata: USER_METADATA, ..Strategy::DEFAULT })
    .printed(&[Cell::Name, Cell::Joined("/spec/cidrs", ""), Cell::Age]);
