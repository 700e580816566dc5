//! A server of a test's own, for what needs all nodes, all of the API, or another manager for itself: it serves every API that
//! one of the 49 controllers needs. Both managers there have the same flags.

use std::collections::BTreeMap;

use kube::Client;
use steersman_controllers::ALL;
use steersman_runtime::__internal::descriptor::{ApiServers, AskedFor, FlagFile, FlagSource, FlagValue, Flags};
use steersman_runtime::{Manager, ManagerOptions};
use steersman_testing::rig::{Process, Rig, Setup, programs};
use steersman_testing::{Failure, TestCluster};

use crate::scenarios::support::beside::Beside;

/// Starts a server for a test.
pub(crate) async fn start(test: &str) -> Result<Rig, Failure> {
    Rig::start(env!("CARGO_TARGET_TMPDIR"), test, Setup::ALL_CONTROLLERS).await
}

/// Starts kube-controller-manager with the controllers that are here, and an account for each, as kubeadm has it.
pub(crate) fn start_go(rig: &Rig) -> Result<Process, Failure> {
    let controllers: Vec<_> = ALL.iter().map(|controller| controller.name).collect();
    let mut flags = rig.manager_flags();
    flags.retain(|flag| !flag.starts_with("--controllers="));
    flags.push(format!("--controllers={}", controllers.join(",")));
    let more = ["--leader-elect=false", "--secure-port=0", "--kube-api-qps=1000", "--kube-api-burst=1000"];
    flags.extend(more.map(str::to_owned));
    rig.spawn("go", &programs()?.join("kube-controller-manager"), &flags)
}

/// Starts ours in this process, with the flags of the other one.
pub(crate) fn start_ours(rig: &Rig, cluster: &TestCluster, client: Client) -> Result<Beside, Failure> {
    let manager = Manager::new(client, ManagerOptions::default().clock(cluster.clock().clone()))?;
    manager.set_flags(Given::of(&rig.manager_flags()));
    Beside::run(manager, ALL)
}

/// The flags of a manager, and the defaults of those that are not given.
struct Given {
    flags: BTreeMap<String, FlagValue>,
    gates: BTreeMap<String, bool>,
}

// === impl Given ===

impl Given {
    fn of(given: &[String]) -> Self {
        let defaults = Flags::defaults();
        ALL.iter().for_each(|controller| controller.ask(&defaults));
        let mut flags = BTreeMap::new();
        let mut gates = BTreeMap::new();
        for asked in defaults.asked() {
            match asked.what {
                AskedFor::Flag(value) => drop(flags.insert(asked.name.to_owned(), value)),
                AskedFor::Gate(on) => drop(gates.insert(asked.name.to_owned(), on)),
                AskedFor::File => {
                    flags.entry(asked.name.to_owned()).or_insert_with(|| FlagValue::Text(String::new()));
                }
            }
        }
        for (name, text) in given.iter().filter_map(|flag| flag.strip_prefix("--")?.split_once('=')) {
            if name == "feature-gates" {
                let set = text.split(',').filter_map(|gate| gate.split_once('='));
                gates.extend(set.map(|(gate, on)| (gate.to_owned(), on == "true")));
            } else if let Some(value) = flags.get_mut(name) {
                *value = match value {
                    FlagValue::Bool(_) => FlagValue::Bool(text == "true"),
                    FlagValue::Int(_) => FlagValue::Int(text.parse().expect("a number")),
                    FlagValue::Text(_) => FlagValue::Text(text.to_owned()),
                    other => panic!("--{name} is {other:?}: not read here yet"),
                };
            }
        }
        Self { flags, gates }
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
            _ => Ok(None),
        }
    }

    fn api_servers(&self) -> ApiServers {
        ApiServers::Several
    }
}
