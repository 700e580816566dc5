//! ValidatingAdmissionPolicyBindings.

use super::policy;
use super::{EXEMPT, STRATEGY};
use crate::kinds::{NameRule, Rules};

/// The rules of ValidatingAdmissionPolicyBindings.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(policy::default_binding)
    .admitted(EXEMPT)
    .with_strategy(STRATEGY)
    .printed(policy::BINDING_CELLS);
