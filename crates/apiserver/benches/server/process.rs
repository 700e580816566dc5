//! The processes that are measured: ours, started here, or the rig's, found by what they were started with.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The argument that makes this program measure one cold start and end.
pub(crate) const START_ONCE: &str = "--start-once";

/// `steersman up`, ended when this is dropped.
pub(crate) struct Child {
    process: std::process::Child,
    kubeconfig: PathBuf,
}

/// Whose memory is counted.
pub(crate) struct Resident {
    pids: Vec<u32>,
    ours: bool,
}

/// The kubeconfig of a server that somebody else started.
pub(crate) fn peer_kubeconfig() -> Option<PathBuf> {
    let file = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    file("STEERSMAN_BENCH_KUBECONFIG").or_else(|| file("STEERSMAN_RIG_KUBECONFIG")).map(PathBuf::from)
}

/// A cold start in a process of its own.
pub(crate) fn start_once() -> Duration {
    let this = std::env::current_exe().expect("we know who we are");
    let output = Command::new(this).arg(START_ONCE).stderr(Stdio::inherit()).output().expect("we can start ourselves");
    let seconds = String::from_utf8(output.stdout).expect("text");
    Duration::from_secs_f64(seconds.trim().parse().expect("a number of seconds"))
}

// === impl Child ===

impl Child {
    /// Starts the binary of this build, and returns when it has said where its kubeconfig is.
    pub(crate) fn start() -> Self {
        let kubeconfig = std::env::temp_dir().join(format!("steersman-bench-{}.kubeconfig", std::process::id()));
        // Ours is TARGET/release/deps/server-HASH.
        let this = std::env::current_exe().expect("we know who we are");
        let binary = this.ancestors().nth(2).expect("we are in a target directory").join("steersman");
        let process = Command::new(&binary)
            .args(["up", "--ephemeral", "--nodes", "0", "--controllers", "none", "--port", "0", "--kubeconfig-out"])
            .arg(&kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        let process = match process {
            Ok(process) => process,
            Err(error) => {
                panic!("{}: {error}; cargo build --release --package steersman-cli makes it", binary.display())
            }
        };
        // Ended from here on, whatever happens.
        let mut child = Self { process, kubeconfig };
        let output = child.process.stdout.take().expect("a pipe");
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.starts_with("kubeconfig:")), "`steersman up` says where its kubeconfig is");
        child
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_file(&self.kubeconfig);
    }
}

// === impl Resident ===

impl Resident {
    pub(crate) fn child(child: &Child) -> Self {
        Self { pids: vec![child.process.id()], ours: true }
    }

    /// etcd and kube-apiserver of the rig that we run in: both have its directory in their flags. None elsewhere.
    pub(crate) fn rig() -> Self {
        let Some(dir) = std::env::var("STEERSMAN_RIG_DIR").ok() else { return Self { pids: Vec::new(), ours: false } };
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = processes.filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let arguments = String::from_utf8(fs::read(entry.path().join("cmdline")).ok()?).ok()?;
            let program = Path::new(arguments.split('\0').next()?).file_name()?.to_str()?;
            (["etcd", "kube-apiserver"].contains(&program) && arguments.contains(&dir)).then_some(pid)
        });
        let pids: Vec<u32> = pids.collect();
        assert_eq!(pids.len(), 2, "the rig has one etcd and one kube-apiserver");
        Self { pids, ours: false }
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.ours
    }

    pub(crate) fn bytes(&self) -> usize {
        self.pids.iter().map(|pid| resident_bytes(*pid)).sum()
    }
}

fn resident_bytes(pid: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the server runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a process has memory");
    let kilobytes: usize = line.trim().trim_end_matches("kB").trim().parse().expect("a number");
    kilobytes * 1024
}
