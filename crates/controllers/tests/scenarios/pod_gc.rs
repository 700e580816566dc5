//! What becomes of pods that nobody ends.

use k8s_openapi::api::core::v1::{Node, NodeCondition, NodeSpec, NodeStatus, Pod, Taint};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use steersman_testing::{Failure, TestCluster, objects};

use crate::namespace_scenarios::{HOLD, release};

/// A pod that is being deleted and was never on a node fails, and goes when nobody holds it any more.
pub(crate) async fn a_terminating_pod_without_a_node_goes_at_once(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(held("stuck", None)).await?;
    cluster.create(objects::pod("waiting", "web")).await?;
    cluster.delete::<Pod>("stuck").await?;
    until_phase(cluster, "stuck", "Failed").await?;
    release::<Pod>(cluster, "stuck").await?;
    until_gone(cluster, "stuck").await?;
    let waiting = cluster.api::<Pod>().get("waiting").await?;
    match waiting.metadata.deletion_timestamp {
        None => Ok(()),
        Some(_) => Err(Failure::new("a pod that waits for a node was deleted")),
    }
}

/// A pod that is being deleted on a node that is out of service goes at once; elsewhere it has its time.
pub(crate) async fn a_terminating_pod_on_a_node_out_of_service_goes_at_once(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let (dead, well) = (format!("{}-dead", cluster.namespace()), format!("{}-well", cluster.namespace()));
    create_node(cluster, &dead, "Unknown", true).await?;
    create_node(cluster, &well, "True", true).await?;
    cluster.create(on_node("on-dead", &dead)).await?;
    cluster.create(on_node("on-well", &well)).await?;
    cluster.delete::<Pod>("on-dead").await?;
    cluster.delete::<Pod>("on-well").await?;
    until_gone(cluster, "on-dead").await?;
    // Nobody else ends it.
    let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    cluster.api::<Pod>().delete("on-well", &at_once).await?;
    for node in [dead, well] {
        Api::<Node>::all(cluster.client()).delete(&node, &DeleteParams::default()).await?;
    }
    Ok(())
}

/// A pod that the test holds, on a node or on none.
pub(crate) fn held(name: &str, node: Option<&str>) -> Pod {
    let mut pod = match node {
        Some(node) => on_node(name, node),
        None => objects::pod(name, "web"),
    };
    pod.metadata.finalizers = Some(vec![HOLD.into()]);
    pod
}

/// A pod that is on a node.
pub(crate) fn on_node(name: &str, node: &str) -> Pod {
    let mut pod = objects::pod(name, "web");
    pod.spec.get_or_insert_default().node_name = Some(node.into());
    pod
}

/// A node that is ready or not, and in service or not.
pub(crate) async fn create_node(cluster: &TestCluster, name: &str, ready: &str, taint: bool) -> Result<(), Failure> {
    let out_of_service =
        Taint { key: "node.kubernetes.io/out-of-service".into(), effect: "NoExecute".into(), ..Taint::default() };
    let taints = taint.then(|| vec![out_of_service]);
    let spec = NodeSpec { taints, ..NodeSpec::default() };
    let node = Node { metadata: objects::named(name), spec: Some(spec), ..Node::default() };
    let nodes = Api::<Node>::all(cluster.client());
    nodes.create(&PostParams::default(), &node).await?;
    let ready = NodeCondition { type_: "Ready".into(), status: ready.into(), ..NodeCondition::default() };
    let status = NodeStatus { conditions: Some(vec![ready]), ..NodeStatus::default() };
    let patch = Patch::Merge(json!({ "status": status }));
    nodes.patch_status(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

pub(crate) async fn until_phase(cluster: &TestCluster, name: &str, phase: &str) -> Result<Pod, Failure> {
    cluster
        .until(&format!("pod {name} is {phase}"), async || {
            let pod = cluster.api::<Pod>().get(name).await?;
            let seen = pod.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default();
            Ok(if seen == phase { Ok(pod) } else { Err(seen) })
        })
        .await
}

pub(crate) async fn until_gone(cluster: &TestCluster, name: &str) -> Result<(), Failure> {
    cluster
        .until(&format!("pod {name} is gone"), async || {
            let pod = cluster.api::<Pod>().get_opt(name).await?;
            Ok(pod.map_or(Ok(()), |pod| Err(format!("{:?}", pod.metadata))))
        })
        .await
}
