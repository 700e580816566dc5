//! Controllers that need gates and APIs which a server has off by default.

use kube::api::{Patch, PatchParams};
use serde_json::json;
use steersman_testing::rig::{Rig, Setup};
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use crate::own;
use crate::scenarios::storageversion_garbage_collector::{reported, versions};
use crate::scenarios::support::{controllers, gated};

/// The gates and APIs of devices and pod groups.
const GATES: &str = "--feature-gates=GenericWorkload=true,DRAWorkloadResourceClaims=true,DRAResourcePoolStatus=true";
const APIS: &str = "--runtime-config=scheduling.k8s.io/v1beta1=true,resource.k8s.io/v1alpha3=true";

/// The server reports for itself. What another one has reported that is gone is taken out; its own reports stay.
#[tokio::test]
async fn a_server_that_is_gone_is_taken_out_of_real_storage_versions() -> Result<(), Failure> {
    const NAME: &str = "apps.deployments";
    let rig = own::start("real_storage_versions").await?;
    let cluster = TestCluster::builder().controllers(&[controllers::STORAGE_VERSION_GC]);
    let cluster = cluster.start_on(rig.kubeconfig()).await?;
    let own = async || Ok(reported(&cluster, NAME).await?.filter(|servers| servers.len() == 1).ok_or("nobody".into()));
    let own = cluster.until("the server reports", own).await?;
    let mut entries = versions(&cluster).get(NAME).await?.data["status"]["storageVersions"].clone();
    let gone = json!({ "apiServerID": "gone", "encodingVersion": "apps/v2", "decodableVersions": ["apps/v2"] });
    entries.as_array_mut().into_iter().for_each(|entries| entries.push(gone.clone()));
    // They do not agree, so there is no common version.
    let status = json!({ "storageVersions": entries, "commonEncodingVersion": null });
    let patch = Patch::Merge(json!({ "status": status }));
    versions(&cluster).patch_status(NAME, &PatchParams::default(), &patch).await?;
    let look = async || reported(&cluster, NAME).await;
    cluster.until_eq("it is taken out", look, Some(own.clone())).await?;
    let status = versions(&cluster).get(NAME).await?.data["status"].clone();
    expect_eq("the common version", &status["commonEncodingVersion"], &json!("apps/v1"))?;
    expect_eq("the condition", &status["conditions"][0]["reason"], &json!("CommonEncodingVersionSet"))?;
    let others = reported(&cluster, "apps.statefulsets").await?;
    expect(others == Some(own), "other reports of the server stay", &others)?;
    cluster.stop().await
}

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
    let setup = Setup { server: &[GATES, APIS], ..Setup::DEFAULT };
    let rig = Rig::start(env!("CARGO_TARGET_TMPDIR"), name, setup).await?;
    let cluster = cluster.start_on(rig.kubeconfig()).await?;
    scenario(&cluster).await?;
    cluster.stop().await
}
