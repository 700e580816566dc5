//! The controllers under test: the one place where tests name their rows.

use std::sync::{Arc, LazyLock};

use steersman_controllers::{
    bootstrap_signer, certificatesigningrequest_approving, certificatesigningrequest_cleaner,
    certificatesigningrequest_signing, clusterrole_aggregation, cronjob, daemonset, deployment, device_taint_eviction,
    disruption, endpoints, endpointslice, endpointslice_mirroring, ephemeral_volume, garbage_collector,
    horizontal_pod_autoscaler, job, kube_apiserver_serving_clustertrustbundle_publisher,
    legacy_serviceaccount_token_cleaner, namespace, node_ipam, node_lifecycle, persistentvolume_attach_detach,
    persistentvolume_binder, persistentvolume_expander, persistentvolume_protection, persistentvolumeclaim_protection,
    pod_garbage_collector, podcertificaterequest_cleaner, podgroup_protection, replicaset, replicationcontroller,
    resourceclaim, resourcepoolstatusrequest, resourcequota, root_ca_certificate_publisher, selinux_warning,
    service_cidr, serviceaccount, serviceaccount_token, statefulset, storage_version_migrator,
    storageversion_garbage_collector, taint_eviction, token_cleaner, ttl, ttl_after_finished,
    validatingadmissionpolicy_status, volumeattributesclass_protection,
};

pub(crate) use steersman_runtime::Descriptor as Controller;

use crate::scenarios::accounts;

pub(crate) const ALL: &[Controller] = steersman_controllers::ALL;
pub(crate) const ATTACH_DETACH: Controller = persistentvolume_attach_detach::DESCRIPTOR;
pub(crate) const BOOTSTRAP_SIGNER: Controller = bootstrap_signer::DESCRIPTOR;
pub(crate) const CSR_APPROVING: Controller = certificatesigningrequest_approving::DESCRIPTOR;
pub(crate) const CSR_CLEANER: Controller = certificatesigningrequest_cleaner::DESCRIPTOR;
pub(crate) const CSR_SIGNING: Controller = certificatesigningrequest_signing::DESCRIPTOR;
pub(crate) const DAEMON_SET: Controller = daemonset::DESCRIPTOR;
pub(crate) const CLAIM_PROTECTION: Controller = persistentvolumeclaim_protection::DESCRIPTOR;
pub(crate) const CLASS_PROTECTION: Controller = volumeattributesclass_protection::DESCRIPTOR;
pub(crate) const CRON_JOB: Controller = cronjob::DESCRIPTOR;
pub(crate) const DEPLOYMENT: Controller = deployment::DESCRIPTOR;
pub(crate) const DEVICE_TAINT_EVICTION: Controller = device_taint_eviction::DESCRIPTOR;
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
pub(crate) const NODE_IPAM: Controller = node_ipam::DESCRIPTOR;
pub(crate) const NODE_LIFECYCLE: Controller = node_lifecycle::DESCRIPTOR;
pub(crate) const POLICY_STATUS: Controller = validatingadmissionpolicy_status::DESCRIPTOR;
pub(crate) const POD_CERTIFICATE_CLEANER: Controller = podcertificaterequest_cleaner::DESCRIPTOR;
pub(crate) const POD_GC: Controller = pod_garbage_collector::DESCRIPTOR;
pub(crate) const POD_GROUP_PROTECTION: Controller = podgroup_protection::DESCRIPTOR;
pub(crate) const POOL_STATUS: Controller = resourcepoolstatusrequest::DESCRIPTOR;
pub(crate) const REPLICA_SET: Controller = replicaset::DESCRIPTOR;
pub(crate) const REPLICATION_CONTROLLER: Controller = replicationcontroller::DESCRIPTOR;
pub(crate) const RESOURCE_CLAIM: Controller = resourceclaim::DESCRIPTOR;
pub(crate) const RESOURCE_QUOTA: Controller = resourcequota::DESCRIPTOR;
pub(crate) const ROLE_AGGREGATION: Controller = clusterrole_aggregation::DESCRIPTOR;
pub(crate) const ROOT_CA: Controller = root_ca_certificate_publisher::DESCRIPTOR;
pub(crate) const SELINUX_WARNING: Controller = selinux_warning::DESCRIPTOR;
pub(crate) const SERVICE_CIDR: Controller = service_cidr::DESCRIPTOR;
pub(crate) const SERVICE_ACCOUNT: Controller = serviceaccount::DESCRIPTOR;
pub(crate) const SERVICE_ACCOUNT_TOKEN: Controller = serviceaccount_token::DESCRIPTOR;
pub(crate) const STATEFUL_SET: Controller = statefulset::DESCRIPTOR;
pub(crate) const STORAGE_VERSION_GC: Controller = storageversion_garbage_collector::DESCRIPTOR;
pub(crate) const STORAGE_VERSION_MIGRATOR: Controller = storage_version_migrator::DESCRIPTOR;
pub(crate) const TAINT_EVICTION: Controller = taint_eviction::DESCRIPTOR;
pub(crate) const TOKEN_CLEANER: Controller = token_cleaner::DESCRIPTOR;
pub(crate) const TRUST_BUNDLE: Controller = kube_apiserver_serving_clustertrustbundle_publisher::DESCRIPTOR;
pub(crate) const TTL: Controller = ttl::DESCRIPTOR;
pub(crate) const TTL_AFTER_FINISHED: Controller = ttl_after_finished::DESCRIPTOR;
pub(crate) const VOLUME_BINDER: Controller = persistentvolume_binder::DESCRIPTOR;
pub(crate) const VOLUME_EXPANDER: Controller = persistentvolume_expander::DESCRIPTOR;
pub(crate) const VOLUME_PROTECTION: Controller = persistentvolume_protection::DESCRIPTOR;

/// The publisher, with a certificate.
pub(crate) const ROOT_CA_WITH_CERTIFICATE: Controller = ROOT_CA.prepared_by(|manager| {
    manager.set_options(root_ca_certificate_publisher::Options::default().root_ca(Arc::from(accounts::ROOT_CA)));
});

/// The job controller, with `WorkloadWithJob`.
pub(crate) const JOB_WITH_WORKLOADS: Controller =
    JOB.prepared_by(|manager| manager.set_options(crate::scenarios::support::gangs::options()));

/// The autoscaler, with short periods.
pub(crate) const QUICK_AUTOSCALER: Controller = HORIZONTAL_POD_AUTOSCALER
    .prepared_by(|manager| manager.set_options(crate::scenarios::horizontal_pod_autoscaler::options()));

/// The node IPAM controller, with the ranges of simulated nodes.
pub(crate) const NODE_IPAM_WITH_RANGES: Controller = NODE_IPAM.prepared_by(|manager| {
    manager.set_options(node_ipam::Options::default().allocate(true).cluster("10.128.0.0/9").mask(22));
});

/// The tokens controller, with a certificate, and the rig's key or one of its own.
pub(crate) const SERVICE_ACCOUNT_TOKEN_WITH_KEY: Controller = SERVICE_ACCOUNT_TOKEN.prepared_by(|manager| {
    let signer = serviceaccount_token::Signer::from_pem(&key()).expect("it is a key");
    let root_ca: Arc<str> = accounts::ROOT_CA.into();
    manager.set_options(serviceaccount_token::Options::default().signer(signer).root_ca(root_ca));
});

/// The signing controller, with the certificate authority of the tests.
pub(crate) const CSR_SIGNING_WITH_KEYS: Controller = CSR_SIGNING.prepared_by(|manager| {
    let Authority { certificate, key } = &*AUTHORITY;
    manager.set_options(certificatesigningrequest_signing::Options::signed_by(certificate, key));
});

/// The publisher of trust bundles, with the certificate authority of the tests.
pub(crate) const TRUST_BUNDLE_WITH_CERTIFICATE: Controller = TRUST_BUNDLE.prepared_by(|manager| {
    let root_ca: Arc<str> = AUTHORITY.certificate.as_str().into();
    manager.set_options(kube_apiserver_serving_clustertrustbundle_publisher::Options::default().root_ca(root_ca));
});

/// A certificate authority, in PEM.
pub(crate) struct Authority {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// The one whose client certificates the rig's shared server accepts; elsewhere, any.
pub(crate) static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| match std::env::var_os("STEERSMAN_RIG_DIR") {
    Some(rig) => {
        let read = |name: &str| std::fs::read_to_string(std::path::Path::new(&rig).join(name));
        let found = (read("ca.crt"), read("ca.key"));
        Authority { certificate: found.0.expect("a certificate"), key: found.1.expect("a key") }
    }
    None => {
        let key = rcgen::KeyPair::generate().expect("there is randomness");
        let mut params = rcgen::CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a certificate").pem();
        Authority { certificate, key: key.serialize_pem() }
    }
});

/// Controllers whose gate is off, and whose API the servers of most tests do not have.
pub(crate) const GATED: [&str; 3] =
    [podgroup_protection::DESCRIPTOR.name, resourcepoolstatusrequest::DESCRIPTOR.name, STORAGE_VERSION_GC.name];

/// All controllers that run by default, those that need a key, a certificate or a range with one.
pub(crate) fn all_with_options() -> Vec<Controller> {
    let with_options = |controller: &Controller| match controller.name {
        name if name == NODE_IPAM.name => NODE_IPAM_WITH_RANGES,
        name if name == ROOT_CA.name => ROOT_CA_WITH_CERTIFICATE,
        name if name == SERVICE_ACCOUNT_TOKEN.name => SERVICE_ACCOUNT_TOKEN_WITH_KEY,
        name if name == CSR_SIGNING.name => CSR_SIGNING_WITH_KEYS,
        name if name == TRUST_BUNDLE.name => TRUST_BUNDLE_WITH_CERTIFICATE,
        _ => *controller,
    };
    ALL.iter().filter(|controller| !GATED.contains(&controller.name)).map(with_options).collect()
}

/// The key that the rig's server checks tokens with; elsewhere, any.
fn key() -> Vec<u8> {
    match std::env::var_os("STEERSMAN_RIG_DIR") {
        Some(rig) => std::fs::read(std::path::Path::new(&rig).join("sa.key")).expect("the rig has a key"),
        None => rcgen::KeyPair::generate().expect("there is randomness").serialize_pem().into_bytes(),
    }
}
