//! Server-side apply, and the managers of fields that every write leaves.

#![allow(clippy::needless_pass_by_value, reason = "what is handed over is a literal")]

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use steersman_apiserver::ApiServer;

use crate::support::{CONFIG_MAPS, Got, ask, client, config_map, pod, send, server};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Applies a configuration as a manager.
async fn apply(server: &ApiServer, path: &str, query: &str, config: &Value) -> Got {
    let headers = [("content-type", "application/apply-patch+yaml")];
    send(server, "PATCH", &format!("{path}?{query}"), &headers, config.to_string().into_bytes()).await
}

/// Who owns what: manager, operation, subresource and fields.
fn owners(object: &Value) -> Vec<(String, String, String, Value)> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let owner = |entry: &Value| {
        (text(&entry["manager"]), text(&entry["operation"]), text(&entry["subresource"]), entry["fieldsV1"].clone())
    };
    entries.iter().map(owner).collect()
}

fn owner(manager: &str, operation: &str, fields: Value) -> (String, String, String, Value) {
    (manager.to_owned(), operation.to_owned(), String::new(), fields)
}

fn config(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

fn deployment(containers: Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}},
        },
    })
}

async fn define_widgets(server: &ApiServer) {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer"}, "color": {"type": "string"},
            "parts": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"}, "count": {"type": "integer"},
                }},
            },
        }},
        "status": {"type": "object", "properties": {"ready": {"type": "integer"}}},
    }});
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.ready"},
                },
            }],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    ask(server, "POST", path, Some(definition)).await.expect(201);
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
}

fn widget(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec})
}

#[tokio::test(start_paused = true)]
async fn an_apply_creates_and_owns_what_it_says() {
    let server = server();
    let path = format!("{CONFIG_MAPS}/a");
    let made = apply(&server, &path, "fieldManager=one", &config(json!({"a": "1"}))).await.expect(201);
    assert_eq!(owners(&made), [owner("one", "Apply", json!({"f:data": {"f:a": {}}}))]);
    let again = apply(&server, &path, "fieldManager=one", &config(json!({"a": "1"}))).await.expect(200);
    assert_eq!(again, made, "the same again is no write");
}

#[tokio::test(start_paused = true)]
async fn what_others_own_is_a_conflict_unless_it_is_forced() {
    let server = server();
    let path = format!("{CONFIG_MAPS}/a");
    apply(&server, &path, "fieldManager=one", &config(json!({"a": "1", "b": "1"}))).await.expect(201);
    let refused = apply(&server, &path, "fieldManager=two", &config(json!({"a": "2"}))).await.expect(409);
    assert_eq!(refused["reason"], "Conflict");
    assert_eq!(refused["message"], "Apply failed with 1 conflict: conflict with \"one\": .data.a");
    let cause = json!({"reason": "FieldManagerConflict", "message": "conflict with \"one\"", "field": ".data.a"});
    assert_eq!(refused["details"]["causes"], json!([cause]));
    let forced = apply(&server, &path, "fieldManager=two&force=true", &config(json!({"a": "2"}))).await.expect(200);
    assert_eq!(forced["data"], json!({"a": "2", "b": "1"}));
    let want =
        [owner("one", "Apply", json!({"f:data": {"f:b": {}}})), owner("two", "Apply", json!({"f:data": {"f:a": {}}}))];
    assert_eq!(owners(&forced), want);
}

#[tokio::test(start_paused = true)]
async fn what_a_manager_no_longer_says_is_removed_unless_others_own_it() {
    let server = server();
    let path = format!("{CONFIG_MAPS}/a");
    apply(&server, &path, "fieldManager=one", &config(json!({"a": "1", "b": "1"}))).await.expect(201);
    apply(&server, &path, "fieldManager=two", &config(json!({"b": "1"}))).await.expect(200);
    let left = apply(&server, &path, "fieldManager=one", &config(json!({}))).await.expect(200);
    assert_eq!(left["data"], json!({"b": "1"}));
}

#[tokio::test(start_paused = true)]
async fn an_update_owns_what_it_changes_and_takes_it_from_who_applied_it() {
    let server = server();
    let path = format!("{CONFIG_MAPS}/a");
    apply(&server, &path, "fieldManager=one", &config(json!({"a": "1", "b": "1"}))).await.expect(201);
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let headers = [("content-type", "application/merge-patch+json"), ("user-agent", "kubectl/v1.37.1 (linux/amd64)")];
    let body = json!({"data": {"a": "2"}}).to_string().into_bytes();
    let changed = send(&server, "PATCH", &path, &headers, body).await.expect(200);
    let want = [
        owner("one", "Apply", json!({"f:data": {".": {}, "f:b": {}}})),
        owner("kubectl", "Update", json!({"f:data": {"f:a": {}}})),
    ];
    let got = owners(&changed);
    assert_eq!(got[1], want[1]);
    assert_eq!(got[0].0, "one");
    assert_eq!(changed["metadata"]["managedFields"][0]["time"], "2026-11-15T12:00:00Z");
    assert_eq!(changed["metadata"]["managedFields"][1]["time"], "2026-11-15T12:01:00Z");
    let refused = apply(&server, &path, "fieldManager=one", &config(json!({"a": "1", "b": "1"}))).await.expect(409);
    assert_eq!(refused["message"], "Apply failed with 1 conflict: conflict with \"kubectl\" using v1: .data.a");
}

#[tokio::test(start_paused = true)]
async fn times_move_only_with_a_change() {
    let server = server();
    ask(&server, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let path = format!("{CONFIG_MAPS}/a?fieldManager=somebody");
    let changed = ask(&server, "PATCH", &path, Some(json!({"data": {"a": "c"}}))).await.expect(200);
    let back = ask(&server, "PUT", &path, Some(changed.clone())).await.expect(200);
    assert_eq!(back, changed);
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let same = ask(&server, "PATCH", &path, Some(json!({"data": {"a": "c"}}))).await.expect(200);
    assert_eq!(same, changed);
}

#[tokio::test(start_paused = true)]
async fn managers_of_a_body_count_and_none_gives_all_up() {
    let server = server();
    let made =
        ask(&server, "POST", &format!("{CONFIG_MAPS}?fieldManager=one"), Some(config_map("a"))).await.expect(201);
    assert_eq!(owners(&made), [owner("one", "Update", json!({"f:data": {".": {}, "f:a": {}}}))]);
    let path = format!("{CONFIG_MAPS}/a");
    let kept = ask(&server, "PUT", &path, Some(config_map("a"))).await.expect(200);
    assert_eq!(owners(&kept), owners(&made), "a client that does not know of them loses none");
    let given_up = ask(&server, "PATCH", &path, Some(json!({"metadata": {"managedFields": []}}))).await.expect(200);
    assert!(owners(&given_up).is_empty(), "{given_up}");
    let mut stripped = made.clone();
    stripped["metadata"]["managedFields"] = json!([{}]);
    stripped["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    ask(&server, "PUT", &path, Some(stripped)).await.expect(200);
    let adopted = apply(&server, &path, "fieldManager=two&force=true", &config(json!({"a": "2"}))).await.expect(200);
    let names: Vec<_> = owners(&adopted).into_iter().map(|owner| owner.0).collect();
    assert_eq!(names, ["two", "before-first-apply"]);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_is_applied_by_two_through_kube() {
    let server = server();
    let api: Api<Deployment> = Api::default_namespaced(client(&server));
    let first = deployment(json!([{"name": "a", "image": "nginx"}]));
    let made = api.patch("web", &PatchParams::apply("one"), &Patch::Apply(&first)).await.unwrap();
    assert_eq!(made.spec.replicas, Some(1), "defaults are set, and are nobody's");
    let mut second = deployment(json!([{"name": "b", "image": "redis"}]));
    second["spec"]["replicas"] = 3.into();
    let both = api.patch("web", &PatchParams::apply("two"), &Patch::Apply(&second)).await.unwrap();
    let spec = both.spec;
    assert_eq!(spec.replicas, Some(3), "a default is nobody's, so nobody is asked");
    let names: Vec<_> = spec.template.spec.unwrap().containers.into_iter().map(|container| container.name).collect();
    assert_eq!(names, ["a", "b"]);
    let clash = deployment(json!([{"name": "b", "image": "valkey"}]));
    let refused = api.patch("web", &PatchParams::apply("one"), &Patch::Apply(&clash)).await.unwrap_err();
    let kube::Error::Api(status) = refused else { panic!("{refused}") };
    assert!(status.is_conflict(), "{status:?}");
    let forced = api.patch("web", &PatchParams::apply("one").force(), &Patch::Apply(&clash)).await.unwrap();
    let containers = forced.spec.template.spec.unwrap().containers;
    assert_eq!(containers.len(), 1, "the container that nobody says is gone");
    assert_eq!(containers[0].image.as_deref(), Some("valkey"));
}

#[tokio::test(start_paused = true)]
async fn a_custom_resource_is_merged_by_its_schema() {
    let server = server();
    define_widgets(&server).await;
    let path = format!("{WIDGETS}/w");
    let one = widget(json!({"size": 1, "parts": [{"name": "a", "count": 1}]}));
    apply(&server, &path, "fieldManager=one", &one).await.expect(201);
    let two = widget(json!({"color": "red", "parts": [{"name": "b", "count": 2}]}));
    let both = apply(&server, &path, "fieldManager=two", &two).await.expect(200);
    assert_eq!(both["spec"]["parts"], json!([{"name": "a", "count": 1}, {"name": "b", "count": 2}]));
    let fields = json!({"f:spec": {
        "f:color": {}, "f:parts": {"k:{\"name\":\"b\"}": {".": {}, "f:count": {}, "f:name": {}}},
    }});
    assert_eq!(owners(&both)[1], owner("two", "Apply", fields));
    let refused = apply(&server, &path, "fieldManager=two", &widget(json!({"unknown": 1}))).await.expect(500);
    assert_eq!(
        refused["message"],
        "failed to create typed patch object (/w; example.com/v1, Kind=Widget): .spec.unknown: field not declared in schema"
    );
}

#[tokio::test(start_paused = true)]
async fn a_status_is_applied_through_its_subresource() {
    let server = server();
    define_widgets(&server).await;
    let path = format!("{WIDGETS}/w");
    apply(&server, &format!("{path}/status"), "fieldManager=c", &widget(json!({}))).await.expect(404);
    let mut config = widget(json!({"size": 1}));
    config["status"] = json!({"ready": 7});
    let made = apply(&server, &path, "fieldManager=one", &config).await.expect(201);
    assert_eq!(made["status"], Value::Null);
    assert_eq!(owners(&made), [owner("one", "Apply", json!({"f:spec": {"f:size": {}}}))]);
    config["spec"]["size"] = 9.into();
    let written = apply(&server, &format!("{path}/status"), "fieldManager=c", &config).await.expect(200);
    assert_eq!(written["status"], json!({"ready": 7}));
    assert_eq!(written["spec"], json!({"size": 1}));
    let status = ("c".to_owned(), "Apply".to_owned(), "status".to_owned(), json!({"f:status": {"f:ready": {}}}));
    assert_eq!(owners(&written)[0], status);
}

#[tokio::test(start_paused = true)]
async fn a_scale_moves_the_owner_of_the_replicas() {
    let server = server();
    let path = format!("{DEPLOYMENTS}/web");
    let mut wanted = deployment(json!([{"name": "a", "image": "nginx"}]));
    wanted["spec"]["replicas"] = 1.into();
    apply(&server, &path, "fieldManager=one", &wanted).await.expect(201);
    let scale = |replicas: i64| {
        json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": "web", "namespace": "default"}, "spec": {"replicas": replicas},
        })
    };
    let at = format!("{path}/scale");
    let refused = apply(&server, &at, "fieldManager=hpa", &scale(3)).await.expect(409);
    assert_eq!(refused["message"], "Apply failed with 1 conflict: conflict with \"one\": .spec.replicas");
    let scaled = apply(&server, &at, "fieldManager=hpa&force=true", &scale(3)).await.expect(200);
    assert_eq!(scaled["spec"]["replicas"], 3);
    let read = ask(&server, "GET", &path, None).await.expect(200);
    assert_eq!(read["spec"]["replicas"], 3);
    let replicas = json!({"f:spec": {"f:replicas": {}}});
    let hpa = ("hpa".to_owned(), "Apply".to_owned(), "scale".to_owned(), replicas.clone());
    assert!(owners(&read).contains(&hpa), "{read}");
    ask(&server, "PATCH", &format!("{at}?fieldManager=kubectl"), Some(json!({"spec": {"replicas": 5}})))
        .await
        .expect(200);
    let read = ask(&server, "GET", &path, None).await.expect(200);
    let kubectl = ("kubectl".to_owned(), "Update".to_owned(), "scale".to_owned(), replicas);
    assert!(owners(&read).contains(&kubectl) && !owners(&read).contains(&hpa), "{read}");
    assert_eq!(owners(&read)[0].0, "one");
}

#[tokio::test(start_paused = true)]
async fn a_pods_owners_are_those_of_its_parts() {
    let server = server();
    ask(&server, "POST", &format!("{PODS}?fieldManager=one"), Some(pod("a"))).await.expect(201);
    let binding = json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}});
    let bound = ask(&server, "POST", &format!("{PODS}/a/binding?fieldManager=scheduler"), Some(binding)).await;
    bound.expect(201);
    let path = format!("{PODS}/a/status?fieldManager=kubelet");
    let running = ask(&server, "PATCH", &path, Some(json!({"status": {"phase": "Running"}}))).await.expect(200);
    let got: Vec<_> = owners(&running).into_iter().map(|(manager, _, part, _)| (manager, part)).collect();
    assert_eq!(got, [("kubelet".to_owned(), "status".to_owned()), ("one".to_owned(), String::new())]);
    assert_eq!(owners(&running)[0].3, json!({"f:status": {"f:phase": {}}}), "a binding is nobody's");
}

#[tokio::test(start_paused = true)]
async fn a_manager_has_a_name_that_can_be_printed() {
    let server = server();
    let path = format!("{CONFIG_MAPS}/a");
    let nameless = apply(&server, &path, "", &config(json!({}))).await.expect(422);
    assert_eq!(
        nameless["message"],
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
    );
    let long = format!("{CONFIG_MAPS}?fieldManager={}", "x".repeat(129));
    let refused = ask(&server, "POST", &long, Some(config_map("a"))).await.expect(422);
    assert_eq!(
        refused["message"],
        "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than 128 bytes"
    );
    let bell =
        ask(&server, "POST", &format!("{CONFIG_MAPS}?fieldManager=a%07"), Some(config_map("a"))).await.expect(422);
    let message = bell["message"].as_str().unwrap();
    assert!(message.ends_with("invalid character U+0007 (at position 1)"), "{message}");
    let forced = ask(&server, "PATCH", &format!("{path}?force=true"), Some(json!({}))).await.expect(422);
    let message = forced["message"].as_str().unwrap();
    assert!(message.ends_with("force: Forbidden: may not be specified for non-apply patch"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_malformed_configuration_is_refused_in_upstreams_words() {
    let server = server();
    let path = format!("{CONFIG_MAPS}/a");
    for (config, code, message) in [
        (json!({}), 400, "invalid object type: /, Kind="),
        (json!({"apiVersion": "v1", "kind": "Secret"}), 400, "invalid object type: /v1, Kind=Secret"),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"managedFields": []}}),
            400,
            "metadata.managedFields must be nil",
        ),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}),
            400,
            "the name of the object (b) does not match the name on the URL (a)",
        ),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "u"}}),
            409,
            "Operation cannot be fulfilled on configmaps \"a\": uid mismatch: the provided object specified uid u, and no \
             existing object was found",
        ),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "nonsense": 1}),
            500,
            "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .nonsense: field not declared in schema",
        ),
    ] {
        let refused = apply(&server, &path, "fieldManager=one", &config).await.expect(code);
        assert_eq!(refused["message"], message);
    }
    let headers = [("content-type", "application/apply-patch+cbor")];
    send(&server, "PATCH", &format!("{path}?fieldManager=one"), &headers, vec![0xa0]).await.expect(415);
    ask(&server, "GET", &path, None).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn an_apply_from_client_side_apply_keeps_no_field_that_it_drops() {
    let server = server();
    let last = config(json!({"a": "1", "b": "1"}));
    let mut made = last.clone();
    made["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": last.to_string()});
    let query = "fieldManager=kubectl-client-side-apply";
    ask(&server, "POST", &format!("{CONFIG_MAPS}?{query}"), Some(made)).await.expect(201);
    let path = format!("{CONFIG_MAPS}/a");
    let taken = apply(&server, &path, "fieldManager=kubectl", &config(json!({"a": "2"}))).await.expect(200);
    assert_eq!(taken["data"]["a"], "2", "its own last configuration is no conflict for kubectl");
    let posted: Value = serde_json::from_str(
        taken["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"].as_str().unwrap(),
    )
    .unwrap();
    assert_eq!(
        posted["data"],
        json!({"a": "2"}),
        "the annotation follows, so that client-side apply goes on from there"
    );
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_of_an_apply_writes_nothing() {
    let server = server();
    let path = format!("{CONFIG_MAPS}/a");
    let before = server.revision();
    let shown = apply(&server, &path, "fieldManager=one&dryRun=All", &config(json!({"a": "1"}))).await.expect(201);
    assert_eq!(owners(&shown).len(), 1);
    assert_eq!(server.revision(), before);
}

#[tokio::test(start_paused = true)]
async fn a_typed_create_through_kube_names_its_manager() {
    let server = server();
    let api: Api<Deployment> = Api::default_namespaced(client(&server));
    let object = serde_json::from_value(deployment(json!([{"name": "a", "image": "nginx"}]))).unwrap();
    let params = PostParams { field_manager: Some("me".to_owned()), ..PostParams::default() };
    let made = api.create(&params, &object).await.unwrap();
    let entries = made.metadata.managed_fields.unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].manager.as_deref(), Some("me"));
    assert_eq!(entries[0].operation.as_deref(), Some("Update"));
}
