//! What changes when a feature gate that is on by default is off; the scenarios of each controller are with it on, or stand
//! beside it here.

use http::Method;
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use steersman_base::Istr;
use steersman_controllers::{
    device_taint_eviction, job, node_lifecycle, persistentvolumeclaim_protection, resourcequota, statefulset,
};
use steersman_runtime::{Manager, ManagerOptions};
use steersman_testing::objects::{self, ObjectBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use crate::scenarios::device_taint_eviction::{
    CONTROLLERS as DEVICES, clean, create_rule, publish, rules, until_leaving, use_device,
};
use crate::scenarios::horizontal_pod_autoscaler::{
    self as autoscalers, autoscaler, external, queue, until, until_replicas, web,
};
use crate::scenarios::job as jobs;
use crate::scenarios::node_lifecycle::node_says;
use crate::scenarios::protection;
use crate::scenarios::resourcequota::until_used;
use crate::scenarios::statefulset::{images, patch, revisions, set, until_complete};
use crate::scenarios::support::beside::Beside;
use crate::scenarios::support::controllers;
use crate::scenarios::support::line::{Line, Trouble};

pub(crate) use crate::scenarios::device_taint_eviction::cluster as with_rules;
pub(crate) use crate::scenarios::horizontal_pod_autoscaler::with_nodes as with_generation;
pub(crate) use crate::scenarios::resourcequota::cluster as with_pod_level;
pub(crate) use crate::scenarios::statefulset::with_nodes as with_max_unavailable;

scenarios! {
    with_max_unavailable_several_pods_are_replaced_at_once on with_max_unavailable,
    without_max_unavailable_one_pod_is_replaced_at_a_time on without_max_unavailable,
    with_semantic_comparison_the_same_template_in_other_words_is_no_new_revision on without_controllers,
    without_semantic_comparison_the_same_template_in_other_words_is_a_new_revision on without_controllers,
    without_mutable_directives_a_suspended_job_keeps_its_start_time on without_mutable_directives,
    without_scale_to_zero_an_autoscaler_does_not_come_back_from_zero on without_scale_to_zero alone,
    with_hpa_generation_the_status_has_the_observed_one on with_generation alone,
    without_hpa_generation_the_status_has_none on without_generation alone,
    with_pod_level_resources_a_quota_counts_them on with_pod_level,
    without_pod_level_resources_a_quota_counts_containers on without_pod_level,
    without_unused_since_a_claim_has_no_such_condition on without_unused_since,
    with_taint_rules_a_rule_evicts on with_rules,
    without_taint_rules_a_rule_does_nothing on without_rules,
    with_the_circuit_breaker_a_lease_is_read_before_its_node_is_lost on with_one_node alone,
    without_the_circuit_breaker_a_lease_is_not_read on with_one_node alone,
}

/// `MaxUnavailableStatefulSet=false`.
pub(crate) fn without_max_unavailable() -> Builder {
    with_max_unavailable().options(statefulset::Options::default().max_unavailable(false))
}

/// The test starts managers itself.
pub(crate) fn without_controllers() -> Builder {
    TestCluster::builder().nodes(1)
}

/// `MutableSchedulingDirectivesForSuspendedJobs=false`.
pub(crate) fn without_mutable_directives() -> Builder {
    jobs::cluster().options(job::Options::default().mutable_scheduling_directives(false))
}

/// `HPAScaleToZero=false`.
pub(crate) fn without_scale_to_zero() -> Builder {
    let options = autoscalers::options().scale_to_zero(false);
    autoscalers::with_nodes().options(options)
}

/// `HPAGeneration=false`.
pub(crate) fn without_generation() -> Builder {
    let options = autoscalers::options().generation(false);
    autoscalers::with_nodes().options(options)
}

/// `PodLevelResources=false`.
pub(crate) fn without_pod_level() -> Builder {
    let options = resourcequota::Options::default().pod_level_resources(false);
    with_pod_level().options(options)
}

/// `PersistentVolumeClaimUnusedSinceTime=false`.
pub(crate) fn without_unused_since() -> Builder {
    protection::cluster().options(persistentvolumeclaim_protection::Options::default().tracks_unused(false))
}

/// `DRADeviceTaintRules=false`.
pub(crate) fn without_rules() -> Builder {
    let options = device_taint_eviction::Options::default().rules(false);
    TestCluster::builder().controllers(DEVICES).options(options)
}

/// A node; the test starts the manager itself.
pub(crate) fn with_one_node() -> Builder {
    TestCluster::builder().nodes(1)
}

/// `MaxUnavailableStatefulSet=true`: a template whose pods never become ready gets three of them.
pub(crate) async fn with_max_unavailable_several_pods_are_replaced_at_once(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    replaced(cluster, 3).await
}

/// `MaxUnavailableStatefulSet=false`: it gets one.
pub(crate) async fn without_max_unavailable_one_pod_is_replaced_at_a_time(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    replaced(cluster, 1).await
}

async fn replaced(cluster: &TestCluster, want: usize) -> Result<(), Failure> {
    let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 3 } });
    cluster.create(set(3, json!({ "podManagementPolicy": "Parallel", "updateStrategy": rolling }))).await?;
    until_complete(cluster, 3).await?;
    let never_ready = json!({ "nodes.steersman.dev/never-ready": "true" });
    let containers = json!([{ "name": "main", "image": "web:broken" }]);
    let template = json!({ "metadata": { "annotations": never_ready }, "spec": { "containers": containers } });
    patch(cluster, json!({ "spec": { "template": template } })).await?;
    let broken = async || Ok(images(cluster).await?.values().filter(|image| *image == "web:broken").count());
    cluster.until_eq("pods of the new template", broken, want).await?;
    cluster.settle().await?;
    expect_eq("and no more of them", &broken().await?, &want)
}

/// `StatefulSetSemanticRevisionComparison=true`.
pub(crate) async fn with_semantic_comparison_the_same_template_in_other_words_is_no_new_revision(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    reworded(cluster, true, 1).await
}

/// `StatefulSetSemanticRevisionComparison=false`.
pub(crate) async fn without_semantic_comparison_the_same_template_in_other_words_is_a_new_revision(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    reworded(cluster, false, 2).await
}

/// An older manager has written the template with an empty field that is left out today.
async fn reworded(cluster: &TestCluster, semantic_comparison: bool, want: usize) -> Result<(), Failure> {
    let options = statefulset::Options::default().semantic_comparison(semantic_comparison);
    cluster.create(set(1, json!({}))).await?;
    let manager = start(cluster, options)?;
    until_complete(cluster, 1).await?;
    manager.stop().await?;
    let all = cluster.api::<ControllerRevision>();
    let mut revision = all.list(&ListParams::default()).await?.items.remove(0);
    let name = revision.metadata.name.clone().unwrap_or_default();
    cluster.delete::<ControllerRevision>(&name).await?;
    let mut data = revision.data.0;
    data["spec"]["template"]["metadata"]["creationTimestamp"] = Value::Null;
    revision.data = RawExtension(data);
    let old = revision.metadata;
    revision.metadata = ObjectMeta {
        name: old.name,
        labels: old.labels,
        owner_references: old.owner_references,
        ..ObjectMeta::default()
    };
    all.create(&PostParams::default(), &revision).await?;
    let manager = start(cluster, options)?;
    let count = async || Ok(revisions(cluster).await?.len());
    cluster.until_eq("revisions", count, want).await?;
    until_complete(cluster, 1).await?;
    expect_eq("and no more of them", &count().await?, &want)?;
    manager.stop().await?;
    cluster.delete::<StatefulSet>("web").await
}

fn start(cluster: &TestCluster, options: statefulset::Options) -> Result<Beside, Failure> {
    let manager = manager(cluster, cluster.client())?;
    manager.set_options(options);
    Beside::run(manager, &[controllers::STATEFUL_SET])
}

fn manager(cluster: &TestCluster, client: kube::Client) -> Result<Manager, Failure> {
    let namespace = Istr::interned(cluster.namespace());
    Ok(Manager::new(client, ManagerOptions::default().clock(cluster.clock().clone()).namespace(namespace))?)
}

/// `MutableSchedulingDirectivesForSuspendedJobs=false`: nothing can be changed before the next start.
pub(crate) async fn without_mutable_directives_a_suspended_job_keeps_its_start_time(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let job = cluster.create(jobs::job(json!({ "completions": 2, "parallelism": 2 }))).await?;
    jobs::active(cluster, &job, 2).await?;
    jobs::patch(cluster, json!({ "suspend": true })).await?;
    jobs::active(cluster, &job, 0).await?;
    jobs::until_conditions(cluster, &["Suspended JobSuspended"]).await?;
    cluster.settle().await?;
    expect(jobs::status(cluster).await?.start_time.is_some(), "it has its start time", &"none")
}

/// `HPAScaleToZero=false`: a server that takes `minReplicas: 0` lets it scale to zero; nothing reports it, so it stays there.
pub(crate) async fn without_scale_to_zero_an_autoscaler_does_not_come_back_from_zero(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    cluster.create(web(1)).await?;
    autoscalers::until_ready(cluster, 1).await?;
    queue(cluster, "0")?;
    cluster.create(autoscaler("web", json!({ "minReplicas": 0, "metrics": external("2") }))).await?;
    until_replicas(cluster, 0).await?;
    queue(cluster, "5")?;
    until(cluster, "web", ("ScalingActive", "False", "ScalingDisabled")).await?;
    cluster.advance(2 * autoscalers::PERIOD).await;
    until_replicas(cluster, 0).await?;
    let conditions = autoscalers::status(cluster, "web").await?.conditions.unwrap_or_default();
    let reported = conditions.iter().any(|condition| condition.type_ == "ScaledToZero");
    expect(!reported, "it does not report zero", &conditions)
}

/// `HPAGeneration=true`.
pub(crate) async fn with_hpa_generation_the_status_has_the_observed_one(cluster: &TestCluster) -> Result<(), Failure> {
    observed(cluster, true).await
}

/// `HPAGeneration=false`.
pub(crate) async fn without_hpa_generation_the_status_has_none(cluster: &TestCluster) -> Result<(), Failure> {
    observed(cluster, false).await
}

async fn observed(cluster: &TestCluster, is_reported: bool) -> Result<(), Failure> {
    cluster.create(web(1)).await?;
    autoscalers::until_ready(cluster, 1).await?;
    queue(cluster, "2")?;
    cluster.create(autoscaler("web", json!({ "metrics": external("2") }))).await?;
    until(cluster, "web", ("ScalingActive", "True", "ValidMetricFound")).await?;
    let autoscaler = cluster.api::<HorizontalPodAutoscaler>().get("web").await?;
    let observed = autoscaler.status.and_then(|status| status.observed_generation);
    expect_eq("the observed generation", &observed, &autoscaler.metadata.generation.filter(|_| is_reported))
}

/// `PodLevelResources=true`.
pub(crate) async fn with_pod_level_resources_a_quota_counts_them(cluster: &TestCluster) -> Result<(), Failure> {
    counted(cluster, "2").await
}

/// `PodLevelResources=false`.
pub(crate) async fn without_pod_level_resources_a_quota_counts_containers(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    counted(cluster, "500m").await
}

/// The quota comes after the pod: what the server charges is not what is tested.
async fn counted(cluster: &TestCluster, want: &str) -> Result<(), Failure> {
    let container = json!({ "name": "main", "image": "example/main", "resources": { "requests": { "cpu": "500m" } } });
    let whole = json!({ "requests": { "cpu": "2" }, "limits": { "cpu": "2" } });
    let pod = objects::pod("web").with(json!({ "spec": { "containers": [container], "resources": whole } }));
    cluster.create(pod).await?;
    let quota = json!({ "metadata": { "name": "quota" }, "spec": { "hard": { "requests.cpu": "4" } } });
    cluster.create(serde_json::from_value::<k8s_openapi::api::core::v1::ResourceQuota>(quota)?).await?;
    until_used(cluster, "quota", &[("requests.cpu", want)]).await
}

/// `PersistentVolumeClaimUnusedSinceTime=false`.
pub(crate) async fn without_unused_since_a_claim_has_no_such_condition(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(protection::claim("data")).await?;
    protection::patch_claim(cluster, json!({ "status": { "phase": "Bound" } }), "status").await?;
    cluster.settle().await?;
    let status = cluster.api::<PersistentVolumeClaim>().get("data").await?.status.unwrap_or_default();
    expect_eq("its conditions", &status.conditions.unwrap_or_default().len(), &0)?;
    cluster.delete::<PersistentVolumeClaim>("data").await?;
    cluster.until_gone::<PersistentVolumeClaim>("data").await
}

/// `DRADeviceTaintRules=true`.
pub(crate) async fn with_taint_rules_a_rule_evicts(cluster: &TestCluster) -> Result<(), Failure> {
    publish(cluster, &json!([])).await?;
    use_device(cluster, "web", "gpu-0", &json!([])).await?;
    let rule = create_rule(cluster, "NoExecute").await?;
    until_leaving(cluster, "web").await?;
    rules(cluster).delete(&rule, &DeleteParams::default()).await?;
    clean(cluster, &["web"]).await
}

/// `DRADeviceTaintRules=false`: it is not read, and its status is not written; taints in slices count.
pub(crate) async fn without_taint_rules_a_rule_does_nothing(cluster: &TestCluster) -> Result<(), Failure> {
    publish(cluster, &json!([])).await?;
    use_device(cluster, "web", "gpu-0", &json!([])).await?;
    let rule = create_rule(cluster, "NoExecute").await?;
    cluster.settle().await?;
    let pod = cluster.api::<Pod>().get("web").await?;
    expect(pod.metadata.deletion_timestamp.is_none(), "it stays", &pod.metadata)?;
    let status = rules(cluster).get(&rule).await?.status;
    expect(status.is_none_or(|status| status.conditions.is_none()), "it has no condition", &"one")?;
    publish(cluster, &json!([{ "key": "example.com/broken", "effect": "NoExecute" }])).await?;
    until_leaving(cluster, "web").await?;
    rules(cluster).delete(&rule, &DeleteParams::default()).await?;
    clean(cluster, &["web"]).await
}

/// `NodeControllerLeaseCircuitBreaker=true`.
pub(crate) async fn with_the_circuit_breaker_a_lease_is_read_before_its_node_is_lost(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    lose(cluster, true).await
}

/// `NodeControllerLeaseCircuitBreaker=false`.
pub(crate) async fn without_the_circuit_breaker_a_lease_is_not_read(cluster: &TestCluster) -> Result<(), Failure> {
    lose(cluster, false).await
}

async fn lose(cluster: &TestCluster, checks_leases: bool) -> Result<(), Failure> {
    let line = Line::to(cluster.client(), Trouble::None);
    let manager = manager(cluster, line.client())?;
    manager.set_options(
        node_lifecycle::Options::default()
            .monitor_period(std::time::Duration::from_secs(1))
            .monitor_grace_period(std::time::Duration::from_secs(21))
            .checks_leases(checks_leases),
    );
    let manager = Beside::run(manager, &[controllers::NODE_LIFECYCLE])?;
    let node = cluster.nodes().names().first().map(ToString::to_string).unwrap_or_default();
    let says = async || {
        let exists = Api::<Node>::all(cluster.client()).get_opt(&node).await?.is_some();
        Ok(if exists { node_says(cluster, &node).await?.0 } else { String::new() })
    };
    cluster.until_eq("the node is well", says, "True".to_owned()).await?;
    cluster.nodes().stop_heartbeats(&node)?;
    cluster.until_eq("the node is lost", says, "Unknown".to_owned()).await?;
    let reads = line.count(&Method::GET, &format!("/leases/{node}"));
    expect_eq("its lease was read", &(reads > 0), &checks_leases)?;
    manager.stop().await
}
