//! HorizontalPodAutoscalers of two versions: what one cannot say in fields it says in annotations.

use serde_json::{Value, json};
use steersman_apiserver::ApiServer;

use crate::support::{Got, ask, send, server};

const V1: &str = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
const V2: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";

fn spec(more: &Value) -> Value {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let mut spec = json!({"scaleTargetRef": target, "maxReplicas": 5});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    spec
}

fn of_cpu(percent: i64) -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}}})
}

/// Every metric that is not the first version's own.
fn others() -> Value {
    let object = json!({"apiVersion": "v1", "kind": "Service", "name": "s"});
    json!([
        {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
        {"type": "ContainerResource", "containerResource": {
            "name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 30},
        }},
        {"type": "Pods", "pods": {
            "metric": {"name": "hits", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "AverageValue", "averageValue": "10"},
        }},
        {"type": "Object", "object": {
            "describedObject": object, "metric": {"name": "hits"}, "target": {"type": "Value", "value": "10"},
        }},
        {"type": "Object", "object": {
            "describedObject": object, "metric": {"name": "hits"}, "target": {"type": "AverageValue", "averageValue": "10"},
        }},
        {"type": "External", "external": {"metric": {"name": "hits"}, "target": {"type": "Value", "value": "10"}}},
    ])
}

async fn create(server: &ApiServer, path: &str, name: &str, spec: Value, annotations: Value) -> Got {
    let body = json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec});
    ask(server, "POST", path, Some(body)).await
}

async fn read(server: &ApiServer, path: &str, name: &str) -> Value {
    ask(server, "GET", &format!("{path}/{name}"), None).await.expect(200)
}

fn note(object: &Value, name: &str) -> Value {
    let text = object["metadata"]["annotations"][name].as_str();
    text.map_or(Value::Null, |text| serde_json::from_str(text).unwrap())
}

#[tokio::test(start_paused = true)]
async fn the_target_of_the_first_version_is_a_metric_of_the_second() {
    let server = server();
    let made =
        create(&server, V1, "a", spec(&json!({"targetCPUUtilizationPercentage": 50})), json!({})).await.expect(201);
    assert_eq!(made["spec"], spec(&json!({"targetCPUUtilizationPercentage": 50, "minReplicas": 1})));
    assert_eq!(made["status"], json!({"currentReplicas": 0, "desiredReplicas": 0}));
    let second = read(&server, V2, "a").await;
    assert_eq!(second["spec"], spec(&json!({"metrics": [of_cpu(50)], "minReplicas": 1})));

    let percent = json!({"spec": {"targetCPUUtilizationPercentage": 60}});
    let patched = ask(&server, "PATCH", &format!("{V1}/a"), Some(percent)).await.expect(200);
    assert_eq!(patched["metadata"]["generation"], 2);
    assert_eq!(read(&server, V2, "a").await["spec"]["metrics"], json!([of_cpu(60)]));

    let made = create(&server, V1, "b", spec(&json!({})), json!({})).await.expect(201);
    assert_eq!(made["spec"]["targetCPUUtilizationPercentage"], 80, "the default is upstream's");
    assert_eq!(read(&server, V2, "b").await["spec"]["metrics"], json!([of_cpu(80)]));

    let none = spec(&json!({"targetCPUUtilizationPercentage": 0}));
    let refused = create(&server, V1, "c", none, json!({})).await.expect(422);
    let field = "spec.metrics[0].resource.target.averageUtilization";
    assert_eq!(refused["details"]["causes"][0]["field"], field);
}

#[tokio::test(start_paused = true)]
async fn a_change_through_the_first_version_keeps_what_only_the_second_can_say() {
    let server = server();
    let rules = json!({"scaleDown": {
        "stabilizationWindowSeconds": 60, "selectPolicy": "Min", "policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}],
    }});
    let mut metrics = others();
    metrics.as_array_mut().unwrap().push(of_cpu(40));
    let given = spec(&json!({"metrics": metrics, "behavior": rules}));
    let made = create(&server, V2, "a", given, json!({})).await.expect(201);
    let first = read(&server, V1, "a").await;
    assert_eq!(first["spec"], spec(&json!({"minReplicas": 1, "targetCPUUtilizationPercentage": 40})));
    assert_eq!(note(&first, METRICS)[0]["resource"], json!({"name": "memory", "targetAverageValue": "1Gi"}));
    assert_eq!(note(&first, BEHAVIOR)["ScaleDown"]["Policies"][0]["PeriodSeconds"], 15);

    let labels = json!({"metadata": {"labels": {"x": "y"}}});
    ask(&server, "PATCH", &format!("{V1}/a"), Some(labels)).await.expect(200);
    let second = read(&server, V2, "a").await;
    assert_eq!(second["spec"], made["spec"]);
    assert_eq!(second["metadata"]["generation"], 1);
    assert!(second["metadata"].get("annotations").is_none(), "they stand for fields");

    let mut changed = read(&server, V1, "a").await;
    changed["spec"]["maxReplicas"] = 9.into();
    ask(&server, "PUT", &format!("{V1}/a"), Some(changed)).await.expect(200);
    let second = read(&server, V2, "a").await;
    assert_eq!(second["spec"]["metrics"], made["spec"]["metrics"]);
    assert_eq!(second["spec"]["behavior"], made["spec"]["behavior"]);
    assert_eq!(second["metadata"]["generation"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_manifest_of_the_first_version_does_not_touch_the_status() {
    let server = server();
    let manifest = || spec(&json!({"targetCPUUtilizationPercentage": 50}));
    create(&server, V1, "a", manifest(), json!({CONDITIONS: "[{\"type\":\"X\",\"status\":\"True\"}]"}))
        .await
        .expect(201);
    assert!(read(&server, V2, "a").await["status"].get("conditions").is_none(), "a new object has no status");

    let current = json!({"type": "Resource", "resource": {
        "name": "cpu", "current": {"averageUtilization": 30, "averageValue": "100m"},
    }});
    let condition = json!({"type": "AbleToScale", "status": "True"});
    let status = json!({"status": {
        "conditions": [condition], "currentMetrics": [current], "currentReplicas": 2, "desiredReplicas": 3,
    }});
    let written = ask(&server, "PATCH", &format!("{V2}/a/status"), Some(status)).await.expect(200);
    let first = read(&server, V1, "a").await;
    assert_eq!(
        first["status"],
        json!({"currentCPUUtilizationPercentage": 30, "currentReplicas": 2, "desiredReplicas": 3})
    );
    assert_eq!(note(&first, CONDITIONS)[0]["type"], "AbleToScale");
    assert_eq!(note(&first, CURRENT_METRICS)[0]["resource"]["currentAverageValue"], "100m");

    let again = json!({"metadata": {"name": "a"}, "spec": manifest()});
    ask(&server, "PUT", &format!("{V1}/a"), Some(again)).await.expect(200);
    assert_eq!(read(&server, V2, "a").await["status"], written["status"]);
    let replicas = json!({"metadata": {"annotations": null}, "status": {"currentReplicas": 4}});
    ask(&server, "PATCH", &format!("{V1}/a/status"), Some(replicas)).await.expect(200);
    let second = read(&server, V2, "a").await;
    assert_eq!(second["status"]["currentReplicas"], 4);
    assert_eq!(second["spec"]["metrics"], json!([of_cpu(50)]));
}

#[tokio::test(start_paused = true)]
async fn annotations_that_do_not_fit_are_ignored() {
    let server = server();
    let texts = ["", "[", "5", "null", "{}", "[5]", "[{\"type\":5}]", "[{\"type\":\"Resource\",\"resource\":[]}]"];
    for (index, text) in texts.iter().enumerate() {
        let annotations = json!({METRICS: text, BEHAVIOR: text, CONDITIONS: text, CURRENT_METRICS: text, "mine": "1"});
        let name = format!("a{index}");
        let got = create(&server, V1, &name, spec(&json!({})), annotations).await;
        assert!(matches!(got.code, 201 | 422), "{text}: {}", got.body);
        if got.code == 201 {
            let second = read(&server, V2, &name).await;
            assert_eq!(second["spec"]["metrics"], json!([of_cpu(80)]), "{text}");
            assert_eq!(second["metadata"]["annotations"], json!({"mine": "1"}));
        }
    }
    let made = create(&server, V2, "b", spec(&json!({})), json!({METRICS: "[]"})).await.expect(201);
    assert!(made["metadata"].get("annotations").is_none(), "the second version has none of them");
}

#[tokio::test(start_paused = true)]
async fn both_versions_show_the_same_columns() {
    let server = server();
    let metrics = json!([others()[0], of_cpu(40)]);
    create(&server, V2, "a", spec(&json!({"metrics": metrics})), json!({})).await.expect(201);
    let table = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    for path in [V1, V2] {
        let shown = send(&server, "GET", path, &table, Vec::new()).await.expect(200);
        assert_eq!(shown["rows"][0]["cells"][2], "memory: <unknown>/1Gi, cpu: <unknown>/40%", "{path}");
    }
}
