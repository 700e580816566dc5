//! ValidatingAdmissionPolicies. They are stored, and not enforced yet.

use super::policy;
use super::{EXEMPT, STRATEGY};
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::{Strategy, USER_METADATA};
use crate::table::Cell;

/// The rules of ValidatingAdmissionPolicies.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(policy::default)
    .status_resets(&["metadata", "spec"])
    .admitted(EXEMPT)
    .with_strategy(Strategy { status_keeps_metadata: USER_METADATA, ..STRATEGY })
    .printed(&[Cell::Name, Cell::Count("/spec/validations"), Cell::Made(policy::param_kind), Cell::Age]);
