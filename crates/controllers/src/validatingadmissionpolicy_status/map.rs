//! Pure: which policies are to be checked.

use steersman_base::ObjectKey;
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::admissionregistration::ValidatingAdmissionPolicyView;

/// Whether this generation of a policy has not been checked.
pub(super) fn is_unchecked(policy: &ValidatingAdmissionPolicyView) -> bool {
    policy.meta().generation > policy.status.observed_generation
}

/// Returns the changed policy, if it is to be checked.
pub(super) fn unchecked(change: &Change<ValidatingAdmissionPolicyView>) -> Option<ObjectKey> {
    let (Change::Added { new, .. } | Change::Updated { new, .. }) = change else { return None };
    is_unchecked(new).then(|| new.meta().key())
}
