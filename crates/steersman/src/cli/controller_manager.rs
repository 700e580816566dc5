//! `steersman controller-manager`: the drop-in for kube-controller-manager.

use std::path::PathBuf;

use clap::{ArgMatches, Command, value_parser};
use steersman_controllers::ALL;
use steersman_runtime::{Manager, ManagerOptions, connection};
use tokio_util::sync::CancellationToken;

use super::{CommandError, flag, selection, signals};

pub(super) fn command() -> Command {
    Command::new("controller-manager")
        .about("Runs the built-in controllers of Kubernetes against a cluster")
        .arg(
            flag("kubeconfig", "File that says how to reach the API server; inside a cluster it is not needed")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            flag("controllers", "Controllers to run: '*' for all, 'foo' for one, '-foo' for all but one")
                .value_name("NAMES")
                .value_delimiter(',')
                .default_value("*")
                .allow_hyphen_values(true),
        )
        .arg(
            flag("leader-elect", "Whether to lead only while holding a lease")
                .value_name("BOOL")
                .value_parser(value_parser!(bool))
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true")
                .default_value("true"),
        )
        .arg(
            flag("concurrent-replicaset-syncs", "How many ReplicaSets are worked on at once")
                .value_name("N")
                .value_parser(value_parser!(u16).range(1..))
                .default_value("5"),
        )
        .arg(
            flag("v", "How much to log: 0 warnings and what happens, 4 each decision, 6 everything")
                .short('v')
                .value_name("LEVEL")
                .value_parser(value_parser!(u8))
                .default_value("0"),
        )
}

pub(super) fn run(matches: &ArgMatches) -> Result<(), CommandError> {
    log(matches.get_one::<u8>("v").copied().unwrap_or(0));
    if matches.get_one("leader-elect").copied().unwrap_or(true) {
        return Err(CommandError(
            "leader election comes with a later version: run one instance, with --leader-elect=false".into(),
        ));
    }
    let asked: Vec<String> = matches.get_many("controllers").unwrap_or_default().cloned().collect();
    let controllers = selection::select(ALL, &asked)?;
    let workers = matches.get_one::<u16>("concurrent-replicaset-syncs").copied().map(usize::from);
    let kubeconfig = matches.get_one::<PathBuf>("kubeconfig").cloned();

    super::block_on(async {
        let options = connection::Options { kubeconfig, ..connection::Options::default() };
        let client = connection::connect(options).await.map_err(|error| CommandError(error.to_string()))?;
        let mut manager =
            Manager::new(client, ManagerOptions::default()).map_err(|error| CommandError(error.to_string()))?;
        for descriptor in controllers {
            manager.add(descriptor, workers);
        }
        let stop = CancellationToken::new();
        tokio::spawn(signals::stop_on_signal(stop.clone()));
        manager.run(stop).await;
        Ok(())
    })
}

fn log(verbosity: u8) {
    use tracing::level_filters::LevelFilter;
    let level = match verbosity {
        0..=3 => LevelFilter::INFO,
        4..=5 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).init();
}
