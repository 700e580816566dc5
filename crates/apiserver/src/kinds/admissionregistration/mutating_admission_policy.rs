//! MutatingAdmissionPolicies. `registry/admission/policy/mutation.rs` enforces them.

use super::policy;
use super::{EXEMPT, STRATEGY};
use crate::kinds::{NameRule, Rules};
use crate::table::Cell;

/// The rules of MutatingAdmissionPolicies.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .rechecked()
    .defaulted(policy::default)
    .validated(policy::validate_mutating)
    .with_strategy(STRATEGY)
    .after_write(|registry, _| registry.policies_changed())
    .after_delete(|registry, _| registry.policies_changed())
    .admitted(EXEMPT)
    .heavy()
    .printed(&[Cell::Name, Cell::Count("/spec/mutations"), Cell::Made(policy::param_kind), Cell::Age]);
