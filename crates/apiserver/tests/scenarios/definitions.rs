//! CustomResourceDefinitions beside what is built in.

use serde_json::{Value, json};
use steersman_apiserver::ApiServer;
use steersman_apiserver::registry::built_in;

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
    for row in built_in() {
        let group = &*row.resource.group;
        let plural = &*row.resource.plural;
        let refused = define(&server, group, plural, &row.resource.kind).await;
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
