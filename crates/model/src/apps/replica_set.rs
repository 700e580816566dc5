//! ReplicaSets: whole, because their status is PUT, and to scale them all of it is.

use steersman_base::{Condition, LabelSelector, Meta};

use crate::conditions::ReplicaSetCondition;
use crate::template::Template;
use crate::view;

view! {
    /// A ReplicaSet.
    pub struct ReplicaSetView: Serialize for namespaced("apps", "v1", "replicasets", "ReplicaSet") {
        /// Its metadata.
        metadata: Meta = 1,
        /// What it should be.
        spec: ReplicaSetSpec = 2,
        /// What it is.
        status: ReplicaSetStatus = 3,
    }
}

view! {
    /// What a ReplicaSet should be.
    pub struct ReplicaSetSpec: Serialize {
        /// How many pods there should be; absent is one.
        replicas: Option<i32> = 1,
        /// Which pods count. Compile it to match with it.
        selector: Option<LabelSelector> = 2,
        /// What the pods are.
        template: Template = 3,
        /// How long a pod must be ready to be available.
        min_ready_seconds: i32 = 4,
    }
}

view! {
    /// What a ReplicaSet is.
    pub struct ReplicaSetStatus: Serialize {
        /// How many pods there are that do not terminate.
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
        /// How many terminate; absent if the server does not count them.
        terminating_replicas: Option<i32> = 7,
    }
}
