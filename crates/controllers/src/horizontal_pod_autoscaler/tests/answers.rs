//! Questions to the metrics APIs, and their answers.

use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::{LabelSelector, MicroTime, Selector};
use steersman_model::Encoded;
use steersman_model::autoscaling::MetricSpec;
use steersman_model::wire::decode;

use super::calculator::TENTH;
use crate::horizontal_pod_autoscaler::answer::{ExternalMetricValueList, MetricValueList, PodMetricsList, refusal};
use crate::horizontal_pod_autoscaler::calculator::Pods;
use crate::horizontal_pod_autoscaler::metric::{Answer, Computed, Given, Problem, source};
use crate::horizontal_pod_autoscaler::path;
use crate::horizontal_pod_autoscaler::readiness::{Readings, Youth};
use crate::test_objects::{self, now};

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
fn list<T: serde::de::DeserializeOwned>(items: Value) -> T {
    serde_json::from_value(json!({ "kind": "List", "items": items, "unknown": 1 })).unwrap()
}

fn values(readings: &Readings) -> Vec<(&str, i64, u64)> {
    readings.iter().map(|(name, of)| (&**name, of.value, of.window.as_secs())).collect()
}

#[test]
fn usage_of_pods_is_the_sum_over_their_containers_or_of_one() {
    let usage = |name: &str, cpu: Value| json!({ "name": name, "usage": cpu });
    let item = |name: &str, containers: Value| json!({ "metadata": { "name": name }, "timestamp": now(), "window": "1m0.5s", "containers": containers });
    let metrics: PodMetricsList = list(json!([
        item("both", json!([usage("a", json!({ "cpu": "250m" })), usage("b", json!({ "cpu": "1500u" }))])),
        item("half", json!([usage("a", json!({ "cpu": "1" })), usage("b", json!({ "memory": "1Gi" }))])),
        item("none", json!([])),
    ]));
    assert_eq!(values(&metrics.readings("cpu", None).unwrap()), [("both", 252, 60)]);
    assert_eq!(values(&metrics.readings("cpu", Some("a")).unwrap()), [("both", 250, 60), ("half", 1000, 60)]);
    assert_eq!(values(&metrics.readings("cpu", Some("c")).unwrap()), []);
    let empty: PodMetricsList = list(json!([]));
    assert_eq!(empty.readings("cpu", None).unwrap_err(), "no metrics returned from resource metrics API");
}

#[test]
fn a_null_is_an_absent_field_and_costs_no_other_pod_its_reading() {
    let metrics: PodMetricsList = list(json!([
        { "metadata": { "name": "no-containers" }, "timestamp": null, "window": null, "containers": null },
        { "metadata": { "name": "no-usage" }, "containers": [{ "name": "a", "usage": null }] },
        { "metadata": { "name": "whole" }, "window": "30s", "containers": [{ "name": "a", "usage": { "cpu": "1" } }] },
    ]));
    assert_eq!(values(&metrics.readings("cpu", None).unwrap()), [("whole", 1000, 30)]);
    assert_eq!(values(&metrics.readings("cpu", Some("a")).unwrap()), [("whole", 1000, 30)]);
    let none = |got: Result<(), String>, api: &str| {
        assert_eq!(got.unwrap_err(), format!("no metrics returned from {api} metrics API"));
    };
    none(list::<PodMetricsList>(json!(null)).readings("cpu", None).map(drop), "resource");
    none(list::<MetricValueList>(json!(null)).readings().map(drop), "custom");
    none(list::<ExternalMetricValueList>(json!(null)).values().map(drop), "external");
}

#[test]
fn custom_and_external_values_are_read_in_both_versions() {
    let item = |window: Value| {
        let mut item = json!({ "describedObject": { "name": "a" }, "timestamp": now(), "value": "1500m" });
        item.as_object_mut().unwrap().extend(window.as_object().unwrap().clone());
        item
    };
    for (window, want) in [(json!({}), 60), (json!({ "windowSeconds": 30 }), 30), (json!({ "window": 20 }), 20)] {
        let list: MetricValueList = list(json!([item(window)]));
        assert_eq!(values(&list.readings().unwrap()), [("a", 1500, want)]);
        assert_eq!(list.value(), Ok(1500));
    }
    let none: MetricValueList = list(json!([]));
    assert_eq!(none.readings().unwrap_err(), "no metrics returned from custom metrics API");
    let error = "the custom metrics API server returned 0 results when we asked for exactly one";
    assert_eq!(none.value().unwrap_err(), error);
    let external: ExternalMetricValueList = list(json!([{ "value": "2" }, { "value": "3k" }]));
    assert_eq!(external.values(), Ok(vec![2_000, 3_000_000]));
    let none: ExternalMetricValueList = list(json!([]));
    assert_eq!(none.values().unwrap_err(), "no metrics returned from external metrics API");
}

#[test]
fn paths_are_those_of_upstreams_clients() {
    let pods: Selector = "app=web,tier in (a,b)".parse().unwrap();
    let series: Selector = "verb=GET".parse().unwrap();
    let none = Selector::nothing();
    for (path, want) in [
        (
            path::of_pods("ns", &pods),
            "/apis/metrics.k8s.io/v1beta1/namespaces/ns/pods?labelSelector=app%3Dweb%2Ctier%20in%20%28a%2Cb%29",
        ),
        (
            path::of_custom_pods("v1beta2", "ns", "hits", &"a=b".parse().unwrap(), &series),
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/*/hits?labelSelector=a%3Db&metricLabelSelector=verb%3DGET",
        ),
        (
            path::of_custom_object("v1beta1", "ns", ("ingresses.networking.k8s.io", "main"), "hits", &none),
            "/apis/custom.metrics.k8s.io/v1beta1/namespaces/ns/ingresses.networking.k8s.io/main/hits",
        ),
        (
            path::of_custom_namespace("v1beta2", "ns", "hits", &none),
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/metrics/hits",
        ),
        (
            path::of_external("ns", "queue/depth", &series),
            "/apis/external.metrics.k8s.io/v1beta1/namespaces/ns/queue%2Fdepth?labelSelector=verb%3DGET",
        ),
    ] {
        assert_eq!(path, want);
    }
}

#[test]
fn refusals_are_those_of_the_server_or_of_client_go() {
    let what = "pods.metrics.k8s.io";
    let status = br#"{"kind":"Status","message":"deployments.apps \"web\" not found"}"#;
    for (code, body, want) in [
        (404, &status[..], "deployments.apps \"web\" not found"),
        (404, b"404 page not found\n", "the server could not find the requested resource (get pods.metrics.k8s.io)"),
        (503, b"service unavailable", "the server is currently unable to handle the request (get pods.metrics.k8s.io)"),
        (
            500,
            b"oh \"no\"",
            "an error on the server (\"oh \\\"no\\\"\") has prevented the request from succeeding (get pods.metrics.k8s.io)",
        ),
        (
            418,
            b"",
            "the server responded with the status code 418 but did not return more information (get pods.metrics.k8s.io)",
        ),
    ] {
        assert_eq!(refusal(code, body, what), want);
    }
}

#[test]
fn selectors_are_shown_as_go_shows_them() {
    let declared: LabelSelector = serde_json::from_value(json!({
        "matchLabels": { "b": "2", "a": "1" },
        "matchExpressions": [{ "key": "k", "operator": "In", "values": ["x", "y"] }],
    }))
    .unwrap();
    let want = "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:\
        []LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}";
    assert_eq!(path::shown(Some(&declared)), want);
    assert_eq!(path::shown(None), "nil");
}

fn computed(spec: &Value, answer: Result<Answer, String>) -> Result<Computed, Problem> {
    let spec: MetricSpec = decode(Encoded::Json(spec.to_string().as_bytes()), "MetricSpec").unwrap();
    let pod = test_objects::pod(
        "a",
        json!({
            "spec": { "containers": [{ "name": "main", "resources": { "requests": { "memory": "1Gi" } } }] },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        }),
    );
    let pods = [pod];
    let youth = Youth {
        cpu_initialization_period: Duration::ZERO,
        initial_readiness_delay: Duration::ZERO,
        now: MicroTime::from(now()),
    };
    let pods = Pods { current: 1, pods: &pods, youth, tolerances: TENTH };
    let given = Given { namespace: "ns", pods, counted: 1, pod_level: true };
    let source = source(&spec)?;
    source.question()?;
    source.conclude(answer, &given)
}

#[test]
fn each_type_of_metric_has_its_name_and_status() {
    let of_pod = |value: i64| {
        let reading = crate::horizontal_pod_autoscaler::readiness::Reading { value, ..Default::default() };
        Ok(Answer::Readings([("a".into(), reading)].into()))
    };
    let of_object = || Ok(Answer::Values(vec![2000, 1000]));
    let check = |spec: Value, answer, replicas: i32, name: &str, status: Value| {
        let got = computed(&spec, answer).unwrap();
        assert_eq!((got.replicas, &*got.name), (replicas, name), "{spec}");
        assert_eq!(serde_json::to_value(&got.status).unwrap(), status, "{spec}");
    };
    let half = json!({ "type": "Utilization", "averageUtilization": 50 });
    let one = json!({ "type": "AverageValue", "averageValue": "1" });
    let value = json!({ "type": "Value", "value": "1" });
    let metric = json!({ "name": "hits", "selector": { "matchLabels": { "a": "b" } } });
    let shown = "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{},}";
    check(
        json!({ "type": "Resource", "resource": { "name": "memory", "target": half } }),
        of_pod(1 << 30 << 10),
        3,
        "memory resource utilization (percentage of request)",
        json!({ "type": "Resource", "resource": { "name": "memory",
            "current": { "averageValue": "1099511627776m", "averageUtilization": 102 } } }),
    );
    check(
        json!({ "type": "Resource", "resource": { "name": "memory", "target": one } }),
        of_pod(2048 * 1000),
        2048,
        "memory resource",
        json!({ "type": "Resource", "resource": { "name": "memory", "current": { "averageValue": "2Ki" } } }),
    );
    check(
        json!({ "type": "ContainerResource", "containerResource": { "name": "memory", "container": "main", "target": half } }),
        of_pod((1 << 30) * 1000),
        2,
        "memory container resource utilization (percentage of request)",
        json!({ "type": "ContainerResource", "containerResource": { "name": "memory", "container": "main",
            "current": { "averageValue": "1Gi", "averageUtilization": 100 } } }),
    );
    check(
        json!({ "type": "Pods", "pods": { "metric": metric, "target": one } }),
        of_pod(2500),
        3,
        "pods metric hits",
        json!({ "type": "Pods", "pods": { "metric": metric, "current": { "averageValue": "2500m" } } }),
    );
    let object = json!({ "kind": "Service", "name": "main", "apiVersion": "v1" });
    check(
        json!({ "type": "Object", "object": { "metric": metric, "describedObject": object, "target": value } }),
        of_object(),
        3,
        "Service metric hits",
        json!({ "type": "Object", "object": { "metric": metric, "describedObject": object, "current": { "value": "3" } } }),
    );
    check(
        json!({ "type": "Object", "object": { "metric": metric, "describedObject": object, "target": one } }),
        of_object(),
        3,
        &format!("external metric hits({shown})"),
        json!({ "type": "Object", "object": { "metric": metric, "describedObject": object, "current": { "averageValue": "3" } } }),
    );
    check(
        json!({ "type": "External", "external": { "metric": { "name": "hits" }, "target": value } }),
        of_object(),
        3,
        "external metric hits(nil)",
        json!({ "type": "External", "external": { "metric": { "name": "hits" }, "current": { "value": "3" } } }),
    );
    check(
        json!({ "type": "External", "external": { "metric": metric, "target": one } }),
        of_object(),
        3,
        &format!("external metric hits({shown})"),
        json!({ "type": "External", "external": { "metric": metric, "current": { "averageValue": "3" } } }),
    );
}

#[test]
fn each_type_of_metric_has_its_errors() {
    let check = |spec: Value, want: (&str, &str, &str, bool)| {
        let got = computed(&spec, Err("no answer".into())).unwrap_err();
        assert_eq!((got.reason, &*got.note, &*got.error, got.is_spec), want, "{spec}");
    };
    let one = json!({ "type": "AverageValue", "averageValue": "1" });
    let value = json!({ "type": "Value", "value": "1" });
    let half = json!({ "type": "Utilization", "averageUtilization": 50 });
    let hits = json!({ "name": "hits" });
    let note = "failed to get cpu utilization: unable to get metrics for resource cpu: no answer";
    let error = format!("failed to get cpu resource metric value: {note}");
    check(
        json!({ "type": "Resource", "resource": { "name": "cpu", "target": half } }),
        ("FailedGetResourceMetric", note, &error, false),
    );
    let note = "failed to get cpu usage: unable to get metrics for resource cpu: no answer";
    let error = format!("failed to get main container metric value: {note}");
    check(
        json!({ "type": "ContainerResource", "containerResource": { "name": "cpu", "container": "main", "target": one } }),
        ("FailedGetContainerResourceMetric", note, &error, false),
    );
    let note = "unable to get metric hits: no answer";
    let error = format!("failed to get pods metric value: {note}");
    check(
        json!({ "type": "Pods", "pods": { "metric": hits, "target": one } }),
        ("FailedGetPodsMetric", note, &error, false),
    );
    let object = json!({ "kind": "Service", "name": "main", "apiVersion": "v1" });
    let note = "unable to get metric hits on Service ns/main: no answer";
    let error = format!("failed to get object metric value: {note}");
    check(
        json!({ "type": "Object", "object": { "metric": hits, "describedObject": object, "target": value } }),
        ("FailedGetObjectMetric", note, &error, false),
    );
    let error = format!("failed to get object metric value: failed to get hits object metric: {note}");
    check(
        json!({ "type": "Object", "object": { "metric": hits, "describedObject": object, "target": one } }),
        ("FailedGetObjectMetric", note, &error, false),
    );
    let note = "unable to get external metric ns/hits/nil: no answer";
    let error = format!("failed to get hits external metric value: failed to get external metric hits: {note}");
    check(
        json!({ "type": "External", "external": { "metric": hits, "target": value } }),
        ("FailedGetExternalMetric", note, &error, false),
    );
    let note = "invalid external metric source: neither a value target nor an average value target was set";
    let error = format!("failed to get hits external metric value: {note}");
    check(
        json!({ "type": "External", "external": { "metric": hits, "target": {} } }),
        ("FailedGetExternalMetric", note, &error, false),
    );
    let note = "unknown metric source type \"Dreams\"";
    check(json!({ "type": "Dreams" }), ("InvalidMetricSourceType", note, note, true));
}
