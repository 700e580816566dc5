//! MutatingAdmissionPolicies. They are stored, and not enforced yet.

use super::policy;
use super::{EXEMPT, STRATEGY};
use crate::kinds::{NameRule, Rules};
use crate::table::Cell;

/// The rules of MutatingAdmissionPolicies.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(policy::default)
    .validated(policy::validate_mutating)
    .with_strategy(STRATEGY)
    .admitted(EXEMPT)
    .heavy()
    .printed(&[Cell::Name, Cell::Count("/spec/mutations"), Cell::Made(policy::param_kind), Cell::Age]);
