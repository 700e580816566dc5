//! Statuses of admission policies.

use super::{Findings, POLICY_STATUS, Rest};

const POLICIES: &str = "validatingadmissionpolicies.admissionregistration.k8s.io";

/// "observedGeneration is the generation observed by the controller." (ValidatingAdmissionPolicyStatus, observedGeneration)
///
/// At rest: it is that of the policy. When the last warning goes, `typeChecking` goes with it: so does server-side apply.
pub(super) fn policies_are_checked(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(POLICY_STATUS) {
        return;
    }
    for policy in rest.world.all(POLICIES).filter(|policy| !policy.is_terminating()) {
        let Some(raw) = rest.world.raw(POLICIES, &policy.key) else { continue };
        let observed = &raw["status"]["observedGeneration"];
        found.expect(*observed == policy.generation, || {
            format!("{policy} has the generation {}, and {observed} was observed", policy.generation)
        });
    }
}
