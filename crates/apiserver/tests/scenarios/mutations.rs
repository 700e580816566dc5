//! Mutating admission policies: what they make of objects, and whom they refuse.

#![allow(clippy::needless_pass_by_value, reason = "tests write values in place")]

use serde_json::{Value, json};
use steersman_apiserver::ApiServer;

use crate::support::{CONFIG_MAPS, ask, config_map, server};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn apply(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

fn patch(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

/// Stores a policy with these mutations and further fields, and a binding of it.
async fn policy(api: &ApiServer, name: &str, mutations: Value, fields: Value) {
    let rule = json!({"apiGroups": ["*"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps", "deployments"]});
    let mut spec = json!({
        "matchConstraints": {"resourceRules": [rule]}, "mutations": mutations, "reinvocationPolicy": "Never", "failurePolicy": "Fail",
    });
    for (field, value) in fields.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    ask(api, "POST", POLICIES, Some(json!({"metadata": {"name": name}, "spec": spec}))).await.expect(201);
    let binding = json!({"metadata": {"name": name}, "spec": {"policyName": name}});
    ask(api, "POST", BINDINGS, Some(binding)).await.expect(201);
}

#[tokio::test]
async fn every_write_is_changed_and_nobody_owns_the_change() {
    let api = server();
    let mutations = json!([
        apply("Object{metadata: Object.metadata{labels: {'by': variables.who}}}"),
        patch("[JSONPatch{op: 'add', path: '/data/seen', value: object.metadata.labels.by}]"),
        patch("[JSONPatch{op: 'test', path: '/data/a', value: 'z'}, JSONPatch{op: 'remove', path: '/data/a'}]"),
    ]);
    let variables = json!([{"name": "who", "expression": "request.userInfo.username.startsWith('x') ? 'x' : 'other'"}]);
    policy(&api, "labels", mutations, json!({"variables": variables})).await;
    let made = ask(&api, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    assert_eq!(made["metadata"]["labels"], json!({"by": "other"}));
    assert_eq!(made["data"], json!({"a": "b", "seen": "other"}));
    assert!(!made["metadata"]["managedFields"].to_string().contains("f:seen"), "{made}");
    let body = json!({"data": {"seen": null, "more": "c"}});
    let patched = ask(&api, "PATCH", &format!("{CONFIG_MAPS}/a"), Some(body)).await.expect(200);
    assert_eq!(patched["data"], json!({"a": "b", "seen": "other", "more": "c"}));

    ask(&api, "DELETE", &format!("{BINDINGS}/labels"), None).await.expect(200);
    let made = ask(&api, "POST", CONFIG_MAPS, Some(config_map("b"))).await.expect(201);
    assert_eq!(made["data"], json!({"a": "b"}), "without a binding it does nothing");
}

#[tokio::test]
async fn configurations_are_merged_by_the_types_of_the_kind() {
    let api = server();
    let container = "Object.spec.template.spec.containers{name: 'side', image: 's'}";
    let template = format!("Object.spec.template{{spec: Object.spec.template.spec{{containers: [{container}]}}}}");
    policy(
        &api,
        "side",
        json!([apply(&format!("Object{{spec: Object.spec{{replicas: 7, template: {template}}}}}"))]),
        json!({}),
    )
    .await;
    let deployment = json!({
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
        }},
    });
    let made = ask(&api, "POST", DEPLOYMENTS, Some(deployment)).await.expect(201);
    assert_eq!(made["spec"]["replicas"], 7);
    let containers = made["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    let names: Vec<&Value> = containers.iter().map(|container| &container["name"]).collect();
    assert_eq!(names, ["c", "side"]);
    assert_eq!(containers[1]["imagePullPolicy"], "Always", "defaults are set after the patch");
}

#[tokio::test]
async fn what_cannot_be_applied_refuses_or_is_passed_over() {
    let rows = [
        (apply("Object{data: Object.data{a: object.none}}"), 403, "resulted in error: no such key: none"),
        (apply("Object{spec: Object.spec{}}"), 403, ".spec: field not declared in schema"),
        (apply("Object{data: Object.other{}}"), 403, "type mismatch: unexpected type name \"Object.other\""),
        (patch("[JSONPatch{op: 'remove', path: '/data/none'}]"), 403, "Unable to remove nonexistent key: none"),
        (
            patch("[JSONPatch{op: 'add', path: '/other', value: 1}]"),
            500,
            "strict decoding error: unknown field \"other\"",
        ),
        (patch("[JSONPatch{op: 'add', path: '/data/n', value: 1}]"), 500, "cannot unmarshal number"),
    ];
    for (mutation, code, words) in rows {
        let api = server();
        let path = format!("{CONFIG_MAPS}?dryRun=All");
        policy(&api, "p", json!([mutation]), json!({})).await;
        let got = ask(&api, "POST", &path, Some(config_map("a"))).await.expect(code);
        assert!(got["message"].as_str().unwrap().contains(words), "{got}");
        let ignored = json!({"spec": {"failurePolicy": "Ignore"}});
        ask(&api, "PATCH", &format!("{POLICIES}/p"), Some(ignored)).await.expect(200);
        let want = if code == 403 { 201 } else { code };
        ask(&api, "POST", &path, Some(config_map("a"))).await.expect(want);
    }
}

#[tokio::test]
async fn a_policy_is_evaluated_again_if_another_has_changed_the_object() {
    for (reinvocation, want) in [("Never", "1"), ("IfNeeded", "11")] {
        let api = server();
        let first =
            patch("[JSONPatch{op: 'add', path: '/data/n', value: (has(object.data.n) ? object.data.n : '') + '1'}]");
        policy(&api, "a", json!([first]), json!({"reinvocationPolicy": reinvocation})).await;
        policy(&api, "b", json!([apply("Object{data: Object.data{b: 'b'}}")]), json!({})).await;
        let made = ask(&api, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
        assert_eq!(made["data"], json!({"a": "b", "b": "b", "n": want}));
    }
}

#[tokio::test]
async fn expressions_that_make_no_patch_are_refused_with_the_policy() {
    let api = server();
    let rows = [
        (apply("object"), "must evaluate to Object but got dyn"),
        (patch("[]"), "must evaluate to list(JSONPatch) but got list(dyn)"),
        (patch("[JSONPatch{op: 1}]"), "expected type of field 'op' is 'string' but provided type is 'int'"),
        (apply("Other{}"), "undeclared reference to 'Other'"),
    ];
    for (mutation, words) in rows {
        let rule =
            json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]});
        let spec = json!({"matchConstraints": {"resourceRules": [rule]}, "mutations": [mutation], "reinvocationPolicy": "Never"});
        let got = ask(&api, "POST", POLICIES, Some(json!({"metadata": {"name": "p"}, "spec": spec}))).await.expect(422);
        assert!(got["message"].as_str().unwrap().contains(words), "{got}");
    }
}

#[tokio::test]
async fn patches_that_explode_are_refused_and_the_server_goes_on() {
    let api = server();
    let mut variables = vec![json!({"name": "v0", "expression": "[dyn(1)]"})];
    let mut sums = vec![json!({"name": "v0", "expression": "[1]"})];
    for number in 1..40 {
        let before = number - 1;
        variables.push(json!({"name": format!("v{number}"), "expression": format!("[dyn(variables.v{before}), dyn(variables.v{before})]")}));
        sums.push(
            json!({"name": format!("v{number}"), "expression": format!("variables.v{before} + variables.v{before}")}),
        );
    }
    for variables in [variables, sums] {
        let mutation = patch("[JSONPatch{op: 'add', path: '/data/n', value: variables.v39}]");
        policy(&api, "p", json!([mutation]), json!({"variables": variables})).await;
        ask(&api, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(403);
        ask(&api, "DELETE", &format!("{POLICIES}/p"), None).await.expect(200);
        ask(&api, "DELETE", &format!("{BINDINGS}/p"), None).await.expect(200);
    }
    ask(&api, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
}

#[tokio::test]
async fn a_create_of_what_is_being_deleted_says_so() {
    let api = server();
    let mut held = config_map("a");
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    ask(&api, "POST", CONFIG_MAPS, Some(held)).await.expect(201);
    let got = ask(&api, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(409);
    assert_eq!(got["message"], "configmaps \"a\" already exists");
    ask(&api, "DELETE", &format!("{CONFIG_MAPS}/a"), None).await.expect(200);
    for path in [CONFIG_MAPS.to_owned(), format!("{CONFIG_MAPS}?dryRun=All")] {
        let got = ask(&api, "POST", &path, Some(config_map("a"))).await.expect(409);
        assert_eq!(got["message"], "object is being deleted: configmaps \"a\" already exists");
    }
}

#[tokio::test]
async fn documents_about_the_api_are_only_read() {
    let api = server();
    for path in ["/version", "/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1"] {
        ask(&api, "GET", path, None).await.expect(200);
        ask(&api, "POST", path, Some(json!({}))).await.expect(405);
    }
}
