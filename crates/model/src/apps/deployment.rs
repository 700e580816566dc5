//! Deployments: whole, because their status is PUT.

use steersman_base::{Condition, IntOrString, Istr, LabelSelector, Meta};

use crate::conditions::DeploymentCondition;
use crate::template::Template;
use crate::view;

view! {
    /// A Deployment.
    pub struct DeploymentView: Serialize for namespaced("apps", "v1", "deployments", "Deployment") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: DeploymentSpec = 2,
        /// The status.
        status: DeploymentStatus = 3,
    }
}

view! {
    /// The spec of a Deployment.
    pub struct DeploymentSpec: Serialize {
        /// The desired number of pods; absent means one.
        replicas: Option<i32> = 1,
        /// The pods that count. Compile it to match with it.
        selector: Option<LabelSelector> = 2,
        /// The template of the pods.
        template: Template = 3,
        /// The strategy for replacing old pods.
        strategy: DeploymentStrategy = 4,
        /// The number of seconds a pod must be ready to be available.
        min_ready_seconds: i32 = 5,
        /// The number of old ReplicaSets to keep; absent means ten.
        revision_history_limit: Option<i32> = 6,
        /// Whether changes of the template wait.
        paused: bool = 7,
        /// The number of seconds a rollout may make no progress; absent means ten minutes.
        progress_deadline_seconds: Option<i32> = 9,
    }
}

view! {
    /// The strategy for replacing old pods.
    pub struct DeploymentStrategy: Serialize {
        /// `Recreate` or `RollingUpdate`; empty is the latter.
        type_ "type": Istr = 1,
        /// The limits of a rolling update.
        rolling_update: Option<RollingUpdate> = 2,
    }
}

view! {
    /// The limits of a rolling update.
    pub struct RollingUpdate: Serialize {
        /// The number or percentage of pods that may be unavailable.
        max_unavailable: Option<IntOrString> = 1,
        /// The number or percentage of pods above the desired number.
        max_surge: Option<IntOrString> = 2,
    }
}

view! {
    /// The status of a Deployment.
    pub struct DeploymentStatus: Serialize {
        /// The generation that this is about.
        observed_generation: i64 = 1,
        /// The number of pods that are not terminating.
        replicas: i32 = 2,
        /// The number of pods of the newest template.
        updated_replicas: i32 = 3,
        /// The number of available pods.
        available_replicas: i32 = 4,
        /// The number of unavailable pods.
        unavailable_replicas: i32 = 5,
        /// The conditions.
        conditions: Box<[Condition]> as Vec<DeploymentCondition> = 6,
        /// The number of ready pods.
        ready_replicas: i32 = 7,
        /// The number of hash collisions.
        collision_count: Option<i32> = 8,
        /// The number of terminating pods; absent if the server does not count them.
        terminating_replicas: Option<i32> = 9,
    }
}
