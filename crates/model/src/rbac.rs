//! The group `rbac.authorization.k8s.io`.

use steersman_base::{Istr, LabelSelector, Meta};

use crate::view;

view! {
    /// A role of the whole cluster.
    pub struct ClusterRoleView for cluster("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole") {
        /// The metadata.
        metadata: Meta = 1,
        /// The permissions.
        rules: Box<[PolicyRule]> = 2,
        /// The roles that it is aggregated from, if it is.
        aggregation_rule: Option<AggregationRule> = 3,
    }
}

view! {
    /// A rule of a role, whole.
    #[derive(Eq, Hash)]
    pub struct PolicyRule: Serialize {
        /// The verbs.
        verbs: Box<[Istr]> = 1,
        /// The API groups.
        api_groups: Box<[Istr]> = 2,
        /// The resources.
        resources: Box<[Istr]> = 3,
        /// The names of objects; empty allows all.
        resource_names: Box<[Istr]> = 4,
        /// Paths that are no resources.
        non_resource_urls "nonResourceURLs": Box<[Istr]> = 5,
    }
}

view! {
    /// The roles that a role is made of.
    #[derive(Eq, Hash)]
    pub struct AggregationRule {
        /// A role that one of them matches is a part.
        cluster_role_selectors: Box<[LabelSelector]> = 1,
    }
}
