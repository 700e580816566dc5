//! `steersman up`: a cluster in this process.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use steersman_apiserver::listener::{ListenOptions, Listening};
use steersman_apiserver::{ApiServer, Options};
use steersman_controllers::ALL;
use steersman_runtime::{Manager, ManagerOptions};
use tokio_util::sync::CancellationToken;

use super::{CommandError, flag, selection, signals};

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
    let controllers = if asked == ["none"] { Vec::new() } else { selection::select(ALL, &asked)? };
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
        let mut manager =
            Manager::new(client, ManagerOptions::default()).map_err(|error| CommandError(error.to_string()))?;
        for descriptor in &controllers {
            manager.add(descriptor, None);
        }
        let names: Vec<_> = controllers.iter().map(|descriptor| descriptor.name).collect();
        greet(&listening.url(), &names, &kubeconfig);
        let stop = CancellationToken::new();
        tokio::spawn(signals::stop_on_signal(stop.clone()));
        manager.run(stop).await;
        drop(listening);
        // Nobody can use it any more.
        let _ = std::fs::remove_file(&kubeconfig);
        Ok(())
    })
}

fn greet(url: &str, controllers: &[&str], kubeconfig: &Path) {
    let controllers = if controllers.is_empty() { "none".to_owned() } else { controllers.join(", ") };
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
