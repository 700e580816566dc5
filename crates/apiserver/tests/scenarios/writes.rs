//! Creates, updates, patches, dry runs, namespaces, definitions.

use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::support::{CONFIG_MAPS, ask, client, config_map, config_maps, pod, server};

#[tokio::test(start_paused = true)]
async fn a_kube_client_creates_reads_patches_and_deletes() {
    use k8s_openapi::api::core::v1::Pod;
    let server = server();
    let client = client(&server);
    let pods: Api<Pod> = Api::default_namespaced(client);
    let made = pods.create(&PostParams::default(), &serde_json::from_value(pod("a")).unwrap()).await.unwrap();
    assert_eq!(made.metadata.namespace.as_deref(), Some("default"));
    assert_eq!(made.metadata.generation, Some(1));
    assert!(made.metadata.uid.is_some());
    let status = json!({"status": {"phase": "Running"}});
    pods.patch_status("a", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    let read = pods.get("a").await.unwrap();
    assert_eq!(read.status.unwrap().phase.as_deref(), Some("Running"));
    assert_eq!(read.metadata.generation, Some(1), "a status is no new generation");
    pods.delete("a", &Default::default()).await.unwrap();
    assert!(pods.get_opt("a").await.unwrap().is_none(), "a pod without a node goes at once");
}

#[tokio::test(start_paused = true)]
async fn an_update_that_changes_nothing_keeps_the_resource_version() {
    let server = server();
    let made = ask(&server, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    let path = format!("{CONFIG_MAPS}/a");
    let same = ask(&server, "PUT", &path, Some(config_map("a"))).await.expect(200);
    assert_eq!(same["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    let patched = ask(&server, "PATCH", &path, Some(json!({"data": {"a": "b"}}))).await.expect(200);
    assert_eq!(patched, same);
    let changed = ask(&server, "PATCH", &path, Some(json!({"data": {"a": "c"}}))).await.expect(200);
    assert_ne!(changed["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
}

#[tokio::test(start_paused = true)]
async fn of_two_updates_from_one_state_the_second_is_a_conflict() {
    let server = server();
    let mut first = ask(&server, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    let mut second = first.clone();
    first["data"]["a"] = "1".into();
    second["data"]["a"] = "2".into();
    let path = format!("{CONFIG_MAPS}/a");
    ask(&server, "PUT", &path, Some(first)).await.expect(200);
    let refused = ask(&server, "PUT", &path, Some(second)).await.expect(409);
    assert_eq!(refused["reason"], "Conflict");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_answers_as_if_and_writes_nothing() {
    let server = server();
    let before = server.revision();
    let path = format!("{CONFIG_MAPS}?dryRun=All");
    let answer = ask(&server, "POST", &path, Some(config_map("a"))).await.expect(201);
    assert!(answer["metadata"]["uid"].is_string());
    ask(&server, "GET", &format!("{CONFIG_MAPS}/a"), None).await.expect(404);
    assert_eq!(server.revision(), before);
    ask(&server, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    ask(&server, "DELETE", &format!("{CONFIG_MAPS}/a?dryRun=All"), None).await.expect(200);
    ask(&server, "GET", &format!("{CONFIG_MAPS}/a"), None).await.expect(200);
    ask(&server, "POST", &path, Some(config_map("a"))).await.expect(409);
}

#[tokio::test(start_paused = true)]
async fn generated_names_have_the_prefix_and_differ() {
    let server = server();
    let body = json!({"metadata": {"generateName": "web-"}});
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let made = ask(&server, "POST", CONFIG_MAPS, Some(body.clone())).await.expect(201);
        let name = made["metadata"]["name"].as_str().unwrap().to_owned();
        assert!(name.starts_with("web-") && name.len() == 9, "{name}");
        names.insert(name);
    }
    assert_eq!(names.len(), 50);
}

#[tokio::test(start_paused = true)]
async fn a_status_and_the_rest_are_written_apart() {
    let server = server();
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}});
    let set = json!({
        "metadata": {"name": "a"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": template},
        "status": {"replicas": 9},
    });
    let made = ask(&server, "POST", sets, Some(set)).await.expect(201);
    assert_eq!(made["status"]["replicas"], 0, "a create sets no status");
    let path = format!("{sets}/a");
    let body = json!({"spec": {"replicas": 3}, "status": {"replicas": 9}});
    let changed = ask(&server, "PATCH", &path, Some(body.clone())).await.expect(200);
    assert_eq!((&changed["spec"]["replicas"], &changed["status"]["replicas"]), (&json!(3), &json!(0)));
    assert_eq!(changed["metadata"]["generation"], 2);
    let body = json!({"spec": {"replicas": 7}, "status": {"replicas": 9}});
    let changed = ask(&server, "PATCH", &format!("{path}/status"), Some(body)).await.expect(200);
    assert_eq!((&changed["spec"]["replicas"], &changed["status"]["replicas"]), (&json!(3), &json!(9)));
    assert_eq!(changed["metadata"]["generation"], 2, "a status is no new generation");
    let mut put = changed.clone();
    put["metadata"]["annotations"] = json!({"note": "x"});
    let changed = ask(&server, "PUT", &format!("{path}/status"), Some(put)).await.expect(200);
    assert_eq!(changed["metadata"]["annotations"]["note"], "x", "a status PUT takes the annotations of its body");
}

#[tokio::test(start_paused = true)]
async fn many_writers_of_one_object_lose_no_write() {
    let server = server();
    let client = client(&server);
    let maps = config_maps(&client);
    ask(&server, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    let writes = (0..32).map(|at| {
        let maps = maps.clone();
        tokio::spawn(async move {
            let patch = Patch::Merge(json!({"data": {format!("k{at}"): "v"}}));
            maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
        })
    });
    for write in writes.collect::<Vec<_>>() {
        write.await.unwrap();
    }
    let map = maps.get("a").await.unwrap();
    assert_eq!(map.data["data"].as_object().unwrap().len(), 33);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn patches_from_many_threads_are_all_applied_without_a_conflict() {
    let server = server();
    ask(&server, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    let writes = (0..8).map(|writer| {
        let server = server.clone();
        tokio::spawn(async move {
            for at in 0..25 {
                let patch = json!({"data": {format!("k{writer}-{at}"): "v"}});
                ask(&server, "PATCH", &format!("{CONFIG_MAPS}/a"), Some(patch)).await.expect(200);
            }
        })
    });
    for write in writes.collect::<Vec<_>>() {
        write.await.unwrap();
    }
    let map = ask(&server, "GET", &format!("{CONFIG_MAPS}/a"), None).await.expect(200);
    assert_eq!(map["data"].as_object().unwrap().len(), 201);
}

#[tokio::test(start_paused = true)]
async fn a_custom_resource_is_served_as_soon_as_its_names_are_accepted() {
    let server = server();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = json!({
        "metadata": {"name": "cakes.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "cakes", "singular": "cake", "kind": "Cake", "listKind": "CakeList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    ask(&server, "POST", definitions, Some(definition)).await.expect(201);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let held = ask(&server, "GET", &format!("{definitions}/cakes.example.com"), None).await.expect(200);
    let established =
        held["status"]["conditions"].as_array().unwrap().iter().find(|held| held["type"] == "Established");
    assert_eq!(established.unwrap()["status"], "True");
    let cakes = "/apis/example.com/v1/namespaces/default/cakes";
    let cake = json!({"apiVersion": "example.com/v1", "kind": "Cake", "metadata": {"name": "a"}, "spec": {"size": 1}, "status": {"x": 1}});
    let made = ask(&server, "POST", cakes, Some(cake)).await.expect(201);
    assert_eq!((&made["spec"]["size"], &made["status"]), (&json!(1), &json!(null)));
    let changed = ask(&server, "PATCH", &format!("{cakes}/a"), Some(json!({"spec": {"size": 2}}))).await.expect(200);
    assert_eq!(changed["metadata"]["generation"], 2);
    let changed =
        ask(&server, "PATCH", &format!("{cakes}/a/status"), Some(json!({"status": {"x": 2}}))).await.expect(200);
    assert_eq!((&changed["metadata"]["generation"], &changed["status"]["x"]), (&json!(2), &json!(2)));
    ask(&server, "DELETE", &format!("{definitions}/cakes.example.com"), None).await.expect(200);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    ask(&server, "GET", &format!("{definitions}/cakes.example.com"), None).await.expect(404);
    assert_eq!(ask(&server, "GET", cakes, None).await.code, 404, "the group is gone with its definition");
}

#[tokio::test(start_paused = true)]
async fn an_update_of_a_namespace_keeps_its_finalizers_and_its_phase() {
    let server = server();
    let body =
        json!({"spec": {"finalizers": null}, "status": {"phase": "Terminating"}, "metadata": {"labels": {"a": "b"}}});
    let changed = ask(&server, "PATCH", "/api/v1/namespaces/default", Some(body)).await.expect(200);
    assert_eq!(changed["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!((&changed["status"]["phase"], &changed["metadata"]["labels"]["a"]), (&json!("Active"), &json!("b")));
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_once_by_either_path() {
    let server = server();
    let pods = "/api/v1/namespaces/default/pods";
    for (name, path) in [("a", format!("{pods}/a/binding")), ("b", "/api/v1/namespaces/default/bindings".to_owned())] {
        ask(&server, "POST", pods, Some(pod(name))).await.expect(201);
        let binding = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": "n1"}});
        ask(&server, "POST", &path, Some(binding.clone())).await.expect(201);
        let bound = ask(&server, "GET", &format!("{pods}/{name}"), None).await.expect(200);
        assert_eq!((&bound["spec"]["nodeName"], &bound["metadata"]["generation"]), (&json!("n1"), &json!(1)));
        ask(&server, "POST", &path, Some(binding)).await.expect(409);
    }
}

#[tokio::test(start_paused = true)]
async fn both_apis_show_the_same_events() {
    let server = server();
    let event = json!({
        "metadata": {"name": "a"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "R", "message": "m", "type": "Normal", "source": {"component": "c"},
    });
    ask(&server, "POST", "/api/v1/namespaces/default/events", Some(event)).await.expect(201);
    let shown = ask(&server, "GET", "/apis/events.k8s.io/v1/namespaces/default/events/a", None).await.expect(200);
    assert_eq!(shown["apiVersion"], "events.k8s.io/v1");
    assert_eq!((&shown["regarding"]["name"], &shown["note"]), (&json!("p"), &json!("m")));
    let list = ask(&server, "GET", "/apis/events.k8s.io/v1/events", None).await.expect(200);
    assert_eq!((&list["kind"], &list["items"][0]["note"]), (&json!("EventList"), &json!("m")));
}

#[tokio::test(start_paused = true)]
async fn an_eviction_asks_the_budget() {
    let server = server();
    let pods = "/api/v1/namespaces/default/pods";
    ask(&server, "POST", pods, Some(pod("a"))).await.expect(201);
    let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    ask(&server, "PATCH", &format!("{pods}/a/status"), Some(ready)).await.expect(200);
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget =
        json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    ask(&server, "POST", budgets, Some(budget)).await.expect(201);
    let evict = async || {
        let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}});
        ask(&server, "POST", &format!("{pods}/a/eviction"), Some(body)).await
    };
    assert_eq!(evict().await.expect(429)["reason"], "TooManyRequests");
    let status = |allowed: i64| {
        Some(json!({"status": {
            "observedGeneration": 1, "disruptionsAllowed": allowed, "desiredHealthy": 1, "currentHealthy": 1, "expectedPods": 1,
        }}))
    };
    ask(&server, "PATCH", &format!("{budgets}/b/status"), status(0)).await.expect(200);
    let refused = evict().await.expect(429);
    let why = "The disruption budget b needs 1 healthy pods and has 1 currently";
    assert_eq!(refused["details"]["causes"][0]["message"], why);
    ask(&server, "PATCH", &format!("{budgets}/b/status"), status(1)).await.expect(200);
    evict().await.expect(201);
    let left = ask(&server, "GET", &format!("{budgets}/b"), None).await.expect(200);
    assert_eq!(left["status"]["disruptionsAllowed"], 0);
    assert!(left["status"]["disruptedPods"]["a"].is_string());
    ask(&server, "GET", &format!("{pods}/a"), None).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn a_resource_version_is_refused_by_a_create_and_taken_by_a_dry_run() {
    let server = server();
    let mut object = config_map("a");
    object["metadata"]["resourceVersion"] = "7".into();
    let refused = ask(&server, "POST", CONFIG_MAPS, Some(object.clone())).await.expect(500);
    assert_eq!(refused["message"], "resourceVersion should not be set on objects to be created");
    ask(&server, "POST", &format!("{CONFIG_MAPS}?dryRun=All"), Some(object.clone())).await.expect(201);
    object["data"] = json!({"not a key": ""});
    ask(&server, "POST", CONFIG_MAPS, Some(object)).await.expect(422);
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_scales_a_replication_controller_and_nothing_else_of_the_core_group() {
    let server = server();
    let path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
    let autoscaler = |kind: &str, version: &str| {
        let target = json!({"apiVersion": version, "kind": kind, "name": "web"});
        Some(json!({"metadata": {"generateName": "a-"}, "spec": {"maxReplicas": 3, "scaleTargetRef": target}}))
    };
    ask(&server, "POST", path, autoscaler("ReplicationController", "v1")).await.expect(201);
    ask(&server, "POST", path, autoscaler("Deployment", "apps/v1")).await.expect(201);
    for (kind, version, detail) in [
        ("Pod", "v1", "apiVersion must specify API group"),
        ("ReplicationController", "a/b/c", "unexpected GroupVersion string: a/b/c"),
    ] {
        let refused = ask(&server, "POST", path, autoscaler(kind, version)).await.expect(422);
        let cause = &refused["details"]["causes"][0];
        assert_eq!(cause["field"], "spec.scaleTargetRef.apiVersion");
        assert_eq!(cause["message"], format!("Invalid value: {version:?}: {detail}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_trust_bundle_has_the_name_of_its_signer_in_its_own() {
    let server = server();
    let path = "/apis/certificates.k8s.io/v1/clustertrustbundles";
    let pem = crate::support::authority();
    let bundle = |name: &str, signer: &str| {
        Some(json!({"metadata": {"name": name}, "spec": {"signerName": signer, "trustBundle": pem}}))
    };
    ask(&server, "POST", path, bundle("example.com:mine:first", "example.com/mine")).await.expect(201);
    ask(&server, "POST", path, bundle("plain", "")).await.expect(201);
    for (name, signer, detail) in [
        ("a:b", "", "ClusterTrustBundle without signer name must not have \":\" in its name"),
        (
            "first",
            "example.com/mine",
            "ClusterTrustBundle for signerName example.com/mine must be named with prefix example.com:mine:",
        ),
    ] {
        let refused = ask(&server, "POST", path, bundle(name, signer)).await.expect(422);
        let cause = &refused["details"]["causes"][0];
        assert_eq!(cause["message"], format!("Invalid value: {name:?}: {detail}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_scale_without_a_name_is_refused() {
    let server = server();
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let labels = json!({"app": "web"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"selector": {"matchLabels": labels}, "template": template});
    ask(&server, "POST", path, Some(json!({"metadata": {"name": "a"}, "spec": spec}))).await.expect(201);
    let scale = format!("{path}/a/scale");
    let refused = ask(&server, "PUT", &scale, Some(json!({"spec": {"replicas": 3}}))).await.expect(400);
    let want = "the name of the object (a based on URL) was undeterminable: name must be provided";
    assert_eq!(refused["message"], want);
    let named = json!({"metadata": {"name": "a"}, "spec": {"replicas": 3}});
    assert_eq!(ask(&server, "PUT", &scale, Some(named)).await.expect(200)["spec"]["replicas"], 3);
    ask(&server, "PATCH", &scale, Some(json!({"spec": {"replicas": 4}}))).await.expect(200);
}
