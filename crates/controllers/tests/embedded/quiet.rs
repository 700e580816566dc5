//! An idle cluster is quiet: when all is done, only heartbeats are written, whatever the cluster contains.

use std::time::Duration;

use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use steersman_testing::objects::{self, ObjectBuilder as _, WorkloadBuilder as _};
use steersman_testing::{Failure, TestCluster, expect_eq};

use crate::LONG;
use crate::scenarios::accounts::{token_secret, until_filled};
use crate::scenarios::garbage_collector::{cake, cakes, config_map, delete, held, own_each_other, owner, with_cakes};
use crate::scenarios::namespace::{HOLD, namespaces, with_what_is_held};
use crate::scenarios::services::service;
use crate::scenarios::support::beside::Beside;
use crate::scenarios::support::controllers;
use crate::scenarios::support::line::{Line, Trouble};

/// In ten minutes, beside what is asked about the namespace that cannot go: discovery every half a minute, passes of the
/// pod collector, watches that are renewed.
const READS_MAX: usize = 300;

#[tokio::test(start_paused = true)]
async fn with_everything_there_is_nothing_is_written_but_heartbeats() -> Result<(), Failure> {
    let cluster = with_cakes().nodes(2).start().await?;
    let line = Line::to(cluster.faulty_client(), Trouble::None);
    let manager = Beside::start(&cluster, line.client(), &controllers::all_with_options())?;
    what_runs(&cluster).await?;
    what_is_owned(&cluster).await?;
    what_cannot_go(&cluster).await?;
    cluster.settle().await?;
    // Past every deadline and quarantine.
    cluster.advance(Duration::from_secs(300)).await;
    cluster.settle().await?;

    let pods = cluster.api::<Pod>().list(&ListParams::default()).await?.items;
    let running =
        pods.iter().filter(|pod| pod.status.as_ref().is_some_and(|it| it.phase.as_deref() == Some("Running")));
    expect_eq("pods that run: of web, frozen and old", &running.count(), &(3 + 2 + 2))?;
    let before = line.requests().len();
    cluster.expect_quiet(LONG).await?;
    let asked = line.requests().split_off(before);
    let reads = asked.iter().filter(|(method, path)| method == Method::GET && !path.contains("-held")).count();
    assert!(reads <= READS_MAX, "{reads} reads in ten quiet minutes, such as {:?}", &asked[..30.min(asked.len())]);

    // The server is away for a while: all is listed anew, and found as it was.
    cluster.faults().server_goes_away();
    cluster.advance(Duration::from_secs(5)).await;
    cluster.faults().server_is_back();
    cluster.expect_quiet(LONG).await?;

    // Another manager looks at everything for the first time, and finds nothing to do. (That nodes have too few labels for
    // hints is reported with every pass, as upstream does.)
    cluster.delete::<Service>("auto").await?;
    cluster.settle().await?;
    manager.stop().await?;
    let another = Beside::start(&cluster, cluster.faulty_client(), &controllers::all_with_options())?;
    cluster.expect_quiet(LONG).await?;
    another.stop().await?;
    cluster.stop().await
}

/// Deployments that are through, paused and stuck; ReplicationControllers; services of all sorts; kinds without controller.
async fn what_runs(cluster: &TestCluster) -> Result<(), Failure> {
    let patch_web = |image| json!({ "spec": { "template": crate::scenarios::deployment::image_of(image) } });
    cluster.create(crate::scenarios::deployment::deployment(3, json!({}))).await?;
    crate::scenarios::deployment::until_complete(cluster, 3).await?;
    for image in ["web:2", "web:3"] {
        crate::scenarios::deployment::patch(cluster, patch_web(image)).await?;
        crate::scenarios::deployment::until_complete(cluster, 3).await?;
    }
    for (name, spec) in [
        ("frozen", json!({ "replicas": 2 })),
        ("stuck", json!({ "replicas": 1, "progressDeadlineSeconds": 60, "template": unschedulable() })),
    ] {
        let mut another = crate::scenarios::deployment::deployment(1, json!({ "selector": selector(name) }));
        another.metadata.name = Some(name.into());
        let mut another = serde_json::to_value(another)?;
        json_merge(&mut another["spec"], spec);
        another["spec"]["template"]["metadata"]["labels"] = json!({ objects::APP: name });
        cluster.create::<k8s_openapi::api::apps::v1::Deployment>(serde_json::from_value(another)?).await?;
    }
    cluster.create(objects::replication_controller("old").replicas(2)).await?;
    cluster.settle().await?;
    let frozen = json!({ "spec": { "paused": true, "template": crate::scenarios::deployment::image_of("frozen:2") } });
    let deployments = cluster.api::<k8s_openapi::api::apps::v1::Deployment>();
    deployments.patch("frozen", &Default::default(), &kube::api::Patch::Merge(frozen)).await?;

    let auto = json!({ "metadata": { "annotations": { "service.kubernetes.io/topology-mode": "Auto" } } });
    for (name, more) in [
        ("web", json!({})),
        ("headless", json!({ "spec": { "clusterIP": "None" } })),
        ("near", json!({ "spec": { "trafficDistribution": "PreferSameZone" } })),
        ("auto", auto),
        ("all", json!({ "spec": { "publishNotReadyAddresses": true } })),
        ("manual", json!({ "spec": { "selector": null } })),
        ("external", json!({ "spec": { "type": "ExternalName", "externalName": "example.dev", "clusterIP": null } })),
    ] {
        cluster.create(service(name, more)).await?;
    }
    Ok(())
}

fn selector(app: &str) -> Value {
    json!({ "matchLabels": { objects::APP: app } })
}

/// A pod that fits no node.
fn unschedulable() -> Value {
    json!({ "spec": {
        "containers": [{ "name": "main", "image": "stuck:1" }],
        "nodeSelector": { "there-is": "none" },
    } })
}

fn json_merge(base: &mut Value, more: Value) {
    if let (Value::Object(base), Value::Object(more)) = (base, more) {
        base.extend(more);
    }
}

/// Owners and dependents of all sorts, custom ones too; accounts and their secrets.
async fn what_is_owned(cluster: &TestCluster) -> Result<(), Failure> {
    let parent = cluster.create(config_map("parent", vec![])).await?;
    cluster.create(config_map("child", vec![owner(&parent)])).await?;
    cakes(cluster).create(&PostParams::default(), &cake("cake", vec![owner(&parent)])).await?;
    own_each_other(cluster, "ring", 3).await?;
    own_each_other(cluster, "self", 1).await?;
    cluster.create(objects::service_account("robot")).await?;
    cluster.create(token_secret("robot-token", "robot", None)).await?;
    until_filled(cluster, "robot-token").await?;
    Ok(())
}

/// Things that a finalizer keeps: objects deleted in each way, a pod, and a namespace.
async fn what_cannot_go(cluster: &TestCluster) -> Result<(), Failure> {
    for (name, how) in [
        ("background", DeleteParams::background()),
        ("foreground", DeleteParams::foreground()),
        ("orphan", DeleteParams::orphan()),
    ] {
        let parent = cluster.create(held(config_map(name, vec![]))).await?;
        cluster.create(held(config_map(&format!("{name}-child"), vec![owner(&parent)]))).await?;
        cluster.settle().await?;
        delete::<ConfigMap>(cluster, name, how).await?;
    }
    cluster.create(objects::pod("going").finalizer(HOLD)).await?;
    cluster.settle().await?;
    cluster.delete::<Pod>("going").await?;
    let another = with_what_is_held(cluster).await?;
    cluster.settle().await?;
    namespaces(cluster).delete(&another, &DeleteParams::default()).await?;
    Ok(())
}
