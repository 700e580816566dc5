//! `steersman controller-manager`: the drop-in for kube-controller-manager.
//!
//! The order is upstream's (`cmd/kube-controller-manager/app/controllermanager.go`, 1.37.1):
//!
//! 1. The command line is read and checked as a whole; what is wrong with it is one sentence, and exit code 1.
//! 2. The secure port listens, and answers. The API server is waited for: with an election as long as it is away, as
//!    upstream's candidates do, else for 10 s at most.
//! 3. All controllers are built, the one of token secrets first, with our own account; then the caches start, and the log
//!    says `informers started`. One whose API the server does not have is left out; the log and `/debug/controllers` say why.
//! 4. Work is done while the lease is held. A lost lease ends the program with exit code 1.

mod accounts;
mod config;
mod credentials;
mod migration;
mod pages;
mod roster;
mod server;
mod serving;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use prometheus::Registry;
use steersman_base::Clock;
use steersman_base::time::FOR_EVER;
use steersman_runtime::__internal::descriptor::{Row, Stage};
use steersman_runtime::connection::{self, Connection, Limits, RestMetrics};
use steersman_runtime::manager::runnable;
use steersman_runtime::signals;
use steersman_runtime::{Build, Descriptor, Group, LeaseOptions, Manager, ManagerOptions};

use super::flags::{self, Parsed};
use super::gates::{self, Gates};
use super::log::{self, Format, Verbosity};
use super::options::{self, Cluster, Given};
use super::rows;
use super::selection::{self, Selection, World};
use super::{CommandError, Threads, version};
use accounts::Accounts;
use migration::Migration;
use roster::Roster;

/// A command line that can be run.
struct Plan {
    flags: Parsed,
    gates: Gates,
    selection: Selection<'static>,
    /// The configuration of `--enable-leader-migration`.
    migration: Option<Migration>,
    /// The controllers of its lease.
    migrated: Vec<&'static Row>,
}

/// Runs the command line `program words…`.
pub(super) fn run(program: &str, words: Vec<String>) -> Result<(), CommandError> {
    let flags = flags::parse(flags::table(), words).map_err(|error| CommandError(error.to_string()))?;
    if flags.is_on("help") {
        print(&flags::help(program, &rows::help(), &gates::help()));
        return Ok(());
    }
    match flags.text("version") {
        "raw" => print(&format!("{}\n", version::all())),
        "true" => print(&format!("{}\n", version::line())),
        _ => {
            let plan = plan(flags)?.migrating()?;
            let format = if plan.flags.text("logging-format") == "json" { Format::Json } else { Format::Text };
            let verbosity = log::start(format, plan.flags.int("v"));
            // First: a log that ends in what follows says which version it was.
            tracing::info!(version = version::KUBERNETES, steersman = version::OWN, "starting");
            plan.say_flags();
            plan.say_what_is_ignored();
            return super::block_on(Threads::Few, start(plan, verbosity));
        }
    }
    Ok(())
}

/// Standard output may be closed: that is not an error.
fn print(text: &str) {
    use std::io::Write;
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Pure: the selection and options of a command line, or why it is invalid.
fn plan(flags: Parsed) -> Result<Plan, CommandError> {
    let gates = Gates::parse(flags.texts("feature-gates")).map_err(CommandError)?;
    let wrong = flags::check(&flags, &gates);
    if !wrong.is_empty() {
        return Err(CommandError(wrong.join("; ")));
    }
    let world = World {
        is_set: &|flag| flags.is_on(flag),
        gate: &|gate| gates.enabled(gate),
        is_always_asked: &|row| row.stage == Stage::First,
    };
    let selection = selection::select(rows::table(), flags.texts("controllers"), &world)?;
    Ok(Plan { flags, gates, selection, migration: None, migrated: Vec::new() })
}

// === impl Plan ===

impl Plan {
    /// Divides the controllers as the file of a leader migration says.
    fn migrating(mut self) -> Result<Self, CommandError> {
        self.migration = Migration::read(&self.flags)?;
        if let Some(migration) = self.migration.as_ref().filter(|_| self.flags.is_on("leader-elect")) {
            self.migrated = migration.divide(&mut self.selection);
        }
        Ok(self)
    }

    /// One line for each flag, from `-v=1` on, as upstream: the log of a process that has ended says how it was started.
    fn say_flags(&self) {
        if self.flags.int("v") >= 1 {
            self.flags.all().for_each(|(name, value)| tracing::info!(name, %value, "FLAG"));
        }
    }

    /// One line for each request that has no effect.
    fn say_what_is_ignored(&self) {
        for flag in self.flags.given().iter().filter(|flag| !flag.does_something()) {
            tracing::warn!("--{} has no effect here", flag.name);
        }
        let decides =
            |gate: &str| rows::table().iter().any(|row| row.gates.contains(&gate)) || options::is_asked_for(gate);
        for gate in self.gates.ignored(decides) {
            tracing::warn!("feature gate {gate} has no effect here");
        }
        for gate in self.gates.leaving() {
            tracing::warn!(stage = gate.stage, "feature gate {} will go in a later version", gate.name);
        }
        for (row, why) in &self.selection.held {
            tracing::info!(controller = row.name, why, "controller is disabled");
        }
    }

    /// Only what was given: the server's own fairness does better than a limit of ours.
    fn limits(&self) -> Option<Limits> {
        let burst = u32::try_from(self.flags.int("kube-api-burst")).unwrap_or(1);
        #[expect(clippy::cast_possible_truncation, reason = "the flag was read as such a number")]
        let qps = self.flags.float("kube-api-qps") as f32;
        self.flags.is_given("kube-api-qps").then(|| Limits::new(qps, burst))
    }

    fn lease(&self) -> Option<LeaseOptions> {
        self.lease_called(self.flags.text("leader-elect-resource-name"))
    }

    fn lease_called(&self, name: &str) -> Option<LeaseOptions> {
        let flags = &self.flags;
        let of = |what: &str| format!("leader-elect-{what}");
        flags.is_on("leader-elect").then(|| {
            LeaseOptions::new(flags.text(&of("resource-namespace")), name)
                .lease_duration(flags.duration(&of("lease-duration")))
                .renew_deadline(flags.duration(&of("renew-deadline")))
                .retry_period(flags.duration(&of("retry-period")))
                // The manager releases it when all workers have stopped, so that the next leader need not wait.
                .release_on_exit()
        })
    }

    /// Returns the time for which the program waits for the API server. A candidate that gave up would be restarted
    /// ever more slowly, and nobody would lead for minutes after the server is back.
    fn patience(&self) -> Duration {
        if self.flags.is_on("leader-elect") { FOR_EVER } else { server::PATIENCE }
    }

    /// Returns the time that running reconciles have at the end; upstream's 0 is no limit.
    fn shutdown_within(&self) -> Duration {
        let within = self.flags.duration("controller-shutdown-timeout");
        if within.is_zero() { FOR_EVER } else { within }
    }
}

async fn start(plan: Plan, verbosity: Verbosity) -> Result<(), CommandError> {
    // Before anything is waited for: the first process of a container ignores signals that it does not handle.
    let stop = signals::stop();
    let Some(manager) = stop.run_until_cancelled(prepare(&plan, &verbosity)).await else { return Ok(()) };
    let manager = manager?;
    manager.run(stop).await.map_err(said)
}

/// Does all that comes before the manager runs: the secure port, the API server, the controllers.
async fn prepare(plan: &Plan, verbosity: &Verbosity) -> Result<Manager, CommandError> {
    let flags = &plan.flags;
    let clock = Clock::system();
    let registry = Registry::new();
    pages::register_metrics(&registry, &plan.gates)?;
    let serving = serving::listen(flags, &clock).await?;

    let mut options = connection::Options::default().user_agent("kube-controller-manager");
    options.kubeconfig = flags.some_text("kubeconfig").map(PathBuf::from);
    options.server = flags.some_text("master").map(ToOwned::to_owned);
    options.metrics = Some(RestMetrics::new(&registry).map_err(said)?);
    options.limits = plan.limits();
    let connection = Connection::load(options).await.map_err(said)?;
    let given = Given::new(flags, &plan.gates, Cluster::behind(&connection));
    given.check()?;
    let root = connection.client().await.map_err(said)?;
    let options = |lease: Option<LeaseOptions>, registry: &Registry, client: kube::Client| {
        let options = ManagerOptions::default().clock(clock.clone()).component("kube-controller-manager");
        options.metrics(registry.clone()).lease(lease).lease_client(client).shutdown_within(plan.shutdown_within())
    };
    let lease_client = connection.client().await.map_err(said)?;
    let manager = Manager::new(root.clone(), options(plan.lease(), &registry, lease_client.clone())).map_err(said)?;
    manager.set_flags(given.clone());
    let port = match serving {
        None => None,
        Some(serving) => {
            let config = config::of(flags, plan.migration.as_ref());
            pages::serve(manager.admin(), &clock, flags, config, &plan.gates, verbosity).map_err(said)?;
            Some(serving::answer(serving, flags, manager.admin(), &clock, &registry).await?)
        }
    };
    let healthy = server::wait_until_healthy(&connection, &root, manager.health(), plan.patience()).await;
    healthy.map_err(|error| CommandError(credentials::explain(&error, clock.now())))?;
    if let Some(port) = port {
        manager.add(port.with_authorities().await?);
    }
    let accounts = Accounts::new(&connection, &root, flags.is_on("use-service-account-credentials"));
    let accounts = accounts.await.map_err(said)?;
    let mut roster = Roster::of(rows::table(), &plan.selection, &plan.migrated);
    build(&plan.selection.run, &manager, &accounts, &mut roster).await?;
    if let Some(migration) = plan.migration.as_ref().filter(|_| !plan.migrated.is_empty()) {
        let registry = Registry::new();
        let lease = plan.lease_called(&migration.lease);
        let second = Manager::new(root, options(lease, &registry, lease_client)).map_err(said)?;
        second.set_flags(given);
        build(&plan.migrated, &second, &accounts, &mut roster).await?;
        migration::nest(&manager, second);
    }
    pages::serve_roster(manager.admin(), &roster).map_err(said)?;

    manager.add(runnable("informers", Group::Caches, |_| async {
        tracing::info!("informers started");
        Ok(())
    }));
    Ok(manager)
}

/// Builds controllers before anything runs: first the one whose work the others need.
async fn build(
    chosen: &[&'static Row],
    manager: &Manager,
    accounts: &Accounts,
    roster: &mut Roster,
) -> Result<(), CommandError> {
    let mut chosen: Vec<&Descriptor> = chosen.iter().map(|row| rows::controller(row)).collect();
    // Stable: the order of the table within a stage.
    chosen.sort_by_key(|descriptor| descriptor.row().stage);
    let needs = chosen.iter().flat_map(|descriptor| descriptor.needs);
    let absent = server::absent(manager.kube_client(), needs).await;
    for descriptor in chosen {
        match build_one(manager, accounts, descriptor, &absent)? {
            Build::Enabled => tracing::info!(controller = descriptor.name, "controller is built"),
            Build::Disabled(why) => {
                tracing::warn!(controller = descriptor.name, why, "controller is disabled");
                roster.disable(descriptor.name, &why);
            }
        }
    }
    Ok(())
}

fn build_one(
    manager: &Manager,
    accounts: &Accounts,
    descriptor: &Descriptor,
    absent: &BTreeSet<String>,
) -> Result<Build, CommandError> {
    let missing: Vec<_> = descriptor.needs.iter().map(server::name).filter(|name| absent.contains(name)).collect();
    if !missing.is_empty() {
        return Ok(Build::Disabled(format!("the API server does not serve {}", missing.join(", "))));
    }
    let row = descriptor.row();
    let context = match row.stage {
        Stage::First => manager.context(),
        Stage::Normal => manager.context().with_client(accounts.client(row.account).map_err(said)?),
    };
    Ok(manager.build_as(descriptor, None, &context))
}

fn said(error: impl std::fmt::Display) -> CommandError {
    CommandError(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(words: &[&str]) -> Plan {
        plan(flags::parse(flags::table(), words.iter().map(ToString::to_string)).unwrap()).unwrap()
    }

    #[test]
    fn only_who_stands_for_election_waits_as_long_as_it_takes() {
        let check = |words: &[&str], want: Duration| assert_eq!(planned(words).patience(), want, "{words:?}");
        check(&[], FOR_EVER);
        check(&["--leader-elect=false"], Duration::from_secs(10));
    }

    #[test]
    fn no_time_for_the_end_is_no_limit() {
        let check = |words: &[&str], want: Duration| assert_eq!(planned(words).shutdown_within(), want, "{words:?}");
        check(&[], Duration::from_secs(10));
        check(&["--controller-shutdown-timeout=3s"], Duration::from_secs(3));
        check(&["--controller-shutdown-timeout=0"], FOR_EVER);
        check(&["--controller-shutdown-timeout=-1s"], FOR_EVER);
    }
}
