//! `steersman up`: a cluster in this process.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use steersman_apiserver::listener::{ListenOptions, Listening};
use steersman_apiserver::{ApiServer, Options};
use steersman_runtime::{Build, Manager, ManagerOptions};
use tokio_util::sync::CancellationToken;

use super::gates::Gates;
use super::selection::{self, Selection, World};
use super::{CommandError, flag, flags, rows, signals};

pub(super) fn command() -> Command {
    Command::new("up")
        .about("Starts a cluster in this process: an API server, and controllers of your choice")
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
            flag("nodes", "Simulated nodes; they come with a later version, so that pods stay Pending for now")
                .value_name("N")
                .value_parser(value_parser!(u32).range(0..=0))
                .default_value("0"),
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
    let port = matches.get_one::<u16>("port").copied().unwrap_or(0);
    let kubeconfig = matches.get_one::<PathBuf>("kubeconfig-out").cloned();
    super::block_on(async {
        let server = ApiServer::new(Options::default());
        let options = ListenOptions { address: SocketAddr::from(([127, 0, 0, 1], port)), ..ListenOptions::default() };
        let listening = Listening::start(&server, options).await.map_err(|error| CommandError(error.to_string()))?;
        let kubeconfig = kubeconfig.unwrap_or_else(|| {
            std::env::temp_dir().join(format!("steersman-{}.kubeconfig", listening.address().port()))
        });
        listening
            .write_kubeconfig(&kubeconfig)
            .map_err(|error| CommandError(format!("cannot write the kubeconfig {}: {error}", kubeconfig.display())))?;

        let client = kube::Client::new(server, "default");
        let manager =
            Manager::new(client, ManagerOptions::default()).map_err(|error| CommandError(error.to_string()))?;
        let mut names = Vec::new();
        for descriptor in selection.run.iter().filter_map(|row| row.descriptor()) {
            if manager.build(descriptor, None) == Build::Enabled {
                names.push(descriptor.name);
            }
        }
        greet(&listening.url(), &names, selection.missing.len(), &kubeconfig);
        let stop = CancellationToken::new();
        tokio::spawn(signals::stop_on_signal(stop.clone()));
        let ended = manager.run(stop).await.map_err(|error| CommandError(error.to_string()));
        drop(listening);
        // Nobody can use it any more.
        let _ = std::fs::remove_file(&kubeconfig);
        ended
    })
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

fn greet(url: &str, controllers: &[&str], missing: usize, kubeconfig: &Path) {
    let mut controllers = if controllers.is_empty() { "none".to_owned() } else { controllers.join(", ") };
    if missing > 0 {
        controllers.push_str(&format!(" ({missing} more are not here yet)"));
    }
    let kubeconfig = kubeconfig.display();
    let text = format!(
        "API server:   {url}
controllers:  {controllers}
kubeconfig:   {kubeconfig}

  export KUBECONFIG={kubeconfig}
  kubectl get namespaces

Everything is kept in memory, and gone when this ends. Ctrl-C stops it.
"
    );
    // Whoever does not read this does not want to know; the cluster runs all the same.
    let _ = std::io::stdout().write_all(text.as_bytes());
}
