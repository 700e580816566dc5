//! `steersman up`: a cluster in this process.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use steersman_apiserver::listener::{ListenOptions, Listening};
use steersman_apiserver::{ApiServer, Options};
use steersman_nodes::{Nodes, NodesOptions};
use steersman_runtime::{Build, Manager, ManagerOptions};
use tokio_util::sync::CancellationToken;

use super::gates::Gates;
use super::selection::{self, Selection, World};
use super::{CommandError, flag, flags, rows, signals};
use logs::NodeLogs;

mod demo;
mod logs;

/// What `up` was asked for.
struct UpOptions {
    port: u16,
    kubeconfig: Option<PathBuf>,
    nodes: usize,
    demo: bool,
}

pub(super) fn command() -> Command {
    Command::new("up")
        .about("Starts a cluster in this process: an API server, controllers and simulated nodes")
        .arg(
            flag("port", "Port of the API server on 127.0.0.1; 0 takes any that is free")
                .value_name("N")
                .value_parser(value_parser!(u16))
                .default_value("0"),
        )
        .arg(
            flag("kubeconfig-out", "Where to write the kubeconfig; by default into the directory for temporary files")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            flag("controllers", "Controllers to run: 'none', '*' for all, 'foo' for one, '-foo' for all but one")
                .value_name("NAMES")
                .value_delimiter(',')
                .default_value("*")
                .allow_hyphen_values(true),
        )
        .arg(
            flag("nodes", "How many simulated nodes there are; with 0, pods stay Pending")
                .value_name("N")
                .value_parser(value_parser!(u16).range(0..=8192))
                .default_value("3"),
        )
        .arg(
            Arg::new("demo")
                .long("demo")
                .help("Apply samples, and show line by line how the controllers make them true")
                .action(ArgAction::SetTrue),
        )
        .arg(
            Arg::new("ephemeral")
                .long("ephemeral")
                .help("Keep everything in memory; for now it is always so")
                .action(ArgAction::SetTrue),
        )
}

pub(super) fn run(matches: &ArgMatches) -> Result<(), CommandError> {
    let asked: Vec<String> = matches.get_many("controllers").unwrap_or_default().cloned().collect();
    let selection = select(&asked)?;
    let options = UpOptions {
        port: matches.get_one::<u16>("port").copied().unwrap_or(0),
        kubeconfig: matches.get_one::<PathBuf>("kubeconfig-out").cloned(),
        nodes: matches.get_one::<u16>("nodes").copied().map_or(0, usize::from),
        demo: matches.get_flag("demo"),
    };
    super::block_on(up(&selection, options))
}

async fn up(selection: &Selection<'_>, options: UpOptions) -> Result<(), CommandError> {
    let logs = NodeLogs::default();
    let server = ApiServer::new(Options { logs: Some(Arc::new(logs.clone())), ..Options::default() });
    let address = SocketAddr::from(([127, 0, 0, 1], options.port));
    let listening = Listening::start(&server, ListenOptions { address, ..ListenOptions::default() }).await;
    let listening = listening.map_err(|error| CommandError(error.to_string()))?;
    let kubeconfig = options.kubeconfig.unwrap_or_else(|| {
        std::env::temp_dir().join(format!("steersman-{}.kubeconfig", listening.address().port()))
    });
    listening
        .write_kubeconfig(&kubeconfig)
        .map_err(|error| CommandError(format!("cannot write the kubeconfig {}: {error}", kubeconfig.display())))?;

    let client = kube::Client::new(server, "default");
    let manager = Manager::new(client.clone(), ManagerOptions::default()).map_err(said)?;
    let mut names = Vec::new();
    for descriptor in selection.run.iter().filter_map(|row| row.descriptor()) {
        if manager.build(descriptor, None) == Build::Enabled {
            names.push(descriptor.name);
        }
    }
    if options.nodes > 0 {
        logs.come_from(Nodes::build(&manager.context(), NodesOptions::count(options.nodes)).map_err(said)?);
    }
    greet(&listening.url(), &names, selection.missing.len(), options.nodes, &kubeconfig);

    let stop = CancellationToken::new();
    tokio::spawn(signals::stop_on_signal(stop.clone()));
    let demo = async {
        if options.demo {
            demo::run(client).await?;
        }
        std::future::pending().await
    };
    let ended = tokio::select! {
        biased;
        ended = manager.run(stop.clone()) => ended.map_err(said),
        ended = demo => ended,
    };
    drop(listening);
    // Nobody can use it any more.
    let _ = std::fs::remove_file(&kubeconfig);
    ended
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn said(error: impl ToString) -> CommandError {
    CommandError(error.to_string())
}

/// The controllers that a list asks for, with the flags and gates as they are by default.
fn select(asked: &[String]) -> Result<Selection<'static>, CommandError> {
    if asked == ["none"] {
        return Ok(Selection::default());
    }
    let defaults = flags::parse(flags::table(), []).map_err(|error| CommandError(error.to_string()))?;
    let gates = Gates::default();
    let world = World {
        exists: &|row| row.descriptor().is_some(),
        is_set: &|flag| defaults.is_on(flag),
        gate: &|gate| gates.enabled(gate),
    };
    selection::select(rows::table(), asked, &world)
}

fn greet(url: &str, controllers: &[&str], missing: usize, nodes: usize, kubeconfig: &Path) {
    let mut controllers = if controllers.is_empty() { "none".to_owned() } else { controllers.join(", ") };
    if missing > 0 {
        controllers.push_str(&format!(" ({missing} more are not here yet)"));
    }
    let kubeconfig = kubeconfig.display();
    let nodes = match nodes {
        0 => "none: pods stay Pending".to_owned(),
        1 => "node-0, simulated".to_owned(),
        more => format!("node-0 … node-{}, simulated", more - 1),
    };
    let text = format!(
        "API server:   {url}
controllers:  {controllers}
nodes:        {nodes}
kubeconfig:   {kubeconfig}

  export KUBECONFIG={kubeconfig}
  kubectl create deployment web --image=example/web --replicas=3
  kubectl get deployments,pods -o wide

Everything is kept in memory, and gone when this ends. Ctrl-C stops it.
"
    );
    // Whoever does not read this does not want to know; the cluster runs all the same.
    let _ = std::io::stdout().write_all(text.as_bytes());
}
