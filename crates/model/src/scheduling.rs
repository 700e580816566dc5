//! The group `scheduling.k8s.io`.

use steersman_base::{Istr, Meta};

use crate::core::pod::{ClaimStatus, ResourceClaim};
use crate::template::RawJson;
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
        /// The Workload that it was made from; absent if it was made by itself.
        workload_ref: Option<WorkloadReference> = 2,
        /// The policy by which its pods are scheduled.
        scheduling_policy: GroupPolicy = 3,
        /// The resource claims that its pods share.
        resource_claims: Box<[ResourceClaim]> as Vec<GroupClaim> = 5,
    }
}

view! {
    /// The origin of a group of pods.
    pub struct WorkloadReference {
        /// The Workload.
        workload_name: Istr = 1,
        /// The template in it.
        template_name: Istr = 2,
    }
}

view! {
    /// The policy by which the pods of a group are scheduled.
    pub struct GroupPolicy {
        /// All or nothing; absent if each pod is scheduled by itself.
        gang: Option<GangPolicy> = 2,
    }
}

view! {
    /// All or nothing.
    pub struct GangPolicy {
        /// The number of pods that are scheduled together.
        min_count: i32 = 1,
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

view! {
    /// The fields of a Workload that controllers read: the templates of its groups of pods as raw JSON.
    pub struct WorkloadView for namespaced("scheduling.k8s.io", "v1beta1", "workloads", "Workload") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: WorkloadSpec = 2,
    }
}

view! {
    /// The spec of a Workload.
    pub struct WorkloadSpec {
        /// The object that it describes.
        controller_ref: Option<ControllerReference> = 1,
        /// The templates of its groups of pods.
        pod_group_templates: Box<[RawJson]> = 2,
    }
}

view! {
    /// A reference to an object of the same namespace.
    pub struct ControllerReference {
        /// The API group, without a version.
        api_group "apiGroup": Istr = 1,
        /// The kind.
        kind: Istr = 2,
        /// The name.
        name: Istr = 3,
    }
}

// === impl GroupClaim ===

impl Adapt<ResourceClaim> for GroupClaim {
    fn adapt(self) -> ResourceClaim {
        let Self { name, resource_claim_name, resource_claim_template_name } = self;
        ResourceClaim { name, resource_claim_name, resource_claim_template_name }
    }
}
