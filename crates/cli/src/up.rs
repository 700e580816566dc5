//! `steersman up`: a cluster in this process.
//!
//! 1. The API server, the controllers and the simulated nodes share one process; the controllers talk to the server
//!    without a socket. Others reach it on the loopback interface, with the kubeconfig that is printed.
//! 2. The state is in memory. Ctrl-C, SIGTERM and a closed terminal stop it in order, and the kubeconfig is removed.
//! 3. An error is one sentence on standard error, and exit code 1; nothing is left behind.
//! 4. Roles count, unless they are switched off: whoever shows a token of a service account may do what its roles say. The
//!    kubeconfig is the administrator's, and so are the controllers and the nodes of this process.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use steersman_apiserver::aggregated::Aggregated;
use steersman_apiserver::listener::{ListenOptions, Listening};
use steersman_apiserver::{ApiServer, Authorization, HeavyWork, Options};
use steersman_nodes::{AttacherOptions, DevicesOptions, Metrics, Nodes, NodesOptions, ProvisionerOptions, Stages};
use steersman_runtime::__internal::descriptor::{ApiServers, FlagFile};
use steersman_runtime::signals;
use steersman_runtime::{Build, Manager, ManagerOptions};
use tokio_util::sync::CancellationToken;

use super::flags::Parsed;
use super::gates::Gates;
use super::log::{self, Format};
use super::options::{Cluster, Given, ROOT_CA, SIGNING_CERTIFICATE, SIGNING_KEY, TOKEN_KEY};
use super::selection::{self, Selection, World};
use super::{CommandError, Threads, flag, flags, nodes, rows};
use greeting::Greeting;
use kubeconfig::Kubeconfig;
use logs::NodeLogs;

mod act;
mod demo;
mod greeting;
mod kubeconfig;
mod logs;
mod outages;
mod outages_story;
mod story;
mod workloads;
mod workloads_story;

/// The arguments of `up`.
struct UpOptions {
    port: u16,
    kubeconfig: Option<PathBuf>,
    authorization: Authorization,
    nodes: usize,
    stages: Stages,
    demo: bool,
    /// The controller manager's flags, as they are by default.
    flags: Parsed,
    selection: Selection<'static>,
}

/// The controllers that remove the finalizers of unused claims, volumes and classes. Without them `kubectl delete pvc` would
/// wait forever.
const PROTECTORS: [&str; 3] = [
    "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller",
    "volumeattributesclass-protection-controller",
];

/// The controller that asks for attachments of volumes.
const ATTACHES: &str = "persistentvolume-attach-detach-controller";
/// The controller that gives pods their claims of devices.
const RESERVES: &str = "resourceclaim-controller";

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
            flag(
                "kubeconfig-out",
                "Where to write the kubeconfig; by default into $XDG_RUNTIME_DIR, or that for temporary files",
            )
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            flag(
                "authorization-mode",
                "Who may do what: RBAC, as roles and bindings say, or AlwaysAllow, everybody everything",
            )
            .value_name("MODE")
            .value_parser(["RBAC", "AlwaysAllow"])
            .default_value("RBAC"),
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
        .arg(nodes::stages_flag())
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
        .arg(
            flag("v", "Log on standard error: 0 what operators need, 4 each decision, 6 everything")
                .short('v')
                .value_name("N")
                .value_parser(value_parser!(i64)),
        )
}

pub(super) fn run(matches: &ArgMatches) -> Result<(), CommandError> {
    let asked: Vec<String> = matches.get_many("controllers").unwrap_or_default().cloned().collect();
    let demo = matches.get_flag("demo");
    let given = if demo { &demo::FLAGS[..] } else { &[] };
    let flags = flags::parse(flags::table(), given.iter().map(|flag| (*flag).to_owned())).map_err(said)?;
    let selection = select(&asked, &flags)?;
    let options = UpOptions {
        port: matches.get_one::<u16>("port").copied().unwrap_or(0),
        kubeconfig: matches.get_one::<PathBuf>("kubeconfig-out").cloned(),
        authorization: match matches.get_one::<String>("authorization-mode").map(String::as_str) {
            Some("AlwaysAllow") => Authorization::AlwaysAllow,
            _ => Authorization::Rbac,
        },
        nodes: matches.get_one::<u16>("nodes").copied().map_or(0, usize::from),
        stages: nodes::stages(matches)?,
        demo,
        flags,
        selection,
    };
    options.check_demo()?;
    if let Some(verbosity) = matches.get_one::<i64>("v") {
        log::start(Format::Text, *verbosity);
    }
    super::block_on(Threads::EveryCore, up(options))
}

async fn up(options: UpOptions) -> Result<(), CommandError> {
    let logs = NodeLogs::default();
    let metrics = Metrics::default();
    let server = ApiServer::new(
        Options::default()
            .logs(Arc::new(logs.clone()))
            .aggregated((options.nodes > 0).then(|| Arc::new(metrics.clone()) as Arc<dyn Aggregated>))
            .authorization(options.authorization)
            .unprotected_storage(!PROTECTORS.iter().all(|name| options.runs(name)))
            // The controllers share these threads, and a lease does not wait.
            .heavy_work(HeavyWork::BlockingPool),
    );
    let listening = listen(&server, options.port).await?;
    let path = options.kubeconfig.clone().unwrap_or_else(|| kubeconfig::default_path(listening.address().port()));
    let kubeconfig = Kubeconfig::write(&listening, path)?;

    let given = Given::new(&options.flags, &Gates::default(), cluster(&server, &listening));
    let client = kube::Client::new(server.for_agent("kube-controller-manager"), "default");
    let manager = Manager::new(client.clone(), ManagerOptions::default().without_metrics()).map_err(said)?;
    manager.set_flags(given);
    let mut names = Vec::new();
    let mut disabled = Vec::new();
    for descriptor in options.selection.run.iter().map(|row| rows::controller(row)) {
        match manager.build(descriptor, None) {
            Build::Enabled => names.push(descriptor.name),
            Build::Disabled(why) => disabled.push((descriptor.name, why)),
        }
    }
    if options.nodes > 0 {
        let wanted = options
            .node_options()
            .stages(options.stages.clone())
            .metrics(metrics)
            .provisioner(ProvisionerOptions::default())
            // Without the controller, nobody asks for attachments, and pods would wait for them.
            .attacher(options.runs(ATTACHES).then(AttacherOptions::default))
            // Without the controller, no pod gets a claim, and no device is freed.
            .devices(options.runs(RESERVES).then(DevicesOptions::default));
        logs.come_from(Nodes::build(&manager.context(), wanted).map_err(said)?);
    }
    // Installed before the message that says how to stop, so that no signal is missed.
    let stop = CancellationToken::new();
    tokio::spawn(signals::stop_on_signal(stop.clone()));
    let greeting = Greeting {
        url: &listening.url(),
        kubeconfig: kubeconfig.path(),
        nodes: options.nodes,
        controllers: &names,
        disabled: &disabled,
    };
    // Standard output may be closed; the cluster runs all the same.
    let _ = std::io::stdout().write_all(greeting.text().as_bytes());

    let demo = async {
        if options.demo {
            demo::run(client, options.nodes).await?;
        }
        std::future::pending().await
    };
    tokio::select! {
        biased;
        ended = manager.run(stop.clone()) => ended.map_err(said),
        ended = demo => ended,
    }
}

// === impl UpOptions ===

impl UpOptions {
    /// Whether the controller of this name runs.
    fn runs(&self, name: &str) -> bool {
        self.selection.run.iter().any(|row| row.name == name)
    }

    /// The nodes. Those of the demo are in zones, and are noticed soon when they are lost.
    fn node_options(&self) -> NodesOptions {
        let nodes = NodesOptions::count(self.nodes);
        if !self.demo {
            return nodes;
        }
        nodes.zones(demo::ZONES).lease_duration(demo::LEASES)
    }

    /// A demo without its controllers would only wait.
    fn check_demo(&self) -> Result<(), CommandError> {
        let missing: Vec<&str> = demo::NEEDS.iter().filter(|name| !self.runs(name)).copied().collect();
        match (self.demo, self.nodes, missing.as_slice()) {
            (true, ..demo::NODES_MIN, _) => {
                Err(CommandError("--demo needs three nodes or more, of which it loses some: see --nodes".to_owned()))
            }
            (true, _, [_, ..]) => {
                let missing = missing.join(", ");
                Err(CommandError(format!("--demo needs these controllers too: {missing}; see --controllers")))
            }
            _ => Ok(()),
        }
    }
}

async fn listen(server: &ApiServer, port: u16) -> Result<Listening, CommandError> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let listening = Listening::start(server, ListenOptions::default().address(address)).await;
    let hint = if port == 0 { "" } else { "; --port 0 takes a port that is free" };
    listening.map_err(|error| CommandError(format!("{error}{hint}")))
}

/// Facts about this cluster: it has its own certificate authority and key, and one API server.
fn cluster(server: &ApiServer, listening: &Listening) -> Cluster {
    let own = |text: &str| FlagFile { path: "the cluster".to_owned(), text: text.to_owned() };
    let authority = listening.authority_pem();
    let mut files = BTreeMap::from([
        (ROOT_CA, own(authority)),
        // What it signs are client certificates of this server.
        (SIGNING_CERTIFICATE, own(authority)),
        (SIGNING_KEY, own(&listening.authority_key_pem())),
    ]);
    files.extend(server.token_key_pem().map(|key| (TOKEN_KEY, own(key))));
    Cluster { files, api_servers: ApiServers::One }
}

fn said(error: impl std::fmt::Display) -> CommandError {
    CommandError(error.to_string())
}

/// Returns the controllers that a list selects, with the default flags and gates.
fn select(asked: &[String], flags: &Parsed) -> Result<Selection<'static>, CommandError> {
    if asked == ["none"] {
        return Ok(Selection::default());
    }
    let gates = Gates::default();
    let world = World {
        // The keys are the cluster's own.
        is_set: &|flag| flags.is_on(flag) || [TOKEN_KEY, SIGNING_CERTIFICATE].contains(&flag),
        gate: &|gate| gates.enabled(gate),
        is_always_asked: &|_| false,
    };
    selection::select(rows::table(), asked, &world)
}
