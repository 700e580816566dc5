//! ReplicaSets: whole, because their status is PUT, and to scale them all of it is.

use steersman_base::{Condition, LabelSelector, Meta};

use crate::conditions::ReplicaSetCondition;
use crate::template::Template;
use crate::view;

view! {
    /// A ReplicaSet.
    pub struct ReplicaSetView: Serialize for namespaced("apps", "v1", "replicasets", "ReplicaSet") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: ReplicaSetSpec = 2,
        /// The status.
        status: ReplicaSetStatus = 3,
    }
}

view! {
    /// The spec of a ReplicaSet.
    pub struct ReplicaSetSpec: Serialize {
        /// The desired number of pods; absent means one.
        replicas: Option<i32> = 1,
        /// The pods that count. Compile it to match with it.
        selector: Option<LabelSelector> = 2,
        /// The template of the pods.
        template: Template = 3,
        /// The number of seconds a pod must be ready to be available.
        min_ready_seconds: i32 = 4,
    }
}

view! {
    /// The status of a ReplicaSet.
    pub struct ReplicaSetStatus: Serialize {
        /// The number of pods that are not terminating.
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
        /// The number of terminating pods; absent if the server does not count them.
        terminating_replicas: Option<i32> = 7,
    }
}
