//! MutatingAdmissionPolicies. They are stored, and not enforced yet.

use super::STRATEGY;
use super::policy;
use crate::kinds::{NameRule, Rules};
use crate::table::Cell;

/// The rules of MutatingAdmissionPolicies.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(policy::default)
    .with_strategy(STRATEGY)
    .printed(&[Cell::Name, Cell::Count("/spec/mutations"), Cell::Made(policy::param_kind), Cell::Age]);
