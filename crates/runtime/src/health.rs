//! Health checks of a manager: `/healthz`, `/livez` and `/readyz`.
//!
//! 1. Texts and codes are upstream's (`apiserver/pkg/server/healthz`): `ok`; with `?verbose` a line per check; on
//!    failure always the lines, 500, and reasons withheld, because these paths are open to everybody. A check's own
//!    path, `/healthz/<name>`, shows the reason and is not open.
//! 2. One difference: a client that asks with `?verbose`, and may read every check's path, gets the reasons in the
//!    lines.
//! 3. Without checks there is one, `ping`, as in upstream. Checks are shown in the order in which they were added;
//!    adding a name again replaces the check.
//! 4. A controller's check means *progress*: its workers finish passes. It does not fail because an object cannot be
//!    reconciled, nor because the API server is unreachable: passes end then, too.
//! 5. A problem that a restart cannot solve, such as a resource that may not be read, makes a manager not *ready*; it
//!    stays alive and healthy, or the kubelet would kill working controllers.
//! 6. Every result is counted as in upstream (`/metrics/slis`).

pub(crate) mod checks;
mod progress;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use parking_lot::RwLock;
use prometheus::{IntCounterVec, IntGaugeVec, Opts, Registry};

pub(crate) use progress::{Progress, STUCK_AFTER};

/// The checks of a manager. Cheap to clone; clones share the checks.
#[derive(Clone)]
pub struct Health(Arc<Shared>);

/// The probe that a check belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Probe {
    /// `/healthz`: kubeadm's manifests restart the process if it fails.
    Healthz,
    /// `/livez`: a restart would help if it fails.
    Livez,
    /// `/readyz`: the manager works completely.
    Readyz,
}

/// The reason of a failed check: one sentence, for people who may see it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unhealthy(pub String);

/// The parameters of a probe.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Ask {
    /// The checks to leave out.
    pub exclude: BTreeSet<String>,
    /// Whether checks are listed even if all of them pass.
    pub verbose: bool,
    /// Whether reasons are shown.
    pub reasons: Reasons,
}

/// Whether a probe's response shows why checks fail.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reasons {
    /// Reasons are withheld, because the client is unknown.
    #[default]
    Withheld,
    /// Reasons are shown.
    Shown,
}

/// The response of a probe.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Whether all checks pass.
    pub passed: bool,
    /// The text, as in upstream.
    pub text: String,
}

struct Shared {
    checks: RwLock<Vec<Check>>,
    results: Results,
}

#[derive(Clone)]
struct Check {
    name: Arc<str>,
    probes: Arc<[Probe]>,
    run: Arc<dyn Fn() -> Result<(), Unhealthy> + Send + Sync>,
}

/// `kubernetes_healthcheck`, `kubernetes_healthchecks_total`; empty if they could not be created.
struct Results {
    registry: Registry,
    families: Option<(IntGaugeVec, IntCounterVec)>,
}

/// The check of a manager without checks.
const PING: &str = "ping";

// === impl Health ===

impl Health {
    /// Creates an empty set of checks, which is healthy.
    #[doc(hidden)]
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Shared { checks: RwLock::default(), results: Results::new() }))
    }

    /// Adds a check, or replaces the one of this name. It runs at every probe, so it must be quick and only read.
    pub fn add(&self, probes: &[Probe], name: &str, check: impl Fn() -> Result<(), Unhealthy> + Send + Sync + 'static) {
        let check = Check { name: name.into(), probes: probes.into(), run: Arc::new(check) };
        let mut checks = self.0.checks.write();
        match checks.iter_mut().find(|known| known.name == check.name && known.probes == check.probes) {
            Some(known) => *known = check,
            None => checks.push(check),
        }
    }

    /// Removes the checks of this name.
    pub fn remove(&self, name: &str) {
        self.0.checks.write().retain(|check| &*check.name != name);
    }

    /// Returns the names of a probe's checks.
    #[doc(hidden)]
    #[must_use]
    pub fn names(&self, probe: Probe) -> Vec<Arc<str>> {
        self.of(probe).into_iter().map(|check| check.name).collect()
    }

    /// Returns the response of a probe.
    #[doc(hidden)]
    #[must_use]
    pub fn report(&self, probe: Probe, ask: &Ask) -> Report {
        let mut lines = String::new();
        let mut failed = Vec::new();
        let mut unknown: BTreeSet<&str> = ask.exclude.iter().map(String::as_str).collect();
        for check in self.of(probe) {
            let name = &*check.name;
            if ask.exclude.contains(name) {
                unknown.remove(name);
                let _ = writeln!(lines, "[+]{name} excluded: ok");
                continue;
            }
            let result = (check.run)();
            self.0.results.count(name, probe, result.is_ok());
            match (result, ask.reasons) {
                (Ok(()), _) => drop(writeln!(lines, "[+]{name} ok")),
                (Err(reason), reasons) => {
                    tracing::info!(check = name, probe = probe.name(), %reason, "health check failed");
                    failed.push(name.to_owned());
                    let _ = match reasons {
                        Reasons::Withheld => writeln!(lines, "[-]{name} failed: reason withheld"),
                        Reasons::Shown => writeln!(lines, "[-]{name} failed: {reason}"),
                    };
                }
            }
        }
        if !unknown.is_empty() {
            let names: Vec<_> = unknown.iter().map(|name| format!("{name:?}")).collect();
            let names = names.join(",");
            let _ = writeln!(lines, "warn: some health checks cannot be excluded: no matches for {names}");
        }
        let probe = probe.name();
        match (failed.is_empty(), ask.verbose) {
            (false, _) => Report { passed: false, text: format!("{lines}{probe} check failed\n") },
            (true, true) => Report { passed: true, text: format!("{lines}{probe} check passed\n") },
            (true, false) => Report { passed: true, text: "ok".to_owned() },
        }
    }

    /// Returns the response of one check of a probe; `None` if there is no such check.
    #[must_use]
    pub(crate) fn report_one(&self, probe: Probe, name: &str) -> Option<Report> {
        let check = self.of(probe).into_iter().find(|check| &*check.name == name)?;
        Some(match (check.run)() {
            Ok(()) => Report { passed: true, text: "ok".to_owned() },
            Err(reason) => Report { passed: false, text: format!("internal server error: {reason}\n") },
        })
    }

    /// Returns the registry in which results are counted, for `/metrics/slis`.
    #[must_use]
    pub(crate) fn results(&self) -> &Registry {
        &self.0.results.registry
    }

    /// Checks are called with the lock released: they may be slow, and may add checks.
    fn of(&self, probe: Probe) -> Vec<Check> {
        let checks: Vec<_> =
            self.0.checks.read().iter().filter(|check| check.probes.contains(&probe)).cloned().collect();
        if !checks.is_empty() {
            return checks;
        }
        vec![Check { name: PING.into(), probes: [probe].into(), run: Arc::new(|| Ok(())) }]
    }
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.checks.read().iter().map(|check| &check.name)).finish()
    }
}

// === impl Probe ===

impl Probe {
    /// All probes.
    pub const ALL: [Self; 3] = [Self::Healthz, Self::Livez, Self::Readyz];
    /// The probes upon which a process is restarted: for problems that a restart solves.
    pub(crate) const VITAL: [Self; 2] = [Self::Healthz, Self::Livez];

    /// Returns the name, as in paths and texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
        }
    }
}

// === impl Results ===

impl Results {
    fn new() -> Self {
        let registry = Registry::new();
        let families = Self::register(&registry).ok();
        Self { registry, families }
    }

    fn register(registry: &Registry) -> Result<(IntGaugeVec, IntCounterVec), prometheus::Error> {
        let last = "[STABLE] This metric records the result of a single healthcheck.";
        let total = "[STABLE] This metric records the results of all healthcheck.";
        let last = IntGaugeVec::new(Opts::new("kubernetes_healthcheck", last), &["name", "type"])?;
        let total = IntCounterVec::new(Opts::new("kubernetes_healthchecks_total", total), &["name", "type", "status"])?;
        registry.register(Box::new(last.clone()))?;
        registry.register(Box::new(total.clone()))?;
        Ok((last, total))
    }

    fn count(&self, name: &str, probe: Probe, passed: bool) {
        let Some((last, total)) = &self.families else { return };
        last.with_label_values(&[name, probe.name()]).set(i64::from(passed));
        total.with_label_values(&[name, probe.name(), if passed { "success" } else { "error" }]).inc();
    }
}
