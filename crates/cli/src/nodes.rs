//! `steersman nodes`: simulated nodes for any cluster.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use steersman_nodes::{Nodes, NodesOptions, Stages};
use steersman_runtime::signals;
use steersman_runtime::{Manager, ManagerOptions, connection};
use tokio_util::sync::CancellationToken;

use super::{CommandError, Threads, flag};

pub(super) fn command() -> Command {
    Command::new("nodes")
        .about("Simulates nodes, and a scheduler, for any cluster: pods run without containers")
        .arg(
            flag("kubeconfig", "File that says how to reach the API server; inside a cluster it is not needed")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(flag("context", "A context of the kubeconfig, instead of its current one").value_name("NAME"))
        .arg(
            flag("count", "How many nodes")
                .value_name("N")
                .value_parser(value_parser!(u16).range(1..=8192))
                .default_value("3"),
        )
        .arg(flag("prefix", "What their names begin with").value_name("NAME").default_value("node"))
        .arg(flag("zones", "Zones they are in, in turns").value_name("NAMES").value_delimiter(','))
        .arg(stages_flag())
        .arg(
            Arg::new("no-scheduler")
                .long("no-scheduler")
                .help("The cluster has a scheduler already")
                .action(ArgAction::SetTrue),
        )
}

/// The flag for a table of stages.
pub(super) fn stages_flag() -> Arg {
    flag("stages", "How pods live on the nodes: a table of your own, as YAML; docs/nodes.md shows one")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
}

/// The table that the flag names, or the built-in one.
pub(super) fn stages(matches: &ArgMatches) -> Result<Stages, CommandError> {
    let Some(file) = matches.get_one::<PathBuf>("stages") else { return Ok(Stages::default()) };
    let unusable = |problem: String| CommandError(format!("cannot use the stages in {}: {problem}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| unusable(error.to_string()))?;
    Stages::parse(&text).map_err(|error| unusable(error.to_string()))
}

pub(super) fn run(matches: &ArgMatches) -> Result<(), CommandError> {
    let options = NodesOptions::count(matches.get_one::<u16>("count").copied().map_or(1, usize::from))
        .prefix(matches.get_one::<String>("prefix").cloned().unwrap_or_default())
        .zones(matches.get_many::<String>("zones").unwrap_or_default().cloned())
        .stages(stages(matches)?)
        .scheduler(!matches.get_flag("no-scheduler"));
    let mut connect = connection::Options::default();
    connect.kubeconfig = matches.get_one::<PathBuf>("kubeconfig").cloned();
    connect.context = matches.get_one::<String>("context").cloned();
    super::block_on(Threads::Few, async {
        let said = |error: &dyn std::fmt::Display| CommandError(error.to_string());
        let connection = connection::Connection::load(connect).await.map_err(|error| said(&error))?;
        let client = connection.client().await.map_err(|error| said(&error))?;
        connection.check_reachable(&client).await.map_err(|error| said(&error))?;
        let manager =
            Manager::new(client, ManagerOptions::default().without_metrics()).map_err(|error| said(&error))?;
        let nodes = Nodes::build(&manager.context(), options).map_err(|error| said(&error))?;
        let them = connection.server();
        let count = nodes.names().len();
        match count {
            1 => println!("1 simulated node for {them}; Ctrl-C stops it"),
            _ => println!("{count} simulated nodes for {them}; Ctrl-C stops them"),
        }
        let stop = CancellationToken::new();
        tokio::spawn(signals::stop_on_signal(stop.clone()));
        manager.run(stop).await.map_err(|error| said(&error))
    })
}
