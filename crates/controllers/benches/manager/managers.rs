//! The managers: ours and Go's, with the same controllers and the same flags.

use std::path::{Path, PathBuf};

use steersman_testing::rig::Setup;

use crate::process::{Process, Scratch};

/// The flags of all 49 controllers, and of the server that they need: those of the rig tier's tests.
pub(crate) const ALL: Setup = Setup::ALL_CONTROLLERS;

/// The controllers that run workloads and what they need. That of nodes is not among them: half of the nodes of this load have no
/// kubelet.
pub(crate) const WORKLOADS: Setup = Setup {
    server: &[],
    manager: &["--controllers=serviceaccount-token-controller,endpoints-controller,endpointslice-controller,\
        pod-garbage-collector-controller,namespace-controller,serviceaccount-controller,garbage-collector-controller,\
        deployment-controller,replicaset-controller,root-ca-certificate-publisher-controller,statefulset-controller,\
        daemonset-controller,job-controller,cronjob-controller,horizontal-pod-autoscaler-controller"],
    ..Setup::DEFAULT
};

/// Of both. Upstream's default of 20 requests a second would be all that is measured; nothing asks the secure port.
pub(crate) const FLAGS: [&str; 3] = ["--secure-port=0", "--kube-api-qps=10000", "--kube-api-burst=10000"];

/// Without others, there is nothing to elect.
const NO_ELECTION: &str = "--leader-elect=false";

/// Whose manager.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manager {
    Ours,
    Go,
}

/// The rig that this process runs in.
pub(crate) struct Rig {
    dir: PathBuf,
    bin: PathBuf,
}

// === impl Manager ===

impl Manager {
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "ours" => Self::Ours,
            "go" => Self::Go,
            other => panic!("`{other}` is no manager: ours or go"),
        }
    }

    /// Starts on the rig, with the keys, and an account per controller, as kubeadm has it.
    pub(crate) fn start(self, rig: &Rig, setup: Setup, scratch: &Scratch) -> Process {
        self.start_with(rig, setup, &[NO_ELECTION], scratch)
    }

    /// As [`start`](Self::start), for one that has to become the leader.
    pub(crate) fn start_elected(self, rig: &Rig, setup: Setup, scratch: &Scratch) -> Process {
        self.start_with(rig, setup, &["--leader-elect=true"], scratch)
    }

    fn start_with(self, rig: &Rig, setup: Setup, more: &[&str], scratch: &Scratch) -> Process {
        let file = |flag: &str, name: &str| format!("--{flag}={}", rig.file(name).display());
        let mut args = vec![
            file("kubeconfig", "controller-manager.kubeconfig"),
            file("service-account-private-key-file", "sa.key"),
            file("root-ca-file", "ca.crt"),
            file("cluster-signing-cert-file", "ca.crt"),
            file("cluster-signing-key-file", "ca.key"),
            "--use-service-account-credentials=true".to_owned(),
        ];
        args.extend(setup.manager.iter().chain(&FLAGS).chain(more).map(ToString::to_string));
        match self {
            Self::Go => Process::start(&rig.bin.join("kube-controller-manager"), &args, scratch),
            Self::Ours => {
                args.insert(0, "controller-manager".to_owned());
                Process::start(&steersman(), &args, scratch)
            }
        }
    }
}

// === impl Rig ===

impl Rig {
    pub(crate) fn around_us() -> Self {
        let dir = |name| std::env::var_os(name).map(PathBuf::from).expect("run by `cargo xtask k8s run`");
        Self { dir: dir("STEERSMAN_RIG_DIR"), bin: dir("STEERSMAN_RIG_BIN") }
    }

    pub(crate) fn admin(&self) -> PathBuf {
        self.file("admin.kubeconfig")
    }

    /// Returns a file of the rig: a key, a kubeconfig, etcd's socket.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// The binary of this build: ours is `TARGET/PROFILE/deps/manager-HASH`.
pub(crate) fn steersman() -> PathBuf {
    let this = std::env::current_exe().expect("we know who we are");
    let binary = this.ancestors().nth(2).map(|dir| dir.join("steersman")).expect("we are in a target directory");
    assert!(binary.exists(), "{}: `cargo build --package steersman-cli` makes it", binary.display());
    binary
}

/// Our manager on any cluster, with some controllers and the cluster's administrator as its user.
pub(crate) fn ours_on(kubeconfig: &Path, controllers: &str, scratch: &Scratch) -> Process {
    let mut args = vec!["controller-manager".to_owned(), format!("--kubeconfig={}", kubeconfig.display())];
    args.push(format!("--controllers={controllers}"));
    args.extend(FLAGS.iter().chain([&NO_ELECTION]).map(ToString::to_string));
    Process::start(&steersman(), &args, scratch)
}
