//! What feature gates change: each with it off, and with it on.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use steersman_controllers::{deployment, replicaset};
use steersman_testing::objects::{self, WorkloadBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect_eq};

pub(crate) use crate::scenarios::deployment::cluster as deployments;
use crate::scenarios::deployment::{self as deployment_scenarios, CONTROLLERS};
pub(crate) use crate::scenarios::replicaset::cluster as replica_sets;
use crate::scenarios::replicaset::{scale, until_status};
use crate::scenarios::support::controllers;

scenarios! {
    with_pod_deletion_cost_the_cheaper_pod_is_deleted_first on replica_sets,
    without_pod_deletion_cost_a_cost_does_not_count on without_costs,
    with_terminating_replicas_the_status_counts_them on deployments,
    without_terminating_replicas_the_status_does_not_count_them on without_counting,
}

/// `PodDeletionCost=false`.
pub(crate) fn without_costs() -> Builder {
    let options = replicaset::Options::default().pod_deletion_cost(false);
    TestCluster::builder().options(options).controllers(&[controllers::REPLICA_SET])
}

/// `DeploymentReplicaSetTerminatingReplicas=false`.
pub(crate) fn without_counting() -> Builder {
    let sets = replicaset::Options::default().terminating_replicas(false);
    let deployments = deployment::Options::default().terminating_replicas(false);
    TestCluster::builder().options(sets).options(deployments).controllers(CONTROLLERS)
}

/// `PodDeletionCost=true`: of two ready pods, the cheaper one goes.
pub(crate) async fn with_pod_deletion_cost_the_cheaper_pod_is_deleted_first(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let (cheap, young, left) = scale_down(cluster).await?;
    expect_eq("what is left", &left, &young)?;
    expect_eq("they are two", &(cheap != young), &true)
}

/// `PodDeletionCost=false`: of two ready pods, the one goes that is ready for the shorter time.
pub(crate) async fn without_pod_deletion_cost_a_cost_does_not_count(cluster: &TestCluster) -> Result<(), Failure> {
    let (cheap, _, left) = scale_down(cluster).await?;
    expect_eq("what is left", &left, &cheap)
}

/// A ReplicaSet of two becomes one of one. Answers the pod that is cheap to delete, the other, which is not ready for as
/// long, and which of them is left.
async fn scale_down(cluster: &TestCluster) -> Result<(String, String, String), Failure> {
    let set = cluster.create(objects::replica_set("web").replicas(2)).await?;
    let name = |pod: &Pod| pod.metadata.name.clone().unwrap_or_default();
    let pods: Vec<_> = cluster.pods_of(&set).until_count(2).await?.iter().map(name).collect();
    let cheap = pods[0].clone();
    let young = pods[1].clone();
    let cost = json!({ "metadata": { "annotations": { "controller.kubernetes.io/pod-deletion-cost": "-5" } } });
    cluster.api::<Pod>().patch(&cheap, &PatchParams::default(), &Patch::Merge(cost)).await?;
    for (pod, since) in [(&cheap, "2020-01-01T00:00:00Z"), (&young, "2026-01-01T00:00:00Z")] {
        let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": since });
        let status = json!({ "status": { "phase": "Running", "conditions": [ready] } });
        let patch = Patch::Strategic(&status);
        cluster.api::<Pod>().patch_status(pod, &PatchParams::default(), &patch).await?;
    }
    until_status(cluster, "web", 2, 2).await?;
    scale(cluster, "web", 1).await?;
    let left = name(&cluster.pods_of(&set).until_count(1).await?[0]);
    Ok((cheap, young, left))
}

/// `DeploymentReplicaSetTerminatingReplicas=true`: both kinds count pods that terminate.
pub(crate) async fn with_terminating_replicas_the_status_counts_them(cluster: &TestCluster) -> Result<(), Failure> {
    counted(cluster, Some(1)).await
}

/// `DeploymentReplicaSetTerminatingReplicas=false`: neither does, and what others counted is taken out.
pub(crate) async fn without_terminating_replicas_the_status_does_not_count_them(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    counted(cluster, None).await
}

async fn counted(cluster: &TestCluster, want: Option<i32>) -> Result<(), Failure> {
    let deadline = json!({ "progressDeadlineSeconds": i32::MAX });
    cluster.create(deployment_scenarios::deployment(1, deadline)).await?;
    deployment_scenarios::until_sizes(cluster, [("web:1", 1)]).await?;
    let set = deployment_scenarios::sets(cluster).await?.remove(0);
    let slow = cluster.pods_of(&set).until_count(1).await?[0].metadata.name.clone().unwrap_or_default();
    let name = set.metadata.name.clone().unwrap_or_default();
    let others = json!({ "status": { "terminatingReplicas": 7 } });
    cluster.api::<ReplicaSet>().patch_status(&name, &PatchParams::default(), &Patch::Merge(others)).await?;
    let hold = |finalizers: Value| Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
    cluster.api::<Pod>().patch(&slow, &PatchParams::default(), &hold(json!(["example.dev/slow"]))).await?;
    cluster.delete::<Pod>(&slow).await?;
    cluster.pods_of(&set).until_count(1).await?;
    cluster
        .until_eq(
            "both say how many terminate, or nothing",
            || async {
                let set = cluster.api::<ReplicaSet>().get(&name).await?.status.unwrap_or_default();
                let web = cluster.api::<Deployment>().get("web").await?.status.unwrap_or_default();
                let seen = (set.replicas, set.terminating_replicas, web.replicas, web.terminating_replicas);
                Ok(seen)
            },
            (1, want, Some(1), want),
        )
        .await?;
    cluster.api::<Pod>().patch(&slow, &PatchParams::default(), &hold(json!([]))).await?;
    Ok(())
}
