//! The parts of a pod's status that are read: all that a kubelet writes.

use steersman_base::{ConditionStatus, Istr, Time};
use steersman_model::core::pod::ClaimStatus;
use steersman_model::view;
use steersman_model::wire::Unique;

view! {
    /// The status of a pod.
    pub struct SimPodStatus {
        /// The phase: `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
        phase: Istr = 1,
        /// The conditions.
        conditions: Box<[PodCondition]> = 2,
        /// The message about its phase.
        message: Istr = 3,
        /// The reason of its phase.
        reason: Istr = 4,
        /// The address of its node.
        host_ip "hostIP": Istr = 5,
        /// The address of the pod.
        pod_ip "podIP": Istr as Unique = 6,
        /// The time at which the kubelet accepted it.
        start_time: Option<Time> = 7,
        /// The statuses of its containers.
        container_statuses: Box<[ContainerStatus]> = 8,
        /// The statuses of its init containers.
        init_container_statuses: Box<[ContainerStatus]> = 10,
        /// The claims of devices that were made for it.
        resource_claim_statuses: Box<[ClaimStatus]> = 15,
        /// The generation that the status is about.
        observed_generation: i64 = 17,
    }
}

view! {
    /// A condition of a pod.
    pub struct PodCondition {
        /// The type.
        type_ "type": Istr = 1,
        /// `True`, `False` or `Unknown`.
        status: ConditionStatus = 2,
        /// The time of its last change.
        last_transition_time: Option<Time> = 4,
        /// The reason.
        reason: Istr = 5,
        /// The message.
        message: Istr = 6,
    }
}

view! {
    /// The status of a container. Ids and images are not read: they follow from the rest.
    pub struct ContainerStatus {
        /// Its name within the pod.
        name: Istr = 1,
        /// The current state.
        state: ContainerState = 2,
        /// The end of its previous run.
        last_state: ContainerState = 3,
        /// Whether it is ready.
        ready: bool = 4,
        /// The number of restarts.
        restart_count: i32 = 5,
    }
}

view! {
    /// The state of a container: one of the three.
    pub struct ContainerState {
        /// It does not run yet.
        waiting: Option<Box<Waiting>> = 1,
        /// It runs.
        running: Option<Running> = 2,
        /// It has ended.
        terminated: Option<Box<Terminated>> = 3,
    }
}

view! {
    /// A container that does not run yet.
    pub struct Waiting {
        /// The reason.
        reason: Istr = 1,
        /// The message.
        message: Istr = 2,
    }
}

view! {
    /// A container that runs.
    #[derive(Copy)]
    pub struct Running {
        /// The time at which it started.
        started_at: Option<Time> = 1,
    }
}

view! {
    /// A container that has ended.
    pub struct Terminated {
        /// The exit code.
        exit_code: i32 = 1,
        /// The reason.
        reason: Istr = 3,
        /// The time at which it started.
        started_at: Option<Time> = 5,
        /// The time at which it ended.
        finished_at: Option<Time> = 6,
    }
}

// === impl SimPodStatus ===

impl SimPodStatus {
    /// Returns the condition of this type.
    #[must_use]
    pub fn condition(&self, type_: &str) -> Option<&PodCondition> {
        self.conditions.iter().find(|condition| condition.type_ == type_)
    }
}
