//! What is read of a pod's status: all that a kubelet writes.

use steersman_base::{ConditionStatus, Istr, Time};
use steersman_model::view;
use steersman_model::wire::Unique;

view! {
    /// What a pod is.
    pub struct SimPodStatus {
        /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
        phase: Istr = 1,
        /// What is true of it.
        conditions: Box<[PodCondition]> = 2,
        /// Why it is in its phase, in a sentence.
        message: Istr = 3,
        /// Why it is in its phase, in a word.
        reason: Istr = 4,
        /// Its node's address.
        host_ip "hostIP": Istr = 5,
        /// Its address.
        pod_ip "podIP": Istr as Unique = 6,
        /// When the kubelet accepted it.
        start_time: Option<Time> = 7,
        /// How its containers are.
        container_statuses: Box<[ContainerStatus]> = 8,
        /// How its init containers are.
        init_container_statuses: Box<[ContainerStatus]> = 10,
        /// The generation that this is about.
        observed_generation: i64 = 17,
    }
}

view! {
    /// Something that is true of a pod, or not.
    pub struct PodCondition {
        /// What it is about.
        type_ "type": Istr = 1,
        /// Whether it holds.
        status: ConditionStatus = 2,
        /// Since when.
        last_transition_time: Option<Time> = 4,
        /// Why, in a word.
        reason: Istr = 5,
        /// Why, in a sentence.
        message: Istr = 6,
    }
}

view! {
    /// How a container is. Ids and images are not read: they follow from the rest.
    pub struct ContainerStatus {
        /// Its name within the pod.
        name: Istr = 1,
        /// What it does.
        state: ContainerState = 2,
        /// How it ended before it was started again.
        last_state: ContainerState = 3,
        /// Whether it is ready.
        ready: bool = 4,
        /// How often it was started again.
        restart_count: i32 = 5,
    }
}

view! {
    /// What a container does: one of the three.
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
        /// Why, in a word.
        reason: Istr = 1,
        /// Why, in a sentence.
        message: Istr = 2,
    }
}

view! {
    /// A container that runs.
    #[derive(Copy)]
    pub struct Running {
        /// Since when.
        started_at: Option<Time> = 1,
    }
}

view! {
    /// A container that has ended.
    pub struct Terminated {
        /// With this code.
        exit_code: i32 = 1,
        /// Why, in a word.
        reason: Istr = 3,
        /// When it started.
        started_at: Option<Time> = 5,
        /// When it ended.
        finished_at: Option<Time> = 6,
    }
}

// === impl SimPodStatus ===

impl SimPodStatus {
    /// The condition of this type.
    #[must_use]
    pub fn condition(&self, type_: &str) -> Option<&PodCondition> {
        self.conditions.iter().find(|condition| condition.type_ == type_)
    }
}
