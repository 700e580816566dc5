//! Finalizers, grace periods, preconditions, propagation, namespaces.

use serde_json::json;
use steersman_apiserver::{ApiServer, Options};

use crate::support::{CONFIG_MAPS, ask, config_map, pod, server};

const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test(start_paused = true)]
async fn the_last_finalizer_lets_a_deleted_object_go() {
    let server = server();
    let mut map = config_map("a");
    map["metadata"]["finalizers"] = json!(["example.com/a", "example.com/b"]);
    ask(&server, "POST", CONFIG_MAPS, Some(map)).await.expect(201);
    let path = format!("{CONFIG_MAPS}/a");
    let marked = ask(&server, "DELETE", &path, None).await.expect(200);
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    let body = json!({"metadata": {"finalizers": ["example.com/b"]}});
    ask(&server, "PATCH", &path, Some(body)).await.expect(200);
    ask(&server, "GET", &path, None).await.expect(200);
    ask(&server, "PATCH", &path, Some(json!({"metadata": {"finalizers": null}}))).await.expect(200);
    ask(&server, "GET", &path, None).await.expect(404);
}

/// Where nobody takes finalizers away, nobody gets them.
#[tokio::test(start_paused = true)]
async fn storage_is_protected_unless_nobody_could_lift_that() {
    let claim = || {
        let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        json!({"metadata": {"name": "a"}, "spec": spec})
    };
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    for (unprotected_storage, then) in [(false, 200), (true, 404)] {
        let server = ApiServer::new(Options { unprotected_storage, ..Options::default() });
        ask(&server, "POST", claims, Some(claim())).await.expect(201);
        ask(&server, "DELETE", &format!("{claims}/a"), None).await.expect(200);
        ask(&server, "GET", &format!("{claims}/a"), None).await.expect(then);
    }
}

#[tokio::test(start_paused = true)]
async fn a_bound_pod_gets_its_grace_period_and_it_can_only_be_shortened() {
    let server = server();
    let mut body = pod("a");
    body["spec"]["nodeName"] = "n1".into();
    body["spec"]["terminationGracePeriodSeconds"] = 60.into();
    ask(&server, "POST", PODS, Some(body)).await.expect(201);
    let path = format!("{PODS}/a");
    let marked = ask(&server, "DELETE", &path, None).await.expect(200);
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 60);
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2026-11-15T12:01:00Z");
    assert_eq!(marked["metadata"]["generation"], 2);
    let longer = ask(&server, "DELETE", &format!("{path}?gracePeriodSeconds=100"), None).await.expect(200);
    assert_eq!(longer["metadata"]["deletionGracePeriodSeconds"], 60);
    let shorter = ask(&server, "DELETE", &format!("{path}?gracePeriodSeconds=10"), None).await.expect(200);
    assert_eq!(shorter["metadata"]["deletionTimestamp"], "2026-11-15T12:00:10Z");
    ask(&server, "DELETE", &format!("{path}?gracePeriodSeconds=0"), None).await.expect(200);
    ask(&server, "GET", &path, None).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn preconditions_hold_or_nothing_is_deleted() {
    let server = server();
    let made = ask(&server, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    let path = format!("{CONFIG_MAPS}/a");
    for (field, value) in [("uid", "other"), ("resourceVersion", "1")] {
        let options = json!({"preconditions": {field: value}});
        let refused = ask(&server, "DELETE", &path, Some(options)).await.expect(409);
        assert_eq!(refused["reason"], "Conflict");
    }
    let options = json!({"preconditions": {
        "uid": made["metadata"]["uid"], "resourceVersion": made["metadata"]["resourceVersion"],
    }});
    ask(&server, "DELETE", &path, Some(options)).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn each_propagation_policy_leaves_its_finalizer() {
    for (policy, want) in [("Foreground", Some("foregroundDeletion")), ("Orphan", Some("orphan")), ("Background", None)]
    {
        let server = server();
        ask(&server, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
        let path = format!("{CONFIG_MAPS}/a");
        ask(&server, "DELETE", &path, Some(json!({"propagationPolicy": policy}))).await.expect(200);
        let got = ask(&server, "GET", &path, None).await;
        match want {
            Some(finalizer) => assert_eq!(got.expect(200)["metadata"]["finalizers"], json!([finalizer])),
            None => assert_eq!(got.code, 404),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_when_it_is_finalized_and_takes_nothing_new_before() {
    let server = server();
    let namespaces = "/api/v1/namespaces";
    ask(&server, "POST", namespaces, Some(json!({"metadata": {"name": "a"}}))).await.expect(201);
    let path = format!("{namespaces}/a");
    let marked = ask(&server, "DELETE", &path, None).await.expect(200);
    assert_eq!(marked["status"]["phase"], "Terminating");
    let refused = ask(&server, "POST", &format!("{path}/configmaps"), Some(config_map("x"))).await.expect(403);
    assert_eq!(refused["details"]["causes"][0]["reason"], "NamespaceTerminating");
    let body = json!({"metadata": {"name": "a"}, "spec": {"finalizers": []}});
    ask(&server, "PUT", &format!("{path}/finalize"), Some(body)).await.expect(200);
    ask(&server, "GET", &path, None).await.expect(404);
    let missing = ask(&server, "POST", &format!("{path}/configmaps"), Some(config_map("x"))).await.expect(404);
    assert_eq!(missing["details"]["kind"], "namespaces");
}

#[tokio::test(start_paused = true)]
async fn the_namespaces_of_the_cluster_cannot_be_deleted() {
    let server = server();
    for name in ["default", "kube-system", "kube-public"] {
        let refused = ask(&server, "DELETE", &format!("/api/v1/namespaces/{name}"), None).await.expect(403);
        assert_eq!(refused["reason"], "Forbidden");
    }
    ask(&server, "DELETE", "/api/v1/namespaces/kube-node-lease", None).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_by_selector() {
    let server = server();
    for (name, label) in [("a", "x"), ("b", "y"), ("c", "x")] {
        let mut map = config_map(name);
        map["metadata"]["labels"] = json!({"kind": label});
        ask(&server, "POST", CONFIG_MAPS, Some(map)).await.expect(201);
    }
    ask(&server, "DELETE", &format!("{CONFIG_MAPS}?labelSelector=kind%3Dx"), None).await.expect(200);
    let left = ask(&server, "GET", CONFIG_MAPS, None).await.expect(200);
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_event_goes_after_an_hour() {
    let server = server();
    let events = "/api/v1/namespaces/default/events";
    let event =
        json!({"metadata": {"name": "a"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}});
    ask(&server, "POST", events, Some(event)).await.expect(201);
    tokio::time::sleep(std::time::Duration::from_secs(3590)).await;
    ask(&server, "GET", &format!("{events}/a"), None).await.expect(200);
    tokio::time::sleep(std::time::Duration::from_secs(20)).await;
    ask(&server, "GET", &format!("{events}/a"), None).await.expect(404);
}
