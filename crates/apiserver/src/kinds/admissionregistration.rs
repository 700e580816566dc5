//! The group `admissionregistration.k8s.io`: webhooks and admission policies.

pub(crate) mod client_config;
mod match_conditions;
mod mutating_admission_policy;
mod mutating_admission_policy_binding;
mod mutating_webhook_configuration;
mod policy;
mod validating_admission_policy;
mod validating_admission_policy_binding;
mod validating_webhook_configuration;
mod webhook;

use crate::kinds::Kinds;
use crate::registry::admission::Admission;
use crate::registry::strategy::Strategy;

/// The strategy of all kinds of the group.
const STRATEGY: Strategy = Strategy { unconditional_update: false, ..Strategy::GENERATION };

/// No webhook is asked about what configures admission.
const EXEMPT: Admission = Admission { is_exempt: true, ..Admission::NONE };

/// The kinds of the group `admissionregistration.k8s.io`.
pub(super) const KINDS: Kinds = &[
    ("MutatingAdmissionPolicy", &mutating_admission_policy::RULES),
    ("MutatingAdmissionPolicyBinding", &mutating_admission_policy_binding::RULES),
    ("MutatingWebhookConfiguration", &mutating_webhook_configuration::RULES),
    ("ValidatingAdmissionPolicy", &validating_admission_policy::RULES),
    ("ValidatingAdmissionPolicyBinding", &validating_admission_policy_binding::RULES),
    ("ValidatingWebhookConfiguration", &validating_webhook_configuration::RULES),
];
