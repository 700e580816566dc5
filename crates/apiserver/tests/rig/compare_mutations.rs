//! Mutating admission policies on the embedded server and on kube-apiserver: accepted and refused alike, the same objects, the
//! same words.

use std::time::Duration;

use serde_json::{Value, json};

use crate::compare::Request;
use crate::frame::Comparison;

const NAMESPACE: &str = "compare-mutations";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";

/// Expressions of mutations that are taken or refused when the policy comes: `a`pply configurations and JSON `p`atches.
const EXPRESSIONS: [&str; 17] = [
    "a Object{metadata: Object.metadata{labels: {'a': 'b'}}}",
    "a object",
    "a [JSONPatch{op: 'add'}]",
    "a Object.spec{}",
    "a Other{}",
    "a Object{?a: optional.of(1)}",
    "a Object{?a: 1}",
    "a variables.x",
    "a type(Object{}) == Object ? Object{} : Object{}",
    "a Object{a: jsonpatch.escapeKey('~/')}",
    "p []",
    "p [JSONPatch{op: 'add', path: '/a', value: 1}]",
    "p JSONPatch{op: 'add'}",
    "p [JSONPatch{op: 1}]",
    "p [JSONPatch{op: 'a'}, 1]",
    "p [Object{}]",
    "p object.metadata.labels.map(k, JSONPatch{op: 'remove', path: '/metadata/labels/' + jsonpatch.escapeKey(k)})",
];

/// Mutations of a ConfigMap.
const OF_CONFIG_MAPS: [&str; 14] = [
    "a Object{metadata: Object.metadata{labels: {'new': 'l'}}, data: Object.data{n: namespaceObject.metadata.name}}",
    "p [JSONPatch{op: 'add', path: '/data/j', value: object.metadata.name}]",
    "p [JSONPatch{op: 'test', path: '/data/x', value: 'zz'}, JSONPatch{op: 'add', path: '/data/k', value: 'no'}]",
    "p [JSONPatch{op: 'remove', path: '/data/none'}]",
    "p [JSONPatch{op: 'other', path: '/data/x'}]",
    "p [JSONPatch{op: 'add', path: '/data/z', value: 1}]",
    "p [JSONPatch{op: 'add', path: '/other', value: 1}]",
    "p [JSONPatch{op: 'replace', path: '/kind', value: 'Other'}]",
    "a Object{data: Object.data{z: 1}}",
    "a Object{spec: Object.spec{z: 1}}",
    "a Object{data: Object.other{z: '1'}}",
    "a Object{data: Object.data{z: object.none}}",
    "a has(object.data) ? Object{metadata: Object.metadata{labels: object.data}} : Object{}",
    "a Object{data: Object.data{w: string(authorizer.group('').resource('pods').check('get').allowed())}}",
];

/// Mutations of a Deployment.
const OF_DEPLOYMENTS: [&str; 5] = [
    "a Object{spec: Object.spec{replicas: 7, template: Object.spec.template{spec: Object.spec.template.spec{
        containers: [Object.spec.template.spec.containers{name: 'side', image: 's'}]}}}}",
    "a Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'c'}}}}",
    "a Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{
        containers: [Object.spec.template.spec.containers{name: 'c', args: ['a']}]}}}}",
    "p [JSONPatch{op: 'add', path: '/spec/template/spec/containers/-',
        value: Object.spec.template.spec.containers{name: 'side', image: 'x'}}]",
    "a Object{spec: Object.spec{replicas: -1}}",
];

fn mutation(line: &str) -> Value {
    match line.split_once(' ') {
        Some(("p", text)) => json!({"patchType": "JSONPatch", "jsonPatch": {"expression": text}}),
        Some((_, text)) => json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}),
        None => panic!("{line}"),
    }
}

fn policy(name: &str, mutations: &[Value], failure_policy: &str) -> Value {
    let rule = json!({
        "apiGroups": ["", "apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
        "resources": ["configmaps", "deployments", "deployments/scale"],
    });
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {
            "matchConstraints": {
                "resourceRules": [rule], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
            },
            "mutations": mutations, "reinvocationPolicy": "IfNeeded", "failurePolicy": failure_policy,
        },
    })
}

fn request(method: &'static str, path: &str, body: Value) -> Request {
    let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    Request { method, path: path.to_owned(), content_type, body }
}

#[tokio::test]
async fn mutations_are_accepted_and_refused_as_on_kube_apiserver() {
    let mut comparison = Comparison::start(NAMESPACE).await;
    for line in EXPRESSIONS {
        let policy = policy("expressions", &[mutation(line)], "Fail");
        comparison.compare(&request("POST", &format!("{POLICIES}?dryRun=All"), policy)).await;
    }
    comparison.end();
}

#[tokio::test]
async fn mutated_objects_are_those_of_kube_apiserver() {
    let mut comparison = Comparison::start(NAMESPACE).await;
    let config_maps = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    let deployments = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments");
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "y"}});
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template},
    });
    let last = "a Object{metadata: Object.metadata{annotations: {'last': 'yes'}}}";
    let of_config_maps = OF_CONFIG_MAPS.iter().map(|line| (*line, &config_maps, &config_map));
    let of_deployments = OF_DEPLOYMENTS.iter().map(|line| (*line, &deployments, &deployment));
    for (line, path, object) in of_config_maps.chain(of_deployments) {
        let name = object["metadata"]["name"].as_str().unwrap();
        for failure_policy in ["Fail", "Ignore"] {
            let policy = policy("mutations", &[mutation(line), mutation(last)], failure_policy);
            let binding = json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
                "metadata": {"name": "mutations"}, "spec": {"policyName": "mutations"},
            });
            comparison.both(&request("POST", POLICIES, policy)).await;
            comparison.both(&request("POST", BINDINGS, binding)).await;
            // kube-apiserver reads policies in the background.
            tokio::time::sleep(Duration::from_millis(1500)).await;
            comparison.compare(&request("POST", path, object.clone())).await;
            let change = json!({"metadata": {"labels": {"changed": "yes"}}});
            comparison.compare(&request("PATCH", &format!("{path}/{name}"), change)).await;
            comparison.both(&request("DELETE", &format!("{BINDINGS}/mutations"), Value::Null)).await;
            comparison.both(&request("DELETE", &format!("{POLICIES}/mutations"), Value::Null)).await;
            comparison.both(&request("DELETE", &format!("{path}/{name}"), Value::Null)).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }
    comparison.end();
}
