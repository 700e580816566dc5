//! Well-known finalizers, annotations, labels and taints: what the controllers of Kubernetes 1.37 read or write.

/// Finalizers that the API server and controllers give a meaning to.
pub mod finalizers {
    /// The object is deleted only after its blocking dependents.
    pub const FOREGROUND_DELETION: &str = "foregroundDeletion";
    /// The object's dependents lose their reference to it, and stay.
    pub const ORPHAN: &str = "orphan";
    /// In a namespace's `spec.finalizers`: its content is still to be deleted.
    pub const KUBERNETES: &str = "kubernetes";
    /// On a Job's pod: the Job has not counted it yet.
    pub const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";
    /// On a PersistentVolumeClaim: a pod may use it.
    pub const PVC_PROTECTION: &str = "kubernetes.io/pvc-protection";
    /// On a PersistentVolume: it is bound to a claim.
    pub const PV_PROTECTION: &str = "kubernetes.io/pv-protection";
    /// On a VolumeAttributesClass: a volume or claim names it.
    pub const VAC_PROTECTION: &str = "kubernetes.io/vac-protection";
    /// On a PersistentVolume: the volume controller deletes what is behind it.
    pub const PV_DELETION_IN_TREE: &str = "kubernetes.io/pv-controller";
    /// On a PersistentVolume: the external provisioner deletes what is behind it.
    pub const PV_DELETION_EXTERNAL: &str = "external-provisioner.volume.kubernetes.io/finalizer";
    /// On a ServiceCIDR: addresses of it are in use.
    pub const SERVICE_CIDR: &str = "networking.k8s.io/service-cidr-finalizer";
    /// On a Service: its load balancer is still to be removed.
    pub const LOAD_BALANCER_CLEANUP: &str = "service.kubernetes.io/load-balancer-cleanup";
    /// On a ResourceClaim: it is allocated.
    pub const RESOURCE_CLAIM: &str = "resource.kubernetes.io/delete-protection";
    /// On a CustomResourceDefinition: its objects are still to be deleted.
    pub const CUSTOM_RESOURCE_CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
}

/// Annotations that controllers read or write.
pub mod annotations {
    /// The cost of deleting this pod, compared with the others of its ReplicaSet.
    pub const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
    /// The completion of an indexed Job that a pod works on.
    pub const JOB_COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
    /// The number of failures of an index of a Job.
    pub const JOB_INDEX_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-failure-count";
    /// The number of failures of an index that were ignored by policy.
    pub const JOB_INDEX_IGNORED_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
    /// For when a CronJob's Job was due.
    pub const CRONJOB_SCHEDULED_TIMESTAMP: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";
    /// The origin of a CronJob's Job; `manual` if a person created it.
    pub const CRONJOB_INSTANTIATE: &str = "cronjob.kubernetes.io/instantiate";
    /// Revision of a Deployment, and of each of its ReplicaSets.
    pub const DEPLOYMENT_REVISION: &str = "deployment.kubernetes.io/revision";
    /// Earlier revisions of a ReplicaSet that was rolled back to.
    pub const DEPLOYMENT_REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
    /// Replicas of the Deployment when the ReplicaSet was last scaled.
    pub const DEPLOYMENT_DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
    /// Replicas that the Deployment may have at most, surge included.
    pub const DEPLOYMENT_MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
    /// The revision an old client wants rolled back to.
    pub const DEPLOYMENT_ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";
    /// Generation of a DaemonSet's template, from before revisions.
    pub const DAEMONSET_TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
    /// The object that `kubectl apply` sent last; never copied to other objects.
    pub const LAST_APPLIED_CONFIGURATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
    /// Why an object changed, for `kubectl rollout history`.
    pub const CHANGE_CAUSE: &str = "kubernetes.io/change-cause";
    /// For humans: what the object is for.
    pub const DESCRIPTION: &str = "kubernetes.io/description";
    /// Marks the bookmark that ends the initial events of a streaming list.
    pub const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";
    /// The pod is a kubelet's image of a static pod.
    pub const MIRROR_POD: &str = "kubernetes.io/config.mirror";

    /// The time of the change that led to these endpoints.
    pub const ENDPOINTS_LAST_CHANGE_TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";
    /// Set to `truncated` where an Endpoints object leaves addresses out.
    pub const ENDPOINTS_OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
    /// The lock record of old leader elections; Endpoints that carry it are not mirrored.
    pub const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
    /// Whether endpoints get topology hints.
    pub const SERVICE_TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
    /// The older name of the topology mode.
    pub const SERVICE_TOPOLOGY_AWARE_HINTS: &str = "service.kubernetes.io/topology-aware-hints";

    /// The time for which kubelets on this node may cache Secrets and ConfigMaps, in seconds.
    pub const NODE_TTL: &str = "node.alpha.kubernetes.io/ttl";
    /// The node leaves attaching and detaching of volumes to the controller.
    pub const CONTROLLER_MANAGED_ATTACH_DETACH: &str = "volumes.kubernetes.io/controller-managed-attach-detach";
    /// On a CSINode: in-tree plugins that CSI drivers have taken over.
    pub const MIGRATED_PLUGINS: &str = "storage.alpha.kubernetes.io/migrated-plugins";

    /// The binding of a claim is complete.
    pub const PV_BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
    /// The controller, and not the user, chose the other side of a binding.
    pub const PV_BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
    /// The CSI driver that has taken over an in-tree volume or claim.
    pub const PV_MIGRATED_TO: &str = "pv.kubernetes.io/migrated-to";
    /// The provisioner of a volume.
    pub const PV_PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
    /// The creator of a volume, for in-tree plugins.
    pub const VOLUME_CREATED_BY: &str = "kubernetes.io/createdby";
    /// The node that the scheduler chose for the first consumer of a claim.
    pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
    /// The provisioner that is to provide a volume for a claim.
    pub const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
    /// The older name of the storage provisioner.
    pub const STORAGE_PROVISIONER_BETA: &str = "volume.beta.kubernetes.io/storage-provisioner";
    /// The resizer of a claim's volume.
    pub const STORAGE_RESIZER: &str = "volume.kubernetes.io/storage-resizer";
    /// Storage class of a volume or claim, from before it was a field.
    pub const STORAGE_CLASS_BETA: &str = "volume.beta.kubernetes.io/storage-class";
    /// Mount options of a volume, from before they were a field.
    pub const MOUNT_OPTIONS_BETA: &str = "volume.beta.kubernetes.io/mount-options";
    /// Capacity of a volume before it was resized.
    pub const PRE_RESIZE_CAPACITY: &str = "volume.alpha.kubernetes.io/pre-resize-capacity";
    /// The storage class for claims that name none.
    pub const DEFAULT_STORAGE_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
    /// The older name of the mark of the default class.
    pub const DEFAULT_STORAGE_CLASS_BETA: &str = "storageclass.beta.kubernetes.io/is-default-class";

    /// The service account that a token Secret belongs to.
    pub const SERVICE_ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
    /// The uid of the service account that a token Secret belongs to.
    pub const SERVICE_ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
    /// The claim of its pod that a generated ResourceClaim is for.
    pub const POD_RESOURCE_CLAIM: &str = "resource.kubernetes.io/pod-claim-name";
    /// The ResourceClaim stands for the extended resources of a pod.
    pub const EXTENDED_RESOURCE_CLAIM: &str = "resource.kubernetes.io/extended-resource-claim";
    /// Whether the API server may bring a default role up to date.
    pub const RBAC_AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
}

/// Labels that controllers read or write.
pub mod labels {
    /// The hash of the template of a Deployment's ReplicaSet and its pods.
    pub const POD_TEMPLATE_HASH: &str = "pod-template-hash";
    /// The revision of a StatefulSet's or DaemonSet's pod.
    pub const CONTROLLER_REVISION_HASH: &str = "controller-revision-hash";
    /// On a ControllerRevision: the hash of its data.
    pub const CONTROLLER_HASH: &str = "controller.kubernetes.io/hash";
    /// The generation of a DaemonSet's template that a pod comes from.
    pub const POD_TEMPLATE_GENERATION: &str = "pod-template-generation";
    /// On a StatefulSet's pod: its own name, for Services of one pod.
    pub const STATEFULSET_POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
    /// On a StatefulSet's pod: its ordinal.
    pub const POD_INDEX: &str = "apps.kubernetes.io/pod-index";
    /// On a Job's pod: the name of the Job.
    pub const JOB_NAME: &str = "batch.kubernetes.io/job-name";
    /// The older name of the Job's name.
    pub const JOB_NAME_LEGACY: &str = "job-name";
    /// On a Job's pod: the uid of the Job.
    pub const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
    /// The older name of the Job's uid.
    pub const CONTROLLER_UID_LEGACY: &str = "controller-uid";

    /// The service to which an EndpointSlice belongs.
    pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
    /// The manager of an EndpointSlice.
    pub const ENDPOINTSLICE_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
    /// The Endpoints object is not mirrored to EndpointSlices.
    pub const ENDPOINTSLICE_SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";
    /// The manager of an Endpoints object.
    pub const ENDPOINTS_MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
    /// The endpoints are those of a Service without a cluster address.
    pub const HEADLESS_SERVICE: &str = "service.kubernetes.io/headless";
    /// Address family of an IPAddress.
    pub const IPADDRESS_FAMILY: &str = "ipaddress.kubernetes.io/ip-family";
    /// The manager of an IPAddress.
    pub const IPADDRESS_MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";

    /// The zone a node is in.
    pub const TOPOLOGY_ZONE: &str = "topology.kubernetes.io/zone";
    /// The older name of the zone.
    pub const TOPOLOGY_ZONE_BETA: &str = "failure-domain.beta.kubernetes.io/zone";
    /// The region a node is in.
    pub const TOPOLOGY_REGION: &str = "topology.kubernetes.io/region";
    /// The older name of the region.
    pub const TOPOLOGY_REGION_BETA: &str = "failure-domain.beta.kubernetes.io/region";
    /// The name of the node, or of the host a pod is tied to.
    pub const HOSTNAME: &str = "kubernetes.io/hostname";
    /// Operating system of a node.
    pub const OS: &str = "kubernetes.io/os";
    /// The older name of the operating system.
    pub const OS_BETA: &str = "beta.kubernetes.io/os";
    /// Processor architecture of a node.
    pub const ARCH: &str = "kubernetes.io/arch";
    /// The older name of the architecture.
    pub const ARCH_BETA: &str = "beta.kubernetes.io/arch";
    /// Pods are not evicted from this node when it is silent.
    pub const NODE_EXCLUDE_DISRUPTION: &str = "node.kubernetes.io/exclude-disruption";
    /// Load balancers leave this node out.
    pub const NODE_EXCLUDE_BALANCERS: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
    /// The node runs the control plane.
    pub const NODE_ROLE_CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
    /// The older name of the control plane's role.
    pub const NODE_ROLE_MASTER: &str = "node-role.kubernetes.io/master";

    /// A namespace's own name, set by the API server.
    pub const METADATA_NAME: &str = "kubernetes.io/metadata.name";
    /// The date on which a token Secret of the old kind was last used.
    pub const LEGACY_TOKEN_LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
    /// Since when a token Secret of the old kind is no longer accepted.
    pub const LEGACY_TOKEN_INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
    /// On a Lease in `kube-system`: which component holds it as its identity.
    pub const APISERVER_IDENTITY: &str = "apiserver.kubernetes.io/identity";
    /// The object was made by the API server at its start.
    pub const BOOTSTRAPPING: &str = "kubernetes.io/bootstrapping";
}

/// Taints that controllers put on nodes or tolerate.
pub mod taints {
    /// The node's `Ready` condition is `False`.
    pub const NOT_READY: &str = "node.kubernetes.io/not-ready";
    /// The node's `Ready` condition is `Unknown`.
    pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
    /// The node takes no new pods.
    pub const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
    /// The node is short of memory.
    pub const MEMORY_PRESSURE: &str = "node.kubernetes.io/memory-pressure";
    /// The node is short of disk.
    pub const DISK_PRESSURE: &str = "node.kubernetes.io/disk-pressure";
    /// The node is short of process ids.
    pub const PID_PRESSURE: &str = "node.kubernetes.io/pid-pressure";
    /// The node's network is not set up.
    pub const NETWORK_UNAVAILABLE: &str = "node.kubernetes.io/network-unavailable";
    /// The node is known to be down; its pods may be deleted by force.
    pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
    /// The cloud has not initialised the node yet.
    pub const CLOUD_UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
    /// The cloud has shut the node down.
    pub const CLOUD_SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::validation::qualified_name;

    #[test]
    fn every_name_is_qualified_and_stands_once() {
        let mut seen = BTreeSet::new();
        for line in include_str!("names.rs").lines().filter(|line| line.trim_start().starts_with("pub const ")) {
            let (_, value) = line.split_once(" = \"").unwrap();
            let name = value.trim_end_matches("\";");
            assert!(qualified_name(name).is_empty(), "{name}: {:?}", qualified_name(name));
            assert!(seen.insert(name), "{name} stands twice");
        }
        assert!(seen.len() > 80, "only {} names were found", seen.len());
    }
}
