//! Rules of `x-kubernetes-validations`: in definitions, and on every write of an object. The live comparison with
//! kube-apiserver has many more (`tests/rig/compare_rules.rs`).

use std::time::Duration;

use http_body_util::BodyExt;
use serde_json::{Value, json};
use steersman_apiserver::ApiServer;
use tower::ServiceExt;

use crate::support::{ask, send, server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

fn definition(rules: Value) -> Value {
    let mut spec = json!({"type": "object", "properties": {
        "size": {"type": "integer"}, "name": {"type": "string"}, "open": {"type": "array", "items": {"type": "string"}},
    }});
    spec["x-kubernetes-validations"] = rules;
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": spec,
                    "status": {"type": "object", "properties": {"ready": {"type": "integer"}}},
                }, "x-kubernetes-validations": [
                    {"rule": "!has(self.status) || !has(self.status.ready) || self.status.ready <= self.spec.size"},
                ]}},
            }],
        },
    })
}

async fn define(server: &ApiServer, rules: Value) {
    ask(server, "POST", DEFINITIONS, Some(definition(rules))).await.expect(201);
    tokio::time::sleep(Duration::from_millis(50)).await;
}

fn widget(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec})
}

fn causes(status: &Value) -> Vec<String> {
    let text = |cause: &Value, field: &str| cause[field].as_str().unwrap_or_default().to_owned();
    let causes = status["details"]["causes"].as_array().expect("causes");
    causes.iter().map(|it| format!("{} {}: {}", text(it, "reason"), text(it, "field"), text(it, "message"))).collect()
}

#[tokio::test(start_paused = true)]
async fn a_definition_whose_rules_do_not_compile_or_cost_too_much_is_refused() {
    let server = server();
    let rules = json!([
        {"rule": "self.size > 'a'"},
        {"rule": "self.open.all(a, self.open.all(b, a == b))"},
        {"rule": "self.size > 1", "messageExpression": "self.size"},
        {"rule": "self.size > 1", "optionalOldSelf": true},
    ]);
    let refused = ask(&server, "POST", DEFINITIONS, Some(definition(rules))).await.expect(422);
    let at = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations";
    let causes = causes(&refused);
    let parts = [
        ("[0].rule: Invalid value: {\"Rule\":\"self.size \\u003e 'a'\"", "found no matching overload for '_>_'"),
        ("[1].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x", "maxItems"),
        ("[2].messageExpression: Invalid value: ", "messageExpression must evaluate to a string"),
        ("[3].optionalOldSelf: Invalid value: true", "may not be set if oldSelf is not used in rule"),
    ];
    for (beginning, end) in parts {
        let found = causes.iter().any(|cause| cause.contains(&format!("{at}{beginning}")) && cause.contains(end));
        assert!(found, "no {beginning} {end} in {causes:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_may_keep_rules_that_cost_too_much_for_new_ones() {
    let server = server();
    define(&server, json!([{"rule": "self.size > 1"}])).await;
    let path = format!("{DEFINITIONS}/widgets.example.com");
    ask(&server, "PATCH", &path, Some(json!({"metadata": {"labels": {"a": "b"}}}))).await.expect(200);
    let mut changed = definition(json!([{"rule": "self.size > 2"}, {"rule": "self.nothing"}]));
    changed["metadata"] = json!({});
    ask(&server, "PATCH", &path, Some(changed)).await.expect(422);
}

#[tokio::test(start_paused = true)]
async fn every_write_keeps_the_rules() {
    let server = server();
    let rules = json!([
        {"rule": "self.size < 10", "messageExpression": "'at most 9, not %d'.format([self.size])", "fieldPath": ".size"},
        {"rule": "!has(self.name) || self.name != 'bad'", "reason": "FieldValueForbidden", "message": "a bad name"},
        {"rule": "self.size >= oldSelf.size", "message": "size only grows"},
    ]);
    define(&server, rules).await;
    let refused = ask(&server, "POST", WIDGETS, Some(widget(&json!({"size": 12, "name": "bad"})))).await.expect(422);
    assert_eq!(
        causes(&refused),
        [
            "FieldValueInvalid spec.size: Invalid value: at most 9, not 12",
            "FieldValueForbidden spec: Forbidden: a bad name"
        ]
    );
    // What an expression looks at may be of another type: it is not asked.
    let refused = ask(&server, "POST", WIDGETS, Some(widget(&json!({"size": "x"})))).await.expect(422);
    assert!(causes(&refused)[1].contains("some validation rules were not checked"), "{refused}");

    ask(&server, "POST", WIDGETS, Some(widget(&json!({"size": 5})))).await.expect(201);
    let one = format!("{WIDGETS}/w");
    let smaller = "FieldValueInvalid spec: Invalid value: size only grows";
    let patched = ask(&server, "PATCH", &one, Some(json!({"spec": {"size": 4}}))).await.expect(422);
    assert_eq!(causes(&patched), [smaller]);
    let mut held = ask(&server, "GET", &one, None).await.expect(200);
    held["spec"]["size"] = json!(4);
    assert_eq!(causes(&ask(&server, "PUT", &one, Some(held)).await.expect(422)), [smaller]);
    let headers = [("content-type", "application/apply-patch+yaml")];
    let config = widget(&json!({"size": 4})).to_string().into_bytes();
    let applied = send(&server, "PATCH", &format!("{one}?fieldManager=m&force=true"), &headers, config).await;
    assert_eq!(causes(&applied.expect(422)), [smaller]);
    let status = ask(&server, "PATCH", &format!("{one}/status"), Some(json!({"status": {"ready": 6}}))).await;
    assert_eq!(causes(&status.expect(422)).len(), 1);
    ask(&server, "PATCH", &format!("{one}/status"), Some(json!({"status": {"ready": 5}}))).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn what_an_update_leaves_as_it_was_is_a_warning() {
    let server = server();
    define(&server, json!([{"rule": "true"}])).await;
    ask(&server, "POST", WIDGETS, Some(widget(&json!({"size": 12})))).await.expect(201);
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let versions = definition(json!([{"rule": "self.size < 10", "message": "too large"}]))["spec"]["versions"].clone();
    ask(&server, "PATCH", &path, Some(json!({"spec": {"versions": versions}}))).await.expect(200);
    tokio::time::sleep(Duration::from_millis(50)).await;

    let body = json!({"metadata": {"labels": {"a": "b"}}}).to_string();
    let request = http::Request::patch(format!("{WIDGETS}/w")).header("content-type", "application/merge-patch+json");
    let request = request.body(http_body_util::Full::new(bytes::Bytes::from(body))).unwrap();
    let response = server.clone().oneshot(request).await.unwrap();
    let warning = response.headers().get("warning").and_then(|it| it.to_str().ok()).unwrap_or_default().to_owned();
    let code = response.status();
    let shown = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(code, 200, "{}", String::from_utf8_lossy(&shown));
    assert!(warning.contains("spec: Invalid value: too large"), "{warning}");
    ask(&server, "PATCH", &format!("{WIDGETS}/w"), Some(json!({"spec": {"name": "n"}}))).await.expect(422);
}
