//! CSIStorageCapacities.

use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;

/// The rules of CSIStorageCapacities.
pub(crate) static RULES: Rules =
    Rules::named(NameRule::Subdomain).with_strategy(Strategy { unconditional_update: false, ..Strategy::DEFAULT });
