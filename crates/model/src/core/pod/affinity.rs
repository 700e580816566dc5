//! The fields of a pod's affinity that are read: they are stored as a bit and a rare list.

use steersman_base::Istr;

use crate::view;
use crate::wire::IsSet;

view! {
    pub(super) struct Affinity {
        node_affinity: NodeAffinity = 1,
        pod_affinity: PodAffinity = 2,
        pod_anti_affinity: PodAffinity = 3,
    }
}

view! {
    pub(super) struct NodeAffinity {
        required_during_scheduling_ignored_during_execution: NodeSelector = 1,
    }
}

view! {
    pub(super) struct NodeSelector {
        node_selector_terms: Box<[NodeFieldTerm]> = 1,
    }
}

view! {
    /// One way to be the right node: all requirements hold.
    pub struct NodeFieldTerm {
        /// Requirements on the node's fields.
        match_fields: Box<[NodeFieldRequirement]> = 2,
    }
}

view! {
    /// A requirement on a field of a node; `metadata.name` is the only one there is.
    pub struct NodeFieldRequirement {
        /// Path of the field.
        key: Istr = 1,
        /// `In` or `NotIn`.
        operator: Istr = 2,
        /// The values.
        values: Box<[Istr]> = 3,
    }
}

view! {
    pub(super) struct PodAffinity {
        required_during_scheduling_ignored_during_execution: Vec<PodAffinityTerm> = 1,
        preferred_during_scheduling_ignored_during_execution: Vec<WeightedPodAffinityTerm> = 2,
    }
}

view! {
    pub(super) struct WeightedPodAffinityTerm {
        pod_affinity_term: PodAffinityTerm = 2,
    }
}

view! {
    pub(super) struct PodAffinityTerm {
        namespaces: Vec<Istr> = 2,
        has_namespace_selector "namespaceSelector": bool as IsSet = 4,
    }
}

// === impl Affinity ===

impl Affinity {
    /// Whether a term refers to pods of other namespaces.
    pub(super) fn is_cross_namespace(&self) -> bool {
        [&self.pod_affinity, &self.pod_anti_affinity].into_iter().any(|affinity| {
            let required = affinity.required_during_scheduling_ignored_during_execution.iter();
            let preferred = affinity.preferred_during_scheduling_ignored_during_execution.iter();
            required
                .chain(preferred.map(|weighted| &weighted.pod_affinity_term))
                .any(|term| term.has_namespace_selector || !term.namespaces.is_empty())
        })
    }

    /// The required terms, by the nodes' fields.
    pub(super) fn node_field_terms(self) -> Box<[NodeFieldTerm]> {
        self.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms
    }
}
