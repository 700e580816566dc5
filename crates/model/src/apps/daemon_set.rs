//! DaemonSets: whole metadata, because their status is PUT.

use steersman_base::{Condition, Istr, LabelSelector, Meta};

use super::RollingUpdate;
use crate::conditions::DaemonSetCondition;
use crate::template::Template;
use crate::view;

view! {
    /// A DaemonSet.
    pub struct DaemonSetView: Serialize for namespaced("apps", "v1", "daemonsets", "DaemonSet") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: DaemonSetSpec = 2,
        /// The status.
        status: DaemonSetStatus = 3,
    }
}

view! {
    /// The spec of a DaemonSet.
    pub struct DaemonSetSpec: Serialize {
        /// The pods that count. Compile it to match with it.
        selector: Option<LabelSelector> = 1,
        /// The template of the pods.
        template: Template = 2,
        /// The strategy for replacing old pods.
        update_strategy: DaemonSetUpdateStrategy = 3,
        /// The number of seconds a pod must be ready to be available.
        min_ready_seconds: i32 = 4,
        /// The number of old revisions to keep; absent means ten.
        revision_history_limit: Option<i32> = 6,
    }
}

view! {
    /// The strategy for replacing old pods of a DaemonSet.
    pub struct DaemonSetUpdateStrategy: Serialize {
        /// `RollingUpdate` or `OnDelete`; empty is the former.
        type_ "type": Istr = 1,
        /// The limits of a rolling update.
        rolling_update: Option<RollingUpdate> = 2,
    }
}

view! {
    /// The status of a DaemonSet.
    pub struct DaemonSetStatus: Serialize {
        /// The number of nodes that should run a pod, and have one.
        current_number_scheduled: i32 = 1,
        /// The number of nodes that should not run a pod, and have one.
        number_misscheduled: i32 = 2,
        /// The number of nodes that should run a pod.
        desired_number_scheduled: i32 = 3,
        /// The number of nodes that should run a pod, and have a ready one.
        number_ready: i32 = 4,
        /// The generation that this is about.
        observed_generation: i64 = 5,
        /// The number of nodes that should run a pod, and have one of the newest template.
        updated_number_scheduled: i32 = 6,
        /// The number of nodes that should run a pod, and have an available one.
        number_available: i32 = 7,
        /// The number of nodes that should run a pod, and have no available one.
        number_unavailable: i32 = 8,
        /// The number of hash collisions.
        collision_count: Option<i32> = 9,
        /// The conditions.
        conditions: Box<[Condition]> as Vec<DaemonSetCondition> = 10,
    }
}
