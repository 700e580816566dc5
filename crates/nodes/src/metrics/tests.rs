//! Tables for the responses of the metrics APIs.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::Time;
use steersman_model::core::{ConfigMapView, NodeView};
use steersman_model::{Encoded, View};

use super::api::{self, World};
use super::path::{Asked, Pods, parse};
use super::script;
use crate::view::SimPodView;

fn view<V: View>(object: &Value) -> V {
    V::decode(Encoded::Json(object.to_string().as_bytes())).expect("it is one")
}

fn pod(name: &str, phase: &str, annotations: &Value) -> Arc<SimPodView> {
    let container = json!({
        "name": "main", "image": "web:1", "resources": { "requests": { "cpu": "100m", "memory": "64Mi" } },
    });
    let running = json!({ "running": { "startedAt": "2026-01-01T00:00:00Z" } });
    Arc::new(view(&json!({
        "metadata": {
            "namespace": "shop", "name": name, "labels": { "app": name.split('-').next() }, "annotations": annotations,
        },
        "spec": { "nodeName": "node-0", "containers": [container, { "name": "side", "image": "side:1" }] },
        "status": { "phase": phase, "containerStatuses": [
            { "name": "main", "state": running }, { "name": "side", "state": running },
        ] },
    })))
}

fn config_map(text: &str) -> Arc<ConfigMapView> {
    Arc::new(view(&json!({
        "metadata": { "namespace": "shop", "name": super::CONFIG_MAP }, "data": { "metrics": text },
    })))
}

fn world() -> World {
    let entries = "
- {external: queue-depth, labels: {queue: mail}, value: 5}
- {external: queue-depth, labels: {queue: print}, value: 1.5}
- {object: services/web, metric: requests, value: 2k}
";
    World {
        pods: vec![
            pod("api-0", "Running", &json!({ "nodes.steersman.dev/cpu-usage": "1" })),
            pod(
                "web-0",
                "Running",
                &json!({
                    "nodes.steersman.dev/cpu-usage.main": "300m", "nodes.steersman.dev/metric.requests": "7",
                }),
            ),
            pod("web-1", "Running", &json!({ "nodes.steersman.dev/memory-usage": "nonsense" })),
            pod("web-2", "Pending", &json!({})),
        ],
        nodes: vec![Arc::new(view(&json!({ "metadata": { "name": "node-0" } })))],
        config_maps: vec![config_map(entries)],
        now: Time::from_unix(0),
        ..World::default()
    }
}

/// The values at a JSON pointer of each item.
fn items(body: &Value, pointer: &str) -> Vec<String> {
    let items = body["items"].as_array().into_iter().flatten();
    let found = items.map(|item| item.pointer(pointer).and_then(Value::as_str).unwrap_or("none").to_owned());
    found.collect()
}

fn get(world: &World, path: &str, query: &str) -> (u16, Value) {
    api::get(world, &parse(path), query)
}

fn ok(path: &str, query: &str) -> Value {
    let (code, body) = get(&world(), path, query);
    assert_eq!(code, 200, "{path}?{query}: {body}");
    body
}

#[test]
fn usage_comes_from_annotations_and_else_from_requests() {
    let pods = ok("/apis/metrics.k8s.io/v1beta1/pods", "");
    assert_eq!(pods["kind"], "PodMetricsList");
    assert_eq!(items(&pods, "/metadata/name"), ["api-0", "web-0", "web-1"], "what does not run uses nothing");
    assert_eq!(items(&pods, "/containers/0/usage/cpu"), ["1", "300m", "50m"]);
    assert_eq!(items(&pods, "/containers/1/usage/cpu"), ["1", "10m", "10m"]);
    assert_eq!(items(&pods, "/containers/0/usage/memory"), ["32Mi", "32Mi", "32Mi"], "what is no quantity is ignored");
    let node = ok("/apis/metrics.k8s.io/v1beta1/nodes/node-0", "");
    assert_eq!((&node["kind"], &node["usage"]["cpu"]), (&json!("NodeMetrics"), &json!("2370m")));
    assert_eq!(items(&ok("/apis/metrics.k8s.io/v1beta1/nodes", ""), "/usage/cpu"), ["2370m"]);
}

#[test]
fn pods_are_chosen_by_namespace_name_labels_and_fields() {
    let path = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods";
    for (query, want) in [
        ("labelSelector=app%3Dweb", &["web-0", "web-1"][..]),
        ("labelSelector=app%20in%20(api%2Cweb)&limit=5", &["api-0", "web-0", "web-1"]),
        ("labelSelector=app!=web", &["api-0"]),
        ("fieldSelector=metadata.name%3Dweb-1", &["web-1"]),
    ] {
        assert_eq!(items(&ok(path, query), "/metadata/name"), want, "{query}");
    }
    assert_eq!(ok(&format!("{path}/web-0"), "")["containers"][0]["usage"]["cpu"], "300m");
    let other = "/apis/metrics.k8s.io/v1beta1/namespaces/other/pods";
    assert_eq!(ok(other, "")["items"], json!([]));
    let (code, missing) = get(&world(), &format!("{path}/web-2"), "");
    assert_eq!((code, &missing["message"]), (404, &json!("podmetrics.metrics.k8s.io \"web-2\" not found")));
    assert_eq!(get(&world(), path, "labelSelector=%2C%2C").0, 400);
}

#[test]
fn a_test_can_take_readings_away_and_set_them() {
    let mut world = world();
    Arc::make_mut(&mut world.script).no_defaults = true;
    let used = (super::quantity("20m").expect("one"), super::quantity("1Mi").expect("one"));
    Arc::make_mut(&mut world.script).usage.insert(steersman_base::ObjectKey::new("shop", "api-0"), used);
    let (_, pods) = get(&world, "/apis/metrics.k8s.io/v1beta1/pods", "");
    assert_eq!(items(&pods, "/metadata/name"), ["api-0", "web-0"]);
    assert_eq!(items(&pods, "/containers/0/usage/cpu"), ["20m", "300m"]);
    assert_eq!(items(&pods, "/containers/1/usage/cpu"), ["20m", "none"], "only one container is set");
}

#[test]
fn custom_metrics_are_those_of_pods_and_of_scripted_objects() {
    let path = |version: &str, rest: &str| format!("/apis/custom.metrics.k8s.io/{version}/namespaces/shop/{rest}");
    let pods = ok(&path("v1beta2", "pods/*/requests"), "labelSelector=app%3Dweb");
    assert_eq!(items(&pods, "/describedObject/name"), ["web-0"]);
    assert_eq!((items(&pods, "/value"), items(&pods, "/metric/name")), (vec!["7".into()], vec!["requests".into()]));
    assert_eq!(ok(&path("v1beta2", "pods/*/requests"), "labelSelector=app%3Dapi")["items"], json!([]));
    let service = ok(&path("v1beta1", "services/web/requests"), "");
    assert_eq!(
        (items(&service, "/metricName"), items(&service, "/value")),
        (vec!["requests".into()], vec!["2k".into()])
    );
    assert_eq!(get(&world(), &path("v1beta2", "services/web/errors"), "").0, 404);
}

#[test]
fn external_metrics_are_chosen_by_labels() {
    let path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue-depth";
    assert_eq!(items(&ok(path, ""), "/value"), ["5", "1500m"]);
    assert_eq!(items(&ok(path, "labelSelector=queue%3Dmail"), "/value"), ["5"]);
    assert_eq!(ok("/apis/external.metrics.k8s.io/v1beta1/namespaces/other/queue-depth", "")["items"], json!([]));
}

#[test]
fn discovery_lists_what_there_is() {
    let custom = ok("/apis/custom.metrics.k8s.io/v1beta1", "");
    let names: Vec<_> = custom["resources"].as_array().into_iter().flatten().map(|it| &it["name"]).collect();
    assert_eq!(names, ["pods/requests", "services/requests"]);
    assert_eq!(ok("/apis/external.metrics.k8s.io/v1beta1", "")["resources"][0]["name"], "queue-depth");
    assert_eq!(ok("/apis/custom.metrics.k8s.io", "")["preferredVersion"]["version"], "v1beta2");
    assert_eq!(get(&world(), "/apis/apps/v1", "").0, 404);
}

#[test]
fn a_config_map_that_cannot_be_read_is_the_response() {
    for (text, want) in [
        ("- {external: a, value: much}", "\"much\" is no quantity"),
        ("- {object: web, metric: a, value: 1}", "must be written as <resource>/<name>"),
        ("- {metric: a, value: 1}", "an entry has either `external`, or `object` and `metric`"),
        ("- {external: a, valeu: 1}", "valeu"),
    ] {
        let problem = script::parse(&config_map(text)).expect_err(text);
        assert!(problem.contains(want) && problem.contains("configmap shop/simulated-metrics"), "{problem}");
        let world = World { config_maps: vec![config_map(text)], ..World::default() };
        let (code, body) = get(&world, "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/a", "");
        assert!(code == 500 && body["message"].as_str().is_some_and(|it| it.contains(want)), "{body}");
        let (code, _) = get(&world, "/apis/external.metrics.k8s.io/v1beta1/namespaces/other/a", "");
        assert_eq!(code, 200, "others do not suffer");
    }
}

#[test]
fn paths_are_read_with_their_escapes() {
    let custom = |namespace: &str, resource: &str, name: &str| Asked::Custom {
        version: "v1beta2".into(),
        namespace: namespace.into(),
        resource: resource.into(),
        name: name.into(),
        metric: "hits".into(),
    };
    for (path, want) in [
        ("/apis/custom.metrics.k8s.io/v1beta2/namespaces/a/pods/%2A/hits", custom("a", "pods", "*")),
        ("/apis/custom.metrics.k8s.io/v1beta2/namespaces/a/metrics/hits", custom("a", "namespaces", "a")),
        ("/apis/custom.metrics.k8s.io/v1beta2/nodes/n/hits", custom("", "nodes", "n")),
        ("/apis/custom.metrics.k8s.io/v1/namespaces/a/pods/b/hits", Asked::Unknown),
        ("/apis/metrics.k8s.io/v1beta1/namespaces/a/nodes", Asked::Unknown),
        ("/api/v1/pods", Asked::Unknown),
    ] {
        assert_eq!(parse(path), want, "{path}");
    }
}

#[test]
fn the_view_of_nodes_has_what_is_read() {
    let node: NodeView =
        view(&json!({ "metadata": { "name": "a", "annotations": { "nodes.steersman.dev/cpu-usage": "3" } } }));
    let world = World { nodes: vec![Arc::new(node)], ..World::default() };
    let (_, nodes) = get(&world, "/apis/metrics.k8s.io/v1beta1/nodes", "");
    assert_eq!(items(&nodes, "/usage/cpu"), ["3"], "the usage of a node can be set");
}

#[test]
fn a_response_reads_the_pods_that_it_is_about_and_no_others() {
    let check = |path: &str, want: Pods<'_>| assert_eq!(parse(path).pods(), want, "{path}");
    let usage = "/apis/metrics.k8s.io/v1beta1";
    check(&format!("{usage}/pods"), Pods::All);
    check(&format!("{usage}/namespaces/shop/pods"), Pods::Namespace("shop"));
    check(&format!("{usage}/namespaces/shop/pods/web-0"), Pods::One("shop", "web-0"));
    check(&format!("{usage}/nodes"), Pods::All);
    check(&format!("{usage}/nodes/node-0"), Pods::Node("node-0"));
    check(usage, Pods::None);
    let custom = "/apis/custom.metrics.k8s.io/v1beta2";
    check(&format!("{custom}/namespaces/shop/pods/*/requests"), Pods::Namespace("shop"));
    check(&format!("{custom}/namespaces/shop/pods/web-0/requests"), Pods::One("shop", "web-0"));
    check(&format!("{custom}/namespaces/shop/services/web/requests"), Pods::None);
    check(custom, Pods::WithMetrics);
    check("/apis/custom.metrics.k8s.io", Pods::WithMetrics);
    check("/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue", Pods::None);
    check("/apis/apps/v1", Pods::None);
}
