//! ValidatingAdmissionPolicies. [`policy`](crate::registry::admission::policy) enforces them.

use super::policy;
use super::{EXEMPT, STRATEGY};
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::{Strategy, USER_METADATA};
use crate::table::Cell;

/// The rules of ValidatingAdmissionPolicies.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .rechecked()
    .defaulted(policy::default)
    .validated(policy::validate_policy)
    .status_validated(policy::validate_status)
    .status_resets(&["metadata", "spec"])
    .admitted(EXEMPT)
    .heavy()
    .after_write(|registry, _| registry.policies_changed())
    .after_delete(|registry, _| registry.policies_changed())
    .with_strategy(Strategy { status_keeps_metadata: USER_METADATA, ..STRATEGY })
    .printed(&[Cell::Name, Cell::Count("/spec/validations"), Cell::Made(policy::param_kind), Cell::Age]);
