//! StatefulSets: whole metadata, because their status is PUT.

use steersman_base::{Condition, IntOrString, Istr, LabelSelector, Meta};

use crate::conditions::StatefulSetCondition;
use crate::template::{RawJson, Template};
use crate::view;

view! {
    /// A StatefulSet.
    pub struct StatefulSetView: Serialize for namespaced("apps", "v1", "statefulsets", "StatefulSet") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: StatefulSetSpec = 2,
        /// The status.
        status: StatefulSetStatus = 3,
    }
}

view! {
    /// The spec of a StatefulSet.
    pub struct StatefulSetSpec: Serialize {
        /// The desired number of pods; absent means one.
        replicas: Option<i32> = 1,
        /// The pods that count. Compile it to match with it.
        selector: Option<LabelSelector> = 2,
        /// The template of the pods.
        template: Template = 3,
        /// The templates of each pod's claims: a list, as it came.
        volume_claim_templates: RawJson = 4,
        /// The Service that gives the pods their domain.
        service_name: Istr = 5,
        /// `OrderedReady` or `Parallel`; empty is the former.
        pod_management_policy: Istr = 6,
        /// The strategy for replacing old pods.
        update_strategy: StatefulSetUpdateStrategy = 7,
        /// The number of old revisions to keep; absent means ten.
        revision_history_limit: Option<i32> = 8,
        /// The number of seconds a pod must be ready to be available.
        min_ready_seconds: i32 = 9,
        /// The retention of claims whose pod, or whose StatefulSet, is gone.
        persistent_volume_claim_retention_policy: Option<ClaimRetentionPolicy> = 10,
        /// The ordinals of the pods.
        ordinals: Option<StatefulSetOrdinals> = 11,
    }
}

view! {
    /// The strategy for replacing old pods of a StatefulSet.
    pub struct StatefulSetUpdateStrategy: Serialize {
        /// `RollingUpdate`, `OnDelete` or `Recreate`; empty is the first.
        type_ "type": Istr = 1,
        /// The limits of a rolling update.
        rolling_update: Option<RollingUpdateStatefulSet> = 2,
    }
}

view! {
    /// The limits of a rolling update of a StatefulSet.
    pub struct RollingUpdateStatefulSet: Serialize {
        /// The number of pods, lowest ordinals first, that are not updated.
        partition: Option<i32> = 1,
        /// The number or percentage of pods that may be unavailable; absent means one.
        max_unavailable: Option<IntOrString> = 2,
    }
}

view! {
    /// The retention of a StatefulSet's claims: `Retain` or `Delete`.
    pub struct ClaimRetentionPolicy: Serialize {
        /// The retention if the StatefulSet is deleted.
        when_deleted: Istr = 1,
        /// The retention if the pod is deleted because of a smaller number of replicas.
        when_scaled: Istr = 2,
    }
}

view! {
    /// The ordinals of a StatefulSet's pods.
    pub struct StatefulSetOrdinals: Serialize {
        /// The first ordinal.
        start: i32 = 1,
    }
}

view! {
    /// The status of a StatefulSet.
    pub struct StatefulSetStatus: Serialize {
        /// The generation that this is about.
        observed_generation: i64 = 1,
        /// The number of pods.
        replicas: i32 = 2,
        /// The number of ready pods.
        ready_replicas: i32 = 3,
        /// The number of pods of the current revision.
        current_replicas: i32 = 4,
        /// The number of pods of the update revision.
        updated_replicas: i32 = 5,
        /// The revision that pods have which are not updated yet.
        current_revision: Istr = 6,
        /// The revision of the template.
        update_revision: Istr = 7,
        /// The number of hash collisions.
        collision_count: Option<i32> = 9,
        /// The conditions.
        conditions: Box<[Condition]> as Vec<StatefulSetCondition> = 10,
        /// The number of available pods.
        available_replicas: i32 = 11,
    }
}
