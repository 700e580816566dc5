//! Nodes that fall silent and come back.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Event, Node, NodeCondition, NodeStatus, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use steersman_controllers::node_lifecycle::Options;
use steersman_testing::objects::{self, ObjectBuilder as _, WorkloadBuilder as _};
use steersman_testing::{Builder, Failure, NodesOptions, TestCluster, expect, expect_eq};

use crate::scenarios::support::controllers::{self, Controller};

scenarios! {
    a_silent_node_is_not_ready_and_its_pods_move_after_their_toleration on impatient alone,
    taints_and_labels_follow_the_node on cluster alone,
}

pub(crate) const CONTROLLERS: &[Controller] = &[controllers::NODE_LIFECYCLE];
const MOVING: &[Controller] = &[controllers::NODE_LIFECYCLE, controllers::TAINT_EVICTION, controllers::REPLICA_SET];

pub(crate) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(CONTROLLERS)
}

/// The duration of the leases of nodes that are noticed soon when they are lost: they renew them every second.
pub(crate) const LEASES: Duration = Duration::from_secs(4);

/// A node that has been silent for a few heartbeats is lost. On the rig this is real time.
pub(crate) fn impatience() -> Options {
    Options::default()
        .monitor_period(Duration::from_secs(1))
        .monitor_grace_period(Duration::from_secs(8))
        .eviction_rate(10.0)
}

/// A cluster of three nodes that are noticed soon when they are lost.
pub(crate) fn impatient() -> Builder {
    let nodes = NodesOptions::count(3).lease_duration(LEASES);
    TestCluster::builder().controllers(MOVING).options(impatience()).nodes_with(nodes)
}

/// A simulated node that stops its heartbeats becomes `Unknown` and is tainted, its pods are not ready, and are replaced after
/// their toleration; when it is back, all of it ends, and nobody moves again.
pub(crate) async fn a_silent_node_is_not_ready_and_its_pods_move_after_their_toleration(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let set = cluster.create(moving_set("web", 3)).await?;
    let ready = async || ready_on(cluster, "web").await;
    cluster.until_right("three pods are ready", ready, |on: &Vec<_>| on.len() == 3).await?;
    let (lost, _) = ready().await?.pop().unwrap_or_default();
    cluster.nodes().stop_heartbeats(&lost)?;

    let says = async || node_says(cluster, &lost).await;
    let want = ("Unknown".to_owned(), "NodeStatusUnknown".to_owned(), keys(&["NoExecute", "NoSchedule"]));
    cluster.until_eq("the node is unknown and tainted", says, want).await?;
    // The others are well, and so are the pods there, three again.
    let elsewhere = |on: &Vec<(String, String)>| on.len() == 3 && on.iter().all(|(node, _)| *node != lost);
    let moved = cluster.until_right("three pods are ready elsewhere", ready, elsewhere).await?;
    let on_lost = pods_of(cluster, "web").await?.into_iter().filter(|pod| node_of(pod) == lost);
    for pod in on_lost {
        expect(pod.metadata.deletion_timestamp.is_some(), "it is being deleted", &pod.metadata)?;
        expect_eq("its readiness", &condition(&pod, "Ready").0, &"False".to_owned())?;
        let want = ("True".to_owned(), "DeletionByTaintManager".to_owned());
        expect_eq("why it is deleted", &condition(&pod, "DisruptionTarget"), &want)?;
    }
    until_events(cluster, &lost, &["NodeNotReady", "RegisteredNode"]).await?;

    cluster.nodes().resume(&lost)?;
    let want = ("True".to_owned(), "KubeletReady".to_owned(), BTreeSet::new());
    cluster.until_eq("the node is well and has no taints", says, want).await?;
    let gone = async || Ok(pods_of(cluster, "web").await?.iter().filter(|pod| node_of(pod) == lost).count());
    cluster.until_eq("its old pods are gone", gone, 0).await?;
    cluster.advance(crate::LONG).await;
    expect_eq("nobody has moved again", &ready().await?, &moved)?;
    cluster.delete::<ReplicaSet>(&set.metadata.name.unwrap_or_default()).await?;
    for pod in pods_of(cluster, "web").await? {
        cluster.delete::<Pod>(&pod.metadata.name.unwrap_or_default()).await?;
    }
    Ok(())
}

/// Taints that keep pods away follow the conditions of a node and its cordon; older labels follow newer ones.
pub(crate) async fn taints_and_labels_follow_the_node(cluster: &TestCluster) -> Result<(), Failure> {
    let name = format!("{}-node", cluster.namespace());
    let nodes: Api<Node> = Api::all(cluster.client());
    let node = objects::node(&name).label("kubernetes.io/os", "linux").label("beta.kubernetes.io/os", "windows");
    nodes.create(&PostParams::default(), &node).await?;
    let taints = async || {
        let taints = nodes.get(&name).await?.spec.and_then(|spec| spec.taints).unwrap_or_default();
        Ok(taints.iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect::<BTreeSet<_>>())
    };
    let want = |keys: &[&str]| -> BTreeSet<String> {
        keys.iter().map(|key| format!("node.kubernetes.io/{key}:NoSchedule")).collect()
    };
    report(&nodes, &name, &[("Ready", "True"), ("DiskPressure", "True")]).await?;
    cluster.until_eq("short of disk", taints, want(&["disk-pressure"])).await?;
    let cordon = |cordoned: bool| Patch::Merge(json!({ "spec": { "unschedulable": cordoned } }));
    nodes.patch(&name, &PatchParams::default(), &cordon(true)).await?;
    cluster.until_eq("cordoned", taints, want(&["disk-pressure", "unschedulable"])).await?;
    report(&nodes, &name, &[("Ready", "True"), ("DiskPressure", "False")]).await?;
    cluster.until_eq("not short of disk", taints, want(&["unschedulable"])).await?;
    nodes.patch(&name, &PatchParams::default(), &cordon(false)).await?;
    cluster.until_eq("uncordoned", taints, want(&[])).await?;
    let label = async || {
        let labels = nodes.get(&name).await?.metadata.labels.unwrap_or_default();
        Ok(labels.get("beta.kubernetes.io/os").cloned())
    };
    cluster.until_eq("the older label", label, Some("linux".to_owned())).await?;
    nodes.delete(&name, &DeleteParams::default()).await?;
    Ok(())
}

/// A ReplicaSet whose pods tolerate a lost node for three seconds, and end at once.
pub(crate) fn moving_set(name: &str, replicas: i32) -> ReplicaSet {
    moving_set_after(name, replicas, 3)
}

/// The same for another time.
pub(crate) fn moving_set_after(name: &str, replicas: i32, seconds: i64) -> ReplicaSet {
    let tolerations = ["not-ready", "unreachable"].map(|key| {
        json!({
            "key": format!("node.kubernetes.io/{key}"), "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": seconds,
        })
    });
    let spec = json!({ "tolerations": tolerations, "terminationGracePeriodSeconds": 1 });
    objects::replica_set(name).replicas(replicas).with(json!({ "spec": { "template": { "spec": spec } } }))
}

/// Reports the conditions of a node, as its kubelet.
pub(crate) async fn report(nodes: &Api<Node>, name: &str, conditions: &[(&str, &str)]) -> Result<(), Failure> {
    let conditions = conditions.iter().map(|(type_, status)| NodeCondition {
        type_: (*type_).to_owned(),
        status: (*status).to_owned(),
        ..NodeCondition::default()
    });
    let status = NodeStatus { conditions: Some(conditions.collect()), ..NodeStatus::default() };
    let patch = Patch::Strategic(json!({ "status": status }));
    nodes.patch_status(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Status and reason of a node's readiness, and the effects of its taints for being unreachable.
pub(crate) async fn node_says(
    cluster: &TestCluster,
    name: &str,
) -> Result<(String, String, BTreeSet<String>), Failure> {
    let node = Api::<Node>::all(cluster.client()).get(name).await?;
    let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
    let ready = conditions.into_iter().find(|condition| condition.type_ == "Ready");
    let (status, reason) = ready.map(|ready| (ready.status, ready.reason.unwrap_or_default())).unwrap_or_default();
    let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
    let effects = taints.into_iter().filter(|taint| taint.key == UNREACHABLE).map(|taint| taint.effect);
    Ok((status, reason, effects.collect()))
}

pub(crate) fn keys(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(ToString::to_string).collect()
}

pub(crate) async fn pods_of(cluster: &TestCluster, app: &str) -> Result<Vec<Pod>, Failure> {
    let found = cluster.api::<Pod>().list(&ListParams::default().labels(&format!("app={app}"))).await?;
    Ok(found.items)
}

pub(crate) fn node_of(pod: &Pod) -> String {
    pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default()
}

/// Status and reason of a pod's condition.
pub(crate) fn condition(pod: &Pod, type_: &str) -> (String, String) {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref()).into_iter().flatten();
    let found = conditions.into_iter().find(|condition| condition.type_ == type_);
    found.map(|found| (found.status.clone(), found.reason.clone().unwrap_or_default())).unwrap_or_default()
}

/// Nodes and names of the ready pods of an app.
pub(crate) async fn ready_on(cluster: &TestCluster, app: &str) -> Result<Vec<(String, String)>, Failure> {
    let pods = pods_of(cluster, app).await?;
    let is_ready = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none() && condition(pod, "Ready").0 == "True";
    let ready = pods.iter().filter(is_ready);
    Ok(ready.map(|pod| (node_of(pod), pod.metadata.name.clone().unwrap_or_default())).collect())
}

/// Waits until there are events with these reasons about a node.
async fn until_events(cluster: &TestCluster, node: &str, want: &[&str]) -> Result<(), Failure> {
    let events: Api<Event> = Api::namespaced(cluster.client(), "default");
    let about = ListParams::default().fields(&format!("involvedObject.name={node}"));
    let reasons = async || {
        let found = events.list(&about).await?.items.into_iter();
        let ours = found
            .filter(|event| event.source.as_ref().and_then(|it| it.component.as_deref()) == Some("node-controller"));
        Ok(ours.filter_map(|event| event.reason).collect::<BTreeSet<_>>())
    };
    cluster.until_eq("the events about the node", reasons, keys(want)).await
}
