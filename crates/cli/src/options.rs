//! The values of flags and feature gates, and facts about the cluster, for controllers to read.
//!
//! Each controller reads its own options ([`Flags`]); nothing here knows a controller by name.

use std::collections::BTreeMap;

use steersman_controllers::ALL;
use steersman_runtime::__internal::descriptor::{ApiServers, FlagFile, FlagSource, FlagValue, Flags};
use steersman_runtime::connection::Connection;

use super::CommandError;
use super::flags::{Parsed, Value};
use super::gates::{self, Gates};

/// The given values, and the cluster's where none was given.
#[derive(Clone, Debug)]
pub(super) struct Given {
    flags: BTreeMap<&'static str, FlagValue>,
    gates: BTreeMap<&'static str, bool>,
    cluster: Cluster,
}

/// Facts about the cluster.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    /// Replacements for files that no flag names.
    pub(super) files: BTreeMap<&'static str, FlagFile>,
    /// Whether there may be several API servers.
    pub(super) api_servers: ApiServers,
}

/// The flag that names the certificates of the authority that signs the API server's.
pub(super) const ROOT_CA: &str = "root-ca-file";
/// The flag that names the key that signs the tokens of service accounts.
pub(super) const TOKEN_KEY: &str = "service-account-private-key-file";
/// The flags that name the certificate and the key of the authority that signs certificate requests.
pub(super) const SIGNING_CERTIFICATE: &str = "cluster-signing-cert-file";
pub(super) const SIGNING_KEY: &str = "cluster-signing-key-file";

// === impl Given ===

impl Given {
    pub(super) fn new(flags: &Parsed, gates: &Gates, cluster: Cluster) -> Self {
        Self {
            flags: flags.all().filter_map(|(name, value)| Some((name, flag_value(value)?))).collect(),
            gates: gates::table().iter().map(|gate| (gate.name, gates.enabled(gate.name))).collect(),
            cluster,
        }
    }

    /// Has every controller read its options, whether it runs or not.
    ///
    /// # Errors
    /// A file that is not there, or is not what it should be.
    pub(super) fn check(&self) -> Result<(), CommandError> {
        let mut problems = Vec::new();
        for descriptor in ALL {
            let flags = Flags::of(self);
            descriptor.ask(&flags);
            problems.extend(flags.problems());
        }
        problems.sort();
        problems.dedup();
        if problems.is_empty() { Ok(()) } else { Err(CommandError(problems.join("; "))) }
    }
}

impl FlagSource for Given {
    fn flag(&self, name: &str) -> Option<FlagValue> {
        self.flags.get(name).cloned()
    }

    fn gate(&self, name: &str) -> Option<bool> {
        self.gates.get(name).copied()
    }

    fn file(&self, name: &str) -> Result<Option<FlagFile>, String> {
        match self.flags.get(name) {
            Some(FlagValue::Text(path)) if !path.is_empty() => FlagFile::read(path).map(Some),
            Some(FlagValue::Text(_)) => Ok(self.cluster.files.get(name).cloned()),
            _ => Err("there is no such flag, or it names no file".to_owned()),
        }
    }

    fn api_servers(&self) -> ApiServers {
        self.cluster.api_servers
    }
}

/// Returns the value of a flag in the form that controllers read; `None` for a type that none reads.
fn flag_value(value: &Value) -> Option<FlagValue> {
    match value {
        Value::Bool(on) => Some(FlagValue::Bool(*on)),
        Value::Int(number) => Some(FlagValue::Int(*number)),
        Value::Float(number) => Some(FlagValue::Float(*number)),
        // As it is written: 0.1 is 0.1, not the nearest number that a single-precision one can be.
        Value::Float32(number) => number.to_string().parse().ok().map(FlagValue::Float),
        Value::Duration(_) => value.as_duration().map(FlagValue::Duration),
        Value::Text(text) => Some(FlagValue::Text(text.clone())),
        _ => None,
    }
}

// === impl Cluster ===

impl Cluster {
    /// A cluster that is somewhere else: its authority is in the kubeconfig, and it may have several API servers.
    pub(super) fn behind(connection: &Connection) -> Self {
        let root_ca = connection.root_ca_pem().map(|text| (ROOT_CA, FlagFile { path: "the kubeconfig".into(), text }));
        Self { files: root_ca.into_iter().collect(), api_servers: ApiServers::Several }
    }
}

/// Whether an implemented controller reads a feature gate.
pub(super) fn is_asked_for(gate: &str) -> bool {
    let flags = Flags::defaults();
    ALL.iter().for_each(|descriptor| descriptor.ask(&flags));
    flags.asked().iter().any(|asked| asked.name == gate)
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;
    use std::time::Duration;

    use steersman_controllers::certificatesigningrequest_signing::{self as signing, Signer};
    use steersman_controllers::{
        deployment, endpoints, endpointslice, garbage_collector, horizontal_pod_autoscaler, namespace, node_ipam,
        node_lifecycle, pod_garbage_collector, replicaset, root_ca_certificate_publisher, serviceaccount_token,
        statefulset,
    };
    use steersman_runtime::__internal::descriptor::{AskedFor, Enabled};

    use super::super::{flags, rows};
    use super::*;

    const PEM: &str = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";

    /// A cluster without facts.
    fn silent() -> Cluster {
        Cluster { files: BTreeMap::new(), api_servers: ApiServers::One }
    }

    /// Returns the options of a command line.
    fn given(words: &[&str], cluster: Cluster) -> Given {
        let flags = flags::parse(flags::table(), words.iter().map(ToString::to_string)).unwrap();
        let gates = Gates::parse(flags.texts("feature-gates")).unwrap();
        Given::new(&flags, &gates, cluster)
    }

    #[test]
    fn without_flags_options_are_the_controllers_own_defaults() {
        let given = given(&[], silent());
        let flags = Flags::of(&given);
        fn check<T: Default + Debug>(options: &T) {
            assert_eq!(format!("{options:?}"), format!("{:?}", T::default()));
        }
        check(&deployment::Options::from_flags(&flags));
        check(&replicaset::Options::from_flags(&flags));
        check(&endpoints::Options::from_flags(&flags));
        check(&endpointslice::Options::from_flags(&flags));
        check(&pod_garbage_collector::Options::from_flags(&flags));
        check(&namespace::Options::from_flags(&flags));
        check(&node_ipam::Options::from_flags(&flags));
        check(&node_lifecycle::Options::from_flags(&flags));
        check(&garbage_collector::Options::from_flags(&flags));
        check(&horizontal_pod_autoscaler::Options::from_flags(&flags));
        check(&root_ca_certificate_publisher::Options::from_flags(&flags));
        check(&serviceaccount_token::Options::from_flags(&flags));
        check(&statefulset::Options::from_flags(&flags));
        check(&signing::Options::from_flags(&flags));
        assert_eq!(flags.problems(), [""; 0]);
    }

    #[test]
    fn every_question_of_a_controller_is_about_a_flag_or_gate_of_its_own_with_the_same_default() {
        for descriptor in ALL {
            let flags = Flags::defaults();
            descriptor.ask(&flags);
            for asked in flags.asked() {
                let place = format!("{}: {}", descriptor.name, asked.name);
                if let AskedFor::Gate(default) = asked.what {
                    let gate = gates::table().iter().find(|gate| gate.name == asked.name);
                    assert_eq!(gate.map(|gate| gate.default), Some(default), "{place}");
                    continue;
                }
                let flag = flags::table().iter().find(|flag| flag.name == asked.name);
                let flag = flag.unwrap_or_else(|| panic!("{place}: there is no such flag"));
                let is_its = match &flag.effect {
                    flags::Effect::Acts => true,
                    flags::Effect::Of(controllers) => controllers.contains(&descriptor.name),
                    flags::Effect::None => false,
                };
                assert!(is_its, "{place}");
                let default = flag_value(&flag.default_value());
                match asked.what {
                    AskedFor::Flag(value) => assert_eq!(default, Some(value), "{place}"),
                    _ => assert_eq!(default, Some(FlagValue::Text(String::new())), "{place}"),
                }
            }
        }
    }

    #[test]
    fn every_flag_of_a_controller_that_exists_is_asked_for() {
        for flag in flags::table() {
            let flags::Effect::Of(controllers) = &flag.effect else { continue };
            for descriptor in ALL.iter().filter(|descriptor| controllers.contains(&descriptor.name)) {
                let flags = Flags::defaults();
                descriptor.ask(&flags);
                let row = descriptor.row();
                let decides = matches!(&row.default, Enabled::WithFlags(with) if with.contains(&flag.name));
                let is_asked = flags.asked().iter().any(|asked| asked.name == flag.name);
                let is_workers = row.workers.flag == Some(flag.name);
                assert!(is_asked || is_workers || decides, "{} does not ask for --{}", row.name, flag.name);
            }
        }
        assert_eq!(rows::table().len(), 49);
    }

    /// The rows of `docs/feature-gates.md`: gate, controllers, effect.
    fn effects() -> Vec<(&'static str, Vec<&'static str>, &'static str)> {
        let rows = include_str!("../data/gate-effects.tsv").lines().skip(1);
        let effect = |row: &'static str| {
            let columns: Vec<_> = row.split('\t').collect();
            (columns[0], columns[1].split(',').collect(), columns[2])
        };
        rows.map(effect).collect()
    }

    #[test]
    fn the_table_of_gates_says_what_each_controller_does_with_them() {
        let reads = |descriptor: &steersman_runtime::Descriptor, gate: &str| {
            let flags = Flags::defaults();
            descriptor.ask(&flags);
            flags.asked().iter().any(|asked| asked.name == gate && matches!(asked.what, AskedFor::Gate(_)))
        };
        let effects = effects();
        for (gate, controllers, effect) in &effects {
            assert!(gates::table().iter().any(|known| known.name == *gate), "{gate}");
            for name in controllers.iter().filter(|name| **name != "*") {
                let row = rows::table().iter().find(|row| row.name == *name);
                let row = row.unwrap_or_else(|| panic!("{gate}: there is no controller {name}"));
                let descriptor = rows::controller(row);
                let is_required = row.gates.contains(gate);
                match *effect {
                    "decides" => assert!(is_required, "{gate} does not decide whether {name} runs"),
                    "obeyed" => assert!(reads(descriptor, gate), "{name} does not read {gate}"),
                    "none" => assert!(!is_required && !reads(descriptor, gate), "{name} reads {gate}"),
                    other => assert_eq!(other, "locked", "{gate}"),
                }
            }
        }
        let is_listed = |gate: &str, name: &str| {
            effects.iter().any(|(listed, of, effect)| *listed == gate && of.contains(&name) && *effect != "none")
        };
        for row in rows::table() {
            for gate in &row.gates {
                assert!(is_listed(gate, row.name), "{gate} of {} is not in data/gate-effects.tsv", row.name);
            }
        }
        // It has the options of ReplicaSets, and no such status.
        let beside = ("replicationcontroller-controller", "DeploymentReplicaSetTerminatingReplicas");
        for descriptor in ALL {
            let flags = Flags::defaults();
            descriptor.ask(&flags);
            let name = descriptor.name;
            let gates = flags.asked().into_iter().filter(|asked| matches!(asked.what, AskedFor::Gate(_)));
            for asked in gates.filter(|asked| (name, asked.name) != beside) {
                assert!(is_listed(asked.name, name), "{} of {name} is not in data/gate-effects.tsv", asked.name);
            }
        }
    }

    #[test]
    fn every_gate_reaches_its_controllers() {
        let check = |gates: &str, cost: bool, terminating: bool| {
            let given = given(&[&format!("--feature-gates={gates}")], silent());
            let flags = Flags::of(&given);
            let want = replicaset::Options::default().pod_deletion_cost(cost).terminating_replicas(terminating);
            assert_eq!(replicaset::Options::from_flags(&flags), want, "{gates}");
            let want = deployment::Options::default().terminating_replicas(terminating);
            assert_eq!(deployment::Options::from_flags(&flags), want, "{gates}");
        };
        check("PodDeletionCost=true", true, true);
        check("PodDeletionCost=false", false, true);
        check("DeploymentReplicaSetTerminatingReplicas=false", true, false);
        check("AllBeta=false", false, false);
        check("AllBeta=false,PodDeletionCost=true", true, false);
    }

    #[test]
    fn every_flag_reaches_its_controller() {
        let words = [
            "--endpoint-updates-batch-period=3s",
            "--endpointslice-updates-batch-period=4s",
            "--max-endpoints-per-slice=50",
            "--terminated-pod-gc-threshold=-1",
            "--namespace-sync-period=7m",
            "--enable-garbage-collector=false",
            "--node-eviction-rate=2.5",
            "--node-monitor-grace-period=70s",
            "--cluster-cidr=10.0.0.0/8",
            "--node-cidr-mask-size=20",
        ];
        let server = steersman_apiserver::ApiServer::new(steersman_apiserver::Options::default());
        let key = server.token_key_pem().unwrap().to_string();
        let file = |text: &str| FlagFile { path: "the cluster".into(), text: text.to_owned() };
        let files = BTreeMap::from([(ROOT_CA, file(PEM)), (TOKEN_KEY, file(&key))]);
        let given = given(&words, Cluster { files, api_servers: ApiServers::Several });
        let flags = Flags::of(&given);
        assert_eq!(endpoints::Options::from_flags(&flags).updates_batch_period, Duration::from_secs(3));
        let slices = endpointslice::Options::from_flags(&flags);
        assert_eq!((slices.endpoints_per_slice_max, slices.updates_batch_period), (50, Duration::from_secs(4)));
        assert_eq!(pod_garbage_collector::Options::from_flags(&flags).terminated_pod_threshold, -1);
        let namespaces = namespace::Options::from_flags(&flags);
        assert_eq!(
            (namespaces.first_pass_after, namespaces.sync_period),
            (Duration::from_secs(5), Duration::from_secs(420))
        );
        assert!(!garbage_collector::Options::from_flags(&flags).enabled);
        let lifecycle = node_lifecycle::Options::from_flags(&flags);
        assert_eq!((lifecycle.eviction_rate, lifecycle.monitor_grace_period), (2.5, Duration::from_secs(70)));
        let ranges = node_ipam::Options::from_flags(&flags);
        assert_eq!((ranges.cluster.as_str(), ranges.mask), ("10.0.0.0/8", 20));
        assert_eq!(root_ca_certificate_publisher::Options::from_flags(&flags).root_ca.as_deref(), Some(PEM));
        let tokens = serviceaccount_token::Options::from_flags(&flags);
        assert!(tokens.signer.is_some() && tokens.root_ca.as_deref() == Some(PEM));
        given.check().unwrap();
    }

    #[test]
    fn one_authority_signs_for_all_signers_or_each_has_its_own() {
        let check = |words: &[&str], want: &[Signer]| {
            let given = given(words, silent());
            let options = signing::Options::from_flags(&Flags::of(&given));
            let signers: Vec<_> = options.authorities.into_keys().collect();
            assert_eq!(signers, want, "{words:?}");
            // Files that cannot be used are reported by the controller's health, and do not keep the process from starting.
            given.check().unwrap();
        };
        let common = ["--cluster-signing-cert-file=no.crt", "--cluster-signing-key-file=no.key"];
        check(&[], &[]);
        check(&common, &Signer::ALL);
        check(&common[..1], &[]);
        let one = ["--cluster-signing-kubelet-client-cert-file=a", "--cluster-signing-kubelet-client-key-file=b"];
        check(&one, &[Signer::KubeletClient]);
        let options = signing::Options::from_flags(&Flags::of(&given(&["--cluster-signing-duration=90m"], silent())));
        assert_eq!(options.duration, Duration::from_secs(90 * 60));
    }

    #[test]
    fn a_file_that_is_no_use_is_reported_once_whoever_asks_for_it() {
        let check = |word: &str, want: &str| {
            let error = given(&[word], silent()).check().unwrap_err().to_string();
            assert!(error.starts_with(want) && !error.contains("; "), "{error}");
        };
        check("--root-ca-file=does/not/exist", "--root-ca-file: cannot read does/not/exist: ");
        check("--root-ca-file=Cargo.toml", "--root-ca-file: there is no certificate in PEM in Cargo.toml");
        check(
            "--service-account-private-key-file=Cargo.toml",
            "--service-account-private-key-file: cannot use Cargo.toml: ",
        );
    }
}
