//! Deployments: whole, because their status is PUT.

use steersman_base::{Condition, IntOrString, Istr, LabelSelector, Meta};

use crate::conditions::DeploymentCondition;
use crate::template::Template;
use crate::view;

view! {
    /// A Deployment.
    pub struct DeploymentView: Serialize for namespaced("apps", "v1", "deployments", "Deployment") {
        /// Its metadata.
        metadata: Meta = 1,
        /// What it should be.
        spec: DeploymentSpec = 2,
        /// What it is.
        status: DeploymentStatus = 3,
    }
}

view! {
    /// What a Deployment should be.
    pub struct DeploymentSpec: Serialize {
        /// How many pods there should be; absent is one.
        replicas: Option<i32> = 1,
        /// Which pods count. Compile it to match with it.
        selector: Option<LabelSelector> = 2,
        /// What the pods are.
        template: Template = 3,
        /// How pods of an older template are replaced.
        strategy: DeploymentStrategy = 4,
        /// How long a pod must be ready to be available.
        min_ready_seconds: i32 = 5,
        /// How many old ReplicaSets are kept; absent is ten.
        revision_history_limit: Option<i32> = 6,
        /// Whether changes of the template wait.
        paused: bool = 7,
        /// How long it may take to make progress; absent is ten minutes.
        progress_deadline_seconds: Option<i32> = 9,
    }
}

view! {
    /// How pods of an older template are replaced.
    pub struct DeploymentStrategy: Serialize {
        /// `Recreate` or `RollingUpdate`; empty is the latter.
        type_ "type": Istr = 1,
        /// How far a rolling update may go.
        rolling_update: Option<RollingUpdate> = 2,
    }
}

view! {
    /// How far a rolling update may go.
    pub struct RollingUpdate: Serialize {
        /// How many pods may be missing.
        max_unavailable: Option<IntOrString> = 1,
        /// How many pods there may be above the number asked for.
        max_surge: Option<IntOrString> = 2,
    }
}

view! {
    /// What a Deployment is.
    pub struct DeploymentStatus: Serialize {
        /// The generation that this is about.
        observed_generation: i64 = 1,
        /// How many pods there are that do not terminate.
        replicas: i32 = 2,
        /// How many of them are of the newest template.
        updated_replicas: i32 = 3,
        /// How many have been ready long enough.
        available_replicas: i32 = 4,
        /// How many are missing.
        unavailable_replicas: i32 = 5,
        /// What is true of it.
        conditions: Box<[Condition]> as Vec<DeploymentCondition> = 6,
        /// How many are ready.
        ready_replicas: i32 = 7,
        /// How often the hash of a template met that of another.
        collision_count: Option<i32> = 8,
        /// How many terminate; absent if the server does not count them.
        terminating_replicas: Option<i32> = 9,
    }
}
