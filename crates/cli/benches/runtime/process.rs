//! The processes that are measured, ended with whoever holds them.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A running program.
pub(crate) struct Process {
    child: std::process::Child,
    lines: Option<Lines<BufReader<ChildStdout>>>,
}

/// `steersman up`, without controllers and nodes.
pub(crate) struct Up {
    _process: Process,
    kubeconfig: PathBuf,
}

/// The binary of this build.
pub(crate) const STEERSMAN: &str = env!("CARGO_BIN_EXE_steersman");

/// How long a program may take to end once asked.
const END_WITHIN: Duration = Duration::from_secs(30);

/// A name that no other file of this run has.
pub(crate) fn temporary(suffix: &str) -> PathBuf {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("steersman-bench-{}-{number}{suffix}", std::process::id()))
}

// === impl Process ===

impl Process {
    /// What it says is for nobody.
    pub(crate) fn start(command: &mut Command) -> Self {
        Self::spawn(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))
    }

    /// Its standard output is for us, and its standard input stays open until [`end_of_talk`](Self::end_of_talk).
    pub(crate) fn start_talking(command: &mut Command) -> Self {
        let mut process = Self::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        process.lines = process.child.stdout.take().map(|output| BufReader::new(output).lines());
        process
    }

    fn spawn(command: &mut Command) -> Self {
        match command.spawn() {
            Ok(child) => Self { child, lines: None },
            Err(error) => panic!("{}: {error}", command.get_program().to_string_lossy()),
        }
    }

    /// Reads until a line begins so.
    pub(crate) fn wait_for_line(&mut self, start: &str) -> String {
        let lines = self.lines.as_mut().expect("it talks to us");
        let line = lines.map_while(Result::ok).find(|line| line.starts_with(start));
        line.unwrap_or_else(|| panic!("it ended before it said {start:?}"))
    }

    /// Ends its standard input, and returns what it says to that.
    pub(crate) fn end_of_talk(mut self) -> String {
        drop(self.child.stdin.take());
        self.wait_for_line("{")
    }

    pub(crate) fn resident_bytes(&self) -> usize {
        self.status_bytes("VmRSS:")
    }

    /// Of the resident memory what is not a mapped file, such as the program itself: heap, stacks, what was written to.
    pub(crate) fn anonymous_bytes(&self) -> usize {
        self.status_bytes("RssAnon:")
    }

    fn status_bytes(&self, field: &str) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("a process has memory");
        let kilobytes: usize = line.trim().trim_end_matches("kB").trim().parse().expect("a number");
        kilobytes * 1024
    }

    /// What its threads have run.
    pub(crate) fn processor_time(&self) -> Duration {
        processor_time(&self.child.id().to_string())
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().expect("kill").success(), "it runs and is ours");
    }

    /// Ends it without asking.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it is ours");
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(mut self) {
        let ended = async {
            while self.child.try_wait().expect("it is ours").is_none() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(END_WITHIN, ended).await.expect("it ends when asked");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the threads of a process have run; `self` is this one.
pub(crate) fn processor_time(pid: &str) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten();
    let of = |task: fs::DirEntry| {
        let reported = fs::read_to_string(task.path().join("schedstat")).ok()?;
        reported.split(' ').next()?.parse::<u64>().ok()
    };
    Duration::from_nanos(tasks.filter_map(of).sum())
}

// === impl Up ===

impl Up {
    pub(crate) fn start() -> Self {
        let kubeconfig = temporary(".kubeconfig");
        let args = ["up", "--ephemeral", "--nodes=0", "--controllers=none", "--port=0", "--kubeconfig-out"];
        let mut command = Command::new(STEERSMAN);
        command.args(args.map(OsStr::new)).arg(&kubeconfig);
        let mut process = Process::start_talking(&mut command);
        process.wait_for_line("kubeconfig:");
        Self { _process: process, kubeconfig }
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.kubeconfig);
    }
}
