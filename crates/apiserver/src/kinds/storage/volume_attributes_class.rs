//! VolumeAttributesClasses.

use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;
use crate::table::Cell;

/// The rules of VolumeAttributesClasses.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain).with_strategy(Strategy::RETURNS_DELETED).printed(&[
    Cell::Name,
    Cell::Text("/driverName"),
    Cell::Age,
]);
