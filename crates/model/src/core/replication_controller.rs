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
        /// Its metadata.
        metadata: Meta = 1,
        /// What it should be.
        spec: ReplicationControllerSpec = 2,
        /// What it is.
        status: ReplicationControllerStatus = 3,
    }
}

view! {
    /// What a ReplicationController should be.
    pub struct ReplicationControllerSpec: Serialize {
        /// How many pods there should be; absent is one.
        replicas: Option<i32> = 1,
        /// Which pods count: those with all these labels.
        selector: StringMap = 2,
        /// What the pods are.
        template: Template = 3,
        /// How long a pod must be ready to be available.
        min_ready_seconds: i32 = 4,
    }
}

view! {
    /// What a ReplicationController is.
    pub struct ReplicationControllerStatus: Serialize {
        /// How many pods there are.
        replicas: i32 = 1,
        /// How many of them have all labels of the template.
        fully_labeled_replicas: i32 = 2,
        /// The generation that this is about.
        observed_generation: i64 = 3,
        /// How many are ready.
        ready_replicas: i32 = 4,
        /// How many have been ready long enough.
        available_replicas: i32 = 5,
        /// What is true of it.
        conditions: Box<[Condition]> as Vec<ReplicaSetCondition> = 6,
    }
}
