//! Our pages beside those of the real kube-controller-manager, which runs first, with the same flags.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use http::Method;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::{Value, json};
use steersman_testing::objects::{self, WorkloadBuilder as _};
use steersman_testing::{Failure, TestCluster};

use crate::ALONE;
use crate::manager::{Manager, ask, client_of, rig_file, until, wanted};

/// Those that are here.
const CONTROLLERS: &str = "--controllers=serviceaccount-token,endpoint,endpointslice,replicationcontroller,podgc,\
    namespace,serviceaccount,garbagecollector,deployment,root-ca-cert-publisher";

/// What upstream shows and we do not: `docs/controller-manager.md` says why of each.
const NOT_HERE: [&str; 14] = [
    "aggregator_",
    "apiserver_",
    "cardinality_enforcement_unexpected_categorizations_total",
    "disabled_metrics_total",
    "go_",
    "hidden_metrics_total",
    "node_collector_",
    "registered_metrics_total",
    "rest_client_exec_plugin_",
    "rest_client_transport_",
    // Counted when they first happen; upstream shows them at zero.
    "replicaset_controller_stale_sync_skips_total",
    "endpoint_slice_controller_changes",
    // Who asked, and whether it was in a cache: it depends on how often the page was looked at.
    "authentication_",
    "authorization_",
];

/// Whose help says something else, because it counts something else: ours is the whole version, where it is a number.
const OTHER_HELP: &str = "informer_store_resource_version";

/// A family of metrics, without its figures.
#[derive(Debug, Default, PartialEq, Eq)]
struct Family {
    help: String,
    kind: String,
    labels: BTreeSet<String>,
    buckets: BTreeSet<String>,
}

fn families(page: &str) -> BTreeMap<String, Family> {
    let mut found: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in page.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            current = name.to_owned();
            found.entry(current.clone()).or_default().help = help.to_owned();
        } else if let Some((_, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            found.entry(current.clone()).or_default().kind = kind.to_owned();
        } else if let Some((_, rest)) = line.split_once('{') {
            let family = found.entry(current.clone()).or_default();
            for (name, value) in rest.split("\",").filter_map(|pair| pair.split_once("=\"")) {
                if name == "le" {
                    family.buckets.insert(value.split('"').next().unwrap_or_default().to_owned());
                } else {
                    family.labels.insert(name.to_owned());
                }
            }
        }
    }
    found
}

struct Pages {
    metrics: BTreeMap<String, Family>,
    config: Value,
    health: BTreeSet<String>,
    /// Those that `/statusz` lists.
    paths: Vec<String>,
}

/// Lets a manager work a little, and looks at its pages.
async fn pages(command: Command, name: &str) -> Result<Pages, Failure> {
    let cluster = TestCluster::builder().start_on_rig().await?;
    let flags = [
        CONTROLLERS.to_owned(),
        "--use-service-account-credentials".to_owned(),
        format!("--root-ca-file={}", rig_file("ca.crt")?.display()),
        format!("--service-account-private-key-file={}", rig_file("sa.key")?.display()),
        format!("--cert-dir={}", crate::manager::scratch(name)?.display()),
        "--concurrent-gc-syncs=7".to_owned(),
        "--namespace-sync-period=90s".to_owned(),
        "--kube-api-qps=50.5".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let manager = Manager::run(command, &rig_file("controller-manager.kubeconfig")?, &flags)?;
    cluster.create(objects::replica_set("web").replicas(2)).await?;
    let service: Service = serde_json::from_value(json!({
        "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }))?;
    cluster.create(service).await?;
    let slices = cluster.api::<EndpointSlice>();
    until("there is a slice", || async {
        let first = slices.list(&ListParams::default()).await?.items.into_iter().next();
        Ok(first.ok_or_else(|| format!("none; the manager says: {}", manager.said().unwrap_or_default())))
    })
    .await?;
    let port = manager.secure_port().await?;
    // What is counted at the end of a pass.
    let metrics = until("all is counted", || async {
        let (_, text) = ask(&port, Method::GET, "/metrics", "").await?;
        Ok(wanted(text, |text| text.contains("endpoint_slice_controller_endpoints_added_per_sync_count")))
    })
    .await?;
    let (_, config) = ask(&port, Method::GET, "/configz", "").await?;
    let (_, health) = ask(&port, Method::GET, "/healthz?verbose", "").await?;
    let (_, status) = ask(&port, Method::GET, "/statusz", "").await?;
    manager.signal("TERM")?;
    manager.end().await?;
    let admin = client_of(std::env::var("STEERSMAN_RIG_KUBECONFIG")?.into()).await?;
    // The Go program does not give its lease back.
    let leases: Api<Lease> = Api::namespaced(admin, "kube-system");
    leases.delete("kube-controller-manager", &DeleteParams::default()).await?;
    cluster.stop().await?;
    let mut config: Value = serde_json::from_str(&config)?;
    // Go shows a set in any order.
    let ignored = "/kubecontrollermanager.config.k8s.io/GarbageCollectorController/GCIgnoredResources";
    if let Some(Value::Array(ignored)) = config.pointer_mut(ignored) {
        ignored.sort_by_key(ToString::to_string);
    }
    // Behind a delimiter that Go draws by lot.
    let paths = status.lines().find(|line| line.starts_with("Paths")).unwrap_or_default();
    let paths = paths.split_whitespace().filter_map(|word| word.find('/').map(|at| word[at..].to_owned())).collect();
    Ok(Pages { metrics: families(&metrics), config, health: health.lines().map(str::to_owned).collect(), paths })
}

#[tokio::test]
async fn metrics_configuration_and_checks_are_reported_as_upstream_does() -> Result<(), Failure> {
    let _alone = ALONE.lock().await;
    let upstream = PathBuf::from(std::env::var("STEERSMAN_RIG_BIN")?).join("kube-controller-manager");
    let theirs = pages(Command::new(upstream), "pages").await?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_steersman"));
    command.arg("controller-manager");
    let ours = pages(command, "pages").await?;

    let mut wrong = Vec::new();
    let mut same = 0;
    for (name, wanted) in &theirs.metrics {
        let is_left_out = NOT_HERE.iter().any(|prefix| name.starts_with(prefix));
        match ours.metrics.get(name) {
            None if is_left_out => {}
            None => wrong.push(format!("{name} is not there")),
            Some(family) if family == wanted || name == OTHER_HELP => same += 1,
            Some(family) => wrong.push(format!("{name}: ours is {family:?}, theirs {wanted:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(same > 30, "only {same} metrics were compared");
    assert_eq!(ours.config, theirs.config);
    assert_eq!(ours.paths, theirs.paths);
    let unchecked: Vec<_> = theirs.health.difference(&ours.health).collect();
    assert!(unchecked.is_empty(), "these checks are not made: {unchecked:?}; ours are {:?}", ours.health);
    Ok(())
}
