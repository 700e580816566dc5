//! APIs of devices and pod groups behind gates, on a server that has them.

use steersman_testing::{Builder, Failure, TestCluster};

use crate::own::OwnRig;
use crate::scenarios::support::gated;

const GATES: &str =
    "--apiserver-flag=--feature-gates=GenericWorkload=true,DRAWorkloadResourceClaims=true,DRAResourcePoolStatus=true";
const APIS: &str = "--apiserver-flag=--runtime-config=scheduling.k8s.io/v1beta1=true,resource.k8s.io/v1alpha3=true";

#[tokio::test]
async fn the_pods_of_a_group_share_its_claim() -> Result<(), Failure> {
    run(gated::group_claims(), "group_claims", gated::the_pods_of_a_group_share_its_claim).await
}

#[tokio::test]
async fn a_group_stays_while_a_pod_of_it_runs() -> Result<(), Failure> {
    run(gated::protection(), "group_protection", gated::a_group_stays_while_a_pod_of_it_runs).await
}

#[tokio::test]
async fn requests_for_the_status_of_pools_are_answered() -> Result<(), Failure> {
    run(gated::pool_status(), "pool_status", async |cluster: &TestCluster| {
        gated::a_request_is_answered_from_slices_claims_and_rules(cluster).await?;
        gated::a_request_waits_for_the_slices_of_a_pool(cluster).await
    })
    .await
}

async fn run(
    cluster: Builder,
    name: &str,
    scenario: impl AsyncFnOnce(&TestCluster) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let rig = OwnRig::start_with(name, &[GATES, APIS]).await?;
    let cluster = cluster.start_on(rig.kubeconfig()).await?;
    scenario(&cluster).await?;
    cluster.stop().await
}
