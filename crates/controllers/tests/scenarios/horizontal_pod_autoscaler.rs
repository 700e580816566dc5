//! What an autoscaler of pods promises. Metrics come from the metrics APIs of simulated nodes: in process on the embedded
//! server, behind an `APIService` on the rig.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::{HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use steersman_controllers::horizontal_pod_autoscaler::Options;
use steersman_testing::objects::{self, ObjectBuilder as _, WorkloadBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use crate::scenarios::support::controllers::{self, Controller};

scenarios! {
    more_usage_adds_pods_and_less_usage_removes_them on with_nodes alone,
    a_missing_metric_or_target_is_a_condition_until_it_is_there on with_nodes alone,
    pods_of_two_autoscalers_are_scaled_by_neither on with_nodes alone,
    the_limits_apply_to_any_kind_with_a_scale on with_nodes alone,
    an_external_metric_scales_to_zero_and_back on with_nodes alone,
    what_somebody_scaled_to_zero_is_left_alone on with_nodes alone,
    the_policies_of_an_autoscaler_limit_each_step on with_nodes alone,
    custom_metrics_of_pods_and_of_an_object_count on with_nodes alone,
}

pub(crate) const CONTROLLERS: &[Controller] =
    &[controllers::DEPLOYMENT, controllers::REPLICA_SET, controllers::HORIZONTAL_POD_AUTOSCALER];

/// Short enough for a real clock, long enough that a cluster comes to rest between two passes.
pub(crate) const PERIOD: Duration = Duration::from_secs(4);

/// The options of scenarios.
pub(crate) fn options() -> Options {
    Options::default()
        .sync_period(PERIOD)
        // An earlier recommendation counts in at least one pass, also by a real clock.
        .downscale_stabilization(2 * PERIOD)
        .cpu_initialization_period(Duration::ZERO)
}

/// A cluster with the metrics APIs, and with a custom kind that has a scale.
pub(crate) fn with_nodes() -> Builder {
    TestCluster::builder().controllers(CONTROLLERS).nodes(2).metrics().options(options()).define(ship())
}

const GROUP: &str = "autoscaled.example.com";

/// A custom kind with a scale.
fn ship() -> Value {
    let scale = json!({
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("ships.{GROUP}") },
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": { "plural": "ships", "singular": "ship", "kind": "Ship", "listKind": "ShipList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {}, "scale": scale },
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    })
}

fn ships(cluster: &TestCluster) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: GROUP.into(),
        version: "v1".into(),
        api_version: format!("{GROUP}/v1"),
        kind: "Ship".into(),
        plural: "ships".into(),
    };
    Api::namespaced_with(cluster.client(), cluster.namespace(), &resource)
}

/// Lets pods have no usage but the one that is reported.
fn only_what_is_reported(cluster: &TestCluster) {
    cluster.metrics().set_default_usage(false);
}

/// Reports that every pod that there is uses this much CPU.
async fn report(cluster: &TestCluster, cpu: &str) -> Result<(), Failure> {
    only_what_is_reported(cluster);
    for pod in cluster.api::<Pod>().list(&ListParams::default()).await?.items {
        cluster.metrics().set_usage(cluster.namespace(), &pod.metadata.name.unwrap_or_default(), cpu, "10Mi")?;
    }
    Ok(())
}

/// Sets the length of a queue.
pub(crate) fn queue(cluster: &TestCluster, length: &str) -> Result<(), Failure> {
    Ok(cluster.metrics().set_external(cluster.namespace(), "queue-depth", &[], length)?)
}

/// A Deployment whose pods request 100m of CPU.
pub(crate) fn web(replicas: i32) -> Deployment {
    let container = json!({ "name": "main", "image": "web:1", "resources": { "requests": { "cpu": "100m" } } });
    let template = json!({ "spec": { "template": { "spec": { "containers": [container] } } } });
    objects::deployment("web").replicas(replicas).with(template)
}

/// An autoscaler of the Deployment `web`, with this in its spec.
#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
pub(crate) fn autoscaler(name: &str, spec: Value) -> HorizontalPodAutoscaler {
    let base = json!({
        "metadata": { "name": name },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" }, "maxReplicas": 4,
            "metrics": [{
                "type": "Resource",
                "resource": { "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 50 } },
            }],
        },
    });
    serde_json::from_value(objects::merged(base, json!({ "spec": spec }))).expect("it is an autoscaler")
}

pub(crate) fn external(target: &str) -> Value {
    let target = json!({ "type": "AverageValue", "averageValue": target });
    json!([{ "type": "External", "external": { "metric": { "name": "queue-depth" }, "target": target } }])
}

pub(crate) async fn status(cluster: &TestCluster, name: &str) -> Result<HorizontalPodAutoscalerStatus, Failure> {
    Ok(cluster.api::<HorizontalPodAutoscaler>().get(name).await?.status.unwrap_or_default())
}

/// Waits for a condition: type, status and reason. Returns its message.
pub(crate) async fn until(cluster: &TestCluster, name: &str, want: (&str, &str, &str)) -> Result<String, Failure> {
    let (type_, holds, reason) = want;
    let look = async || {
        let conditions = status(cluster, name).await?.conditions.unwrap_or_default();
        Ok(conditions.into_iter().find(|condition| condition.type_ == type_))
    };
    let is_so = |found: &Option<_>| {
        let found: Option<&k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscalerCondition> = found.as_ref();
        found.is_some_and(|found| found.status == holds && found.reason.as_deref() == Some(reason))
    };
    let found = cluster.until_right(&format!("{name} is {want:?}"), look, is_so).await?;
    Ok(found.and_then(|found| found.message).unwrap_or_default())
}

pub(crate) async fn until_replicas(cluster: &TestCluster, want: i32) -> Result<(), Failure> {
    let replicas = async || Ok(cluster.api::<Deployment>().get("web").await?.spec.replicas);
    cluster.until_eq(&format!("{want} replicas"), replicas, Some(want)).await
}

/// Waits until the Deployment has this many ready pods, and no others.
pub(crate) async fn until_ready(cluster: &TestCluster, want: i32) -> Result<(), Failure> {
    let look = async || {
        let status = cluster.api::<Deployment>().get("web").await?.status.unwrap_or_default();
        let pods = cluster.api::<Pod>().list(&ListParams::default()).await?.items.len();
        Ok((status.ready_replicas.unwrap_or_default(), pods))
    };
    cluster.until_eq(&format!("{want} ready pods"), look, (want, usize::try_from(want).unwrap_or_default())).await
}

/// Waits for an event of this reason about an autoscaler, and returns its message.
async fn until_event(cluster: &TestCluster, reason: &str, part: &str) -> Result<String, Failure> {
    let events = async || {
        let events = cluster.api::<Event>().list(&ListParams::default()).await?.items.into_iter();
        let ours = events.filter(|event| event.reason.as_deref() == Some(reason));
        Ok(ours.filter_map(|event| event.message).collect::<Vec<_>>())
    };
    let has = |messages: &Vec<String>| messages.iter().any(|message| message.contains(part));
    let found = cluster.until_right(&format!("an event {reason} with {part:?}"), events, has).await?;
    Ok(found.into_iter().find(|message| message.contains(part)).unwrap_or_default())
}

/// A pod that uses four times its share becomes four; when all use little, one is left after the window.
pub(crate) async fn more_usage_adds_pods_and_less_usage_removes_them(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(web(1)).await?;
    until_ready(cluster, 1).await?;
    report(cluster, "200m").await?;
    cluster.create(autoscaler("web", json!({}))).await?;
    until_replicas(cluster, 4).await?;
    let reason = "cpu resource utilization (percentage of request) above target";
    until_event(cluster, "SuccessfulRescale", &format!("New size: 4; reason: {reason}")).await?;
    until_ready(cluster, 4).await?;
    // The new ones have no readings and are taken for idle: two hundred percent of one is fifty percent of four.
    until(cluster, "web", ("AbleToScale", "True", "ReadyForNewScale")).await?;
    let reported = status(cluster, "web").await?;
    expect_eq("replicas", &(reported.current_replicas, reported.desired_replicas), &(Some(4), 4))?;
    expect(reported.last_scale_time.is_some(), "there is a time of the last change", &reported)?;
    expect_eq("the observed generation", &reported.observed_generation, &Some(1))?;
    let current = reported.current_metrics.iter().flatten().find_map(|metric| metric.resource.as_ref());
    let current = current.map(|of| (of.name.as_str(), of.current.average_utilization));
    expect_eq("the usage", &current, &Some(("cpu", Some(200))))?;
    until(cluster, "web", ("ScalingActive", "True", "ValidMetricFound")).await?;

    report(cluster, "10m").await?;
    until(cluster, "web", ("AbleToScale", "True", "ScaleDownStabilized")).await?;
    until_replicas(cluster, 1).await?;
    until_event(cluster, "SuccessfulRescale", "New size: 1; reason: All metrics below target").await?;
    until_ready(cluster, 1).await?;
    until(cluster, "web", ("AbleToScale", "True", "ReadyForNewScale")).await?;
    until(cluster, "web", ("ScalingLimited", "False", "DesiredWithinRange")).await?;
    Ok(())
}

/// A target that is not there, a kind that nobody knows and a metric that nobody has are reported; the autoscaler goes on
/// when they are there.
pub(crate) async fn a_missing_metric_or_target_is_a_condition_until_it_is_there(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    only_what_is_reported(cluster);
    cluster.create(autoscaler("web", json!({}))).await?;
    let message = until(cluster, "web", ("AbleToScale", "False", "FailedGetScale")).await?;
    let want = "the HPA controller was unable to get the target's current scale: deployments.apps \"web\" not found";
    expect_eq("the message", &message.as_str(), &want)?;
    let strange = json!({ "scaleTargetRef": { "apiVersion": "dreams.example.com/v1", "kind": "Dream", "name": "x" } });
    cluster.create(autoscaler("strange", strange)).await?;
    let message = until(cluster, "strange", ("AbleToScale", "False", "FailedGetScale")).await?;
    let want = "no matches for kind \"Dream\" in group \"dreams.example.com\"";
    expect(message.ends_with(want), "the kind is not known", &message)?;
    cluster.delete::<HorizontalPodAutoscaler>("strange").await?;

    cluster.create(web(1)).await?;
    let message = until(cluster, "web", ("ScalingActive", "False", "FailedGetResourceMetric")).await?;
    let want = "the HPA was unable to compute the replica count: failed to get cpu utilization: unable to get metrics \
        for resource cpu: no metrics returned from resource metrics API";
    expect_eq("the message", &message.as_str(), &want)?;
    until(cluster, "web", ("AbleToScale", "True", "SucceededGetScale")).await?;
    let error = "invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value";
    until_event(cluster, "FailedComputeMetricsReplicas", error).await?;
    until_event(cluster, "FailedGetScale", "not found").await?;

    until_ready(cluster, 1).await?;
    report(cluster, "50m").await?;
    until(cluster, "web", ("ScalingActive", "True", "ValidMetricFound")).await?;
    until(cluster, "web", ("AbleToScale", "True", "ReadyForNewScale")).await?;
    until_replicas(cluster, 1).await
}

/// Two autoscalers of the same pods do nothing until one of them is gone.
pub(crate) async fn pods_of_two_autoscalers_are_scaled_by_neither(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(web(1)).await?;
    until_ready(cluster, 1).await?;
    report(cluster, "50m").await?;
    cluster.create(autoscaler("first", json!({}))).await?;
    until(cluster, "first", ("ScalingActive", "True", "ValidMetricFound")).await?;
    cluster.create(autoscaler("second", json!({}))).await?;
    let names = format!("(e.g. [{0}/first {0}/second])", cluster.namespace());
    for name in ["first", "second"] {
        let message = until(cluster, name, ("ScalingActive", "False", "AmbiguousSelector")).await?;
        let want = format!("pods by selector app=web are controlled by more than one HPA {names}");
        expect_eq("the message", &message, &want)?;
    }
    until_event(cluster, "AmbiguousSelector", &names).await?;
    cluster.delete::<HorizontalPodAutoscaler>("second").await?;
    until(cluster, "first", ("ScalingActive", "True", "ValidMetricFound")).await?;
    until(cluster, "first", ("AbleToScale", "True", "ReadyForNewScale")).await?;
    until_replicas(cluster, 1).await
}

/// A custom kind with the subresource is scaled as any other; limits apply before any metric is asked for.
pub(crate) async fn the_limits_apply_to_any_kind_with_a_scale(cluster: &TestCluster) -> Result<(), Failure> {
    let ark = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Ship", "metadata": { "name": "ark" }, "spec": { "replicas": 1 },
    });
    let ships = ships(cluster);
    ships.create(&PostParams::default(), &serde_json::from_value(ark)?).await?;
    let replicas = async || Ok(ships.get("ark").await?.data["spec"]["replicas"].as_i64());
    let target = json!({ "apiVersion": "autoscaled.example.com/v1", "kind": "Ship", "name": "ark" });
    cluster.create(autoscaler("ark", json!({ "scaleTargetRef": target, "minReplicas": 2 }))).await?;
    cluster.until_eq("two replicas", replicas, Some(2)).await?;
    until_event(cluster, "SuccessfulRescale", "New size: 2; reason: Current number of replicas below Spec.MinReplicas")
        .await?;
    // A change of the spec is seen at once.
    let patch = Patch::Merge(json!({ "spec": { "replicas": 9 } }));
    ships.patch("ark", &PatchParams::default(), &patch).await?;
    let patch = Patch::Merge(json!({ "spec": { "minReplicas": 1 } }));
    cluster.api::<HorizontalPodAutoscaler>().patch("ark", &PatchParams::default(), &patch).await?;
    cluster.until_eq("four replicas", replicas, Some(4)).await?;
    until_event(cluster, "SuccessfulRescale", "New size: 4; reason: Current number of replicas above Spec.MaxReplicas")
        .await?;
    let message = until(cluster, "ark", ("ScalingActive", "False", "InvalidSelector")).await?;
    expect_eq("the message", &message.as_str(), &"the HPA target's scale is missing a selector")?;
    until_event(cluster, "SelectorRequired", "selector is required").await?;
    // A selector that upstream's client cannot read makes the scale unreadable: the limits do not apply either.
    let patch = Patch::Merge(json!({ "status": { "selector": "a!=b" } }));
    ships.patch_status("ark", &PatchParams::default(), &patch).await?;
    let message = until(cluster, "ark", ("AbleToScale", "False", "FailedGetScale")).await?;
    let want = "failed to parse target selector: \"!=\" is not a valid label selector operator";
    expect_eq("the message", &message.ends_with(want), &true)?;
    let patch = Patch::Merge(json!({ "spec": { "replicas": 9 } }));
    ships.patch("ark", &PatchParams::default(), &patch).await?;
    let patch = Patch::Merge(json!({ "status": { "selector": "a=b" } }));
    ships.patch_status("ark", &PatchParams::default(), &patch).await?;
    cluster.until_eq("four replicas again", replicas, Some(4)).await?;
    cluster.delete::<HorizontalPodAutoscaler>("ark").await
}

/// An empty queue takes the pods to zero, and the condition says who did it; a full one brings them back.
pub(crate) async fn an_external_metric_scales_to_zero_and_back(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(web(1)).await?;
    until_ready(cluster, 1).await?;
    queue(cluster, "0")?;
    cluster.create(autoscaler("web", json!({ "minReplicas": 0, "metrics": external("2") }))).await?;
    until_replicas(cluster, 0).await?;
    until(cluster, "web", ("ScaledToZero", "True", "ScaledToZero")).await?;
    until_ready(cluster, 0).await?;
    queue(cluster, "5")?;
    until_replicas(cluster, 3).await?;
    until(cluster, "web", ("ScaledToZero", "False", "NotScaledToZero")).await?;
    until_event(cluster, "SuccessfulRescale", "New size: 3; reason: external metric queue-depth(nil) above target")
        .await?;
    until_ready(cluster, 3).await?;
    until(cluster, "web", ("AbleToScale", "True", "ReadyForNewScale")).await?;
    let reported = status(cluster, "web").await?;
    let current = reported.current_metrics.iter().flatten().find_map(|metric| metric.external.as_ref());
    let current = current.and_then(|of| of.current.average_value.as_ref()).map(|value| value.0.as_str());
    expect_eq("the share of a pod", &current, &Some("1667m"))
}

/// Zero replicas switch an autoscaler off, unless it was the one that set them.
pub(crate) async fn what_somebody_scaled_to_zero_is_left_alone(cluster: &TestCluster) -> Result<(), Failure> {
    only_what_is_reported(cluster);
    cluster.create(web(0)).await?;
    cluster.create(autoscaler("web", json!({ "minReplicas": 2 }))).await?;
    let message = until(cluster, "web", ("ScalingActive", "False", "ScalingDisabled")).await?;
    let want = "scaling is disabled since the replica count of the target is zero";
    expect_eq("the message", &message.as_str(), &want)?;
    until_replicas(cluster, 0).await?;
    let patch = Patch::Merge(json!({ "spec": { "replicas": 1 } }));
    cluster.api::<Deployment>().patch("web", &PatchParams::default(), &patch).await?;
    until_replicas(cluster, 2).await?;
    until_ready(cluster, 2).await?;
    report(cluster, "50m").await?;
    until(cluster, "web", ("AbleToScale", "True", "ReadyForNewScale")).await?;
    Ok(())
}

/// One pod per period, though four are wanted.
pub(crate) async fn the_policies_of_an_autoscaler_limit_each_step(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(web(1)).await?;
    until_ready(cluster, 1).await?;
    report(cluster, "200m").await?;
    let policies = json!([{ "type": "Pods", "value": 1, "periodSeconds": 6 }]);
    let behavior = json!({ "scaleUp": { "policies": policies }, "scaleDown": { "selectPolicy": "Disabled" } });
    cluster.create(autoscaler("web", json!({ "behavior": behavior }))).await?;
    until_replicas(cluster, 2).await?;
    until(cluster, "web", ("ScalingLimited", "True", "ScaleUpLimit")).await?;
    for size in [3, 4] {
        until_ready(cluster, size - 1).await?;
        report(cluster, "200m").await?;
        until_replicas(cluster, size).await?;
    }
    until_ready(cluster, 4).await?;
    report(cluster, "10m").await?;
    until(cluster, "web", ("ScalingLimited", "True", "ScaleDownLimit")).await?;
    until_replicas(cluster, 4).await
}

/// A metric that pods report, and one of a Service that they share: the one that wants more pods wins.
pub(crate) async fn custom_metrics_of_pods_and_of_an_object_count(cluster: &TestCluster) -> Result<(), Failure> {
    let annotations = json!({ "nodes.steersman.dev/metric.requests": "20" });
    let template = json!({ "spec": { "template": { "metadata": { "annotations": annotations } } } });
    cluster.create(web(1).with(template)).await?;
    until_ready(cluster, 1).await?;
    cluster.metrics().set_object(cluster.namespace(), ("services", "web"), "hits", "5")?;
    let of_pods =
        json!({ "metric": { "name": "requests" }, "target": { "type": "AverageValue", "averageValue": "20" } });
    let of_service = json!({
        "describedObject": { "apiVersion": "v1", "kind": "Service", "name": "web" }, "metric": { "name": "hits" },
        "target": { "type": "AverageValue", "averageValue": "10" },
    });
    let metrics = json!([{ "type": "Pods", "pods": of_pods }, { "type": "Object", "object": of_service }]);
    cluster.create(autoscaler("web", json!({ "metrics": metrics }))).await?;
    until(cluster, "web", ("ScalingActive", "True", "ValidMetricFound")).await?;
    until(cluster, "web", ("AbleToScale", "True", "ReadyForNewScale")).await?;
    until_replicas(cluster, 1).await?;
    cluster.metrics().set_object(cluster.namespace(), ("services", "web"), "hits", "40")?;
    until_replicas(cluster, 4).await?;
    // Upstream calls it an external one, too.
    until_event(cluster, "SuccessfulRescale", "New size: 4; reason: external metric hits(nil) above target").await?;
    until_ready(cluster, 4).await?;
    until(cluster, "web", ("AbleToScale", "True", "ReadyForNewScale")).await?;
    let reported = status(cluster, "web").await?;
    let current = reported.current_metrics.iter().flatten();
    let of_pods =
        current.clone().find_map(|metric| metric.pods.as_ref()).and_then(|of| of.current.average_value.as_ref());
    expect_eq("what each pod reports", &of_pods.map(|value| value.0.as_str()), &Some("20"))?;
    let of_service = current.clone().find_map(|metric| metric.object.as_ref());
    let of_service = of_service.and_then(|of| of.current.average_value.as_ref());
    expect_eq("what each pod has of the Service's", &of_service.map(|value| value.0.as_str()), &Some("10"))
}
