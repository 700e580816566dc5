//! CustomResourceDefinitions beside what is built in.

use serde_json::{Value, json};
use steersman_apiserver::__internal::built_in;
use steersman_apiserver::ApiServer;

use crate::support::{Got, ask, server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition(group: &str, plural: &str, kind: &str) -> Value {
    json!({
        "metadata": {
            "name": format!("{plural}.{group}"), "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
        },
        "spec": {
            "group": group, "scope": "Cluster", "names": {"plural": plural, "kind": kind},
            "versions": [{
                "name": "v9", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

async fn define(server: &ApiServer, group: &str, plural: &str, kind: &str) -> Got {
    ask(server, "POST", DEFINITIONS, Some(definition(group, plural, kind))).await
}

#[tokio::test(start_paused = true)]
async fn a_definition_of_what_is_built_in_is_refused() {
    let server = server();
    for resource in built_in() {
        let group = &*resource.group;
        let plural = &*resource.plural;
        let refused = define(&server, group, plural, &resource.kind).await;
        assert_eq!(refused.code, 422, "{plural}.{group}: {}", refused.body);
    }
    let refused = define(&server, "rbac.authorization.k8s.io", "clusterroles", "ClusterRole").await.expect(422);
    assert_eq!(
        refused["details"]["causes"],
        json!([{
            "reason": "FieldValueInvalid", "field": "spec.names.plural",
            "message": "Invalid value: \"clusterroles\": clusterroles.rbac.authorization.k8s.io is built into the API server",
        }])
    );
}

#[tokio::test(start_paused = true)]
async fn groups_of_the_project_need_its_approval() {
    let server = server();
    let mut own = definition("networking.k8s.io", "widgets", "Widget");
    own["metadata"]["annotations"] = json!({});
    let refused = ask(&server, "POST", DEFINITIONS, Some(own.clone())).await.expect(422);
    let cause = &refused["details"]["causes"][0];
    assert_eq!(cause["field"], "metadata.annotations[api-approved.kubernetes.io]", "{refused}");
    assert_eq!(cause["reason"], "FieldValueRequired");
    own["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "https://example.com/pull/1"});
    ask(&server, "POST", DEFINITIONS, Some(own)).await.expect(201);
    define(&server, "x-k8s.io", "widgets", "Widget").await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_definition_are_its_own_whatever_it_is_called() {
    let server = server();
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let before = ask(&server, "GET", roles, None).await.expect(200);
    // Beside the built-in resources of a group, and under the names of one of another group.
    for (group, plural) in [("rbac.authorization.k8s.io", "widgets"), ("example.com", "clusterroles")] {
        define(&server, group, plural, "Widget").await.expect(201);
        let own = format!("/apis/{group}/v9/{plural}");
        let listed = ask(&server, "GET", &own, None).await.expect(200);
        assert_eq!(listed["items"], json!([]), "{plural}.{group}");
        let widget = json!({"apiVersion": format!("{group}/v9"), "kind": "Widget", "metadata": {"name": "admin"}});
        ask(&server, "POST", &own, Some(widget)).await.expect(201);
        // A status that claims other names does not move its objects.
        let status = json!({"status": {"acceptedNames": {"plural": "clusterroles", "kind": "ClusterRole"}}});
        let path = format!("{DEFINITIONS}/{plural}.{group}");
        ask(&server, "PATCH", &format!("{path}/status"), Some(status)).await.expect(200);
        assert_eq!(ask(&server, "GET", &own, None).await.expect(200)["items"].as_array().unwrap().len(), 1);
        ask(&server, "DELETE", &path, None).await.expect(200);
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        ask(&server, "GET", &path, None).await.expect(404);
        let after = ask(&server, "GET", roles, None).await.expect(200);
        assert_eq!(after["items"], before["items"], "{plural}.{group}");
    }
}

/// kubectl decides by these documents how it patches an object that it applies: a strategic merge patch would be refused.
#[tokio::test(start_paused = true)]
async fn documents_of_a_definition_name_the_patches_that_it_takes() {
    let server = server();
    define(&server, "bakery.dev", "cakes", "Cake").await.expect(201);
    let document = ask(&server, "GET", "/openapi/v3/apis/bakery.dev/v9", None).await.expect(200);
    let patch = &document["paths"]["/apis/bakery.dev/v9/cakes/{name}"]["patch"];
    let types: Vec<&String> = patch["requestBody"]["content"].as_object().unwrap().keys().collect();
    assert_eq!(types, ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"]);
    let schemas = &document["components"]["schemas"];
    let metadata = &schemas["dev.bakery.v9.Cake"]["properties"]["metadata"];
    assert!(metadata["description"].as_str().unwrap().starts_with("Standard object's metadata. "), "{metadata}");
    assert!(metadata["allOf"][0]["$ref"].as_str().unwrap().ends_with(".ObjectMeta"), "{metadata}");
    let old = ask(&server, "GET", "/openapi/v2", None).await.expect(200);
    let consumes = &old["paths"]["/apis/bakery.dev/v9/cakes/{name}"]["patch"]["consumes"];
    assert_eq!(consumes.as_array().unwrap().len(), 3, "{consumes}");
}

#[tokio::test(start_paused = true)]
async fn a_document_is_sent_once_to_those_who_keep_it_and_changes_with_its_definitions() {
    let server = server();
    let get = async |path: &str, known: &str| {
        let request = http::Request::get(path).header("if-none-match", known);
        let request = request.body(http_body_util::Full::new(bytes::Bytes::new())).unwrap();
        let response = tower::ServiceExt::oneshot(server.clone(), request).await.unwrap();
        let header = |name: &str| response.headers().get(name).map(|it| it.to_str().unwrap().to_owned());
        (response.status().as_u16(), header("etag").unwrap_or_default(), header("location"), header("cache-control"))
    };
    for path in ["/openapi/v2", "/openapi/v3", "/openapi/v3/apis/apps/v1"] {
        let (code, tag, ..) = get(path, "").await;
        assert!(code == 200 && tag.starts_with('"') && tag.ends_with('"'), "{path}: {code} {tag}");
        assert_eq!(get(path, &tag).await.0, 304, "{path}");
        assert_eq!(get(path, "\"other\"").await.0, 200, "{path}");
    }
    let apps = get("/openapi/v3/apis/apps/v1", "").await.1;
    let all = get("/openapi/v2", "").await.1;
    define(&server, "bakery.dev", "cakes", "Cake").await.expect(201);
    assert_eq!(get("/openapi/v3/apis/apps/v1", &apps).await.0, 304, "it describes no definition");
    assert_eq!(get("/openapi/v2", &all).await.0, 200, "it describes all");

    let index = ask(&server, "GET", "/openapi/v3", None).await.expect(200);
    let address = index["paths"]["apis/bakery.dev/v9"]["serverRelativeURL"].as_str().unwrap();
    let (code, _, _, kept) = get(address, "").await;
    assert_eq!((code, kept.as_deref()), (200, Some("public, immutable")));
    let (code, _, location, _) = get("/openapi/v3/apis/bakery.dev/v9?hash=0", "").await;
    assert_eq!((code, location.as_deref()), (301, Some(address)));
    ask(&server, "DELETE", &format!("{DEFINITIONS}/cakes.bakery.dev"), None).await.expect(200);
    // Its objects are deleted first, by a task.
    while ask(&server, "GET", &format!("{DEFINITIONS}/cakes.bakery.dev"), None).await.code == 200 {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(get("/openapi/v3/apis/bakery.dev/v9", "").await.0, 404);
}
