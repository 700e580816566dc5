//! Pods.
//!
//! What siblings of one template have in common is kept once: [`PodSpecShared`], the volumes, the shape of the
//! conditions and the container statuses. What remains is the pod's own.

mod affinity;
mod container;
mod status;
mod volume;

use std::ops::Deref;

pub use affinity::{NodeFieldRequirement, NodeFieldTerm};
pub use container::{Container, ContainerPort, Resources, SeLinuxOptions};
pub use status::{
    ClaimStatus, ConditionShape, ContainerState, ContainerStatus, PodCondition, PodConditions, PodStatus, RarePodStatus,
};
use steersman_base::{Istr, Meta};
pub use volume::{
    AwsElasticBlockStore, AzureDisk, AzureFile, Cinder, ClaimSource, ClaimSpec, ClaimTemplate, ClaimTemplateMeta, Fc,
    FlexVolume, GcePersistentDisk, Iscsi, Portworx, TypedReference, Volume, VolumeSource, VsphereVolume,
};

use self::affinity::Affinity;
use self::container::{EphemeralContainer, LocalReference, PodSecurityContext};
use self::status::PodStatusFields;
use self::volume::VolumeFields;
use crate::meta::PodMeta;
use crate::shared::{Shared, SharedList, pooled};
use crate::view;
use crate::wire::{Adapt, Picked, Quantities, Unique};

view! {
    /// What controllers read of a pod.
    ///
    /// Of the annotations only those are kept that a controller reads; `generateName` is not kept.
    pub struct PodView for namespaced("", "v1", "pods", "Pod") {
        /// Its metadata.
        metadata: Meta as PodMeta = 1,
        /// What it should be.
        spec: PodSpec as PodSpecFields = 2,
        /// What it is.
        status: PodStatus as PodStatusFields = 3,
    }
}

/// What a pod should be: the pod's own fields. Those it shares with its siblings are reached as if they were here, too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodSpec {
    /// The node it is bound to; empty until it is.
    pub node_name: Istr,
    /// The host name it asks for.
    pub hostname: Istr,
    /// Which nodes it may go to, by their fields: `nodeAffinity`'s required terms. Kept only until it is bound, for this
    /// differs over the pods of a DaemonSet.
    pub node_field_terms: Box<[NodeFieldTerm]>,
    /// The volumes of which something is read: claims, ephemeral ones, attachable ones, and those that name a secret.
    pub volumes: SharedList<Volume>,
    /// What it shares with its siblings.
    pub shared: Shared<PodSpecShared>,
}

/// What pods of one template share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodSpecShared {
    /// The domain of its host name.
    pub subdomain: Istr,
    /// Which taints it bears.
    pub tolerations: Box<[Toleration]>,
    /// Whether a term of its pod affinity or anti-affinity names namespaces, by list or by selector.
    pub has_cross_namespace_affinity: bool,
    /// Whether `activeDeadlineSeconds` is set, and not negative.
    pub has_active_deadline: bool,
    /// The class its priority comes from.
    pub priority_class_name: Istr,
    /// What running it costs beside its containers.
    pub overhead: Quantities,
    /// What the pod as a whole asks for.
    pub resources: Resources,
    /// The pod group it is scheduled with.
    pub pod_group_name: Istr,
    /// The resource claims it uses.
    pub resource_claims: Box<[ResourceClaim]>,
    /// Its containers.
    pub containers: Box<[Container]>,
    /// Containers that run before the others, or beside them.
    pub init_containers: Box<[Container]>,
    /// Containers added to the running pod.
    pub ephemeral_containers: Box<[Container]>,
    /// Names of the secrets that open image registries.
    pub image_pull_secrets: Box<[Istr]>,
    /// SELinux labels of all its containers.
    pub se_linux_options: Option<Box<SeLinuxOptions>>,
    /// How its volumes get their SELinux label.
    pub se_linux_change_policy: Istr,
}
pooled!(PodSpecShared);

view! {
    /// A taint that a pod bears.
    #[derive(Eq, Hash)]
    pub struct Toleration {
        /// Key of the taint; empty for any.
        key: Istr = 1,
        /// `Equal`, `Exists`, `Lt` or `Gt`; empty is `Equal`.
        operator: Istr = 2,
        /// Value of the taint.
        value: Istr = 3,
        /// Effect of the taint; empty for any.
        effect: Istr = 4,
        /// For how long, for `NoExecute`; absent is for ever.
        toleration_seconds: Option<i64> = 5,
    }
}

view! {
    /// A resource claim that a pod uses: one by name, or one made for it from a template.
    #[derive(Eq, Hash)]
    pub struct ResourceClaim {
        /// Its name within the pod.
        name: Istr = 1,
        /// The claim.
        resource_claim_name: Option<Istr> = 3,
        /// The template.
        resource_claim_template_name: Option<Istr> = 4,
    }
}

view! {
    struct SchedulingGroup {
        pod_group_name: Istr = 1,
    }
}

view! {
    /// `spec` as it comes.
    struct PodSpecFields {
        volumes: Vec<Volume> as Picked<VolumeFields> = 1,
        containers: Vec<Container> = 2,
        active_deadline_seconds: Option<i64> = 5,
        node_name: Istr = 10,
        security_context: PodSecurityContext = 14,
        image_pull_secrets: Box<[Istr]> as Picked<LocalReference> = 15,
        hostname: Istr as Unique = 16,
        subdomain: Istr = 17,
        affinity: Affinity = 18,
        init_containers: Vec<Container> = 20,
        tolerations: Box<[Toleration]> = 22,
        priority_class_name: Istr = 24,
        overhead: Quantities = 32,
        ephemeral_containers: Vec<Container> as Picked<EphemeralContainer> = 34,
        resource_claims: Box<[ResourceClaim]> = 39,
        resources: Resources = 40,
        scheduling_group: SchedulingGroup = 43,
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

// === impl PodSpec ===

impl Deref for PodSpec {
    type Target = PodSpecShared;
    fn deref(&self) -> &PodSpecShared {
        &self.shared
    }
}

impl Adapt<PodSpec> for PodSpecFields {
    fn adapt(self) -> PodSpec {
        let volumes = self.volumes;
        // The name of a volume that is not kept may differ between siblings, as that of the service account token does.
        let kept = |mut containers: Vec<Container>| -> Box<[Container]> {
            for container in &mut containers {
                container.keep_mounts_of(&volumes);
            }
            containers.into()
        };
        let shared = PodSpecShared {
            subdomain: self.subdomain,
            tolerations: self.tolerations,
            has_cross_namespace_affinity: self.affinity.is_cross_namespace(),
            has_active_deadline: self.active_deadline_seconds.is_some_and(|seconds| seconds >= 0),
            priority_class_name: self.priority_class_name,
            overhead: self.overhead,
            resources: self.resources,
            pod_group_name: self.scheduling_group.pod_group_name,
            resource_claims: self.resource_claims,
            containers: kept(self.containers),
            init_containers: kept(self.init_containers),
            ephemeral_containers: kept(self.ephemeral_containers),
            image_pull_secrets: self.image_pull_secrets,
            se_linux_options: self.security_context.se_linux_options,
            se_linux_change_policy: self.security_context.se_linux_change_policy,
        };
        PodSpec {
            node_field_terms: if self.node_name.is_empty() { self.affinity.node_field_terms() } else { Box::default() },
            node_name: self.node_name,
            hostname: self.hostname,
            volumes: SharedList::new(volumes),
            shared: Shared::new(shared),
        }
    }
}
