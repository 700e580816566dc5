//! The processes that are measured, and what the kernel counts of them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use steersman_runtime::__internal::process::dies_with_parent;

/// Linux counts CPU in these for everybody, whatever the kernel ticks in (`USER_HZ`).
const TICK: Duration = Duration::from_millis(10);
const SAMPLE_EVERY: Duration = Duration::from_millis(50);
/// Longer than upstream's batching and the first steps of its back-offs.
const QUIET_FOR: Duration = Duration::from_millis(1_500);
/// What a manager with nothing to do may use, of one hundred: Go's runtime has its own affairs.
const QUIET_PERCENT_MAX: u32 = 2;
/// In one sample, to be called busy; a single tick may be anybody's.
const BUSY_TICKS_MIN: u32 = 2;
/// A manager that has something to do for longer than this is in a loop.
const PATIENCE: Duration = Duration::from_secs(180);
/// For a clean end, of which audit logs depend: a watch is written there when it ends.
const GRACE: Duration = Duration::from_secs(5);
const LOG_LINES: usize = 20;

/// A child; ended when this is dropped.
pub(crate) struct Process {
    child: std::process::Child,
    name: String,
    log: PathBuf,
}

/// What a process has used up to now.
#[derive(Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    pub(crate) resident_bytes: usize,
    /// Heap and stacks: what is resident without the pages of the program's file, which the kernel can take back.
    pub(crate) private_bytes: usize,
    /// The most it ever had.
    pub(crate) peak_bytes: usize,
}

/// The kube-apiserver of the rig, which is not our child.
pub(crate) struct Server(u32);

/// A directory for the files of this process; removed when this is dropped.
pub(crate) struct Scratch(PathBuf);

// === impl Process ===

impl Process {
    /// Starts a program whose output goes to a file.
    pub(crate) fn start(program: &Path, args: &[String], scratch: &Scratch) -> Self {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let log = scratch.file(&format!("{name}.log"));
        let output = File::create(&log).expect("a log file");
        let child = dies_with_parent(program)
            .args(args)
            // Another user's kubeconfig is none of ours.
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a log file"))
            .stderr(output)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", program.display()));
        Self { child, name, log }
    }

    pub(crate) fn usage(&mut self) -> Usage {
        if let Some(status) = self.child.try_wait().expect("a child") {
            panic!("{} ended ({status}):\n{}", self.name, self.log_tail());
        }
        let proc = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).expect("it runs");
        let status = proc("status");
        Usage {
            cpu: cpu(&proc("stat")).expect("user and system time"),
            resident_bytes: memory(&status, "VmRSS:").expect("a process has memory"),
            private_bytes: memory(&status, "RssAnon:").expect("a process has memory"),
            peak_bytes: memory(&status, "VmHWM:").expect("a process has memory"),
        }
    }

    /// Waits until it has nothing to do; answers how long it took until then.
    pub(crate) async fn quiet(&mut self) -> Duration {
        self.quiet_for(QUIET_FOR).await
    }

    /// As [`quiet`](Self::quiet), for one that may have to wait so long for others.
    pub(crate) async fn quiet_for(&mut self, quiet: Duration) -> Duration {
        self.calm(quiet, QUIET_PERCENT_MAX).await
    }

    /// As [`quiet`](Self::quiet), for one that always has something to do: for so long it uses at most this of one hundred.
    pub(crate) async fn calm(&mut self, quiet: Duration, percent_max: u32) -> Duration {
        let since = Instant::now();
        let mut last = self.usage().cpu;
        // When the window of quiet began, and what had been used by then.
        let mut window = (since, last);
        let mut busy_until = since;
        while window.0.elapsed() < quiet {
            assert!(since.elapsed() < PATIENCE, "{} is still busy after {PATIENCE:?}:\n{}", self.name, self.log_tail());
            tokio::time::sleep(SAMPLE_EVERY).await;
            let cpu = self.usage().cpu;
            if cpu - last >= TICK * BUSY_TICKS_MIN {
                busy_until = Instant::now();
            }
            last = cpu;
            if cpu - window.1 > quiet * percent_max / 100 {
                window = (Instant::now(), cpu);
            }
        }
        busy_until - since
    }

    /// Asks it to end.
    pub(crate) async fn end(mut self) {
        let asked = Command::new("kill").arg(self.child.id().to_string()).status();
        let since = Instant::now();
        while asked.is_ok() && since.elapsed() < GRACE && self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            tokio::time::sleep(SAMPLE_EVERY).await;
        }
    }

    fn log_tail(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already, or is not wanted any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// === impl Server ===

impl Server {
    /// The one that has the rig's directory in its flags.
    pub(crate) fn of_rig(dir: &Path) -> Self {
        let dir = dir.display().to_string();
        let found = fs::read_dir("/proc").into_iter().flatten().flatten().find_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let arguments = String::from_utf8(fs::read(entry.path().join("cmdline")).ok()?).ok()?;
            let program = Path::new(arguments.split('\0').next()?).file_name()?.to_owned();
            (program == "kube-apiserver" && arguments.contains(&dir)).then_some(pid)
        });
        Self(found.expect("the rig has a kube-apiserver"))
    }

    /// The CPU that it has used up to now.
    pub(crate) fn cpu(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0)).expect("it runs");
        cpu(&stat).expect("user and system time")
    }
}

// === impl Scratch ===

impl Scratch {
    pub(crate) fn new() -> Self {
        let dir = std::env::temp_dir().join(format!("steersman-bench-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory for temporary files");
        Self(dir)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// User and system time of `/proc/PID/stat`; the name, second, may have spaces in it and ends with the last bracket.
fn cpu(stat: &str) -> Option<Duration> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some(TICK * (user + system))
}

fn memory(status: &str, field: &str) -> Option<usize> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes: usize = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024)
}
