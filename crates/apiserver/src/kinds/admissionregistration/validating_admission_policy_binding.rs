//! ValidatingAdmissionPolicyBindings.

use super::policy;
use super::{EXEMPT, STRATEGY};
use crate::kinds::{NameRule, Rules};

/// The rules of ValidatingAdmissionPolicyBindings.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .rechecked()
    .defaulted(policy::default_binding)
    .validated(|binding, _, errors| {
        policy::validate_binding(binding, false, errors);
        policy::validate_actions(binding, errors);
    })
    .admitted(EXEMPT)
    .with_strategy(STRATEGY)
    .after_write(|registry, _| registry.policies_changed())
    .after_delete(|registry, _| registry.policies_changed())
    .printed(policy::BINDING_CELLS);
