//! Tables of the decisions.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::Resource;
use steersman_cel::Schema;
use steersman_informer::Change;
use steersman_model::admissionregistration::ValidatingAdmissionPolicyView;

use super::kinds::{Known, Matched, PolicySpec, VersionKind, matched};
use super::plan::{Schemas, Warning, applied, warnings};
use super::{map, openapi};
use crate::test_objects::decode;

fn policy(generation: i64, observed: i64) -> ValidatingAdmissionPolicyView {
    decode(json!({
        "metadata": { "name": "strict", "uid": "u", "generation": generation },
        "spec": { "validations": [{ "expression": "true" }] },
        "status": { "observedGeneration": observed },
    }))
}

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
fn spec(spec: Value) -> PolicySpec {
    serde_json::from_value(spec).expect("a spec")
}

fn kind(group: &str, version: &str, kind: &str) -> VersionKind {
    VersionKind { group: group.into(), version: version.into(), kind: kind.into() }
}

/// Returns the kinds that a policy with this rule matches.
#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
fn matched_by(rule: Value) -> Matched {
    let mut all = vec![
        Resource::namespaced("", "v1", "pods", "Pod"),
        Resource::namespaced("", "v1", "events", "Event"),
        Resource::namespaced("events.k8s.io", "v1", "events", "Event"),
        Resource::namespaced("apps", "v1", "deployments", "Deployment"),
    ];
    const MANY: [&str; 12] = ["as", "bs", "cs", "ds", "es", "fs", "gs", "hs", "is", "js", "ks", "ls"];
    all.extend(MANY.map(|plural| Resource::namespaced("many.example.com", "v1", plural, plural)));
    let known: Vec<_> = all.iter().map(|resource| Known { resource, singular: "one" }).collect();
    matched(&spec(json!({ "matchConstraints": { "resourceRules": [rule] } })), &known)
}

#[test]
fn a_generation_is_checked_once() {
    let check = |generation: i64, observed: i64, want: bool| {
        let change = Change::Added { new: Arc::new(policy(generation, observed)), initial: true };
        assert_eq!(map::unchecked(&change).is_some(), want);
    };
    check(1, 0, true);
    check(2, 1, true);
    check(2, 2, false);
    check(1, 2, false);
}

#[test]
fn kinds_are_those_of_named_resources() {
    let check = |groups: &[&str], versions: &[&str], resources: &[&str], want: &[&str], has_unknown: bool| {
        let rule = json!({ "apiGroups": groups, "apiVersions": versions, "resources": resources });
        let found = matched_by(rule);
        let kinds: Vec<_> = found.kinds.iter().map(ToString::to_string).collect();
        assert_eq!(kinds, want, "{groups:?} {versions:?} {resources:?}");
        assert_eq!(found.has_unknown, has_unknown, "{groups:?} {versions:?} {resources:?}");
    };
    check(&["apps"], &["v1"], &["deployments"], &["apps/v1, Kind=Deployment"], false);
    check(&["apps"], &["v1"], &["deployments/scale", "*"], &[], false);
    check(&["*"], &["v1"], &["pods"], &[], false);
    check(&["apps"], &["*"], &["deployments"], &[], false);
    check(&["apps"], &["v1", "v2"], &["deployments"], &["apps/v1, Kind=Deployment"], true);
    check(&[""], &["v1"], &["pods"], &["/v1, Kind=Pod"], false);
    // No group stands for any.
    check(&[""], &["v1"], &["events"], &["/v1, Kind=Event", "events.k8s.io/v1, Kind=Event"], false);
    let many = ["as", "bs", "cs", "ds", "es", "fs", "gs", "hs", "is", "js", "ks", "ls"];
    let rule = json!({ "apiGroups": ["many.example.com"], "apiVersions": ["v1"], "resources": many });
    assert_eq!(matched_by(rule).kinds.len(), 10);
    assert_eq!(matched(&PolicySpec::default(), &[]).kinds.len(), 0);
}

#[test]
fn schemas_have_no_references() {
    let document = json!({ "components": { "schemas": {
        "Cake": {
            "type": "object",
            "x-kubernetes-group-version-kind": [{ "group": "example.com", "version": "v1", "kind": "Cake" }],
            "properties": {
                "metadata": { "allOf": [{ "$ref": "#/components/schemas/Meta" }], "default": {} },
                "spec": { "$ref": "#/components/schemas/Spec" },
                "layers": { "type": "array", "items": { "$ref": "#/components/schemas/Cake" } },
            },
        },
        "Meta": { "type": "object", "properties": { "name": { "type": "string", "description": "the name" } } },
        "Spec": {
            "type": "object",
            "properties": { "port": { "oneOf": [{ "type": "integer" }], "format": "int-or-string" } },
            "additionalProperties": false,
        },
    } } });
    let cake = kind("example.com", "v1", "Cake");
    let found = openapi::schema(&document, &cake).expect("it is there");
    let properties = &found["properties"];
    assert_eq!(properties["metadata"], json!({ "type": "object", "properties": { "name": { "type": "string" } } }));
    assert_eq!(properties["spec"]["properties"]["port"]["x-kubernetes-int-or-string"], true);
    assert_eq!(properties["layers"]["items"], json!({ "type": "object" }), "it is within itself");
    assert_eq!(openapi::schema(&document, &kind("example.com", "v2", "Cake")), None);
    assert_eq!(openapi::schema(&json!("odd"), &cake), None);
    let index = json!({ "paths": { "apis/example.com/v1": { "serverRelativeURL": "/openapi/v3/x?hash=1" } } });
    assert_eq!(openapi::path(&index, &cake.document()), Some("/openapi/v3/x?hash=1"));
    assert_eq!(openapi::path(&index, &kind("", "v1", "Pod").document()), None);
}

#[test]
fn warnings_name_the_expression_and_each_kind() {
    let schema = |field: &str| {
        let fields = json!({ field: { "type": "integer" } });
        Schema::new(&json!({
            "type": "object", "properties": { "spec": { "type": "object", "properties": fields } },
        }))
    };
    let cake = kind("example.com", "v1", "Cake");
    let pie = kind("example.com", "v1", "Pie");
    let absent = kind("example.com", "v1", "Absent");
    let oven = kind("example.com", "v1", "Oven");
    let schemas: Schemas =
        [(cake.clone(), schema("slices")), (pie.clone(), schema("pieces")), (oven, schema("heat"))].into();
    let policy = spec(json!({
        "paramKind": { "apiVersion": "example.com/v1", "kind": "Oven" },
        "variables": [{ "name": "slices", "expression": "object.spec.slices" }],
        "validations": [
            { "expression": "object.spec.slices > 1", "messageExpression": "string(params.spec.cold)" },
            { "expression": "true" },
        ],
    }));
    let found = warnings(&policy, [&absent, &cake, &pie], &schemas);
    let of_slices = "example.com/v1, Kind=Pie: ERROR: <input>:1:12: undefined field 'slices'\n | object.spec.slices > \
                     1\n | ...........^\n";
    let of_cold = |kind: &str| {
        format!(
            "example.com/v1, Kind={kind}: ERROR: <input>:1:19: undefined field 'cold'\n | string(params.spec.cold)\n | \
             ..................^\n"
        )
    };
    let want = [
        Warning { field: "spec.validations[0].expression".into(), text: of_slices.into() },
        Warning {
            field: "spec.validations[0].messageExpression".into(),
            text: format!("{}\n{}", of_cold("Cake"), of_cold("Pie")),
        },
    ];
    assert_eq!(found, want);
}

#[test]
fn the_status_is_that_of_the_generation() {
    let policy = policy(3, 1);
    let status = applied(&policy, &[]);
    assert_eq!(status["metadata"], json!({ "name": "strict", "uid": "u" }));
    assert_eq!(status["status"], json!({ "observedGeneration": 3, "typeChecking": {} }));
    let warning = Warning { field: "spec.validations[0].expression".into(), text: "no".into() };
    let want = json!([{ "fieldRef": "spec.validations[0].expression", "warning": "no" }]);
    assert_eq!(applied(&policy, &[warning])["status"]["typeChecking"]["expressionWarnings"], want);
}
