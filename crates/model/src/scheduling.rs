//! The group `scheduling.k8s.io`.

use steersman_base::{Istr, Meta};

use crate::core::pod::{ClaimStatus, ResourceClaim};
use crate::view;
use crate::wire::Adapt;

view! {
    /// The fields of a group of pods that controllers read.
    pub struct PodGroupView for namespaced("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: PodGroupSpec = 2,
        /// The status.
        status: PodGroupStatus = 3,
    }
}

view! {
    /// The spec of a group of pods.
    pub struct PodGroupSpec {
        /// The resource claims that its pods share.
        resource_claims: Box<[ResourceClaim]> as Vec<GroupClaim> = 5,
    }
}

view! {
    /// The status of a group of pods.
    pub struct PodGroupStatus {
        /// Claims that were made for it.
        resource_claim_statuses: Box<[ClaimStatus]> = 2,
    }
}

view! {
    /// A resource claim of a group, which has other numbers than that of a pod.
    pub(crate) struct GroupClaim {
        name: Istr = 1,
        resource_claim_name: Option<Istr> = 2,
        resource_claim_template_name: Option<Istr> = 3,
    }
}

// === impl GroupClaim ===

impl Adapt<ResourceClaim> for GroupClaim {
    fn adapt(self) -> ResourceClaim {
        let Self { name, resource_claim_name, resource_claim_template_name } = self;
        ResourceClaim { name, resource_claim_name, resource_claim_template_name }
    }
}
