//! What the rig promises about its processes, kept by `rig/cmd/rigd`.
//!
//! Runs inside `cargo xtask k8s test`, which says where the binaries are. Every test has a state directory of its own,
//! so that none ends somebody's rig.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Much longer than anything here takes; only a broken rig waits for it.
const PATIENCE: Duration = Duration::from_secs(20);

fn rigd(test: &str) -> Command {
    let bin = std::env::var_os("STEERSMAN_RIG_BIN").expect("run me with `cargo xtask k8s test`");
    let state = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    let mut command = Command::new(PathBuf::from(&bin).join("rigd"));
    command.arg("--bin-dir").arg(&bin).arg("--state-dir").arg(state);
    command
}

/// Starts a rig and returns it with its directory when it is ready.
fn up(test: &str) -> (Child, PathBuf) {
    let mut rig = rigd(test).stdout(Stdio::piped()).spawn().expect("rigd starts");
    let mut output = BufReader::new(rig.stdout.take().expect("stdout is a pipe"));
    let kubeconfig = output
        .by_ref()
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.trim().strip_prefix("export KUBECONFIG=").map(PathBuf::from))
        .expect("the rig prints its kubeconfig when it is ready");
    // The pipe stays open: a rig that cannot print its next line would end.
    rig.stdout = Some(output.into_inner());
    let dir = kubeconfig.parent().expect("it is a file in a directory").to_path_buf();
    (rig, dir)
}

/// The names of living processes whose parent is, or was when we looked first, the given one.
fn children(parent: u32) -> Vec<(u32, String)> {
    let is_process = |name: String| name.parse().ok();
    let processes = fs::read_dir("/proc").expect("Linux").flatten();
    processes
        .filter_map(|entry| is_process(entry.file_name().into_string().ok()?))
        .filter_map(|pid| status(pid).filter(|(_, ppid)| *ppid == parent).map(|(name, _)| (pid, name)))
        .collect()
}

/// Name and parent of a process, if it lives; a zombie does not.
fn status(pid: u32) -> Option<(String, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (start, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let alive = !matches!(fields.next()?, "Z" | "X");
    let name = start.split_once('(')?.1.to_owned();
    let parent = fields.next()?.parse().ok()?;
    alive.then_some((name, parent))
}

#[expect(clippy::disallowed_methods, reason = "other processes run on the real clock")]
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_rig_killed_with_sigkill_leaves_no_process_and_the_next_one_removes_its_files() {
    let test = "killed";
    let (mut rig, dir) = up(test);
    let children = children(rig.id());
    let mut names: Vec<_> = children.iter().map(|(_, name)| name.as_str()).collect();
    names.sort_unstable();
    // The kernel cuts names at 15 characters; "kube-apiserver" has 14.
    assert_eq!(names, ["etcd", "kube-apiserver"]);

    rig.kill().expect("SIGKILL can be sent");
    rig.wait().expect("it ends");
    eventually("children survived their rig", || children.iter().all(|(pid, _)| status(*pid).is_none()));

    assert!(dir.exists(), "nobody was left to remove it");
    assert!(rigd(test).arg("--down").status().expect("rigd starts").success());
    assert!(!dir.exists(), "files of a dead rig are left over");
}

#[test]
fn down_ends_a_running_rig_and_removes_its_files() {
    let test = "down";
    let (mut rig, dir) = up(test);
    let output = rigd(test).arg("--down").output().expect("rigd starts");
    assert!(String::from_utf8_lossy(&output.stdout).contains(&format!("process {}", rig.id())));
    assert!(rig.wait().expect("it ends").success());
    assert!(!dir.exists());

    let output = rigd(test).arg("--down").output().expect("rigd starts");
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("no rig is running"));
}

#[test]
fn a_command_finds_the_cluster_in_its_environment_and_its_exit_code_is_ours() {
    let script = "test -s $STEERSMAN_RIG_DIR/ca.key && test -s $STEERSMAN_RIG_DIR/sa.key \
                  && test $KUBECONFIG = $STEERSMAN_RIG_KUBECONFIG \
                  && kubectl --kubeconfig $STEERSMAN_RIG_DIR/controller-manager.kubeconfig auth whoami && exit 42";
    let output = rigd("run").args(["--", "sh", "-c", script]).output().expect("rigd starts");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(42), "{text}");
    assert!(text.contains("system:kube-controller-manager"), "{text}");
}

#[test]
fn a_port_that_is_taken_is_noticed_and_not_waited_for() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let port = taken.local_addr().expect("it is bound").port();
    let flag = format!("--apiserver-flag=--secure-port={port}");
    let output = rigd("taken").args([&flag, "--", "true"]).output().expect("rigd starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(text.contains("no free port"), "{text}");
}
