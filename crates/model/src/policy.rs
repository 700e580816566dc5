//! The group `policy`.

use steersman_base::{Condition, IntOrString, Istr, LabelSelector, Meta};

use crate::conditions::MetaCondition;
use crate::view;
use crate::wire::Times;

view! {
    /// A disruption budget, whole: its status is PUT.
    pub struct PodDisruptionBudgetView: Serialize
        for namespaced("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
    {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: PodDisruptionBudgetSpec = 2,
        /// The status.
        status: PodDisruptionBudgetStatus = 3,
    }
}

view! {
    /// The spec of a disruption budget.
    pub struct PodDisruptionBudgetSpec: Serialize {
        /// The number of pods that must stay healthy.
        min_available: Option<IntOrString> = 1,
        /// The pods; absent selects none.
        selector: Option<LabelSelector> = 2,
        /// The number of pods that may be unhealthy.
        max_unavailable: Option<IntOrString> = 3,
        /// Whether pods that are not healthy may be evicted.
        unhealthy_pod_eviction_policy: Option<Istr> = 4,
    }
}

view! {
    /// The status of a disruption budget.
    pub struct PodDisruptionBudgetStatus: Serialize {
        /// The generation that it describes.
        observed_generation: i64 = 1,
        /// Pods whose eviction was granted, and when: they still count as healthy in the cache of the controller.
        disrupted_pods: Times = 2,
        /// The number of evictions that may be granted.
        disruptions_allowed: i32 = 3,
        /// The number of healthy pods.
        current_healthy: i32 = 4,
        /// The number of healthy pods that is required.
        desired_healthy: i32 = 5,
        /// The number of pods that the budget counts with.
        expected_pods: i32 = 6,
        /// The conditions.
        conditions: Box<[Condition]> as Vec<MetaCondition> = 7,
    }
}
