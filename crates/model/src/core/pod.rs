//! Pods.
//!
//! Parts that siblings of one template have in common are stored once: [`PodSpecShared`], the volumes, the shape of the
//! conditions and the container statuses. The rest is stored per pod.

mod affinity;
mod container;
mod container_status;
mod spec;
mod status;
mod volume;

pub use affinity::{NodeFieldRequirement, NodeFieldTerm};
pub use container::{Container, ContainerPort, Resources, SeLinuxOptions};
pub use container_status::{ContainerState, ContainerStatus};
pub use spec::{PodSpec, PodSpecShared, ResourceClaim, Toleration};
pub use status::{ClaimStatus, ConditionShape, PodCondition, PodConditions, PodStatus, RarePodStatus};
use steersman_base::Meta;
pub use volume::{
    AwsElasticBlockStore, AzureDisk, AzureFile, Cinder, ClaimSource, ClaimSpec, ClaimTemplate, ClaimTemplateMeta, Fc,
    FlexVolume, GcePersistentDisk, Iscsi, Portworx, TypedReference, Volume, VolumeSource, VsphereVolume,
};

use self::spec::ReadPodSpec;
use self::status::PodStatusFields;
use crate::meta::PodMeta;
use crate::view;

view! {
    /// The fields of a pod that controllers read.
    ///
    /// Of the annotations only those are kept that a controller reads; `generateName` is not kept.
    pub struct PodView for namespaced("", "v1", "pods", "Pod") {
        /// The metadata.
        metadata: Meta as PodMeta = 1,
        /// The spec.
        spec: PodSpec as ReadPodSpec = 2,
        /// The status.
        status: PodStatus as PodStatusFields = 3,
    }
}

// === impl PodView ===

impl PodView {
    /// Whether its `Ready` condition holds.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.status.conditions.is_true("Ready")
    }
}
