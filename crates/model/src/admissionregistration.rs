//! The group `admissionregistration.k8s.io`.

use steersman_base::Meta;

use crate::template::RawJson;
use crate::view;

view! {
    /// The part of an admission policy that controllers read. There are few of them, and their spec is kept as it came.
    pub struct ValidatingAdmissionPolicyView
        for cluster(
            "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy"
        )
    {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec, as JSON.
        spec: RawJson = 2,
        /// The status.
        status: ValidatingAdmissionPolicyStatus = 3,
    }
}

view! {
    /// The status of an admission policy.
    pub struct ValidatingAdmissionPolicyStatus {
        /// The generation whose types were checked.
        observed_generation: i64 = 1,
    }
}
