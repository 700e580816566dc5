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
use crate::metrics::{Family, differences, families};

/// Those that are here.
const CONTROLLERS: &str = "--controllers=serviceaccount-token,endpoint,endpointslice,replicationcontroller,podgc,\
    namespace,serviceaccount,garbagecollector,deployment,root-ca-cert-publisher";

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
    let mut theirs = pages(Command::new(upstream), "pages").await?;
    // Shown whether that controller runs or not.
    theirs.metrics.retain(|name, _| !name.starts_with("node_collector_"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_steersman"));
    command.arg("controller-manager");
    let ours = pages(command, "pages").await?;

    assert_eq!(differences(&theirs.metrics, &ours.metrics), [""; 0]);
    assert_eq!(ours.config, theirs.config);
    assert_eq!(ours.paths, theirs.paths);
    let unchecked: Vec<_> = theirs.health.difference(&ours.health).collect();
    assert!(unchecked.is_empty(), "these checks are not made: {unchecked:?}; ours are {:?}", ours.health);
    Ok(())
}
