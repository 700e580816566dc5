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
        let server = ApiServer::new(Options::default().unprotected_storage(unprotected_storage));
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

/// A pod on a node, and what a DELETE with this body answers.
#[tokio::test(start_paused = true)]
async fn a_pod_with_all_the_time_in_the_world_can_be_deleted() {
    for (own, asked) in [(i64::MAX, None), (30, Some(i64::MAX)), (30, Some(i64::MIN)), (i64::MAX, Some(i64::MAX - 1))] {
        let server = server();
        let mut object = pod("a");
        object["spec"]["nodeName"] = "n".into();
        object["spec"]["terminationGracePeriodSeconds"] = own.into();
        ask(&server, "POST", PODS, Some(object)).await.expect(201);
        let path = format!("{PODS}/a");
        let options = asked.map(|seconds| json!({"gracePeriodSeconds": seconds}));
        let marked = ask(&server, "DELETE", &path, options).await.expect(200);
        let ends = marked["metadata"]["deletionTimestamp"].as_str().unwrap().to_owned();
        assert!(ends.parse::<steersman_base::Time>().is_ok(), "{ends}");
        // A shorter time counts from now, not from an end that no calendar has.
        let marked = ask(&server, "DELETE", &path, Some(json!({"gracePeriodSeconds": 20}))).await.expect(200);
        let period = marked["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap();
        assert_eq!(period, if asked == Some(i64::MIN) { 1 } else { 20 }, "{own} {asked:?}");
        ask(&server, "GET", PODS, None).await.expect(200);
        ask(&server, "DELETE", &path, Some(json!({"gracePeriodSeconds": 0}))).await.expect(200);
        ask(&server, "GET", &path, None).await.expect(404);
    }
}

/// A generation that cannot grow any more.
#[tokio::test(start_paused = true)]
async fn an_object_with_the_last_generation_can_be_deleted() {
    let server = server();
    let mut map = config_map("a");
    map["metadata"]["generation"] = i64::MAX.into();
    map["metadata"]["finalizers"] = json!(["example.com/a"]);
    ask(&server, "POST", CONFIG_MAPS, Some(map)).await.expect(201);
    let path = format!("{CONFIG_MAPS}/a");
    ask(&server, "DELETE", &path, None).await.expect(200);
    ask(&server, "PATCH", &path, Some(json!({"metadata": {"finalizers": null}}))).await.expect(200);
    ask(&server, "GET", &path, None).await.expect(404);
}
