//! What the author of an operator sends: a Deployment of 5 KB to apply, a definition with a large schema and rules, and its
//! objects.

use serde_json::{Map, Value, json};

pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GROUP: &str = "bench.example.com";
/// The fields of the schema, in groups of ten.
const GROUPS: usize = 20;
const GROUP_FIELDS: usize = 10;
const RULES: usize = 10;

/// A Deployment of about 5 KB; each round has other images.
pub(crate) fn deployment(name: &str, round: usize) -> Value {
    let env = |at: usize| json!({"name": format!("SETTING_{at}"), "value": format!("{at}-{}", "v".repeat(40))});
    let probe = json!({"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10});
    let container = |container: &str| {
        json!({
            "name": container,
            "image": format!("registry.example.com/team/{container}:1.{round}"),
            "ports": [{"name": format!("{container}-http"), "containerPort": 8080}],
            "env": (0..20).map(env).collect::<Vec<_>>(),
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            "readinessProbe": probe, "livenessProbe": probe,
            "volumeMounts": [{"name": "config", "mountPath": "/etc/config"}],
        })
    };
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": labels, "annotations": {"example.com/checksum": "c".repeat(64)}},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [container("server"), container("sidecar")],
                    "volumes": [{"name": "config", "configMap": {"name": "web"}}],
                },
            },
        },
    })
}

/// The plural of the resource that a round defines.
pub(crate) fn plural(round: usize) -> String {
    format!("machines{round}")
}

pub(crate) fn path(plural: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/bench-author/{plural}")
}

/// A definition whose schema has 200 fields and ten rules.
pub(crate) fn definition(plural: &str) -> Value {
    let field = |at: usize| match at % 4 {
        0 => json!({"type": "integer", "minimum": 0, "maximum": 1000}),
        1 => json!({"type": "string", "maxLength": 64, "pattern": "^[a-z0-9-]+$"}),
        2 => json!({"type": "boolean", "default": false}),
        _ => json!({"type": "array", "maxItems": 8, "items": {"type": "string", "maxLength": 16}}),
    };
    let group = |_| {
        let fields: Map<String, Value> = (0..GROUP_FIELDS).map(|at| (format!("field{at}"), field(at))).collect();
        json!({"type": "object", "required": ["field0"], "properties": fields})
    };
    let groups: Map<String, Value> = (0..GROUPS).map(|at| (format!("group{at}"), group(at))).collect();
    let rule = |at: usize| {
        let next = at + 1;
        json!({
            "rule": format!("self.group{at}.field0 <= self.group{next}.field0 && self.group{at}.field3.all(x, x.startsWith('a'))"),
            "message": format!("group {at} comes before group {next}"),
        })
    };
    let spec = json!({
        "type": "object", "properties": groups, "x-kubernetes-validations": (0..RULES).map(rule).collect::<Vec<_>>(),
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"plural": plural, "kind": kind(plural)},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}

/// An object with every field of the schema set.
pub(crate) fn custom(plural: &str, name: &str, at: usize) -> Value {
    let field = |group: usize, field: usize| match field % 4 {
        0 => json!(group),
        1 => json!(format!("value-{at}")),
        2 => json!(true),
        _ => json!(["ab", "ac"]),
    };
    let group = |group: usize| {
        let fields: Map<String, Value> = (0..GROUP_FIELDS).map(|at| (format!("field{at}"), field(group, at))).collect();
        Value::Object(fields)
    };
    let spec: Map<String, Value> = (0..GROUPS).map(|at| (format!("group{at}"), group(at))).collect();
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind(plural), "metadata": {"name": name}, "spec": spec})
}

fn kind(plural: &str) -> String {
    plural.replacen('m', "M", 1)
}
