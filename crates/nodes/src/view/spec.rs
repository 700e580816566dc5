//! What is read of a pod's spec.

use std::sync::LazyLock;

use steersman_base::istr::Pool;
use steersman_base::{Istr, StringMap};
use steersman_model::core::pod::{Resources, Toleration};
use steersman_model::shared::PooledInLists;
use steersman_model::wire::Quantities;
use steersman_model::{SharedList, view};

view! {
    /// What a pod should be.
    pub struct SimPodSpec {
        /// Its containers.
        containers: SharedList<Container> = 2,
        /// `Always`, `OnFailure` or `Never`; empty is `Always`.
        restart_policy: Istr = 3,
        /// How long it may be on its node.
        active_deadline_seconds: Option<i64> = 5,
        /// Labels that its node must have.
        node_selector: StringMap = 7,
        /// The node it is bound to; empty until it is.
        node_name: Istr = 10,
        /// Whether it has its node's address.
        host_network: bool = 11,
        /// Which nodes it may go to.
        affinity: Option<Box<Affinity>> = 18,
        /// Who schedules it.
        scheduler_name: Istr = 19,
        /// Containers that run before the others, or beside them.
        init_containers: SharedList<Container> = 20,
        /// Which taints it bears.
        tolerations: Box<[Toleration]> = 22,
        /// How important it is.
        priority: Option<i32> = 25,
        /// Conditions that others set and that it needs to be ready.
        readiness_gates: Box<[ReadinessGate]> = 28,
        /// `Never`, if it takes nobody's place away.
        preemption_policy: Istr = 31,
        /// What running it costs beside its containers.
        overhead: Quantities = 32,
        /// What must go before it may be scheduled.
        scheduling_gates: Box<[SchedulingGate]> = 38,
        /// What the pod as a whole asks for.
        resources: Resources = 40,
    }
}

view! {
    /// A container.
    #[derive(Eq, Hash)]
    pub struct Container {
        /// Its name within the pod.
        name: Istr = 1,
        /// Its image.
        image: Istr = 2,
        /// What it runs; empty is what the image says.
        command: Box<[Istr]> = 3,
        /// Arguments of what it runs.
        args: Box<[Istr]> = 4,
        /// Its ports.
        ports: Box<[ContainerPort]> = 6,
        /// What it asks for, and what it may use.
        resources: Resources = 8,
        /// How its readiness is told.
        readiness_probe: Option<Probe> = 11,
        /// `Always` for an init container that goes on running beside the others; for others, instead of the pod's.
        restart_policy: Istr = 24,
    }
}

view! {
    /// A port of a container: what it takes of its node.
    #[derive(Eq, Hash)]
    pub struct ContainerPort {
        /// The node's port; 0 is none.
        host_port: i32 = 2,
        /// `TCP`, `UDP` or `SCTP`; empty is `TCP`.
        protocol: Istr = 4,
        /// The node's address; empty is any.
        host_ip "hostIP": Istr = 5,
    }
}

view! {
    /// A probe: it succeeds here when its time has come.
    #[derive(Eq, Hash)]
    pub struct Probe {
        /// How long after the start it is asked first.
        initial_delay_seconds: i32 = 2,
    }
}

view! {
    /// A condition that a pod needs to be ready.
    pub struct ReadinessGate {
        /// Its type.
        condition_type: Istr = 1,
    }
}

view! {
    /// What must go before a pod may be scheduled.
    pub struct SchedulingGate {
        /// Its name.
        name: Istr = 1,
    }
}

view! {
    /// Which nodes a pod may go to.
    pub struct Affinity {
        /// By what the nodes are.
        node_affinity: Option<NodeAffinity> = 1,
    }
}

view! {
    /// Which nodes a pod may go to, by what they are.
    pub struct NodeAffinity {
        /// What must hold; absent is no wish.
        required_during_scheduling_ignored_during_execution: Option<NodeSelector> = 1,
    }
}

view! {
    /// Several ways to be the right node: one of them must hold.
    pub struct NodeSelector {
        /// The ways.
        node_selector_terms: Box<[NodeSelectorTerm]> = 1,
    }
}

view! {
    /// One way to be the right node: all requirements hold. One without requirements never holds.
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
        /// Which label or field.
        key: Istr = 1,
        /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.
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

impl SimPodSpec {
    /// The required node affinity, if there is one.
    #[must_use]
    pub fn required_node_affinity(&self) -> Option<&NodeSelector> {
        let affinity = self.affinity.as_ref()?.node_affinity.as_ref()?;
        affinity.required_during_scheduling_ignored_during_execution.as_ref()
    }
}

// === impl Container ===

impl Container {
    /// Of an init container: whether it goes on running beside the others.
    #[must_use]
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy == "Always"
    }
}
