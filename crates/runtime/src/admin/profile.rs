//! Where reconciles spend their time.
//!
//! This is no CPU profile: sampling stacks needs signal handlers, which safe Rust cannot write. It says what a CPU
//! profile of a controller manager is mostly asked for: which controller, and which of its keys, keep the workers busy,
//! waiting for the API server included. `perf record -p PID` gives the other.
//!
//! 1. Nothing is recorded, and one atomic read is paid per pass, unless somebody is asking.
//! 2. One profile at a time; it ends when its client goes away.
//! 3. Bounded: [`SECONDS_MAX`], and [`KEYS_MAX`] keys; time of further keys is told as one.
//!
//! `?seconds=30` (upstream's default) says how long; `?format=collapsed` gives lines of `controller;key microseconds` for
//! flame graphs, else it is JSON.

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
    time: Duration,
    longest: Duration,
}

/// What one controller's keys took.
#[derive(Default)]
struct OfController<'a> {
    total: Spent,
    keys: Vec<(&'a ObjectKey, Spent)>,
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
    /// A pass took so long.
    pub fn record(&self, controller: &Arc<str>, key: &ObjectKey, took: Duration) {
        if self.0.on.load(Ordering::Relaxed) {
            self.0.recorded.lock().add(controller, key, took);
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
    fn add(&mut self, controller: &Arc<str>, key: &ObjectKey, took: Duration) {
        let of = (controller.clone(), key.clone());
        let full = self.keys.len() >= KEYS_MAX && !self.keys.contains_key(&of);
        let spent = if full { &mut self.others } else { self.keys.entry(of).or_default() };
        spent.add(took);
    }

    /// Lines of `controller;key microseconds`, as flame graphs are made from.
    #[must_use]
    pub fn collapsed(&self) -> String {
        let mut lines = String::new();
        for ((controller, key), spent) in &self.keys {
            let _ = writeln!(lines, "{controller};{key} {}", spent.time.as_micros());
        }
        if self.others.passes > 0 {
            let _ = writeln!(lines, "others {}", self.others.time.as_micros());
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
            "what": "wall time of reconciles, by controller and key; not a CPU profile",
            "controllers": controllers.collect::<Vec<_>>(),
            "others": self.others.to_json("key", ""),
        })
    }
}

// === impl Spent ===

impl Spent {
    fn add(&mut self, took: Duration) {
        self.merge(Self { passes: 1, time: took, longest: took });
    }

    fn merge(&mut self, other: Self) {
        self.passes += other.passes;
        self.time += other.time;
        self.longest = self.longest.max(other.longest);
    }

    fn to_json(self, what: &str, name: &str) -> Value {
        json!({
            what: name,
            "passes": self.passes,
            "seconds": self.time.as_secs_f64(),
            "longestSeconds": self.longest.as_secs_f64(),
        })
    }
}

/// `/debug/profile`.
pub(super) async fn page(profiler: Profiler, call: Call) -> Response {
    let seconds = match call.query.get("seconds").map(str::parse::<u64>) {
        None => SECONDS,
        Some(Ok(seconds @ 1..=SECONDS_MAX)) => seconds,
        Some(_) => {
            let message = format!("seconds must be a whole number from 1 to {SECONDS_MAX}");
            return page::error(StatusCode::BAD_REQUEST, &message);
        }
    };
    let profile = match profiler.profile(Duration::from_secs(seconds)).await {
        Ok(profile) => profile,
        Err(busy) => return page::error(StatusCode::CONFLICT, &busy.to_string()),
    };
    if call.query.get("format") == Some("collapsed") {
        return page::text(StatusCode::OK, profile.collapsed());
    }
    let runtime = tokio::runtime::Handle::current().metrics();
    let mut report = profile.to_json();
    report["seconds"] = json!(seconds);
    report["runtime"] = json!({
        "workers": runtime.num_workers(),
        "aliveTasks": runtime.num_alive_tasks(),
        "globalQueueDepth": runtime.global_queue_depth(),
    });
    page::json(StatusCode::OK, &report)
}
