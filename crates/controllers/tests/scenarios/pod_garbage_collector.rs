//! What becomes of pods that nobody ends.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, NodeCondition, NodeSpec, NodeStatus, Pod, Taint};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use steersman_controllers::pod_garbage_collector;
use steersman_testing::objects::{self, ObjectBuilder as _, PodBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use crate::scenarios::namespace::HOLD;
pub(crate) use crate::scenarios::namespace::release;
use crate::scenarios::support::controllers::{self, Controller};

scenarios! {
    a_terminating_pod_without_a_node_is_deleted_at_once on cluster,
    a_terminating_pod_on_a_node_out_of_service_is_deleted_at_once on cluster,
    a_pod_on_a_node_that_is_gone_fails_and_is_deleted on cluster,
    of_too_many_ended_pods_the_evicted_and_then_the_oldest_are_deleted on keeping_two,
}

pub(crate) const CONTROLLERS: &[Controller] = &[controllers::POD_GC];

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(CONTROLLERS)
}

/// Of the pods that have ended, two are kept.
pub(crate) fn keeping_two() -> Builder {
    cluster().options(pod_garbage_collector::Options::default().terminated_pod_threshold(2))
}

/// A pod that is being deleted and was never on a node fails, and goes when nobody holds it any more.
pub(crate) async fn a_terminating_pod_without_a_node_is_deleted_at_once(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(held("stuck", None)).await?;
    cluster.create(objects::pod("waiting")).await?;
    cluster.delete::<Pod>("stuck").await?;
    until_phase(cluster, "stuck", "Failed").await?;
    release::<Pod>(cluster, "stuck").await?;
    cluster.until_gone::<Pod>("stuck").await?;
    let waiting = cluster.api::<Pod>().get("waiting").await?;
    expect(waiting.metadata.deletion_timestamp.is_none(), "a pod that waits for a node stays", &waiting.metadata)
}

/// A pod that is being deleted on a node that is out of service goes at once; elsewhere it has its time.
pub(crate) async fn a_terminating_pod_on_a_node_out_of_service_is_deleted_at_once(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let dead = format!("{}-dead", cluster.namespace());
    let well = format!("{}-well", cluster.namespace());
    create_node(cluster, &dead, "Unknown", true).await?;
    create_node(cluster, &well, "True", true).await?;
    cluster.create(on_node("on-dead", &dead)).await?;
    cluster.create(on_node("on-well", &well)).await?;
    cluster.delete::<Pod>("on-dead").await?;
    cluster.delete::<Pod>("on-well").await?;
    cluster.until_gone::<Pod>("on-dead").await?;
    // Nobody else ends it.
    let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    cluster.api::<Pod>().delete("on-well", &at_once).await?;
    for node in [dead, well] {
        Api::<Node>::all(cluster.client()).delete(&node, &DeleteParams::default()).await?;
    }
    Ok(())
}

/// A pod on a node that there is not fails, goes when nobody holds it any more, and says why. One whose node comes late
/// stays.
pub(crate) async fn a_pod_on_a_node_that_is_gone_fails_and_is_deleted(cluster: &TestCluster) -> Result<(), Failure> {
    let here = format!("{}-here", cluster.namespace());
    let late = format!("{}-late", cluster.namespace());
    create_node(cluster, &here, "True", false).await?;
    cluster.create(held("orphan", Some("gone"))).await?;
    cluster.create(on_node("well", &here)).await?;
    cluster.create(on_node("early", &late)).await?;
    cluster.expect_quiet(pod_garbage_collector::QUARANTINE - Duration::from_secs(1)).await?;
    create_node(cluster, &late, "True", false).await?;
    let orphan = until_phase(cluster, "orphan", "Failed").await?;
    let conditions = orphan.status.and_then(|status| status.conditions).unwrap_or_default();
    let target = conditions.iter().find(|condition| condition.type_ == "DisruptionTarget");
    let reported = target.map(|target| (target.status.as_str(), target.reason.as_deref(), target.message.as_deref()));
    let want = Some(("True", Some("DeletionByPodGC"), Some("PodGC: node no longer exists")));
    expect_eq("the condition DisruptionTarget", &reported, &want)?;
    release::<Pod>(cluster, "orphan").await?;
    cluster.until_gone::<Pod>("orphan").await?;
    until_names(cluster, &["early", "well"]).await?;
    for node in [here, late] {
        Api::<Node>::all(cluster.client()).delete(&node, &DeleteParams::default()).await?;
    }
    for pod in ["early", "well"] {
        cluster.api::<Pod>().delete(pod, &DeleteParams::default().grace_period(0)).await?;
    }
    Ok(())
}

/// Pods that have ended go when there are more than may stay: those that were evicted first, then the oldest.
pub(crate) async fn of_too_many_ended_pods_the_evicted_and_then_the_oldest_are_deleted(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    for name in ["oldest", "older", "newer", "evicted", "newest"] {
        cluster.create(objects::pod(name)).await?;
        // Times are in whole seconds.
        cluster.advance(Duration::from_millis(1100)).await;
    }
    cluster.create(objects::pod("pending")).await?;
    for name in ["oldest", "older", "newer", "newest"] {
        set_phase(cluster, name, "Succeeded", "").await?;
    }
    set_phase(cluster, "evicted", "Failed", "Evicted").await?;
    until_names(cluster, &["newer", "newest", "pending"]).await
}

/// A pod that the test holds, on a node or on none.
pub(crate) fn held(name: &str, node: Option<&str>) -> Pod {
    let pod = match node {
        Some(node) => on_node(name, node),
        None => objects::pod(name),
    };
    pod.finalizer(HOLD)
}

/// A pod that is on a node.
pub(crate) fn on_node(name: &str, node: &str) -> Pod {
    objects::pod(name).on_node(node)
}

/// A node that is ready or not, and in service or not.
pub(crate) async fn create_node(cluster: &TestCluster, name: &str, ready: &str, taint: bool) -> Result<(), Failure> {
    let out_of_service =
        Taint { key: "node.kubernetes.io/out-of-service".into(), effect: "NoExecute".into(), ..Taint::default() };
    let taints = taint.then(|| vec![out_of_service]);
    let spec = NodeSpec { taints, ..NodeSpec::default() };
    let node = Node { spec: Some(spec), ..objects::node(name) };
    let nodes = Api::<Node>::all(cluster.client());
    nodes.create(&PostParams::default(), &node).await?;
    let ready = NodeCondition { type_: "Ready".into(), status: ready.into(), ..NodeCondition::default() };
    let status = NodeStatus { conditions: Some(vec![ready]), ..NodeStatus::default() };
    let patch = Patch::Merge(json!({ "status": status }));
    nodes.patch_status(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

pub(crate) async fn until_phase(cluster: &TestCluster, name: &str, phase: &str) -> Result<Pod, Failure> {
    let pod = async || Ok(cluster.api::<Pod>().get(name).await?);
    let is_so = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some(phase);
    cluster.until_right(&format!("pod {name} is {phase}"), pod, is_so).await
}

/// Names of the pods that are there.
pub(crate) async fn names(cluster: &TestCluster) -> Result<Vec<String>, Failure> {
    let pods = cluster.api::<Pod>().list(&ListParams::default()).await?;
    Ok(pods.items.into_iter().filter_map(|pod| pod.metadata.name).collect())
}

/// Waits until these pods are left.
async fn until_names(cluster: &TestCluster, want: &[&str]) -> Result<(), Failure> {
    cluster.until_eq(&format!("the pods {want:?}"), async || names(cluster).await, want).await
}

/// Says how far a pod is.
async fn set_phase(cluster: &TestCluster, name: &str, phase: &str, reason: &str) -> Result<(), Failure> {
    let patch = Patch::Merge(json!({ "status": { "phase": phase, "reason": reason } }));
    cluster.api::<Pod>().patch_status(name, &PatchParams::default(), &patch).await?;
    Ok(())
}
