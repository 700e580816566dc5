//! From the Go manager to ours and back, on one cluster: whoever takes over finds nothing to do.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Request;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use steersman_testing::objects::{self, ObjectBuilder as _, WorkloadBuilder as _};
use steersman_testing::rig::Writes;
use steersman_testing::{Failure, TestCluster};

use crate::own;
use crate::scenarios::accounts::{token_secret, until_filled};
use crate::scenarios::deployment::is_complete;
use crate::scenarios::garbage_collector::{config_map, delete, held, own_each_other, owner};
use crate::scenarios::namespace::{namespaces, with_what_is_held};
use crate::scenarios::services::{add_node, say_running, service};
use crate::scenarios::storage_version_migrator;
use crate::takeover_nodes::{self, Heartbeats};
use crate::{takeover_apis, takeover_storage, takeover_workloads};

/// What is compared, and where it is listed: everything that one of the controllers writes, or could.
const KINDS: [&str; 42] = [
    "/api/v1/namespaces",
    NODES,
    "/api/v1/pods",
    "/api/v1/services",
    "/api/v1/endpoints",
    "/api/v1/configmaps",
    "/api/v1/secrets",
    "/api/v1/serviceaccounts",
    "/api/v1/replicationcontrollers",
    "/api/v1/resourcequotas",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
    "/apis/apps/v1/statefulsets",
    "/apis/apps/v1/daemonsets",
    "/apis/apps/v1/controllerrevisions",
    "/apis/batch/v1/jobs",
    "/apis/batch/v1/cronjobs",
    "/apis/autoscaling/v2/horizontalpodautoscalers",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/discovery.k8s.io/v1/endpointslices",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/persistentvolumes",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/volumeattachments",
    "/apis/storage.k8s.io/v1/volumeattributesclasses",
    "/apis/certificates.k8s.io/v1/certificatesigningrequests",
    "/apis/certificates.k8s.io/v1/clustertrustbundles",
    "/apis/networking.k8s.io/v1/servicecidrs",
    "/apis/networking.k8s.io/v1/ipaddresses",
    "/apis/resource.k8s.io/v1/resourceclaims",
    "/apis/resource.k8s.io/v1/resourceclaimtemplates",
    "/apis/resource.k8s.io/v1/resourceslices",
    "/apis/resource.k8s.io/v1/devicetaintrules",
    "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests",
    "/apis/scheduling.k8s.io/v1beta1/podgroups",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions",
    "/apis/storagemigration.k8s.io/v1/storageversionmigrations",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/migration.example.com/v2/tarts",
];

/// Their versions change with heartbeats.
const NODES: &str = "/api/v1/nodes";

/// A heartbeat of a simulated node, too; what else it could be shows in the objects.
const STATUS_OF_NODES: &str = "patch nodes/status";

/// The names of the test's own nodes, after its namespace; the others are simulated.
const OWN_NODES: [&str; 2] = ["a", "b"];

/// What never becomes ready.
const BAD_IMAGE: &str = "bad:1";

/// The start of a manager, all first passes, of which that of an autoscaler comes after fifteen seconds, and a while in which
/// it could change its mind.
const TAKE_OVER: Duration = Duration::from_secs(22);

#[tokio::test]
async fn whoever_takes_over_from_the_go_manager_or_from_us_writes_nothing() -> Result<(), Failure> {
    let rig = own::start("take-over").await?;
    let cluster = TestCluster::builder()
        .metrics()
        .define(storage_version_migrator::definition())
        .nodes_with(takeover_storage::nodes());
    let cluster = cluster.start_on(rig.kubeconfig()).await?;
    let _heartbeats = Heartbeats::start(&cluster, own_nodes(&cluster));
    let go = own::start_go(&rig)?;
    as_kubelet(&cluster, content(&cluster)).await?;
    rig.still(TAKE_OVER).await?;
    drop(go);

    // The yardstick: what Go itself does when it comes back.
    let mark = rig.mark()?;
    let go = own::start_go(&rig)?;
    rig.still(TAKE_OVER).await?;
    drop(go);
    let by_go = rig.writes_since(mark)?;
    println!("Go when it comes back: {by_go:#?}");

    let before = versions(&cluster).await?;
    let mark = rig.mark()?;
    let ours = own::start_ours(&rig, &cluster, cluster.client())?;
    rig.still(TAKE_OVER).await?;
    let by_us = rig.writes_since(mark)?;
    no_more("we take over from Go", &by_us, &by_go)?;
    unchanged("we take over from Go", &before, &versions(&cluster).await?)?;

    as_kubelet(&cluster, changes(&cluster)).await?;
    rig.still(TAKE_OVER).await?;
    ours.stop().await?;
    let before = versions(&cluster).await?;
    let mark = rig.mark()?;
    let go = own::start_go(&rig)?;
    rig.still(TAKE_OVER).await?;
    no_more("Go takes over from us", &rig.writes_since(mark)?, &by_go)?;
    unchanged("Go takes over from us", &before, &versions(&cluster).await?)?;
    drop(go);
    cluster.stop().await
}

/// Deployments in all states, other workloads, services with endpoints of all sorts, owners and dependents, things that cannot go.
async fn content(cluster: &TestCluster) -> Result<(), Failure> {
    add_node(cluster, "a", Some("zone-a")).await?;
    add_node(cluster, "b", Some("zone-b")).await?;
    for (name, more) in [
        ("web", json!({})),
        ("headless", json!({ "spec": { "clusterIP": "None" } })),
        ("near", json!({ "spec": { "trafficDistribution": "PreferSameZone" } })),
        ("both", json!({ "spec": { "ipFamilyPolicy": "RequireDualStack" } })),
        ("all", json!({ "spec": { "publishNotReadyAddresses": true } })),
        ("manual", json!({ "spec": { "selector": null } })),
    ] {
        cluster.create(service(name, more)).await?;
    }
    for (name, replicas) in [("web", 3), ("stuck", 3), ("frozen", 2), ("again", 1)] {
        cluster.create(deployment(cluster, name, replicas)).await?;
        until_through(cluster, name, replicas).await?;
    }
    for image in ["two:1", "three:1"] {
        roll_out(cluster, "web", image).await?;
        until_through(cluster, "web", 3).await?;
    }
    for image in ["two:1", "one:1"] {
        roll_out(cluster, "again", image).await?;
        until_through(cluster, "again", 1).await?;
    }
    patch(cluster, "frozen", json!({ "spec": { "paused": true } })).await?;
    roll_out(cluster, "frozen", "two:1").await?;
    roll_out(cluster, "stuck", BAD_IMAGE).await?;

    cluster.create(objects::replication_controller("old").replicas(2)).await?;
    cluster.create(objects::service_account("robot")).await?;
    cluster.create(token_secret("robot-token", "robot", None)).await?;
    until_filled(cluster, "robot-token").await?;

    takeover_workloads::create(cluster).await?;
    takeover_nodes::create(cluster).await?;
    takeover_storage::create(cluster).await?;
    takeover_apis::create(cluster).await?;
    let parent = cluster.create(config_map("parent", vec![])).await?;
    cluster.create(held(config_map("child", vec![owner(&parent)]))).await?;
    own_each_other(cluster, "ring", 3).await?;
    let another = with_what_is_held(cluster).await?;
    cluster.advance(Duration::from_secs(2)).await;
    delete::<ConfigMap>(cluster, "parent", DeleteParams::foreground()).await?;
    namespaces(cluster).delete(&another, &DeleteParams::default()).await?;
    Ok(())
}

/// What happens while we are in charge: everything moves once more.
async fn changes(cluster: &TestCluster) -> Result<(), Failure> {
    roll_out(cluster, "web", "four:1").await?;
    until_through(cluster, "web", 3).await?;
    patch(cluster, "web", json!({ "spec": { "replicas": 5 } })).await?;
    until_through(cluster, "web", 5).await?;
    patch(cluster, "frozen", json!({ "spec": { "paused": false } })).await?;
    until_through(cluster, "frozen", 2).await?;
    roll_out(cluster, "again", "two:1").await?;
    until_through(cluster, "again", 1).await?;
    cluster.create(deployment(cluster, "ours", 2)).await?;
    until_through(cluster, "ours", 2).await?;
    let ours = json!({ "spec": { "selector": { objects::APP: "ours" } } });
    cluster.create(service("ours", ours)).await?;
    takeover_workloads::change(cluster).await?;
    takeover_nodes::change(cluster).await?;
    takeover_storage::change(cluster).await?;
    takeover_apis::change(cluster).await?;
    cluster.create(objects::service_account("other")).await?;
    cluster.create(token_secret("other-token", "other", None)).await?;
    until_filled(cluster, "other-token").await?;
    Ok(())
}

/// A Deployment whose pods are on a node of the test, since nobody binds them.
fn deployment(cluster: &TestCluster, name: &str, replicas: i32) -> Deployment {
    let app = if name == "stuck" { "web" } else { name };
    let labels = json!({ objects::APP: app, "of": name });
    let on_node = json!({ "nodeName": format!("{}-a", cluster.namespace()) });
    objects::deployment(name).replicas(replicas).image("one:1").with(json!({ "spec": {
        "selector": { "matchLabels": labels },
        "template": { "metadata": { "labels": labels }, "spec": on_node },
    } }))
}

async fn patch(cluster: &TestCluster, name: &str, patch: Value) -> Result<(), Failure> {
    cluster.api::<Deployment>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

async fn roll_out(cluster: &TestCluster, name: &str, image: &str) -> Result<(), Failure> {
    let containers = json!([{ "name": "main", "image": image }]);
    patch(cluster, name, json!({ "spec": { "template": { "spec": { "containers": containers } } } })).await
}

async fn until_through(cluster: &TestCluster, name: &str, replicas: i32) -> Result<(), Failure> {
    let found = async || Ok(cluster.api::<Deployment>().get(name).await?);
    cluster.until_right(&format!("{name} is complete"), found, |found| is_complete(found, replicas)).await.map(drop)
}

fn own_nodes(cluster: &TestCluster) -> [String; 2] {
    OWN_NODES.map(|name| format!("{}-{name}", cluster.namespace()))
}

/// Lets a story happen, and pods meanwhile live as on a node.
async fn as_kubelet(cluster: &TestCluster, story: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let kubelet = async {
        let mut addresses = 1..250;
        loop {
            for pod in cluster.api::<Pod>().list(&ListParams::default()).await?.items {
                let node = node_of(&pod);
                if own_nodes(cluster).iter().any(|own| node == Some(own)) {
                    live(cluster, &pod, &mut addresses).await?;
                }
            }
            cluster.advance(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        biased;
        reported = story => reported,
        failure = kubelet => failure,
    }
}

/// The node of a pod: nobody schedules the pods of DaemonSets that are for a node of the test.
fn node_of(pod: &Pod) -> Option<&String> {
    let spec = pod.spec.as_ref()?;
    let for_node = || {
        let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
        let terms = &affinity.required_during_scheduling_ignored_during_execution.as_ref()?.node_selector_terms;
        terms.first()?.match_fields.as_ref()?.first()?.values.as_ref()?.first()
    };
    spec.node_name.as_ref().or_else(for_node)
}

async fn live(cluster: &TestCluster, pod: &Pod, addresses: &mut impl Iterator<Item = u8>) -> Result<(), Failure> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    if pod.metadata.deletion_timestamp.is_some() {
        let at_once = DeleteParams::default().grace_period(0);
        match cluster.api::<Pod>().delete(name, &at_once).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            outcome => drop(outcome?),
        }
        return Ok(());
    }
    let image = pod.spec.as_ref().and_then(|spec| spec.containers[0].image.as_deref());
    let has_address = pod.status.as_ref().is_some_and(|status| status.pod_ip.is_some());
    if has_address || image == Some(BAD_IMAGE) {
        return Ok(());
    }
    let number = addresses.next().ok_or_else(|| Failure::new("too many pods"))?;
    match say_running(cluster, name, &[&format!("10.1.0.{number}"), &format!("fd00::{number:x}")], true).await {
        // It was deleted a moment ago.
        Err(_) if cluster.api::<Pod>().get_opt(name).await?.is_none() => Ok(()),
        outcome => outcome,
    }
}

/// The version of each object that there is.
async fn versions(cluster: &TestCluster) -> Result<BTreeMap<String, String>, Failure> {
    let mut versions = BTreeMap::new();
    for kind in KINDS {
        let list = Request::get(kind).body(Vec::new()).map_err(kube::Error::HttpError)?;
        let list: Value = cluster.client().request(list).await?;
        for item in list["items"].as_array().into_iter().flatten() {
            let text = |field: &str| item["metadata"][field].as_str().unwrap_or_default().to_owned();
            let object = format!("{kind}: {}/{} {}", text("namespace"), text("name"), text("uid"));
            let is_node = kind == NODES;
            versions.insert(object, if is_node { without_heartbeats(item) } else { text("resourceVersion") });
        }
    }
    Ok(versions)
}

/// Returns what there is of a node beside its heartbeats.
fn without_heartbeats(node: &Value) -> String {
    let mut node = node.clone();
    if let Some(metadata) = node["metadata"].as_object_mut() {
        metadata.retain(|field, _| field != "resourceVersion" && field != "managedFields");
    }
    for condition in node["status"]["conditions"].as_array_mut().into_iter().flatten() {
        condition["lastHeartbeatTime"] = Value::Null;
    }
    node.to_string()
}

fn unchanged(what: &str, before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Result<(), Failure> {
    let changed: Vec<_> = before
        .iter()
        .filter(|(object, version)| after.get(*object) != Some(version))
        .map(|(object, _)| object)
        .chain(after.keys().filter(|object| !before.contains_key(*object)))
        .collect();
    if changed.is_empty() { Ok(()) } else { Err(Failure::new(format!("{what}, and these change: {changed:#?}"))) }
}

fn no_more(what: &str, writes: &Writes, allowed: &Writes) -> Result<(), Failure> {
    let more: Writes = writes
        .iter()
        .filter(|(about, _)| *about != STATUS_OF_NODES)
        .filter(|(about, objects)| objects.len() > allowed.get(*about).map_or(0, Vec::len))
        .map(|(about, objects)| (about.clone(), objects.clone()))
        .collect();
    if more.is_empty() { Ok(()) } else { Err(Failure::new(format!("{what}: {more:#?}, where only {allowed:#?}"))) }
}
