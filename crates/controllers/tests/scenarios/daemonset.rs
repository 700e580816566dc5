//! What a DaemonSet promises.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetStatus};
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use steersman_testing::objects::{self, ObjectBuilder as _, WorkloadBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use crate::scenarios::statefulset::revisions;
use crate::scenarios::support::controllers;

scenarios! {
    every_node_has_a_pod_that_is_pinned_to_it on cluster alone,
    labels_and_taints_decide_where_pods_run on cluster alone,
    a_rolling_update_keeps_enough_pods_and_an_undo_has_the_old_revision on cluster alone,
    with_surge_the_new_pod_comes_first on cluster alone,
    on_delete_waits_until_pods_are_deleted on cluster alone,
    a_pod_that_has_ended_is_replaced_and_reported on cluster alone,
    an_orphan_is_adopted_and_its_duplicate_deleted on cluster alone,
}

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(&[controllers::DAEMON_SET]).nodes(3)
}

/// A DaemonSet of `agent:1`, with this on top of its spec.
#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
pub(crate) fn set(spec: Value) -> DaemonSet {
    objects::daemon_set("agent").image("agent:1").with(json!({ "spec": spec }))
}

fn rolling(unavailable: i32, surge: i32) -> Value {
    let rolling = json!({ "maxUnavailable": unavailable, "maxSurge": surge });
    json!({ "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": rolling } })
}

pub(crate) async fn roll(cluster: &TestCluster, image: &str) -> Result<(), Failure> {
    let containers = json!([{ "name": "main", "image": image }]);
    patch(cluster, json!({ "spec": { "template": { "spec": { "containers": containers } } } })).await
}

async fn patch(cluster: &TestCluster, patch: Value) -> Result<(), Failure> {
    cluster.api::<DaemonSet>().patch("agent", &PatchParams::default(), &Patch::Strategic(patch)).await?;
    Ok(())
}

async fn pods(cluster: &TestCluster) -> Result<Vec<Pod>, Failure> {
    Ok(cluster.api::<Pod>().list(&ListParams::default()).await?.items)
}

fn is_living(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|held| held.type_ == "Ready" && held.status == "True")
}

/// The images of living pods by the node they run on.
pub(crate) async fn images(cluster: &TestCluster) -> Result<BTreeMap<String, Vec<String>>, Failure> {
    let mut images = BTreeMap::<String, Vec<String>>::new();
    for pod in pods(cluster).await?.iter().filter(|pod| is_living(pod)) {
        let spec = pod.spec.clone().unwrap_or_default();
        let image = spec.containers[0].image.clone().unwrap_or_default();
        images.entry(spec.node_name.unwrap_or_default()).or_default().push(image);
    }
    Ok(images)
}

fn nodes(cluster: &TestCluster) -> Api<Node> {
    Api::all(cluster.client())
}

/// Waits until the nodes have registered, and returns their names.
async fn node_names(cluster: &TestCluster) -> Result<Vec<String>, Failure> {
    let names = async || {
        let all = nodes(cluster).list(&ListParams::default()).await?.items;
        let mut names: Vec<_> = all.into_iter().filter_map(|node| node.metadata.name).collect();
        names.sort();
        Ok(names)
    };
    cluster.until_right("the nodes have registered", names, |names| names.len() == 3).await
}

/// Waits until each of this many nodes has an available pod of the newest template.
pub(crate) async fn until_complete(cluster: &TestCluster, count: i32) -> Result<DaemonSetStatus, Failure> {
    let look = async || Ok(cluster.api::<DaemonSet>().get("agent").await?);
    let is_complete = |set: &DaemonSet| {
        let status = set.status.clone().unwrap_or_default();
        let counts = [
            status.desired_number_scheduled,
            status.current_number_scheduled,
            status.number_ready,
            status.updated_number_scheduled.unwrap_or(0),
            status.number_available.unwrap_or(0),
        ];
        counts == [count; 5] && status.observed_generation == set.metadata.generation
    };
    cluster.until_right("all pods are ready and updated", look, is_complete).await?;
    Ok(look().await?.status.unwrap_or_default())
}

fn each(names: &[String], image: &str) -> BTreeMap<String, Vec<String>> {
    names.iter().map(|name| (name.clone(), vec![image.to_owned()])).collect()
}

/// Each node has a pod, which is pinned to it and bears its problems; a deleted one is replaced; a new node gets one.
pub(crate) async fn every_node_has_a_pod_that_is_pinned_to_it(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(set(json!({}))).await?;
    let status = until_complete(cluster, 3).await?;
    expect_eq("misscheduled", &status.number_misscheduled, &0)?;
    let names = node_names(cluster).await?;
    expect_eq("one each", &images(cluster).await?, &each(&names, "agent:1"))?;
    let all = pods(cluster).await?;
    for pod in &all {
        let pod = serde_json::to_value(pod)?;
        let terms = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
        let fields = json!([{ "key": "metadata.name", "operator": "In", "values": [pod["spec"]["nodeName"]] }]);
        expect_eq("pinned", &pod.pointer(terms), &Some(&json!([{ "matchFields": fields }])))?;
        let tolerations = pod["spec"]["tolerations"].to_string();
        for borne in ["not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"] {
            expect(tolerations.contains(&format!("node.kubernetes.io/{borne}")), borne, &tolerations)?;
        }
    }
    let first = all[0].metadata.name.clone().unwrap_or_default();
    cluster.delete::<Pod>(&first).await?;
    cluster.until_gone::<Pod>(&first).await?;
    until_complete(cluster, 3).await?;

    nodes(cluster).create(&PostParams::default(), &objects::node("later")).await?;
    // The server taints new nodes, which are not ready.
    let untainted = Patch::Merge(json!({ "spec": { "taints": null } }));
    nodes(cluster).patch("later", &PatchParams::default(), &untainted).await?;
    let count = async || Ok(pods(cluster).await?.len());
    cluster.until_eq("the new node has one", count, 4).await?;
    nodes(cluster).delete("later", &DeleteParams::default()).await?;
    cluster.until_eq("and without the node there is none", count, 3).await?;
    until_complete(cluster, 3).await.map(drop)
}

/// A selector, a label and taints: pods come and go with them.
pub(crate) async fn labels_and_taints_decide_where_pods_run(cluster: &TestCluster) -> Result<(), Failure> {
    let names = node_names(cluster).await?;
    let change = async |node: &str, patch: Value| {
        nodes(cluster).patch(node, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok::<_, Failure>(())
    };
    let labelled = |value: Value| json!({ "metadata": { "labels": { "disk": value } } });
    let tainted = |effect: &str| json!({ "spec": { "taints": [{ "key": "k", "effect": effect }] } });
    let on = |chosen: &[usize]| each(&chosen.iter().map(|at| names[*at].clone()).collect::<Vec<_>>(), "agent:1");
    let selector = json!({ "template": { "spec": { "nodeSelector": { "disk": "ssd" } } } });
    cluster.create(set(selector)).await?;
    cluster.until_eq("none", || images(cluster), BTreeMap::new()).await?;
    change(&names[0], labelled(json!("ssd"))).await?;
    change(&names[1], labelled(json!("ssd"))).await?;
    cluster.until_eq("labelled", || images(cluster), on(&[0, 1])).await?;
    until_complete(cluster, 2).await?;
    change(&names[1], labelled(Value::Null)).await?;
    cluster.until_eq("not labelled any more", || images(cluster), on(&[0])).await?;
    change(&names[0], tainted("NoSchedule")).await?;
    change(&names[2], labelled(json!("ssd"))).await?;
    cluster.until_eq("a taint for new pods", || images(cluster), on(&[0, 2])).await?;
    let missed = async || {
        let status = cluster.api::<DaemonSet>().get("agent").await?.status.unwrap_or_default();
        Ok((status.desired_number_scheduled, status.number_misscheduled))
    };
    cluster.until_eq("status", missed, (1, 1)).await?;
    change(&names[0], json!({ "spec": { "taints": null } })).await?;
    cluster.until_eq("status", missed, (2, 0)).await?;
    change(&names[0], tainted("NoExecute")).await?;
    cluster.until_eq("a taint for all", || images(cluster), on(&[2])).await?;
    change(&names[0], json!({ "spec": { "taints": null } })).await?;
    until_complete(cluster, 2).await.map(drop)
}

/// One node at a time is without a pod; going back adds no revision.
pub(crate) async fn a_rolling_update_keeps_enough_pods_and_an_undo_has_the_old_revision(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    cluster.create(set(rolling(1, 0))).await?;
    until_complete(cluster, 3).await?;
    let names = node_names(cluster).await?;
    for image in ["agent:2", "agent:1"] {
        roll(cluster, image).await?;
        let look = async || {
            let all = pods(cluster).await?;
            let ready = all.iter().filter(|pod| is_living(pod)).filter(|pod| is_ready(pod)).count();
            expect(ready >= 2, "ready pods", &ready)?;
            let images = images(cluster).await?;
            expect(images.values().all(|held| held.len() == 1), "one pod on each node", &images)?;
            Ok(images)
        };
        cluster.until_eq("all are of the new image", look, each(&names, image)).await?;
        until_complete(cluster, 3).await?;
    }
    let want = vec![(2, "agent:2".to_owned()), (3, "agent:1".to_owned())];
    cluster.until_eq("two revisions", || revisions(cluster), want).await
}

/// With surge, each node has an available pod at every moment, and at most two.
pub(crate) async fn with_surge_the_new_pod_comes_first(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(set(rolling(0, 1))).await?;
    until_complete(cluster, 3).await?;
    let names = node_names(cluster).await?;
    roll(cluster, "agent:2").await?;
    let look = async || {
        let all = pods(cluster).await?;
        let ready = all.iter().filter(|pod| is_living(pod)).filter(|pod| is_ready(pod));
        let on: std::collections::BTreeSet<_> = ready.filter_map(|pod| pod.spec.as_ref()?.node_name.clone()).collect();
        expect_eq("nodes with a ready pod", &on.len(), &3)?;
        let living = all.iter().filter(|pod| is_living(pod)).count();
        expect(living <= 4, "living pods", &living)?;
        images(cluster).await
    };
    cluster.until_eq("all are of the new image", look, each(&names, "agent:2")).await?;
    until_complete(cluster, 3).await.map(drop)
}

/// With `OnDelete`, a new template concerns only pods that are deleted by others.
pub(crate) async fn on_delete_waits_until_pods_are_deleted(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(set(json!({ "updateStrategy": { "type": "OnDelete" } }))).await?;
    until_complete(cluster, 3).await?;
    roll(cluster, "agent:2").await?;
    let updated = async || {
        let status = cluster.api::<DaemonSet>().get("agent").await?.status.unwrap_or_default();
        Ok((status.observed_generation, status.updated_number_scheduled.unwrap_or(0), status.number_ready))
    };
    cluster.until_eq("it is seen", updated, (Some(2), 0, 3)).await?;
    let first = pods(cluster).await?[0].metadata.name.clone().unwrap_or_default();
    cluster.delete::<Pod>(&first).await?;
    cluster.until_eq("one is updated", updated, (Some(2), 1, 3)).await
}

/// A failed or succeeded pod is deleted with an event, and another one comes.
pub(crate) async fn a_pod_that_has_ended_is_replaced_and_reported(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(set(json!({}))).await?;
    until_complete(cluster, 3).await?;
    let name = pods(cluster).await?[0].metadata.name.clone().unwrap_or_default();
    let ended = Patch::Merge(json!({ "status": { "phase": "Failed" } }));
    cluster.api::<Pod>().patch_status(&name, &PatchParams::default(), &ended).await?;
    cluster.until_gone::<Pod>(&name).await?;
    until_complete(cluster, 3).await?;
    let texts = async || {
        let about = ListParams::default().fields("involvedObject.kind=DaemonSet,reason=FailedDaemonPod");
        let events = cluster.api::<Event>().list(&about).await?.items;
        Ok(events.into_iter().filter_map(|event| event.message).collect::<Vec<_>>())
    };
    let tells = |texts: &Vec<String>| {
        let start = format!("Found failed daemon pod {}/{name} on node ", cluster.namespace());
        texts.len() == 1 && texts[0].starts_with(&start) && texts[0].ends_with(", will try to kill it")
    };
    cluster.until_right("the event", texts, tells).await.map(drop)
}

/// An orphan on a node is adopted; of two pods on a node, the oldest stays.
pub(crate) async fn an_orphan_is_adopted_and_its_duplicate_deleted(cluster: &TestCluster) -> Result<(), Failure> {
    let node = node_names(cluster).await?[0].clone();
    for name in ["first", "second"] {
        cluster.create(objects::pod(name).app("agent").with(json!({ "spec": { "nodeName": node } }))).await?;
    }
    cluster.create(set(json!({ "updateStrategy": { "type": "OnDelete" } }))).await?;
    let counts = async || Ok(images(cluster).await?.into_iter().map(|(node, held)| (node, held.len())).collect());
    let want: Vec<_> = node_names(cluster).await?.into_iter().map(|name| (name, 1)).collect();
    cluster.until_eq::<Vec<(String, usize)>, _, _>("one on each node", counts, want).await?;
    let left = pods(cluster).await?;
    let kept = left.iter().filter(|pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()) == Some(&node));
    let kept: Vec<_> = kept.filter(|pod| is_living(pod)).filter_map(|pod| pod.metadata.name.clone()).collect();
    expect_eq("the first one stays", &kept, &vec!["first".to_owned()])
}
