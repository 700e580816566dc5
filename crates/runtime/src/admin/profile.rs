//! A profile of reconciles.
//!
//! It shows which controller, and which of its keys, keep the process *busy* (time on a thread), and which keep their
//! workers waiting (*wall* time, including the API server's). It has no stacks within a reconcile: sampling them needs
//! signal handlers, which safe Rust cannot write. `perf record -g -p PID` does that from outside.
//!
//! 1. Nothing is recorded unless a profile is requested; the cost is one atomic read per pass and per poll of a pass.
//! 2. One profile at a time; it ends when its client disconnects.
//! 3. Bounded: [`SECONDS_MAX`], and [`KEYS_MAX`] keys; the time of further keys is summed up in one entry.
//!
//! `?seconds=30` (upstream's default) is the duration. The format is JSON; `?format=collapsed` returns lines of
//! `controller;key microseconds` for flame graphs, of wall time or, with `&time=busy`, of busy time; `?format=pprof`,
//! which is also at upstream's path `/debug/pprof/profile`, is for `go tool pprof`.

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

/// Records passes while a profile is requested. Cheap to clone; clones are the same profiler.
#[derive(Clone, Debug, Default)]
pub(crate) struct Profiler(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    on: AtomicBool,
    recorded: Mutex<Profile>,
}

/// A finished profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Profile {
    keys: BTreeMap<(Arc<str>, ObjectKey), Spent>,
    /// The sum over the keys beyond [`KEYS_MAX`].
    others: Spent,
}

/// A number of passes and their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spent {
    passes: u64,
    /// The wall time, waiting included.
    time: Duration,
    longest: Duration,
    /// The time on a thread.
    busy: Duration,
}

/// The keys of one controller.
#[derive(Default)]
struct OfController<'a> {
    total: Spent,
    keys: Vec<(&'a ObjectKey, Spent)>,
}

/// The time to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measured {
    /// Wall time.
    Wall,
    /// Time on a thread.
    Busy,
}

/// Another profile is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("another profile is being taken: try again when it is done")]
pub(crate) struct Busy;

/// A running recording, which ends when dropped.
struct Recording<'a>(&'a Shared);

/// The default of net/http/pprof.
const SECONDS: u64 = 30;
/// Longer than any client or proxy waits.
const SECONDS_MAX: u64 = 300;
/// A few megabytes: more than anybody reads.
const KEYS_MAX: usize = 10_000;

// === impl Profiler ===

impl Profiler {
    /// Whether a profile is running.
    #[must_use]
    pub(crate) fn is_on(&self) -> bool {
        self.0.on.load(Ordering::Relaxed)
    }

    /// Records the wall time and the busy time of a pass.
    pub(crate) fn record(&self, controller: &Arc<str>, key: &ObjectKey, took: Duration, busy: Duration) {
        if self.is_on() {
            self.0.recorded.lock().add(controller, key, took, busy);
        }
    }

    /// Records for some time. Passes count when they end.
    ///
    /// # Errors
    /// Another profile is running.
    pub(crate) async fn profile(&self, time: Duration) -> Result<Profile, Busy> {
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

    /// Returns lines of `controller;key microseconds`, the input of flame graphs.
    #[must_use]
    pub(crate) fn collapsed(&self, measured: Measured) -> String {
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

    /// Returns the profile by controller, then by key, the longest first.
    #[must_use]
    pub(crate) fn to_json(&self) -> Value {
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

/// Responds to paths below `/debug/pprof/` other than `profile`.
pub(super) fn not_gos(call: &Call) -> Response {
    let message = "There is one profile, /debug/pprof/profile: time of reconciles by controller and key.\n\
                   Go's others are not there; perf record -g -p PID shows where the CPU goes, function by function.";
    let code = if call.path.trim_end_matches('/') == "/debug/pprof" { StatusCode::OK } else { StatusCode::NOT_FOUND };
    page::error(code, message)
}

/// Responds to `/debug/profile` and to upstream's path.
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
    // CPU time of the whole process: the part that is not in reconciles is in caches and connections.
    report["cpuSeconds"] = json!(process_cpu().zip(before).map(|(after, before)| after - before));
    report["runtime"] = json!({
        "workers": runtime.num_workers(),
        "aliveTasks": runtime.num_alive_tasks(),
        "globalQueueDepth": runtime.global_queue_depth(),
    });
    page::json(StatusCode::OK, &report)
}
