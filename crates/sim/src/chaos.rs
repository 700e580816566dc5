//! The simulator's load and its invariants on a real Kubernetes: `cargo xtask k8s chaos`.
//!
//! 1. A rig gives a store and an API server; another API server on the same store is the one that is hit ([`plane`]).
//! 2. Two managers with a lease, ours or Go's, talk to it through a proxy each ([`proxy`]); simulated nodes and the
//!    simulator's users talk to it directly.
//! 3. Every change is recorded ([`recorder`]), attributed to its author ([`audit`]), and checked afterwards
//!    ([`judge`]).
//! 4. When the storm is over, the cluster must reach the state of its specs, and stay so.

pub mod audit;
pub mod cli;
pub mod judge;
pub mod managers;
pub mod plan;
pub mod plane;
pub mod proxy;
pub mod recorder;
pub mod table;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex as SyncMutex;
use steersman_base::Clock;
use steersman_nodes::{Nodes, NodesOptions, ProvisionerOptions};
use steersman_runtime::{Manager, ManagerOptions};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::faults::Faults;
use crate::invariants::Violation;
use crate::plan::{Millis, Step};
use crate::users::Users;
use audit::Audit;
use managers::{Kind, LEASE_LASTS, Managers, Setting};
use plan::{Blow, Plan};
use plane::Plane;
use proxy::Weather;
use recorder::Recorder;
use table::Outcome;

/// An error of the harness itself, as opposed to its findings.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Problem(String);

/// What is done, and for how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose managers.
    pub kind: Kind,
    /// The seed.
    pub seed: u64,
    /// How long the storm lasts.
    pub storm: Duration,
    /// How long healing may take.
    pub heals_within: Duration,
    /// How long it is then watched for writes.
    pub rest: Duration,
    /// The program of this harness, which can be our manager, too.
    pub program: PathBuf,
    /// Where logs go.
    pub scratch: PathBuf,
}

const NODES: usize = 4;
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Longer than a pod takes to be ready and then available, and than the longest pause between two batches of endpoints.
const STILL_FOR: Duration = Duration::from_secs(10);
const LEADS_WITHIN: Duration = Duration::from_secs(90);
/// Another manager has the lease by then.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(25);
/// How long the frozen one stays so after that.
const STAYS_FROZEN: Duration = Duration::from_secs(2);
/// How many violations of one invariant are printed.
const TOLD_MAX: usize = 10;

// === impl Problem ===

impl Problem {
    fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

macro_rules! problems {
    ($($error:ty),* $(,)?) => {$(
        impl From<$error> for Problem {
            fn from(error: $error) -> Self {
                Self(error.to_string())
            }
        }
    )*};
}
problems!(
    std::io::Error,
    http::Error,
    kube::Error,
    serde_json::Error,
    steersman_runtime::connection::ConnectError,
    steersman_nodes::NodesError,
);

/// Sends a signal to one process.
fn signal(pid: u32, name: &str) -> Result<(), Problem> {
    let status = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status()?;
    if status.success() { Ok(()) } else { Err(Problem::new(format!("{name} does not reach process {pid}"))) }
}

/// Runs one storm in the rig around this process.
///
/// # Errors
/// The harness itself does not work; what it finds is in the outcome.
pub async fn run(options: &Options) -> Result<Outcome, Problem> {
    let inside = || Problem::new("this runs inside the rig only: cargo xtask k8s chaos");
    let dir = PathBuf::from(std::env::var_os("STEERSMAN_RIG_DIR").ok_or_else(inside)?);
    let bin = PathBuf::from(std::env::var_os("STEERSMAN_RIG_BIN").ok_or_else(inside)?);
    let plane = Plane::start(&dir, &options.scratch).await?;
    let users = Users::of(plane.client(audit::USERS).await?);
    users.furnish(false).await;
    let mut tasks = JoinSet::new();
    let recorder = Recorder::begin(&plane.calm_client().await?, &mut tasks).await?;
    let begin = recorder.now().last().map_or(0, |seen| seen.revision);
    let nodes = start_nodes(&plane, &mut tasks).await?;
    let weather: Weather = Arc::new(SyncMutex::new(Faults::new(Vec::new())));
    let program = match options.kind {
        Kind::Ours => (options.program.clone(), vec!["controller-manager".to_owned()]),
        Kind::Go => (bin.join("kube-controller-manager"), Vec::new()),
    };
    let setting = Setting {
        kind: options.kind,
        program,
        dir,
        scratch: options.scratch.clone(),
        server: plane.address.clone(),
        seed: options.seed,
    };
    let managers = Managers::start(setting, Arc::clone(&weather)).await?;
    let cluster = Cluster { plane: Mutex::new(plane), managers: Mutex::new(managers), users, nodes, weather };
    cluster.lead().await?;
    let millis = Millis::try_from(options.storm.as_millis()).unwrap_or(Millis::MAX);
    let plan = plan::plan(options.seed, millis);
    let mut faults = cluster.storm(&plan).await?;

    cluster.users.tidy_up(&cluster.nodes, false).await;
    let began = Instant::now();
    let healed = cluster.heal(&recorder, began + options.heals_within).await?;
    let healed_after = healed.map(|at| u64::try_from(at.duration_since(began).as_millis()).unwrap_or(u64::MAX));
    let from = Clock::system().now_micros();
    cluster.keep(Instant::now() + options.rest).await?;
    let to = Clock::system().now_micros();

    let started = cluster.managers.lock().await.started();
    cluster.managers.lock().await.end();
    let log = cluster.plane.lock().await.audit_log();
    let seen = recorder.seen();
    tasks.shutdown().await;
    let mut audit = Audit::read(&log);
    let at_rest: Vec<String> = audit.written_between(from, to).map(|(by, text)| format!("{by}: {text}")).collect();
    let judged = judge::judge(&seen, &mut audit, begin);
    for (name, count) in cluster.weather.lock().counts() {
        *faults.entry(name.to_owned()).or_default() += count;
    }
    let violations = told(&judged.violations, &at_rest);
    Ok(Outcome {
        kind: options.kind,
        seed: options.seed,
        storm_seconds: options.storm.as_secs(),
        changes: judged.changes,
        unknown: judged.unknown,
        managers: started,
        operations: cluster.users.counts().into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
        faults,
        healed_after,
        writes_at_rest: at_rest.len().try_into().unwrap_or(u64::MAX),
        rest_seconds: options.rest.as_secs(),
        invariants: Outcome::counts(&judged.counts),
        violations,
    })
}

/// Returns the sentences about violations and about writes at rest: the first ones of each invariant.
fn told(violations: &[Violation], at_rest: &[String]) -> Vec<String> {
    let mut by_invariant: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for violation in violations {
        by_invariant.entry(violation.invariant).or_default().push(crate::cli::told(violation));
    }
    let first = by_invariant.into_values().flat_map(|told| told.into_iter().take(TOLD_MAX));
    first.chain(at_rest.iter().take(TOLD_MAX).map(|text| format!("written at rest by {text}"))).collect()
}

async fn start_nodes(plane: &Plane, tasks: &mut JoinSet<()>) -> Result<Nodes, Problem> {
    let manager = Manager::new(plane.client(audit::NODES).await?, ManagerOptions::default());
    let manager = manager.map_err(|error| Problem::new(error.to_string()))?;
    let labels = [("role", ""), ("disk", "ssd")];
    let labels = labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    // Claims without a class get its default one, and volumes.
    let provisioner = Some(ProvisionerOptions::default().default_class(true));
    let options = NodesOptions::count(NODES).labels(labels).provisioner(provisioner);
    let nodes = Nodes::build(&manager.context(), options)?;
    tasks.spawn(async move {
        // It runs as long as the storm does.
        let _ = manager.run(CancellationToken::new()).await;
    });
    Ok(nodes)
}

/// What the storm is about.
struct Cluster {
    plane: Mutex<Plane>,
    managers: Mutex<Managers>,
    users: Users,
    nodes: Nodes,
    weather: Weather,
}

// === impl Cluster ===

impl Cluster {
    /// Waits until there is a leader.
    async fn lead(&self) -> Result<(), Problem> {
        let began = Instant::now();
        while self.managers.lock().await.leader().is_none() {
            if began.elapsed() > LEADS_WITHIN {
                return Err(Problem::new("no manager takes the lease; their logs are beside the audit log"));
            }
            self.managers.lock().await.replace().await?;
            sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Replaces managers that end, until then.
    async fn keep(&self, until: Instant) -> Result<(), Problem> {
        while Instant::now() < until {
            self.managers.lock().await.replace().await?;
            sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Runs the whole plan. Returns how often each process fault was injected.
    async fn storm(&self, plan: &Plan) -> Result<BTreeMap<String, u64>, Problem> {
        let start = Instant::now();
        *self.weather.lock() = Faults::new(plan.windows.clone());
        let end = start + Duration::from_millis(plan.ends);
        let (operations, blows, kept) =
            tokio::join!(self.operate(&plan.operations, start, end), self.strike(plan, start), self.keep(end));
        operations?;
        kept?;
        blows
    }

    async fn operate(&self, steps: &[Step], start: Instant, end: Instant) -> Result<(), Problem> {
        for step in steps {
            sleep_until(start + Duration::from_millis(step.at)).await;
            if Instant::now() >= end {
                break;
            }
            self.users.perform(&step.operation, &self.nodes).await;
        }
        Ok(())
    }

    async fn strike(&self, plan: &Plan, start: Instant) -> Result<BTreeMap<String, u64>, Problem> {
        let end = start + Duration::from_millis(plan.ends);
        let mut counts = BTreeMap::new();
        for (at, blow) in &plan.blows {
            sleep_until(start + Duration::from_millis(*at)).await;
            // One that took long may have used up the time of the next.
            if Instant::now() >= end {
                break;
            }
            if self.fall(*blow).await? {
                *counts.entry(blow.name().to_owned()).or_default() += 1;
            }
        }
        Ok(counts)
    }

    /// Whether the fault had a target.
    async fn fall(&self, blow: Blow) -> Result<bool, Problem> {
        match blow {
            Blow::LeaderKilled => {
                let mut managers = self.managers.lock().await;
                let Some((leader, _)) = managers.leader() else { return Ok(false) };
                managers.kill(leader)?;
                Ok(true)
            }
            Blow::LeaderFrozen => {
                let Some((leader, _)) = self.managers.lock().await.leader() else { return Ok(false) };
                self.managers.lock().await.freeze(leader, true)?;
                let until = Instant::now() + TAKEN_OVER_WITHIN;
                let is_deposed = loop {
                    sleep(LOOK_EVERY).await;
                    let now = self.managers.lock().await.leader();
                    let is_other = now.is_some_and(|(number, at)| number != leader && at.elapsed() < LEASE_LASTS);
                    if is_other || Instant::now() >= until {
                        break is_other;
                    }
                };
                sleep(STAYS_FROZEN).await;
                self.managers.lock().await.freeze(leader, false)?;
                Ok(is_deposed)
            }
            Blow::ServerRestarted => {
                self.plane.lock().await.restart_server()?;
                Ok(true)
            }
            Blow::StoreStopped(millis) => {
                self.plane.lock().await.stop_store(true)?;
                sleep(Duration::from_millis(millis)).await;
                self.plane.lock().await.stop_store(false)?;
                Ok(true)
            }
        }
    }

    /// The time of the last change, after which the state matches the specs.
    async fn heal(&self, recorder: &Recorder, until: Instant) -> Result<Option<Instant>, Problem> {
        loop {
            self.managers.lock().await.replace().await?;
            let changed = recorder.changed().filter(|changed| changed.elapsed() >= STILL_FOR);
            if let Some(changed) = changed.filter(|_| judge::unhealed(&recorder.now()).is_empty()) {
                return Ok(Some(changed));
            }
            if Instant::now() >= until {
                return Ok(None);
            }
            sleep(LOOK_EVERY).await;
        }
    }
}
