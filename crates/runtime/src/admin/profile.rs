//! Where reconciles spend their time.
//!
//! It says what a CPU profile of a controller manager is mostly asked for: which controller, and which of its keys, keep
//! the process *busy* (time on a thread), and which keep their workers waiting (*wall* time, the API server's included).
//! Stacks within a reconcile it cannot tell: sampling them needs signal handlers, which safe Rust cannot write.
//! `perf record -g -p PID` does that from outside.
//!
//! 1. Nothing is recorded, and one atomic read is paid per pass and per step of one, unless somebody is asking.
//! 2. One profile at a time; it ends when its client goes away.
//! 3. Bounded: [`SECONDS_MAX`], and [`KEYS_MAX`] keys; time of further keys is told as one.
//!
//! `?seconds=30` (upstream's default) says how long. It is JSON; `?format=collapsed` gives lines of
//! `controller;key microseconds` for flame graphs, of wall time or with `&time=busy` of the other; `?format=pprof`, which is
//! also at upstream's path `/debug/pprof/profile`, is for `go tool pprof`.

mod pprof;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;
use parking_lot::Mutex;
use serde_json::{Value, json};
use steersman_base::ObjectKey;

use super::{Call, page};
use crate::metrics::process_cpu;
use crate::serving::Response;

/// Records passes while somebody asks. Cheap to clone; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Profiler(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    on: AtomicBool,
    recorded: Mutex<Profile>,
}

/// Where time went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    keys: BTreeMap<(Arc<str>, ObjectKey), Spent>,
    /// What keys beyond [`KEYS_MAX`] took.
    others: Spent,
}

/// Passes and their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spent {
    passes: u64,
    /// From the beginning to the end of each, waiting included.
    time: Duration,
    longest: Duration,
    /// On a thread.
    busy: Duration,
}

/// What one controller's keys took.
#[derive(Default)]
struct OfController<'a> {
    total: Spent,
    keys: Vec<(&'a ObjectKey, Spent)>,
}

/// Which time of a reconcile counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// From its beginning to its end.
    Wall,
    /// On a thread.
    Busy,
}

/// Somebody is profiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("another profile is being taken: try again when it is done")]
pub struct Busy;

/// Ends a recording, also if nobody waits for it any more.
struct Recording<'a>(&'a Shared);

/// net/http/pprof's.
const SECONDS: u64 = 30;
/// A client that waits longer has forgotten; a proxy in between will not wait that long.
const SECONDS_MAX: u64 = 300;
/// A few megabytes; nobody reads more.
const KEYS_MAX: usize = 10_000;

// === impl Profiler ===

impl Profiler {
    /// Whether somebody is asking.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.on.load(Ordering::Relaxed)
    }

    /// A pass took so long, and was on a thread for so much of it.
    pub fn record(&self, controller: &Arc<str>, key: &ObjectKey, took: Duration, busy: Duration) {
        if self.is_on() {
            self.0.recorded.lock().add(controller, key, took, busy);
        }
    }

    /// Records for some time. Passes count when they end.
    ///
    /// # Errors
    /// Somebody else is recording.
    pub async fn profile(&self, time: Duration) -> Result<Profile, Busy> {
        if self.0.on.swap(true, Ordering::Relaxed) {
            return Err(Busy);
        }
        let recording = Recording(&self.0);
        tokio::time::sleep(time).await;
        Ok(recording.take())
    }
}

// === impl Recording ===

impl Recording<'_> {
    fn take(&self) -> Profile {
        std::mem::take(&mut *self.0.recorded.lock())
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        self.take();
        self.0.on.store(false, Ordering::Relaxed);
    }
}

// === impl Profile ===

impl Profile {
    fn add(&mut self, controller: &Arc<str>, key: &ObjectKey, took: Duration, busy: Duration) {
        let of = (controller.clone(), key.clone());
        let full = self.keys.len() >= KEYS_MAX && !self.keys.contains_key(&of);
        let spent = if full { &mut self.others } else { self.keys.entry(of).or_default() };
        spent.merge(Spent { passes: 1, time: took, longest: took, busy });
    }

    /// Lines of `controller;key microseconds`, as flame graphs are made from.
    #[must_use]
    pub fn collapsed(&self, measured: Measured) -> String {
        let micros = |spent: &Spent| match measured {
            Measured::Wall => spent.time.as_micros(),
            Measured::Busy => spent.busy.as_micros(),
        };
        let mut lines = String::new();
        for ((controller, key), spent) in &self.keys {
            let _ = writeln!(lines, "{controller};{key} {}", micros(spent));
        }
        if self.others.passes > 0 {
            let _ = writeln!(lines, "others {}", micros(&self.others));
        }
        lines
    }

    /// By controller, then by key, the longest first.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut controllers: BTreeMap<&str, OfController<'_>> = BTreeMap::new();
        for ((controller, key), spent) in &self.keys {
            let of = controllers.entry(controller).or_default();
            of.total.merge(*spent);
            of.keys.push((key, *spent));
        }
        let controllers = controllers.into_iter().map(|(name, OfController { total, mut keys })| {
            keys.sort_by_key(|(_, spent)| Reverse(spent.time));
            let keys: Vec<_> = keys.into_iter().map(|(key, spent)| spent.to_json("key", &key.to_string())).collect();
            let mut controller = total.to_json("name", name);
            controller["keys"] = keys.into();
            controller
        });
        json!({
            "what": "time of reconciles by controller and key: on a thread (busy), and in all",
            "controllers": controllers.collect::<Vec<_>>(),
            "others": self.others.to_json("key", ""),
        })
    }
}

// === impl Spent ===

impl Spent {
    fn merge(&mut self, other: Self) {
        self.passes += other.passes;
        self.time += other.time;
        self.busy += other.busy;
        self.longest = self.longest.max(other.longest);
    }

    fn to_json(self, what: &str, name: &str) -> Value {
        json!({
            what: name,
            "passes": self.passes,
            "seconds": self.time.as_secs_f64(),
            "longestSeconds": self.longest.as_secs_f64(),
            "busySeconds": self.busy.as_secs_f64(),
        })
    }
}

/// What is below `/debug/pprof/` but `profile`.
pub(super) fn not_gos(call: &Call) -> Response {
    let message = "There is one profile, /debug/pprof/profile: time of reconciles by controller and key.\n\
                   Go's others are not there; perf record -g -p PID tells where the CPU goes, function by function.";
    let code = if call.path.trim_end_matches('/') == "/debug/pprof" { StatusCode::OK } else { StatusCode::NOT_FOUND };
    page::error(code, message)
}

/// `/debug/profile`, and as upstream's path has it.
pub(super) async fn page(profiler: Profiler, call: Call) -> Response {
    let seconds = match call.query.get("seconds").map(str::parse::<u64>) {
        None => SECONDS,
        Some(Ok(seconds @ 1..=SECONDS_MAX)) => seconds,
        Some(_) => {
            let message = format!("seconds must be a whole number from 1 to {SECONDS_MAX}");
            return page::error(StatusCode::BAD_REQUEST, &message);
        }
    };
    let before = process_cpu();
    let profile = match profiler.profile(Duration::from_secs(seconds)).await {
        Ok(profile) => profile,
        Err(busy) => return page::error(StatusCode::CONFLICT, &busy.to_string()),
    };
    match call.query.get("format") {
        Some("collapsed") if call.query.get("time") == Some("busy") => {
            return page::text(StatusCode::OK, profile.collapsed(Measured::Busy));
        }
        Some("collapsed") => return page::text(StatusCode::OK, profile.collapsed(Measured::Wall)),
        format if format == Some("pprof") || call.path.starts_with("/debug/pprof/") => {
            let body = pprof::encode(&profile, Duration::from_secs(seconds));
            return page::bytes(StatusCode::OK, "application/octet-stream", body);
        }
        _ => {}
    }
    let runtime = tokio::runtime::Handle::current().metrics();
    let mut report = profile.to_json();
    report["seconds"] = json!(seconds);
    // Of the whole process: what reconciles do not have of it, caches and connections have.
    report["cpuSeconds"] = json!(process_cpu().zip(before).map(|(after, before)| after - before));
    report["runtime"] = json!({
        "workers": runtime.num_workers(),
        "aliveTasks": runtime.num_alive_tasks(),
        "globalQueueDepth": runtime.global_queue_depth(),
    });
    page::json(StatusCode::OK, &report)
}
