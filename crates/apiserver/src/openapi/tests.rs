//! What kubectl looks for in the documents.

use serde_json::{Value, json};

use super::{v2, v3_document, v3_index};

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(entries) => {
            found.extend(entries.get("$ref").and_then(Value::as_str).map(str::to_owned));
            entries.values().for_each(|value| references(value, found));
        }
        Value::Array(elements) => elements.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn every_document_of_the_index_is_there_and_every_reference_leads_somewhere() {
    let index = v3_index(&[]);
    let paths = index["paths"].as_object().expect("paths");
    assert!(paths.contains_key("api/v1") && paths.contains_key("apis/apps/v1"));
    for (path, place) in paths {
        let url = place["serverRelativeURL"].as_str().expect("an address");
        assert!(url.starts_with(&format!("/openapi/v3/{path}?hash=")), "{url}");
        let document = v3_document(&[], path).expect("the document");
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(!found.is_empty());
        for reference in found {
            let pointer = reference.strip_prefix('#').expect("a local reference");
            assert!(document.pointer(pointer).is_some(), "{path}: {reference}");
        }
    }
    assert_eq!(v3_document(&[], "apis/nope/v1"), None);
}

#[test]
fn every_kind_that_can_be_written_has_a_schema_and_server_side_validation() {
    for path in v3_index(&[])["paths"].as_object().expect("paths").keys() {
        let document = v3_document(&[], path).expect("the document");
        for (path, operations) in document["paths"].as_object().expect("paths") {
            let Some(patch) = operations.get("patch") else { continue };
            let names: Vec<&Value> =
                patch["parameters"].as_array().expect("parameters").iter().map(|it| &it["name"]).collect();
            assert!(names.contains(&&json!("fieldValidation")) && names.contains(&&json!("dryRun")), "{path}");
            assert!(patch["requestBody"]["content"]["application/strategic-merge-patch+json"].is_object(), "{path}");
            let kind = &patch["x-kubernetes-group-version-kind"];
            let schemas = document["components"]["schemas"].as_object().expect("schemas");
            let has_kind = |schema: &Value| {
                schema["x-kubernetes-group-version-kind"].as_array().is_some_and(|kinds| kinds.contains(kind))
            };
            assert!(schemas.values().any(has_kind), "{path}: {kind}");
        }
    }
}

#[test]
fn explain_finds_the_kind_of_a_path_and_its_schema() {
    let document = v3_document(&[], "apis/apps/v1").expect("the document");
    let get = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["get"];
    assert_eq!(get["x-kubernetes-group-version-kind"], json!({"group": "apps", "version": "v1", "kind": "Deployment"}));
    let schema = &document["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(
        schema["properties"]["spec"],
        json!({
            "allOf": [{"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec"}],
            "default": {},
            "description": "Specification of the desired behavior of the Deployment.",
        })
    );
    let pod = &document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(pod["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(pod["items"], json!({"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"}));
    let scale = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]["put"];
    assert_eq!(scale["x-kubernetes-group-version-kind"]["group"], "autoscaling");
}

#[test]
fn operations_have_upstreams_names() {
    let document = v2(&[]);
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let pod = "/api/v1/namespaces/{namespace}/pods/{name}";
    for (path, method, name, description) in [
        ("/api/v1/pods", "get", "listCoreV1PodForAllNamespaces", "list or watch objects of kind Pod"),
        (pod, "get", "readCoreV1NamespacedPod", "read the specified Pod"),
        (&format!("{pod}/eviction"), "post", "createCoreV1NamespacedPodEviction", "create eviction of a Pod"),
        (&format!("{pod}/status"), "put", "replaceCoreV1NamespacedPodStatus", "replace status of the specified Pod"),
        (roles, "delete", "deleteRbacAuthorizationV1CollectionClusterRole", "delete collection of ClusterRole"),
        (roles, "post", "createRbacAuthorizationV1ClusterRole", "create a ClusterRole"),
        ("/api/v1/namespaces/{name}", "delete", "deleteCoreV1Namespace", "delete a Namespace"),
        (
            "/apis/networking.k8s.io/v1/namespaces/{namespace}/ingresses",
            "post",
            "createNetworkingV1NamespacedIngress",
            "create an Ingress",
        ),
        ("/api/v1/namespaces/{namespace}/endpoints", "post", "createCoreV1NamespacedEndpoints", "create Endpoints"),
    ] {
        let operation = &document["paths"][path][method];
        assert_eq!(operation["operationId"], name, "{path}: {operation}");
        assert_eq!(operation["description"], description, "{path}");
    }
    let mut names: Vec<&str> = Vec::new();
    for operations in document["paths"].as_object().expect("paths").values() {
        let operations = operations.as_object().expect("operations").values();
        names.extend(operations.filter_map(|operation| operation["operationId"].as_str()));
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "no name twice");
}

#[test]
fn every_kind_is_described() {
    let document = v2(&[]);
    let is_described = |schema: &Value| schema["description"].as_str().is_some_and(|text| !text.is_empty());
    let definitions = document["definitions"].as_object().expect("definitions");
    let silent: Vec<_> = definitions
        .iter()
        .filter(|(_, schema)| schema.get("x-kubernetes-group-version-kind").is_some() && !is_described(schema))
        .map(|(name, _)| name)
        .collect();
    assert!(silent.is_empty(), "{silent:?}");
}

#[test]
fn version_2_has_all_definitions_and_no_alternatives() {
    let document = v2(&[]);
    let definitions = document["definitions"].as_object().expect("definitions");
    assert!(definitions.len() > 600);
    let mut found = Vec::new();
    references(&document, &mut found);
    for reference in found {
        let name = reference.strip_prefix("#/definitions/").expect("a definition");
        assert!(definitions.contains_key(name), "{name}");
    }
    let quantity = &definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"];
    assert_eq!(quantity["type"], "string");
    assert!(quantity["description"].as_str().is_some_and(|it| it.contains("\n\n``` <quantity>")), "{quantity}");
}
