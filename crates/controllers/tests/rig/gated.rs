//! Controllers that need gates and APIs which a server has off by default.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;
use steersman_controllers::{daemonset, resourceclaim, statefulset, taint_eviction};
use steersman_testing::objects::ObjectBuilder as _;
use steersman_testing::rig::{Rig, Setup};
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use crate::own;
use crate::scenarios::resourceclaim::{pod_with_template, template};
use crate::scenarios::storageversion_garbage_collector::{reported, versions};
use crate::scenarios::support::{controllers, gangs, gated};
use crate::scenarios::{
    daemonset as daemon_sets, protection, statefulset as stateful_sets, taint_eviction as evictions,
};

/// The gates and APIs of devices and pod groups.
const GATES: &str = "--feature-gates=GenericWorkload=true,WorkloadWithJob=true,DRAWorkloadResourceClaims=true,\
                     DRAResourcePoolStatus=true";
/// Those of fields of workloads.
const FIELDS: &str = "--feature-gates=StatefulSetRecreateStrategy=true,TaintTolerationComparisonOperators=true";
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
async fn the_pods_of_a_job_are_scheduled_together() -> Result<(), Failure> {
    run(gangs::on(), "job_gang", gangs::the_pods_of_a_job_are_scheduled_together).await
}

#[tokio::test]
async fn a_job_without_a_wish_has_a_basic_group() -> Result<(), Failure> {
    run(gangs::on(), "job_basic", gangs::a_job_without_a_wish_has_a_basic_group).await
}

#[tokio::test]
async fn a_parent_can_delegate_the_group() -> Result<(), Failure> {
    run(gangs::on(), "job_delegated", gangs::a_parent_can_delegate_the_group).await
}

#[tokio::test]
async fn without_the_gate_a_job_has_no_workload() -> Result<(), Failure> {
    run(gangs::off(), "job_ungated", gangs::without_the_gate_a_job_has_no_workload).await
}

#[tokio::test]
async fn requests_for_the_status_of_pools_are_answered() -> Result<(), Failure> {
    run(gated::pool_status(), "pool_status", async |cluster: &TestCluster| {
        gated::a_request_is_answered_from_slices_claims_and_rules(cluster).await?;
        gated::a_request_waits_for_the_slices_of_a_pool(cluster).await
    })
    .await
}

/// `GenericWorkload` and `DRAWorkloadResourceClaims`: without either, a pod in a group gets no claim.
#[tokio::test]
async fn a_pod_in_a_group_gets_a_claim_only_with_both_gates() -> Result<(), Failure> {
    let rig = start("group_claims_off", &[GATES, APIS]).await?;
    for (generic_workload, workload_claims, want) in [(true, true, 1), (true, false, 0), (false, false, 0)] {
        let options =
            resourceclaim::Options::default().generic_workload(generic_workload).workload_claims(workload_claims);
        let cluster = TestCluster::builder().options(options).controllers(&[controllers::RESOURCE_CLAIM]);
        let cluster = cluster.start_on(rig.kubeconfig()).await?;
        cluster.create(template("gpus")).await?;
        let of_group = json!({ "resourceClaims": [{ "name": "gpu", "resourceClaimTemplateName": "gpus" }] });
        gated::create_group(&cluster, "gang", of_group).await?;
        let in_group = json!({ "spec": { "schedulingGroup": { "podGroupName": "gang" } } });
        cluster.create(pod_with_template("web", "gpus").with(in_group)).await?;
        let claims = async || Ok(cluster.api::<ResourceClaim>().list(&ListParams::default()).await?.items.len());
        cluster.until_eq(&format!("claims with {options:?}"), claims, want).await?;
        cluster.settle().await?;
        expect_eq("and no more", &claims().await?, &want)?;
        protection::end(&cluster, "web").await?;
        let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        gated::groups(&cluster).patch("gang", &PatchParams::default(), &free).await?;
        cluster.stop().await?;
    }
    Ok(())
}

/// `StatefulSetRecreateStrategy`: without it, a StatefulSet with this strategy is left alone, with a warning.
#[tokio::test]
async fn a_stateful_set_is_recreated_only_with_its_gate() -> Result<(), Failure> {
    let rig = start("recreate", &[FIELDS]).await?;
    for recreate in [true, false] {
        let options = statefulset::Options::default().recreate(recreate);
        let cluster = stateful_sets::with_nodes().options(options).start_on(rig.kubeconfig()).await?;
        cluster.create(stateful_sets::set(2, json!({ "updateStrategy": { "type": "Recreate" } }))).await?;
        if recreate {
            stateful_sets::until_complete(&cluster, 2).await?;
            stateful_sets::roll(&cluster, "web:2").await?;
            let images = async || Ok(stateful_sets::images(&cluster).await?.into_values().collect::<Vec<_>>());
            cluster.until_eq("the images", images, vec!["web:2".to_owned(); 2]).await?;
        } else {
            let reports = async || {
                let events = cluster.api::<Event>().list(&ListParams::default()).await?.items.into_iter();
                Ok(events.filter(|event| event.type_.as_deref() == Some("Warning")).count() > 0)
            };
            cluster.until_eq("it gets a warning", reports, true).await?;
            cluster.settle().await?;
            expect_eq("pods", &stateful_sets::images(&cluster).await?.len(), &0)?;
        }
        cluster.stop().await?;
    }
    Ok(())
}

/// `TaintTolerationComparisonOperators`: without it, a toleration with `Gt` matches no taint, for DaemonSets and for evictions.
#[tokio::test]
async fn tolerations_compare_numbers_only_with_their_gate() -> Result<(), Failure> {
    let rig = start("comparison", &[FIELDS]).await?;
    for compares_numbers in [true, false] {
        let cluster = TestCluster::builder()
            .controllers(&[controllers::DAEMON_SET, controllers::TAINT_EVICTION])
            .options(daemonset::Options::default().compares_numbers(compares_numbers))
            .options(taint_eviction::Options::default().compares_numbers(compares_numbers));
        let cluster = cluster.start_on(rig.kubeconfig()).await?;
        let node = evictions::create_node(&cluster, "node").await?;
        let tolerations = json!([{ "key": "level", "operator": "Gt", "value": "5", "effect": "NoExecute" }]);
        cluster.create(evictions::on(&node, "web", &tolerations)).await?;
        evictions::taint(&cluster, &node, &json!([{ "key": "level", "value": "7", "effect": "NoExecute" }])).await?;
        if !compares_numbers {
            cluster.until_gone::<Pod>("web").await?;
        }
        let template = json!({ "template": { "spec": { "tolerations": tolerations } } });
        cluster.create(daemon_sets::set(template)).await?;
        let desired = async || {
            let status = cluster.api::<DaemonSet>().get("agent").await?.status.unwrap_or_default();
            Ok((status.observed_generation, status.desired_number_scheduled))
        };
        let what = format!("pods of a DaemonSet, with the gate {compares_numbers}");
        cluster.until_eq(&what, desired, (Some(1), i32::from(compares_numbers))).await?;
        cluster.settle().await?;
        let left = cluster.api::<Pod>().get_opt("web").await?.is_some();
        expect_eq("the other pod is there", &left, &compares_numbers)?;
        Api::<Node>::all(cluster.client()).delete(&node, &DeleteParams::default()).await?;
        cluster.stop().await?;
    }
    Ok(())
}

async fn start(name: &str, server: &'static [&'static str]) -> Result<Rig, Failure> {
    Rig::start(env!("CARGO_TARGET_TMPDIR"), name, Setup { server, ..Setup::DEFAULT }).await
}

async fn run(
    cluster: Builder,
    name: &str,
    scenario: impl AsyncFnOnce(&TestCluster) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let rig = start(name, &[GATES, APIS]).await?;
    let cluster = cluster.start_on(rig.kubeconfig()).await?;
    scenario(&cluster).await?;
    cluster.stop().await
}
