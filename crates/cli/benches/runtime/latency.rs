//! How old an event is when it is reconciled.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use serde_json::Value;
use steersman_apiserver::{ApiServer, Options};
use steersman_runtime::connection;
use tokio_util::sync::CancellationToken;

use crate::load::{Load, OBJECTS};
use crate::process::{Process, Up};
use crate::{Side, controller, report};

const PER_SECOND: u32 = 2_000;
/// kube-apiserver, etcd, the controller and the load share two cores: about a third of what they can do.
const PER_SECOND_ON_RIG: u32 = 300;
const TIME: Duration = Duration::from_secs(10);
/// Of each side, in turn: the machine's other work only ever adds to one.
const ROUNDS: usize = 2;
/// For events on their way, and for memory that only the start needed.
const SETTLE: Duration = Duration::from_secs(2);

/// What a controller went through.
struct Outcome {
    idle_bytes: usize,
    loaded_bytes: usize,
    ages: Value,
}

/// Our own server: in this process, and over TLS in processes of their own.
pub(crate) async fn on_ours() {
    let mut best = Vec::new();
    for _ in 0..ROUNDS {
        best.push(in_process().await);
    }
    latencies(Side::Ours, "event to reconcile at 2,000/s, in process", &best);
    let mut best = Vec::new();
    for round in 0..ROUNDS {
        let up = Up::start();
        let client = client_of(up.kubeconfig()).await;
        let ours = this(Command::new(std::env::current_exe().expect("we know who we are")).arg(controller::RUN));
        best.push(watched(client, ours, up.kubeconfig(), &format!("bench-tls-{round}"), PER_SECOND).await.ages);
    }
    latencies(Side::Ours, "event to reconcile at 2,000/s, over TLS", &best);
}

/// kube-apiserver, with our controller and its twin in turn.
pub(crate) async fn on_rig(kubeconfig: &Path) {
    let client = client_of(kubeconfig).await;
    let peer = std::env::var_os("STEERSMAN_BENCH_PEER").expect("xtask says where the peer's program is");
    let mut outcomes = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        for (at, side) in [Side::Ours, Side::Peer].into_iter().enumerate() {
            let program = match side {
                Side::Ours => {
                    this(Command::new(std::env::current_exe().expect("we know who we are")).arg(controller::RUN))
                }
                Side::Peer => Command::new(&peer),
            };
            let namespace = format!("bench-{side:?}-{round}").to_lowercase();
            outcomes[at].push(watched(client.clone(), program, kubeconfig, &namespace, PER_SECOND_ON_RIG).await);
        }
    }
    for (side, outcomes) in [Side::Ours, Side::Peer].into_iter().zip(outcomes) {
        let least = |of: fn(&Outcome) -> usize| outcomes.iter().map(of).min().unwrap_or_default() as f64 / 1e6;
        report(side, "controller of 30 lines: memory, idle", least(|outcome| outcome.idle_bytes), "MB");
        let name = "controller of 30 lines: memory after 3,000 changes of 1,000 ConfigMaps";
        report(side, name, least(|outcome| outcome.loaded_bytes), "MB");
        let ages: Vec<_> = outcomes.into_iter().map(|outcome| outcome.ages).collect();
        latencies(side, "controller of 30 lines: event to reconcile at 300/s", &ages);
    }
}

fn this(command: &mut Command) -> Command {
    let mut own = Command::new(command.get_program());
    own.args(command.get_args());
    own
}

async fn client_of(kubeconfig: &Path) -> Client {
    let options = connection::Options::default().kubeconfig(kubeconfig);
    connection::connect(options).await.expect("a client")
}

/// Everything in this process: the server's own part is as small as it gets.
async fn in_process() -> Value {
    let client = Client::new(ApiServer::new(Options::default()), "default");
    let load = Arc::new(Load::new(client.clone(), "bench").await);
    let manager = controller::manager(client, "bench");
    let ages = controller::add(&manager);
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let manager = manager.clone();
        let stop = stop.clone();
        async move { manager.run(stop).await }
    });
    controller::filled(&manager).await;
    load.create().await;
    load.warm_up().await;
    let (total, rate) = load.change(PER_SECOND, TIME).await;
    for _ in 0..100 {
        if ages.count() >= total {
            break;
        }
        tokio::time::sleep(SETTLE / 100).await;
    }
    stop.cancel();
    running.await.expect("a task").expect("an orderly end");
    let summary = ages.summary();
    eprintln!("in process: {total} changes at {rate:.0}/s: {summary}");
    summary
}

/// A controller in a process of its own, while ConfigMaps change.
async fn watched(client: Client, mut program: Command, kubeconfig: &Path, namespace: &str, per_second: u32) -> Outcome {
    let load = Arc::new(Load::new(client, namespace).await);
    program.arg(namespace).env("KUBECONFIG", kubeconfig);
    let mut controller = Process::start_talking(&mut program);
    controller.wait_for_line("ready");
    tokio::time::sleep(SETTLE).await;
    let idle_bytes = controller.resident_bytes();
    load.create().await;
    load.warm_up().await;
    tokio::time::sleep(SETTLE).await;
    let before = controller.processor_time();
    let start = std::time::Instant::now();
    let (total, rate) = load.change(per_second, TIME).await;
    let spent = (controller.processor_time() - before).as_secs_f64() / start.elapsed().as_secs_f64();
    tokio::time::sleep(SETTLE).await;
    let loaded_bytes = controller.resident_bytes();
    let ages: Value = serde_json::from_str(&controller.end_of_talk()).expect("a line of JSON");
    eprintln!("{namespace}: {total} changes at {rate:.0}/s of {OBJECTS} objects: {ages}, {:.1} % CPU", spent * 100.0);
    Outcome { idle_bytes, loaded_bytes, ages }
}

/// The best round's.
fn latencies(side: Side, name: &str, rounds: &[Value]) {
    for (part, field) in [("p50", "p50_us"), ("p99", "p99_us")] {
        let best = rounds.iter().filter_map(|round| round[field].as_f64()).fold(f64::INFINITY, f64::min);
        report(side, &format!("{name}, {part}"), best / 1e3, "ms");
    }
}
