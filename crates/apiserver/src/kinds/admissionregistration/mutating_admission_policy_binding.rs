//! MutatingAdmissionPolicyBindings.

use super::policy;
use super::{EXEMPT, STRATEGY};
use crate::kinds::{NameRule, Rules};

/// The rules of MutatingAdmissionPolicyBindings.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .rechecked()
    .defaulted(policy::default_binding)
    .validated(|binding, _, errors| policy::validate_binding(binding, true, errors))
    .with_strategy(STRATEGY)
    .after_write(|registry, _| registry.policies_changed())
    .after_delete(|registry, _| registry.policies_changed())
    .admitted(EXEMPT)
    .printed(policy::BINDING_CELLS);
