//! ReplicationControllers: whole, because their status is PUT.

use steersman_base::{Condition, Meta, StringMap};

use crate::conditions::ReplicaSetCondition;
use crate::template::Template;
use crate::view;

view! {
    /// A ReplicationController.
    pub struct ReplicationControllerView: Serialize
        for namespaced("", "v1", "replicationcontrollers", "ReplicationController")
    {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: ReplicationControllerSpec = 2,
        /// The status.
        status: ReplicationControllerStatus = 3,
    }
}

view! {
    /// The spec of a ReplicationController.
    pub struct ReplicationControllerSpec: Serialize {
        /// The desired number of pods; absent means one.
        replicas: Option<i32> = 1,
        /// The pods that count: those with all these labels.
        selector: StringMap = 2,
        /// The template of the pods.
        template: Template = 3,
        /// The number of seconds a pod must be ready to be available.
        min_ready_seconds: i32 = 4,
    }
}

view! {
    /// The status of a ReplicationController.
    pub struct ReplicationControllerStatus: Serialize {
        /// The number of pods.
        replicas: i32 = 1,
        /// The number of pods with all labels of the template.
        fully_labeled_replicas: i32 = 2,
        /// The generation that this is about.
        observed_generation: i64 = 3,
        /// The number of ready pods.
        ready_replicas: i32 = 4,
        /// The number of available pods.
        available_replicas: i32 = 5,
        /// The conditions.
        conditions: Box<[Condition]> as Vec<ReplicaSetCondition> = 6,
    }
}
