//! DeviceClasses.

use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;
use crate::table::Cell;

/// The rules of DeviceClasses.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .with_strategy(Strategy { returns_deleted: true, ..Strategy::GENERATION })
    .printed(&[Cell::Name, Cell::Age]);
