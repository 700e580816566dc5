//! The built-in controllers of Kubernetes, one module each, all of one anatomy.
//!
//! ```text
//! replicaset.rs        the page, and the descriptor (name, needs, options, build)
//! replicaset/
//!     map.rs           pure: which keys an event concerns; index functions
//!     plan.rs          pure: the observed state -> what to do
//!     status.rs        pure: status and conditions
//!     <topic>.rs       pure: one decision per file
//!     sync.rs          the shell: observe -> plan -> write -> status
//!     memory.rs        what is remembered between passes, if anything
//!     metrics.rs       what is counted, if anything
//!     tests.rs         table tests of the pure files
//! ```
//!
//! The facts of each (aliases, account, gates, queue, workers, limiter, retries, …) are in its row of the [`table`]. A
//! module is named after its row, without `-controller`.
//!
//! Scenarios, which need a cluster, are in `tests/`.

pub mod bootstrap_signer;
mod bootstrap_token;
mod certificates;
pub mod certificatesigningrequest_approving;
pub mod certificatesigningrequest_cleaner;
pub mod certificatesigningrequest_signing;
mod claim;
pub mod clusterrole_aggregation;
pub mod cronjob;
mod csi_migration;
pub mod daemonset;
pub mod deployment;
pub mod device_taint_eviction;
pub mod disruption;
pub mod endpoints;
pub mod endpointslice;
pub mod endpointslice_mirroring;
pub mod ephemeral_volume;
mod eviction;
pub mod garbage_collector;
mod history;
pub mod horizontal_pod_autoscaler;
pub mod job;
pub mod kube_apiserver_serving_clustertrustbundle_publisher;
pub mod legacy_serviceaccount_token_cleaner;
pub mod namespace;
pub mod node_ipam;
pub mod node_lifecycle;
pub mod persistentvolume_attach_detach;
pub mod persistentvolume_binder;
pub mod persistentvolume_expander;
pub mod persistentvolume_protection;
pub mod persistentvolumeclaim_protection;
pub mod pod;
mod pod_claims;
pub mod pod_garbage_collector;
pub mod podcertificaterequest_cleaner;
pub mod podgroup_protection;
mod protection;
mod quota_room;
pub mod replicaset;
pub mod replicationcontroller;
mod resource_claims;
pub mod resourceclaim;
pub mod resourcepoolstatusrequest;
pub mod resourcequota;
mod rewrite;
pub mod root_ca_certificate_publisher;
mod scale;
pub mod selinux_warning;
pub mod service_cidr;
mod service_pods;
pub mod serviceaccount;
pub mod serviceaccount_token;
pub mod statefulset;
pub mod storage_version_migrator;
pub mod storageversion_garbage_collector;
pub mod table;
pub mod taint_eviction;
#[cfg(test)]
mod test_objects;
pub mod token_cleaner;
mod toleration;
pub mod ttl;
pub mod ttl_after_finished;
pub mod validatingadmissionpolicy_status;
mod volume_spec;
pub mod volumeattributesclass_protection;

use steersman_runtime::Descriptor;

/// Every implemented controller, in upstream's order.
pub static ALL: &[Descriptor] = &[
    serviceaccount_token::DESCRIPTOR,
    endpoints::DESCRIPTOR,
    endpointslice::DESCRIPTOR,
    endpointslice_mirroring::DESCRIPTOR,
    replicationcontroller::DESCRIPTOR,
    pod_garbage_collector::DESCRIPTOR,
    resourcequota::DESCRIPTOR,
    namespace::DESCRIPTOR,
    serviceaccount::DESCRIPTOR,
    garbage_collector::DESCRIPTOR,
    daemonset::DESCRIPTOR,
    job::DESCRIPTOR,
    podgroup_protection::DESCRIPTOR,
    deployment::DESCRIPTOR,
    replicaset::DESCRIPTOR,
    horizontal_pod_autoscaler::DESCRIPTOR,
    disruption::DESCRIPTOR,
    statefulset::DESCRIPTOR,
    cronjob::DESCRIPTOR,
    certificatesigningrequest_signing::DESCRIPTOR,
    certificatesigningrequest_approving::DESCRIPTOR,
    certificatesigningrequest_cleaner::DESCRIPTOR,
    podcertificaterequest_cleaner::DESCRIPTOR,
    ttl::DESCRIPTOR,
    bootstrap_signer::DESCRIPTOR,
    token_cleaner::DESCRIPTOR,
    node_ipam::DESCRIPTOR,
    node_lifecycle::DESCRIPTOR,
    taint_eviction::DESCRIPTOR,
    device_taint_eviction::DESCRIPTOR,
    persistentvolume_binder::DESCRIPTOR,
    persistentvolume_attach_detach::DESCRIPTOR,
    persistentvolume_expander::DESCRIPTOR,
    clusterrole_aggregation::DESCRIPTOR,
    persistentvolumeclaim_protection::DESCRIPTOR,
    persistentvolume_protection::DESCRIPTOR,
    volumeattributesclass_protection::DESCRIPTOR,
    ttl_after_finished::DESCRIPTOR,
    root_ca_certificate_publisher::DESCRIPTOR,
    kube_apiserver_serving_clustertrustbundle_publisher::DESCRIPTOR,
    ephemeral_volume::DESCRIPTOR,
    storageversion_garbage_collector::DESCRIPTOR,
    resourceclaim::DESCRIPTOR,
    resourcepoolstatusrequest::DESCRIPTOR,
    legacy_serviceaccount_token_cleaner::DESCRIPTOR,
    validatingadmissionpolicy_status::DESCRIPTOR,
    service_cidr::DESCRIPTOR,
    storage_version_migrator::DESCRIPTOR,
    selinux_warning::DESCRIPTOR,
];
