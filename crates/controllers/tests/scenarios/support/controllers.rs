//! The controllers under test: the one place where tests name their rows.

use steersman_controllers::{
    clusterrole_aggregation, cronjob, daemonset, deployment, disruption, endpoints, endpointslice,
    endpointslice_mirroring, ephemeral_volume, garbage_collector, horizontal_pod_autoscaler, job,
    legacy_serviceaccount_token_cleaner, namespace, persistentvolume_protection, persistentvolumeclaim_protection,
    pod_garbage_collector, replicaset, replicationcontroller, root_ca_certificate_publisher, serviceaccount,
    serviceaccount_token, statefulset, ttl, volumeattributesclass_protection,
};
pub(crate) use steersman_runtime::Descriptor as Controller;

use crate::scenarios::accounts;

pub(crate) const ALL: &[Controller] = steersman_controllers::ALL;
pub(crate) const DAEMON_SET: Controller = daemonset::DESCRIPTOR;
pub(crate) const CLAIM_PROTECTION: Controller = persistentvolumeclaim_protection::DESCRIPTOR;
pub(crate) const CLASS_PROTECTION: Controller = volumeattributesclass_protection::DESCRIPTOR;
pub(crate) const CRON_JOB: Controller = cronjob::DESCRIPTOR;
pub(crate) const DEPLOYMENT: Controller = deployment::DESCRIPTOR;
pub(crate) const DISRUPTION: Controller = disruption::DESCRIPTOR;
pub(crate) const ENDPOINT_SLICE_MIRRORING: Controller = endpointslice_mirroring::DESCRIPTOR;
pub(crate) const ENDPOINT_SLICE: Controller = endpointslice::DESCRIPTOR;
pub(crate) const ENDPOINTS: Controller = endpoints::DESCRIPTOR;
pub(crate) const EPHEMERAL_VOLUME: Controller = ephemeral_volume::DESCRIPTOR;
pub(crate) const GARBAGE_COLLECTOR: Controller = garbage_collector::DESCRIPTOR;
pub(crate) const JOB: Controller = job::DESCRIPTOR;
pub(crate) const HORIZONTAL_POD_AUTOSCALER: Controller = horizontal_pod_autoscaler::DESCRIPTOR;
pub(crate) const LEGACY_TOKEN_CLEANER: Controller = legacy_serviceaccount_token_cleaner::DESCRIPTOR;
pub(crate) const NAMESPACE: Controller = namespace::DESCRIPTOR;
pub(crate) const POD_GC: Controller = pod_garbage_collector::DESCRIPTOR;
pub(crate) const REPLICA_SET: Controller = replicaset::DESCRIPTOR;
pub(crate) const REPLICATION_CONTROLLER: Controller = replicationcontroller::DESCRIPTOR;
pub(crate) const ROLE_AGGREGATION: Controller = clusterrole_aggregation::DESCRIPTOR;
pub(crate) const ROOT_CA: Controller = root_ca_certificate_publisher::DESCRIPTOR;
pub(crate) const SERVICE_ACCOUNT: Controller = serviceaccount::DESCRIPTOR;
pub(crate) const SERVICE_ACCOUNT_TOKEN: Controller = serviceaccount_token::DESCRIPTOR;
pub(crate) const STATEFUL_SET: Controller = statefulset::DESCRIPTOR;
pub(crate) const TTL: Controller = ttl::DESCRIPTOR;
pub(crate) const VOLUME_PROTECTION: Controller = persistentvolume_protection::DESCRIPTOR;

/// The publisher, with a certificate.
pub(crate) const ROOT_CA_WITH_CERTIFICATE: Controller = ROOT_CA.prepared_by(|manager| {
    manager.set_options(root_ca_certificate_publisher::Options { root_ca: Some(accounts::ROOT_CA.into()) });
});

/// The tokens controller, with a certificate, and the rig's key or one of its own.
pub(crate) const SERVICE_ACCOUNT_TOKEN_WITH_KEY: Controller = SERVICE_ACCOUNT_TOKEN.prepared_by(|manager| {
    let signer = serviceaccount_token::Signer::from_pem(&key()).expect("it is a key");
    let root_ca = Some(accounts::ROOT_CA.into());
    manager.set_options(serviceaccount_token::Options { signer: Some(signer), root_ca });
});

/// All controllers, those that need a key or a certificate with one.
pub(crate) fn all_with_options() -> Vec<Controller> {
    let with_options = |controller: &Controller| match controller.name {
        name if name == ROOT_CA.name => ROOT_CA_WITH_CERTIFICATE,
        name if name == SERVICE_ACCOUNT_TOKEN.name => SERVICE_ACCOUNT_TOKEN_WITH_KEY,
        _ => *controller,
    };
    ALL.iter().map(with_options).collect()
}

/// The key that the rig's server checks tokens with; elsewhere, any.
fn key() -> Vec<u8> {
    match std::env::var_os("STEERSMAN_RIG_DIR") {
        Some(rig) => std::fs::read(std::path::Path::new(&rig).join("sa.key")).expect("the rig has a key"),
        None => rcgen::KeyPair::generate().expect("there is randomness").serialize_pem().into_bytes(),
    }
}
