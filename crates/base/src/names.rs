//! Well-known finalizers, annotations and labels.

/// Finalizers that the API server and the garbage collector give a meaning to.
pub mod finalizers {
    /// The object goes only after its blocking dependents are gone.
    pub const FOREGROUND_DELETION: &str = "foregroundDeletion";
    /// The object's dependents lose their reference to it, and stay.
    pub const ORPHAN: &str = "orphan";
    /// In a namespace's `spec.finalizers`: its content is still to be deleted.
    pub const KUBERNETES: &str = "kubernetes";
    /// On a Job's pod: the Job has not counted it yet.
    pub const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";
}

/// Annotations that controllers read or write.
pub mod annotations {
    /// How much it costs to delete this pod, against the others of its ReplicaSet.
    pub const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
    /// Which completion of an indexed Job a pod works on.
    pub const JOB_COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
    /// How often an index of a Job has failed.
    pub const JOB_INDEX_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-failure-count";
    /// How many failures of an index were ignored by policy.
    pub const JOB_INDEX_IGNORED_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
    /// Revision of a Deployment, and of each of its ReplicaSets.
    pub const DEPLOYMENT_REVISION: &str = "deployment.kubernetes.io/revision";
    /// When the change that led to these endpoints happened.
    pub const ENDPOINTS_LAST_CHANGE_TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";
    /// Set to `truncated` where an Endpoints object leaves addresses out.
    pub const ENDPOINTS_OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
    /// Whether endpoints get topology hints.
    pub const SERVICE_TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
    /// The older name of the topology mode.
    pub const SERVICE_TOPOLOGY_AWARE_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
}

/// Labels that controllers read or write.
pub mod labels {
    /// Which template a Deployment's ReplicaSet, and its pods, come from.
    pub const POD_TEMPLATE_HASH: &str = "pod-template-hash";
    /// Which revision a StatefulSet's or DaemonSet's pod comes from.
    pub const CONTROLLER_REVISION_HASH: &str = "controller-revision-hash";
    /// Which service an EndpointSlice belongs to.
    pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
    /// Who keeps an EndpointSlice.
    pub const ENDPOINTSLICE_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
    /// The zone a node is in.
    pub const TOPOLOGY_ZONE: &str = "topology.kubernetes.io/zone";
    /// The region a node is in.
    pub const TOPOLOGY_REGION: &str = "topology.kubernetes.io/region";
    /// The name of the node, or of the host a pod is tied to.
    pub const HOSTNAME: &str = "kubernetes.io/hostname";
    /// A namespace's own name, set by the API server.
    pub const METADATA_NAME: &str = "kubernetes.io/metadata.name";
}
