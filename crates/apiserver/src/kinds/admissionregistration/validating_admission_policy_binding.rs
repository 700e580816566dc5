//! ValidatingAdmissionPolicyBindings.

use super::STRATEGY;
use super::policy;
use crate::kinds::{NameRule, Rules};

/// The rules of ValidatingAdmissionPolicyBindings.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(policy::default_binding)
    .with_strategy(STRATEGY)
    .printed(policy::BINDING_CELLS);
