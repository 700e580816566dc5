//! The managers: ours and Go's, with the same controllers and the same flags.

use std::path::{Path, PathBuf};

use crate::process::{Process, Scratch};

/// All that are on by default, as an operator runs them.
pub(crate) const ALL: &str = "*";

/// Those that run workloads and what they need. That of nodes is not among them: half of the nodes of this load have no kubelet.
pub(crate) const WORKLOADS: &str = "serviceaccount-token-controller,endpoints-controller,endpointslice-controller,\
    pod-garbage-collector-controller,namespace-controller,serviceaccount-controller,garbage-collector-controller,\
    deployment-controller,replicaset-controller,root-ca-certificate-publisher-controller,statefulset-controller,\
    daemonset-controller,job-controller,cronjob-controller";

/// Of both. Upstream's default of 20 requests a second would be all that is measured; nothing asks the secure port.
pub(crate) const FLAGS: [&str; 4] =
    ["--leader-elect=false", "--secure-port=0", "--kube-api-qps=10000", "--kube-api-burst=10000"];

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

    /// Starts on the rig, with an account per controller as kubeadm has it.
    pub(crate) fn start(self, rig: &Rig, controllers: &str, scratch: &Scratch) -> Process {
        let file = |name: &str| rig.dir.join(name).display().to_string();
        let mut args = vec![
            format!("--kubeconfig={}", file("controller-manager.kubeconfig")),
            format!("--controllers={controllers}"),
            "--use-service-account-credentials=true".to_owned(),
            format!("--service-account-private-key-file={}", file("sa.key")),
            format!("--root-ca-file={}", file("ca.crt")),
        ];
        args.extend(FLAGS.map(str::to_owned));
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
        self.dir.join("admin.kubeconfig")
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
    args.extend(FLAGS.map(str::to_owned));
    Process::start(&steersman(), &args, scratch)
}
