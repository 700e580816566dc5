//! The embedded server beside kube-apiserver: the same writes by several managers, one after the other, to both.
//!
//! A seeded generator makes the writes of each kind: applies (some forced, some malformed), patches, PUTs, writes of the
//! status and of the scale, deletions, managers given up. Codes, reasons, messages and objects with their `managedFields`
//! are compared, but for what cannot be equal: uids, versions, times and addresses.

use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::frame::clients;

/// How many writes of each kind are compared.
const WRITES: usize = 120;
const NAMESPACE: &str = "compare-applies";
const MANAGERS: [&str; 3] = ["one", "two", "three"];
/// How many of a thousand answers may differ in code, reason or object.
const DIFFERENT_OF_1000_MAX: usize = 5;

/// A kind, and what is written of it.
struct Kind {
    api_version: &'static str,
    kind: &'static str,
    plural: &'static str,
    /// What every object has.
    base: Value,
    /// Fields by JSON pointer, each with values to choose from.
    fields: Vec<(&'static str, Vec<Value>)>,
    /// The same for the status.
    status: Vec<(&'static str, Vec<Value>)>,
    has_scale: bool,
}

/// One request, the same for both servers.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) content_type: &'static str,
    pub(crate) body: Value,
}

fn kind(api_version: &'static str, kind: &'static str, plural: &'static str, base: Value) -> Kind {
    let mut fields: Vec<(&'static str, Vec<Value>)> = vec![
        ("/metadata/labels/a", vec![json!("1"), json!("2")]),
        ("/metadata/labels/b", vec![json!("1")]),
        ("/metadata/annotations/c", vec![json!("1"), json!("2")]),
        ("/metadata/finalizers", vec![json!(["example.com/f"]), json!(["example.com/f", "example.com/g"])]),
    ];
    fields.push(("/bogus", vec![json!(1)]));
    Kind { api_version, kind, plural, base, fields, status: Vec::new(), has_scale: false }
}

impl Kind {
    fn with(mut self, pointer: &'static str, values: &[Value]) -> Self {
        self.fields.push((pointer, values.to_vec()));
        self
    }

    fn status(mut self, pointer: &'static str, values: &[Value]) -> Self {
        self.status.push((pointer, values.to_vec()));
        self
    }

    fn scaled(mut self) -> Self {
        self.has_scale = true;
        self
    }

    fn collection(&self) -> String {
        let root = if self.api_version.contains('/') { "apis" } else { "api" };
        format!("/{root}/{}/namespaces/{NAMESPACE}/{}", self.api_version, self.plural)
    }
}

fn kinds() -> Vec<Kind> {
    let mut all = core_kinds();
    all.extend(workload_kinds());
    all.extend(other_kinds());
    all
}

fn condition(kind: &str, status: &str) -> Value {
    json!([{"type": kind, "status": status}])
}

fn core_kinds() -> Vec<Kind> {
    let conditions = [condition("A", "True"), condition("A", "False"), condition("B", "True")];
    vec![
        kind("v1", "ConfigMap", "configmaps", json!({}))
            .with("/data/a", &[json!("1"), json!("2"), json!(3)])
            .with("/data/b", &[json!("1"), json!("2")])
            .with("/binaryData/c", &[json!("AA=="), json!("AQ==")])
            .with("/data", &[json!({"z": "1"}), json!({})]),
        kind("v1", "Secret", "secrets", json!({}))
            .with("/data/a", &[json!("AA=="), json!("AQ=="), json!("!")])
            .with("/stringData/b", &[json!("1"), json!("2")])
            .with("/type", &[json!("Opaque"), json!("example.com/x")]),
        kind("v1", "Service", "services", json!({"spec": {"ports": [{"name": "p", "port": 80}]}}))
            .with(
                "/spec/ports",
                &[
                    json!([{"name": "p", "port": 80, "targetPort": 8080}]),
                    json!([{"name": "p", "port": 80}, {"name": "q", "port": 81, "targetPort": "q"}]),
                    json!([{"name": "u", "port": 80, "protocol": "UDP"}]),
                ],
            )
            .with("/spec/selector", &[json!({"a": "1"}), json!({"b": "1"})])
            .with("/spec/sessionAffinity", &[json!("ClientIP"), json!("None"), json!("Nonsense")])
            .with("/spec/externalIPs", &[json!(["1.2.3.4"]), json!(["1.2.3.4", "1.2.3.5"])])
            .status("/status/loadBalancer/ingress", &[json!([{"ip": "1.2.3.4"}]), json!([{"ip": "1.2.3.5"}])])
            .status(
                "/status/conditions",
                &conditions.map(|list| {
                    let mut list = list;
                    list[0]["lastTransitionTime"] = "2026-01-01T00:00:00Z".into();
                    list[0]["reason"] = "R".into();
                    list[0]["message"] = "".into();
                    list
                }),
            ),
    ]
}

fn workload_kinds() -> Vec<Kind> {
    let template =
        |containers: Value| json!({"metadata": {"labels": {"app": "x"}}, "spec": {"containers": containers}});
    let containers = [
        json!([{"name": "a", "image": "i:1"}]),
        json!([{"name": "a", "image": "i:2"}]),
        json!([{"name": "b", "image": "i:1", "env": [{"name": "E", "value": "1"}]}]),
        json!([{"name": "a", "image": "i:1", "ports": [{"containerPort": 80}, {"containerPort": 81, "name": "p"}]}]),
        json!([{"name": "a", "image": "i:1", "ports": [{"containerPort": 80, "protocol": "UDP"}]}]),
        json!([{"name": "a", "image": "i:1", "resources": {"limits": {"cpu": "1"}}}]),
        json!([{"name": "a"}, {"name": "a"}]),
        json!([{"image": "nameless"}]),
    ];
    let workload = || {
        json!({"spec": {
            "selector": {"matchLabels": {"app": "x"}}, "template": template(json!([{"name": "a", "image": "i:1"}])),
        }})
    };
    vec![
        kind("apps/v1", "Deployment", "deployments", workload())
            .with("/spec/replicas", &[json!(1), json!(2), json!("x"), json!(-1)])
            .with("/spec/paused", &[json!(true), json!(false)])
            .with("/spec/template/spec/containers", &containers)
            .with(
                "/spec/template/spec/volumes",
                &[
                    json!([{"name": "v", "emptyDir": {}}]),
                    json!([{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "c"}}]),
                ],
            )
            .with("/spec/template/spec/tolerations", &[json!([{"key": "a", "operator": "Exists"}])])
            .with("/spec/template/metadata/annotations/x", &[json!("1"), json!("2")])
            .with("/spec/strategy", &[json!({"type": "Recreate"}), json!({"rollingUpdate": {"maxSurge": 2}})])
            .status("/status/replicas", &[json!(1), json!(2)])
            .status("/status/conditions", &[condition("Available", "True"), condition("Progressing", "False")])
            .scaled(),
        kind("apps/v1", "StatefulSet", "statefulsets", workload())
            .with("/spec/replicas", &[json!(1), json!(2)])
            .with("/spec/serviceName", &[json!("s")])
            .with("/spec/template/spec/containers", &containers)
            .status("/status/replicas", &[json!(1), json!(2)])
            .scaled(),
        kind("apps/v1", "DaemonSet", "daemonsets", workload())
            .with("/spec/template/spec/containers", &containers)
            .with("/spec/updateStrategy", &[json!({"type": "OnDelete"}), json!({"type": "RollingUpdate"})])
            .status("/status/numberReady", &[json!(1), json!(2)]),
    ]
}

fn other_kinds() -> Vec<Kind> {
    vec![
        kind(
            "batch/v1",
            "CronJob",
            "cronjobs",
            json!({"spec": {
                "schedule": "@daily",
                "jobTemplate": {"spec": {"template": {"spec": {
                    "restartPolicy": "Never", "containers": [{"name": "a", "image": "i"}],
                }}}},
            }}),
        )
        .with("/spec/suspend", &[json!(true), json!(false)])
        .with("/spec/schedule", &[json!("@hourly"), json!("nonsense")])
        .with("/spec/successfulJobsHistoryLimit", &[json!(1), json!(2)])
        .status("/status/lastScheduleTime", &[json!("2026-01-01T00:00:00Z"), json!("2026-01-02T00:00:00Z")]),
        kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", json!({}))
            .with("/spec/minAvailable", &[json!(1), json!("50%"), json!("x")])
            .with("/spec/selector", &[json!({"matchLabels": {"a": "1"}}), json!({"matchLabels": {"b": "1"}})])
            .status("/status/currentHealthy", &[json!(1), json!(2)]),
        kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", json!({"spec": {"podSelector": {}}}))
            .with("/spec/policyTypes", &[json!(["Ingress"]), json!(["Egress"]), json!(["Ingress", "Egress"])])
            .with("/spec/podSelector", &[json!({"matchLabels": {"a": "1"}})]),
        kind(
            "networking.k8s.io/v1",
            "Ingress",
            "ingresses",
            json!({"spec": {
                "defaultBackend": {"service": {"name": "s", "port": {"number": 80}}},
            }}),
        )
        .with("/spec/ingressClassName", &[json!("a"), json!("b")])
        .with("/spec/tls", &[json!([{"hosts": ["a.example.com"], "secretName": "s"}])])
        .status("/status/loadBalancer/ingress", &[json!([{"ip": "1.2.3.4"}])]),
        kind("rbac.authorization.k8s.io/v1", "Role", "roles", json!({})).with(
            "/rules",
            &[
                json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]),
                json!([{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}]),
            ],
        ),
        kind(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
            json!({"spec": {
                "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            }}),
        )
        .with("/spec/minReplicas", &[json!(1), json!(2)])
        .with("/spec/maxReplicas", &[json!(4), json!(5)])
        .with(
            "/spec/metrics",
            &[json!([{"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50},
            }}])],
        )
        .status("/status/desiredReplicas", &[json!(1), json!(2)]),
        kind(
            "v1",
            "PersistentVolumeClaim",
            "persistentvolumeclaims",
            json!({"spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "",
            }}),
        )
        .with("/spec/resources/requests/storage", &[json!("1Gi"), json!("1024Mi"), json!("nonsense")])
        .status("/status/phase", &[json!("Bound"), json!("Pending")]),
        kind(
            "compare.example.com/v1",
            "Widget",
            "widgets",
            json!({"spec": {
                "size": 3, "parts": [{"name": "k"}], "tags": ["k"], "free": {"k": 1},
            }}),
        )
        .with("/spec/size", &[json!(1), json!(2), json!(9), json!(101), json!("x")])
        .with("/spec/color", &[json!("red"), json!("blue"), json!("RED"), json!("infrared")])
        .with(
            "/spec/parts",
            &[
                json!([{"name": "k"}, {"name": "a", "count": 1}]),
                json!([{"name": "k"}, {"name": "a", "count": 2}, {"name": "b"}]),
                json!([{"name": "k"}, {"name": "b", "count": 1}]),
                json!([{"name": "k"}, {"name": "b", "count": 99}]),
                json!([{"name": "k"}, {"name": "k"}]),
                json!([{"count": 1}]),
            ],
        )
        .with("/spec/tags", &[json!(["k", "x"]), json!(["k", "y", "z"]), json!(["k", "x", "x"])])
        .with("/spec/free", &[json!({"k": 1, "a": {"b": 1}}), json!({"k": 1, "a": {"c": [1, 2]}})])
        .with("/spec/whole", &[json!({"a": "1"}), json!({"b": "1"}), json!({"forbidden": "1"})])
        .status("/status/ready", &[json!(1), json!(2), json!(50)])
        .scaled(),
    ]
}

fn definition() -> Value {
    let part = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "maxLength": 10},
        "count": {"type": "integer", "default": 7, "x-kubernetes-validations": [
            {"rule": "self < 50", "messageExpression": "'at most 49, not %d'.format([self])"},
        ]},
    }, "x-kubernetes-validations": [{"rule": "self.name != 'b' || self.count < oldSelf.count + 90"}]});
    let spec = json!({"type": "object", "properties": {
        "size": {"type": "integer", "maximum": 100},
        "color": {"type": "string", "maxLength": 20, "pattern": "^[a-z]+$", "x-kubernetes-validations": [
            {"rule": "!self.startsWith('infra')", "reason": "FieldValueForbidden", "message": "nobody sees it"},
        ]},
        "parts": {
            "type": "array", "items": part, "maxItems": 10,
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        },
        "tags": {
            "type": "array", "items": {"type": "string", "maxLength": 10}, "maxItems": 10, "x-kubernetes-list-type": "set",
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "whole": {
            "type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 5,
            "x-kubernetes-map-type": "atomic",
            "x-kubernetes-validations": [{"rule": "!('forbidden' in self)", "reason": "FieldValueInvalid"}],
        },
    }, "x-kubernetes-validations": [
        {"rule": "self.size != 9", "message": "nine is out of stock", "fieldPath": ".size"},
        {"rule": "!has(self.color) || !has(oldSelf.color) || self.color == oldSelf.color || oldSelf.color != 'blue'",
         "message": "blue stays blue"},
        {"rule": "!oldSelf.hasValue() || self.tags.size() >= oldSelf.value().tags.size() - 1", "optionalOldSelf": true},
    ]});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.compare.example.com"},
        "spec": {
            "group": "compare.example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.ready"},
                },
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": spec, "status": {"type": "object", "properties": {"ready": {"type": "integer"}}},
                }, "x-kubernetes-validations": [
                    {"rule": "!has(self.status) || !has(self.status.ready) || self.status.ready <= self.spec.size + 20"},
                ]}},
            }],
        },
    })
}

/// Sets what a pointer means; maps on the way are made.
fn put(object: &mut Value, pointer: &str, value: &Value) {
    let mut held = object;
    for name in pointer.split('/').skip(1) {
        if !held.is_object() {
            *held = json!({});
        }
        held = held.as_object_mut().unwrap().entry(name).or_insert(Value::Null);
    }
    *held = value.clone();
}

/// Sets some of the fields.
fn choose(object: &mut Value, fields: &[(&str, Vec<Value>)], chance: f64, random: &mut fastrand::Rng) {
    for (pointer, values) in fields {
        // What is malformed is rarer than the rest.
        let chance = if *pointer == "/bogus" { 0.05 } else { chance };
        if random.f64() < chance {
            put(object, pointer, &values[random.usize(..values.len())]);
        }
    }
}

/// The next write of a kind. `current` is the object, as each server shows it.
fn next(kind: &Kind, name: &str, random: &mut fastrand::Rng) -> (Request, Option<Value>) {
    let one = format!("{}/{name}", kind.collection());
    let manager = MANAGERS[random.usize(..MANAGERS.len())];
    let mut object = json!({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}});
    let apply = |path: String, body: Value, random: &mut fastrand::Rng| {
        let force = if random.f64() < 0.4 { "&force=true" } else { "" };
        let path = format!("{path}?fieldManager={manager}{force}");
        Request { method: "PATCH", path, content_type: "application/apply-patch+yaml", body }
    };
    let merge = |path: String, body: Value| {
        let path = format!("{path}?fieldManager={manager}");
        Request { method: "PATCH", path, content_type: "application/merge-patch+json", body }
    };
    let scale = |replicas: usize| json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}, "spec": {"replicas": replicas}});
    match random.u8(..100) {
        0..55 => {
            object.as_object_mut().unwrap().extend(kind.base.as_object().unwrap().clone());
            choose(&mut object, &kind.fields, 0.3, random);
            (apply(one, object, random), None)
        }
        55..70 => {
            let mut patch = json!({});
            choose(&mut patch, &kind.fields, 0.2, random);
            (merge(one, patch), None)
        }
        // A PUT of what is there, with changes.
        70..80 => {
            let mut change = json!({});
            choose(&mut change, &kind.fields, 0.2, random);
            let path = format!("{one}?fieldManager={manager}");
            (Request { method: "PUT", path, content_type: "application/json", body: Value::Null }, Some(change))
        }
        80..86 if !kind.status.is_empty() => {
            choose(&mut object, &kind.status, 0.7, random);
            (apply(format!("{one}/status"), object, random), None)
        }
        86..90 if !kind.status.is_empty() => {
            let mut patch = json!({});
            choose(&mut patch, &kind.status, 0.7, random);
            (merge(format!("{one}/status"), patch), None)
        }
        90..93 if kind.has_scale => (apply(format!("{one}/scale"), scale(random.usize(..4)), random), None),
        93..95 if kind.has_scale => {
            (merge(format!("{one}/scale"), json!({"spec": {"replicas": random.usize(..4)}})), None)
        }
        95..97 => (merge(one, json!({"metadata": {"managedFields": []}})), None),
        97..98 => (merge(one, json!({"metadata": {"managedFields": [{}]}})), None),
        _ => {
            let operations = json!([{"op": "remove", "path": "/metadata/labels"}]);
            let path = format!("{one}?fieldManager={manager}");
            (Request { method: "PATCH", path, content_type: "application/json-patch+json", body: operations }, None)
        }
    }
}

pub(crate) async fn send(client: &Client, request: &Request) -> (u16, Value) {
    let body = if request.body.is_null() { Vec::new() } else { request.body.to_string().into_bytes() };
    let sent = http::Request::builder()
        .method(request.method)
        .uri(&request.path)
        .header("content-type", request.content_type)
        .header("accept", "application/json")
        .header("user-agent", "compare/1")
        .body(Body::from(body))
        .unwrap();
    let response = client.send(sent).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into_owned().into()))
}

/// The answer without what differs from server to server; owners are in the order of their names, not of their times.
pub(crate) fn normal(value: &Value, key: &str) -> Value {
    match value {
        Value::Object(map) => {
            let fields = map.iter().map(|(name, value)| match name.as_str() {
                "uid" | "resourceVersion" | "time" | "creationTimestamp" | "clusterIP" | "clusterIPs" | "nodePort"
                | "deletionTimestamp" => (name.clone(), json!("<some>")),
                _ => (name.clone(), normal(value, name)),
            });
            fields.collect()
        }
        Value::Array(items) => {
            let mut items: Vec<_> = items.iter().map(|item| normal(item, "")).collect();
            // Go names causes of conflicts in the order of a map.
            if matches!(key, "managedFields" | "causes") {
                items.sort_by_key(ToString::to_string);
            }
            items.into()
        }
        other => other.clone(),
    }
}

/// The object that a PUT sends: what the server shows, with changes.
async fn changed(client: &Client, path: &str, change: &Value) -> Value {
    let path = path.split('?').next().unwrap().to_owned();
    let get = Request { method: "GET", path, content_type: "application/json", body: Value::Null };
    let (_, mut object) = send(client, &get).await;
    json_patch::merge(&mut object, change);
    object
}

#[tokio::test]
async fn writes_by_several_managers_end_as_on_kube_apiserver() {
    let [theirs, ours] = clients().await;
    let post = |path: &str, body: Value| Request {
        method: "POST",
        path: path.to_owned(),
        content_type: "application/json",
        body,
    };
    for client in [&theirs, &ours] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        send(client, &post("/api/v1/namespaces", namespace)).await;
        send(client, &post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())).await;
    }
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let mut random = fastrand::Rng::with_seed(14);
    let mut total = 0;
    let mut different = 0;
    let mut worded = 0;
    for kind in kinds() {
        let mut of_kind = 0;
        for at in 0..WRITES {
            // A new object now and then: creates are writes, too.
            let name = format!("x{}", at / 20);
            let (request, change) = next(&kind, &name, &mut random);
            let mut answers = Vec::new();
            for client in [&theirs, &ours] {
                let mut request = request.clone();
                if let Some(change) = &change {
                    request.body = changed(client, &request.path, change).await;
                }
                let (code, body) = send(client, &request).await;
                answers.push((code, normal(&body, "")));
            }
            let [theirs, ours] = <[_; 2]>::try_from(answers).unwrap();
            total += 1;
            if theirs == ours {
                continue;
            }
            let plain = |(code, body): &(u16, Value)| {
                let mut body = body.clone();
                for field in ["message", "details"] {
                    body.as_object_mut().filter(|body| body.contains_key("reason")).map(|body| body.remove(field));
                }
                (*code, body)
            };
            let only_words = plain(&theirs) == plain(&ours) || theirs.0 == ours.0 && theirs.0 >= 400;
            worded += usize::from(only_words);
            of_kind += usize::from(!only_words);
            println!(
                "== {} {} {}\n   theirs: {} {}\n   ours:   {} {}",
                request.method,
                request.path,
                change.unwrap_or(request.body),
                theirs.0,
                theirs.1,
                ours.0,
                ours.1
            );
        }
        println!("{}: {of_kind} of {WRITES} differ", kind.kind);
        different += of_kind;
    }
    println!("{different} of {total} answers differ, {worded} in words only");
    assert!(different * 1000 <= total * DIFFERENT_OF_1000_MAX, "{different} of {total} answers differ");
    assert!(worded * 100 <= total * 5, "{worded} of {total} answers differ in words");
}
