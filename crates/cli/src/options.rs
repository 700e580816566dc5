//! What flags, feature gates and the cluster itself tell controllers beside their numbers of workers: one line per option.
//!
//! `--enable-garbage-collector` decides also whether the controller is there at all ([`selection`](super::selection)).

use std::sync::Arc;
use std::time::Duration;

use steersman_controllers::service_account_token::Signer;
use steersman_controllers::{
    deployment, endpoint_slice, endpoints, garbage_collector, namespace, pod_gc, replicaset, root_ca,
    service_account_token,
};
use steersman_runtime::Manager;
use steersman_runtime::connection::Connection;

use super::CommandError;
use super::flags::Parsed;
use super::gates::Gates;

/// What controllers need to know of the cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Cluster {
    /// The certificates of the authority that signs the API server's, as PEM.
    pub(super) root_ca: Option<Arc<str>>,
    /// What signs the tokens that are kept in secrets.
    pub(super) signer: Option<Signer>,
    /// How long a deleted namespace is left alone, so that all API servers know of it.
    pub(super) first_pass_after: Duration,
}

/// Sets what controllers ask for when they are built.
pub(super) fn set(manager: &Manager, flags: &Parsed, gates: &Gates, cluster: &Cluster) {
    let Cluster { root_ca, signer, first_pass_after } = cluster.clone();
    manager.set_options(service_account_token::Options { signer, root_ca: root_ca.clone() });
    manager.set_options(root_ca::Options { root_ca });
    manager.set_options(endpoints::Options { updates_batch_period: flags.duration("endpoint-updates-batch-period") });
    manager.set_options(endpoint_slice::Options {
        // Checked to be from 1 to 1000.
        endpoints_per_slice_max: usize::try_from(flags.int("max-endpoints-per-slice")).unwrap_or(1),
        updates_batch_period: flags.duration("endpointslice-updates-batch-period"),
    });
    manager.set_options(pod_gc::Options {
        // Read as an int32.
        terminated_pod_threshold: i32::try_from(flags.int("terminated-pod-gc-threshold")).unwrap_or_default(),
    });
    let sync_period = flags.duration("namespace-sync-period");
    manager.set_options(namespace::Options { first_pass_after, sync_period });
    let enabled = flags.is_on("enable-garbage-collector");
    manager.set_options(garbage_collector::Options { enabled, ..garbage_collector::Options::default() });
    let terminating_replicas = gates.enabled("DeploymentReplicaSetTerminatingReplicas");
    manager.set_options(deployment::Options { terminating_replicas });
    let pod_deletion_cost = gates.enabled("PodDeletionCost");
    manager.set_options(replicaset::Options { pod_deletion_cost, terminating_replicas });
}

// === impl Cluster ===

impl Cluster {
    /// The cluster that flags and a kubeconfig describe. Reads the files that the flags name.
    ///
    /// # Errors
    /// A file that is not there, or is not what it should be.
    pub(super) fn read(flags: &Parsed, connection: &Connection) -> Result<Self, CommandError> {
        let root_ca = match read(flags, "root-ca-file")? {
            Some((file, text)) if !text.contains("-----BEGIN CERTIFICATE-----") => {
                return Err(CommandError(format!("--root-ca-file: there is no certificate in PEM in {file}")));
            }
            Some((_, text)) => Some(text),
            None => connection.root_ca_pem(),
        };
        let key = read(flags, "service-account-private-key-file")?;
        let signer = key.map(|(file, pem)| {
            let unusable = |error| format!("--service-account-private-key-file: cannot use {file}: {error}");
            Signer::from_pem(pem.as_bytes()).map_err(|error| CommandError(unusable(error)))
        });
        Ok(Self {
            root_ca: root_ca.map(Arc::from),
            signer: signer.transpose()?,
            first_pass_after: namespace::FIRST_PASS_AFTER,
        })
    }
}

/// The file that a flag names, and what is in it.
fn read(flags: &Parsed, flag: &str) -> Result<Option<(String, String)>, CommandError> {
    let Some(file) = flags.some_text(flag) else { return Ok(None) };
    let text = std::fs::read_to_string(file)
        .map_err(|error| CommandError(format!("--{flag}: cannot read {file}: {error}")))?;
    Ok(Some((file.to_owned(), text)))
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use steersman_apiserver::{ApiServer, Options};
    use steersman_runtime::ManagerOptions;

    use super::super::flags;
    use super::*;

    /// A manager as a command line sets it up, and the server behind it.
    fn manager(words: &[&str], cluster: impl FnOnce(&ApiServer) -> Cluster) -> Manager {
        let flags = flags::parse(flags::table(), words.iter().map(ToString::to_string)).unwrap();
        let gates = Gates::parse(flags.texts("feature-gates")).unwrap();
        let server = ApiServer::new(Options::default());
        let cluster = cluster(&server);
        let manager = Manager::new(kube::Client::new(server, "default"), ManagerOptions::default()).unwrap();
        set(&manager, &flags, &gates, &cluster);
        manager
    }

    fn options<T: Clone + Default + Debug + Send + Sync + 'static>(manager: &Manager) -> String {
        format!("{:?}", manager.context().options::<T>())
    }

    #[tokio::test]
    async fn without_flags_options_are_the_controllers_own_defaults() {
        let manager = manager(&[], |_| Cluster::default());
        fn check<T: Clone + Default + Debug + Send + Sync + 'static>(manager: &Manager) {
            assert_eq!(options::<T>(manager), format!("{:?}", T::default()));
        }
        check::<deployment::Options>(&manager);
        check::<replicaset::Options>(&manager);
        check::<endpoints::Options>(&manager);
        check::<endpoint_slice::Options>(&manager);
        check::<pod_gc::Options>(&manager);
        check::<namespace::Options>(&manager);
        check::<garbage_collector::Options>(&manager);
        check::<root_ca::Options>(&manager);
        check::<service_account_token::Options>(&manager);
    }

    #[tokio::test]
    async fn every_gate_reaches_its_controllers() {
        let check = |gates: &str, cost: bool, terminating: bool| {
            let manager = manager(&[&format!("--feature-gates={gates}")], |_| Cluster::default());
            let cx = manager.context();
            let want = replicaset::Options { pod_deletion_cost: cost, terminating_replicas: terminating };
            assert_eq!(cx.options::<replicaset::Options>(), want, "{gates}");
            let want = deployment::Options { terminating_replicas: terminating };
            assert_eq!(cx.options::<deployment::Options>(), want, "{gates}");
        };
        check("PodDeletionCost=true", true, true);
        check("PodDeletionCost=false", false, true);
        check("DeploymentReplicaSetTerminatingReplicas=false", true, false);
        check("AllBeta=false", false, false);
        check("AllBeta=false,PodDeletionCost=true", true, false);
    }

    #[tokio::test]
    async fn every_flag_reaches_its_controller() {
        let words = [
            "--endpoint-updates-batch-period=3s",
            "--endpointslice-updates-batch-period=4s",
            "--max-endpoints-per-slice=50",
            "--terminated-pod-gc-threshold=-1",
            "--namespace-sync-period=7m",
            "--enable-garbage-collector=false",
        ];
        let manager = manager(&words, |server| Cluster {
            root_ca: Some("the authority".into()),
            signer: server.token_key_pem().map(|pem| Signer::from_pem(pem.as_bytes()).unwrap()),
            first_pass_after: Duration::from_secs(5),
        });
        let cx = manager.context();
        assert_eq!(cx.options::<endpoints::Options>().updates_batch_period, Duration::from_secs(3));
        let slices = cx.options::<endpoint_slice::Options>();
        assert_eq!((slices.endpoints_per_slice_max, slices.updates_batch_period), (50, Duration::from_secs(4)));
        assert_eq!(cx.options::<pod_gc::Options>().terminated_pod_threshold, -1);
        let namespaces = cx.options::<namespace::Options>();
        assert_eq!(
            (namespaces.first_pass_after, namespaces.sync_period),
            (Duration::from_secs(5), Duration::from_secs(420))
        );
        assert!(!cx.options::<garbage_collector::Options>().enabled);
        assert_eq!(cx.options::<root_ca::Options>().root_ca.as_deref(), Some("the authority"));
        let tokens = cx.options::<service_account_token::Options>();
        assert!(tokens.signer.is_some() && tokens.root_ca.as_deref() == Some("the authority"));
    }
}
