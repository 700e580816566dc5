//! Schemas of CustomResourceDefinitions: what is accepted, and what becomes of objects.

use std::time::Duration;

use serde_json::{Value, json};
use steersman_apiserver::ApiServer;

use crate::support::{Got, ask, send, server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

fn widgets(versions: Value) -> Value {
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
        },
    });
    definition["spec"]["versions"] = versions;
    definition
}

fn version(name: &str, spec: Value) -> Value {
    let mut version = json!({
        "name": name, "served": true, "storage": name == "v1",
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "status": {"type": "object", "properties": {"phase": {"type": "string", "enum": ["Ready", "Failed"]}}},
        }}},
        "subresources": {"status": {}},
    });
    version["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec;
    version
}

fn spec() -> Value {
    json!({"type": "object", "required": ["size"], "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 5},
        "color": {"type": "string", "default": "red", "pattern": "^[a-z]+$"},
        "ports": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "port": {"type": "integer"},
            }},
        },
    }})
}

fn widget(name: &str, spec: Value) -> Value {
    let mut widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}});
    widget["spec"] = spec;
    widget
}

async fn define(server: &ApiServer, versions: Value) {
    ask(server, "POST", DEFINITIONS, Some(widgets(versions))).await.expect(201);
    tokio::time::sleep(Duration::from_millis(50)).await;
}

async fn create(server: &ApiServer, name: &str, spec: Value) -> Got {
    ask(server, "POST", WIDGETS, Some(widget(name, spec))).await
}

fn causes(status: &Value) -> Vec<String> {
    let causes = status["details"]["causes"].as_array().expect("causes");
    let shown = causes.iter().map(|cause| {
        let text = |field: &str| cause[field].as_str().unwrap_or_default().to_owned();
        format!("{} {}: {}", text("reason"), text("field"), text("message"))
    });
    shown.collect()
}

#[tokio::test(start_paused = true)]
async fn a_schema_that_is_not_structural_is_refused_where_upstream_looks_for_it() {
    let server = server();
    let wrong = json!({"properties": {"size": {"pattern": "("}}, "type": "object"});
    let refused = ask(&server, "POST", DEFINITIONS, Some(widgets(json!([version("v1", wrong.clone())])))).await;
    assert_eq!(
        causes(&refused.expect(422)),
        [
            "FieldValueInvalid spec.validation.openAPIV3Schema.properties[spec].properties[size].pattern: Invalid value: \
             \"(\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`",
            "FieldValueRequired spec.validation.openAPIV3Schema.properties[spec].properties[size].type: Required value: \
             must not be empty for specified object fields",
        ]
    );
    let both = json!([version("v1", spec()), version("v1beta1", wrong)]);
    let refused = ask(&server, "POST", DEFINITIONS, Some(widgets(both))).await.expect(422);
    assert!(causes(&refused)[0].contains(" spec.versions[1].schema.openAPIV3Schema.properties[spec]"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn objects_are_pruned_defaulted_and_validated() {
    let server = server();
    define(&server, json!([version("v1", spec())])).await;
    let made = create(&server, "a", json!({"size": 2, "colour": "blue"})).await.expect(201);
    assert_eq!(made["spec"], json!({"size": 2, "color": "red"}));

    let strict = format!("{WIDGETS}?fieldValidation=Strict");
    let refused = ask(&server, "POST", &strict, Some(widget("b", json!({"size": 2, "colour": "blue"})))).await;
    let message = refused.expect(400)["message"].as_str().expect("a message").to_owned();
    assert_eq!(
        message,
        "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field \"spec.colour\""
    );

    let ports = json!([{"name": "a"}, {"name": "a"}]);
    let refused = create(&server, "b", json!({"size": 9, "color": "RED", "ports": ports})).await.expect(422);
    assert_eq!(
        causes(&refused),
        [
            "FieldValueInvalid spec.color: Invalid value: \"RED\": spec.color in body should match '^[a-z]+$'",
            "FieldValueInvalid spec.size: Invalid value: 9: spec.size in body should be less than or equal to 5",
            "FieldValueDuplicate spec.ports[1]: Duplicate value: {\"name\":\"a\"}",
        ]
    );
    let refused = create(&server, "b", json!({})).await.expect(422);
    assert_eq!(causes(&refused), ["FieldValueRequired spec.size: Required value"]);
    let refused = create(&server, "b", json!({"size": "x"})).await.expect(422);
    assert_eq!(causes(&refused)[0].split(' ').next(), Some("FieldValueTypeInvalid"));
}

#[tokio::test(start_paused = true)]
async fn the_status_is_held_to_its_own_schema() {
    let server = server();
    define(&server, json!([version("v1", spec())])).await;
    create(&server, "a", json!({"size": 2})).await.expect(201);
    let status = format!("{WIDGETS}/a/status");
    let refused = ask(&server, "PATCH", &status, Some(json!({"status": {"phase": "Lost"}}))).await.expect(422);
    assert_eq!(
        causes(&refused),
        ["FieldValueNotSupported status.phase: Unsupported value: \"Lost\": supported values: \"Ready\", \"Failed\""]
    );
    let set = ask(&server, "PATCH", &status, Some(json!({"status": {"phase": "Ready", "more": 1}}))).await.expect(200);
    assert_eq!(set["status"], json!({"phase": "Ready"}));
}

#[tokio::test(start_paused = true)]
async fn what_is_stored_is_shown_by_the_schema_of_today_and_not_held_against_updates() {
    let server = server();
    define(
        &server,
        json!([version(
            "v1",
            json!({"type": "object", "properties": {
                "size": {"type": "integer"}, "old": {"type": "string"},
            }})
        )]),
    )
    .await;
    create(&server, "a", json!({"size": 9, "old": "x"})).await.expect(201);
    let path = format!("{DEFINITIONS}/widgets.example.com");
    ask(&server, "PATCH", &path, Some(json!({"spec": {"versions": [version("v1", spec())]}}))).await.expect(200);
    tokio::time::sleep(Duration::from_millis(50)).await;

    let one = format!("{WIDGETS}/a");
    let shown = ask(&server, "GET", &one, None).await.expect(200);
    assert_eq!(shown["spec"], json!({"size": 9, "color": "red"}));
    let list = ask(&server, "GET", WIDGETS, None).await.expect(200);
    assert_eq!(list["items"][0]["spec"], shown["spec"]);
    // The size is too large today, and was before.
    ask(&server, "PATCH", &one, Some(json!({"spec": {"color": "blue"}}))).await.expect(200);
    let refused = ask(&server, "PATCH", &one, Some(json!({"spec": {"size": 8}}))).await.expect(422);
    assert_eq!(causes(&refused).len(), 1, "{refused}");
}

#[tokio::test(start_paused = true)]
async fn each_version_shows_what_its_schema_knows() {
    let server = server();
    let mut old = version("v1beta1", json!({"type": "object", "properties": {"size": {"type": "integer"}}}));
    old["deprecated"] = json!(true);
    define(&server, json!([version("v1", spec()), old])).await;
    create(&server, "a", json!({"size": 2})).await.expect(201);
    let shown = ask(&server, "GET", "/apis/example.com/v1beta1/namespaces/default/widgets/a", None).await.expect(200);
    assert_eq!(shown["apiVersion"], "example.com/v1beta1");
    assert_eq!(shown["spec"], json!({"size": 2}));
}

#[tokio::test(start_paused = true)]
async fn a_definition_has_columns_and_fields_to_select_by() {
    let server = server();
    let mut version = version("v1", spec());
    version["additionalPrinterColumns"] = json!([
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "How large"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]);
    version["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
    define(&server, json!([version.clone()])).await;
    create(&server, "a", json!({"size": 2})).await.expect(201);
    create(&server, "b", json!({"size": 3, "color": "blue"})).await.expect(201);
    let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let table = send(&server, "GET", WIDGETS, &accept, Vec::new()).await.expect(200);
    let names: Vec<_> = table["columnDefinitions"].as_array().expect("columns").iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["Name", "Size", "Age"]);
    assert_eq!(table["rows"][1]["cells"], json!(["b", 3, "0s"]));

    let blue = ask(&server, "GET", &format!("{WIDGETS}?fieldSelector=spec.color=blue"), None).await.expect(200);
    assert_eq!(blue["items"].as_array().map(Vec::len), Some(1), "{blue}");
    assert_eq!(blue["items"][0]["metadata"]["name"], "b");
    ask(&server, "GET", &format!("{WIDGETS}?fieldSelector=spec.size=2"), None).await.expect(400);

    version["selectableFields"] = json!([{"jsonPath": ".spec.nothing"}]);
    let mut other = widgets(json!([version]));
    other["metadata"]["name"] = json!("gadgets.example.com");
    other["spec"]["names"] = json!({"plural": "gadgets", "kind": "Gadget"});
    let refused = ask(&server, "POST", DEFINITIONS, Some(other)).await.expect(422);
    assert_eq!(
        causes(&refused),
        [
            "FieldValueInvalid spec.selectableFields[0].jsonPath: Invalid value: \".spec.nothing\": is an invalid path: does \
          not refer to a valid field"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_definition_is_in_the_openapi_documents() {
    let server = server();
    define(&server, json!([version("v1", spec())])).await;
    let index = ask(&server, "GET", "/openapi/v3", None).await.expect(200);
    let url = index["paths"]["apis/example.com/v1"]["serverRelativeURL"].as_str().expect("a document").to_owned();
    let document = ask(&server, "GET", &url, None).await.expect(200);
    let schema = &document["components"]["schemas"]["com.example.v1.Widget"];
    assert_eq!(schema["properties"]["spec"]["properties"]["color"]["default"], "red");
    assert_eq!(schema["x-kubernetes-group-version-kind"][0]["kind"], "Widget");
    assert!(document["components"]["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"].is_object());
    let patch = &document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"];
    assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Widget");
    let old = ask(&server, "GET", "/openapi/v2", None).await.expect(200);
    assert!(old["definitions"]["com.example.v1.Widget"].is_object());
}

#[tokio::test(start_paused = true)]
async fn a_conversion_webhook_is_taken_with_one_version_and_with_several() {
    let webhook = json!({"strategy": "Webhook", "webhook": {
        "clientConfig": {"url": "https://example.com/convert"}, "conversionReviewVersions": ["v1"],
    }});
    for versions in [json!([version("v1", spec())]), json!([version("v1", spec()), version("v1beta1", spec())])] {
        let mut definition = widgets(versions);
        definition["spec"]["conversion"] = webhook.clone();
        ask(&server(), "POST", DEFINITIONS, Some(definition)).await.expect(201);
    }
}
