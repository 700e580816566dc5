//! Jobs whose pods are scheduled together: with the gate and without it, and whatever the caches show and the answers say.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::json;
use steersman_testing::objects::{self, ObjectBuilder as _};
use steersman_testing::{Builder, Failure, Fault, Faults, TestCluster, Verb, expect, expect_eq};

use crate::quiet;
use crate::scenarios::job::{active, active_now, exit, job};
use crate::scenarios::support::controllers::{Controller, JOB_WITH_WORKLOADS};
use crate::scenarios::support::crash::{Scene, crash_after_each_write};
use crate::scenarios::support::{gangs, gated};

const CONTROLLERS: &[Controller] = &[JOB_WITH_WORKLOADS];

/// The APIs are definitions here.
fn defined(builder: Builder) -> Builder {
    builder.define(gangs::workloads_defined()).define(gated::pod_groups())
}

async fn run(builder: Builder, scenario: impl AsyncFnOnce(&TestCluster) -> Result<(), Failure>) -> Result<(), Failure> {
    let cluster = defined(builder).start().await?;
    scenario(&cluster).await?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn the_pods_of_a_job_are_scheduled_together() -> Result<(), Failure> {
    run(gangs::on(), gangs::the_pods_of_a_job_are_scheduled_together).await
}

#[tokio::test(start_paused = true)]
async fn a_job_without_a_wish_has_a_basic_group() -> Result<(), Failure> {
    run(gangs::on(), gangs::a_job_without_a_wish_has_a_basic_group).await
}

#[tokio::test(start_paused = true)]
async fn a_parent_can_delegate_the_group() -> Result<(), Failure> {
    run(gangs::on(), gangs::a_parent_can_delegate_the_group).await
}

#[tokio::test(start_paused = true)]
async fn without_the_gate_a_job_has_no_workload() -> Result<(), Failure> {
    run(gangs::off(), gangs::without_the_gate_a_job_has_no_workload).await
}

/// The manager dies between Workload and group, between group and pods, and so on: there is one of each, and every pod is
/// in the group.
#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_leads_to_one_workload_and_one_group() -> Result<(), Failure> {
    async fn story(scene: &Scene<'_>) -> Result<(), Failure> {
        let cluster = scene.cluster();
        let gang = json!({ "schedulingPolicy": { "gang": {} } });
        cluster.create(job(json!({ "completions": 3, "parallelism": 2, "scheduling": gang }))).await?;
        scene.rest().await?;
        let patch = Patch::Merge(json!({ "spec": { "parallelism": 3 } }));
        cluster.api::<Job>().patch("sums", &PatchParams::default(), &patch).await?;
        scene.rest().await?;
        for pod in active_now(cluster).await? {
            exit(cluster, &pod, 0).await?;
        }
        scene.rest().await
    }
    async fn world(cluster: &TestCluster) -> Result<Vec<String>, Failure> {
        let groups = gangs::list(&gated::groups(cluster)).await?;
        let workloads = gangs::list(&gangs::workloads(cluster)).await?;
        let pods = crate::scenarios::job::pods(cluster).await?;
        let named: Vec<_> = groups.iter().map(|group| group.metadata.name.clone()).collect();
        let members = pods.iter().filter(|pod| named.contains(&gangs::group_of(pod))).count();
        let sizes: Vec<_> = groups.iter().map(|group| group.data["spec"]["schedulingPolicy"].to_string()).collect();
        Ok(vec![format!("{} Workloads, {members} of {} pods in groups, {sizes:?}", workloads.len(), pods.len())])
    }
    let crashes = crash_after_each_write(|| defined(TestCluster::builder()), CONTROLLERS, story, world).await?;
    expect(crashes >= 10, "two objects, pods, two sizes, the counts", &crashes)
}

/// The server has made them, and nobody hears of it; caches lag, too. No second one is made, and no pod without a group.
#[tokio::test(start_paused = true)]
async fn creates_without_an_answer_are_not_repeated() -> Result<(), Failure> {
    for lost in ["workloads", "podgroups"] {
        let faults = Faults::default();
        for resource in ["workloads", "podgroups", "jobs"] {
            faults.on(Verb::Watch, resource).happens(Fault::Lag(Duration::from_secs(10)));
        }
        faults.on(Verb::Create, lost).nth(1).lose_reply();
        let cluster = defined(gangs::on()).faults(&faults).start().await?;
        let job = cluster.create(job(json!({ "parallelism": 2, "completions": 2 }))).await?;
        cluster.advance(Duration::from_secs(120)).await;
        let pods = active(&cluster, &job, 2).await?;
        let groups = gangs::list(&gated::groups(&cluster)).await?;
        expect_eq("groups", &groups.len(), &1)?;
        expect_eq("Workloads", &gangs::list(&gangs::workloads(&cluster)).await?.len(), &1)?;
        let of_pods: Vec<_> = pods.iter().map(gangs::group_of).collect();
        expect_eq("the pods are in it", &of_pods, &vec![groups[0].metadata.name.clone(); 2])?;
        for pod in &pods {
            exit(&cluster, pod, 0).await?;
        }
        quiet(cluster).await?;
    }
    Ok(())
}

/// The server refuses Workloads: there are no pods outside of a group, and they come when it takes Workloads again.
#[tokio::test(start_paused = true)]
async fn a_job_waits_for_its_workload() -> Result<(), Failure> {
    let cluster = defined(gangs::on()).start().await?;
    cluster.faults().on(Verb::Create, "workloads").refuse(http::StatusCode::FORBIDDEN);
    let job = cluster.create(job(json!({}))).await?;
    cluster.advance(Duration::from_secs(600)).await;
    expect_eq("pods", &crate::scenarios::job::pods(&cluster).await?.len(), &0)?;
    let reported =
        async || Ok(crate::scenarios::job::events(&cluster).await?.contains(&"FailedWorkloadCreate".to_owned()));
    cluster.until_eq("an event reports it", reported, true).await?;
    cluster.faults().heal();
    cluster.advance(Duration::from_secs(61)).await;
    let pods = active(&cluster, &job, 1).await?;
    expect(gangs::group_of(&pods[0]).is_some(), "it is in a group", &pods)?;
    cluster.stop().await
}

/// The parent has created its Workload and the Job at once, and the cache of Workloads lags: the pods are in the group.
#[tokio::test(start_paused = true)]
async fn a_parents_workload_that_the_cache_does_not_show_yet_counts() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "workloads").happens(Fault::Lag(Duration::from_secs(20)));
    let cluster = defined(gangs::on()).faults(&faults).start().await?;
    cluster.settle().await?;
    let reference = json!({ "apiGroup": "apps", "kind": "Deployment", "name": "parent" });
    let template = json!({ "name": "workers", "schedulingPolicy": { "basic": {} } });
    let mut workload: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload", "metadata": { "name": "of-parent" },
    }))?;
    workload.data = json!({ "spec": { "controllerRef": reference, "podGroupTemplates": [template] } });
    gangs::workloads(&cluster).create(&PostParams::default(), &workload).await?;
    let parent =
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "parent", "uid": "p", "controller": true });
    let annotations = json!({ (steersman_controllers::job::TEMPLATE_ANNOTATION): "workers" });
    let child =
        objects::job("child").with(json!({ "metadata": { "ownerReferences": [parent], "annotations": annotations } }));
    let child = cluster.create(child).await?;
    let pods = active(&cluster, &child, 1).await?;
    expect(gangs::group_of(&pods[0]).is_some(), "it is in the group", &pods)?;
    cluster.stop().await
}
