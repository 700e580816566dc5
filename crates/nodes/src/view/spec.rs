//! The parts of a pod's spec that are read.

use std::sync::LazyLock;

use steersman_base::istr::Pool;
use steersman_base::{Istr, StringMap};
use steersman_model::core::pod::{ClaimSource, ResourceClaim, Resources, Toleration};
use steersman_model::shared::PooledInLists;
use steersman_model::wire::{Pick, Picked, Quantities};
use steersman_model::{SharedList, view};

view! {
    /// The spec of a pod.
    pub struct SimPodSpec {
        /// The volumes that are claims.
        claims "volumes": Box<[PodClaim]> as Picked<VolumeFields> = 1,
        /// The containers.
        containers: SharedList<Container> = 2,
        /// The restart policy: `Always`, `OnFailure` or `Never`; empty means `Always`.
        restart_policy: Istr = 3,
        /// The maximum time on its node.
        active_deadline_seconds: Option<i64> = 5,
        /// Labels that its node must have.
        node_selector: StringMap = 7,
        /// The node it is bound to; empty until it is.
        node_name: Istr = 10,
        /// Whether it uses its node's address.
        host_network: bool = 11,
        /// The affinity.
        affinity: Option<Box<Affinity>> = 18,
        /// The scheduler's name.
        scheduler_name: Istr = 19,
        /// The init containers and sidecars.
        init_containers: SharedList<Container> = 20,
        /// The tolerations.
        tolerations: Box<[Toleration]> = 22,
        /// The priority.
        priority: Option<i32> = 25,
        /// The readiness gates: conditions that others set and that it needs to be ready.
        readiness_gates: Box<[ReadinessGate]> = 28,
        /// The preemption policy; `Never`, if it preempts no pod.
        preemption_policy: Istr = 31,
        /// The overhead beside its containers.
        overhead: Quantities = 32,
        /// The scheduling gates.
        scheduling_gates: Box<[SchedulingGate]> = 38,
        /// The claims of devices.
        resource_claims: Box<[ResourceClaim]> = 39,
        /// The resources at pod level.
        resources: Resources = 40,
    }
}

/// A volume of a pod that is a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodClaim {
    /// The name of the claim; of an ephemeral one, that of the volume.
    pub name: Istr,
    /// Whether the claim is made for the pod, and named after pod and volume.
    pub is_ephemeral: bool,
}

view! {
    /// A volume as received.
    pub(super) struct VolumeFields {
        name: Istr = 1,
        ..source: VolumeSourceFields = 2,
    }
}

view! {
    /// The source of a volume as received.
    pub(super) struct VolumeSourceFields {
        persistent_volume_claim: Option<ClaimSource> = 10,
        ephemeral: Option<EphemeralSource> = 29,
    }
}

view! {
    /// That a volume is an ephemeral claim; its template is not read.
    pub(super) struct EphemeralSource {}
}

view! {
    /// A container.
    #[derive(Eq, Hash)]
    pub struct Container {
        /// Its name within the pod.
        name: Istr = 1,
        /// Its image.
        image: Istr = 2,
        /// The command; empty means that of the image.
        command: Box<[Istr]> = 3,
        /// The arguments of the command.
        args: Box<[Istr]> = 4,
        /// Its ports.
        ports: Box<[ContainerPort]> = 6,
        /// The requests and limits.
        resources: Resources = 8,
        /// The readiness probe.
        readiness_probe: Option<Probe> = 11,
        /// `Always` for a sidecar; for other containers, it overrides the pod's restart policy.
        restart_policy: Istr = 24,
    }
}

view! {
    /// A port of a container.
    #[derive(Eq, Hash)]
    pub struct ContainerPort {
        /// The host port; 0 is none.
        host_port: i32 = 2,
        /// The protocol: `TCP`, `UDP` or `SCTP`; empty means `TCP`.
        protocol: Istr = 4,
        /// The host address; empty is any.
        host_ip "hostIP": Istr = 5,
    }
}

view! {
    /// A probe: it succeeds when its delay is over.
    #[derive(Eq, Hash)]
    pub struct Probe {
        /// The delay after the start.
        initial_delay_seconds: i32 = 2,
    }
}

view! {
    /// A condition that a pod needs to be ready.
    pub struct ReadinessGate {
        /// The type of the condition.
        condition_type: Istr = 1,
    }
}

view! {
    /// A scheduling gate of a pod.
    pub struct SchedulingGate {
        /// The name of the gate.
        name: Istr = 1,
    }
}

view! {
    /// The affinity of a pod.
    pub struct Affinity {
        /// The node affinity.
        node_affinity: Option<NodeAffinity> = 1,
    }
}

view! {
    /// The node affinity of a pod.
    pub struct NodeAffinity {
        /// The required terms; absent means no requirement.
        required_during_scheduling_ignored_during_execution: Option<NodeSelector> = 1,
    }
}

view! {
    /// Node selector terms: one of them must match.
    pub struct NodeSelector {
        /// The terms.
        node_selector_terms: Box<[NodeSelectorTerm]> = 1,
    }
}

view! {
    /// A node selector term: all requirements must match. A term without requirements never matches.
    pub struct NodeSelectorTerm {
        /// Requirements on labels.
        match_expressions: Box<[NodeSelectorRequirement]> = 1,
        /// Requirements on fields.
        match_fields: Box<[NodeSelectorRequirement]> = 2,
    }
}

view! {
    /// A requirement on a label or a field of a node.
    pub struct NodeSelectorRequirement {
        /// The label or field.
        key: Istr = 1,
        /// The operator: `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.
        operator: Istr = 2,
        /// The values.
        values: Box<[Istr]> = 3,
    }
}

static CONTAINERS: LazyLock<Pool<[Container]>> = LazyLock::new(Pool::new);

impl PooledInLists for Container {
    fn pool() -> &'static Pool<[Self]> {
        &CONTAINERS
    }
}

// === impl SimPodSpec ===

impl Pick for VolumeFields {
    type Kept = PodClaim;

    fn pick(self) -> Option<PodClaim> {
        let ephemeral = self.source.ephemeral.map(|_| PodClaim { name: self.name, is_ephemeral: true });
        let claim = self.source.persistent_volume_claim.map(|claim| claim.claim_name);
        claim.map(|name| PodClaim { name, is_ephemeral: false }).or(ephemeral)
    }
}

impl SimPodSpec {
    /// Returns the required node affinity, if there is one.
    #[must_use]
    pub fn required_node_affinity(&self) -> Option<&NodeSelector> {
        let affinity = self.affinity.as_ref()?.node_affinity.as_ref()?;
        affinity.required_during_scheduling_ignored_during_execution.as_ref()
    }
}

// === impl Container ===

impl Container {
    /// Whether an init container is a sidecar.
    #[must_use]
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy == "Always"
    }
}
