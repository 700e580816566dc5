//! The types of admission policies are checked, as kube-controller-manager checks them.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use steersman_testing::{Builder, Failure, TestCluster, expect_eq};

use crate::scenarios::support::controllers;

scenarios! {
    warnings_are_those_of_kube_controller_manager on cluster,
    a_new_generation_is_checked_again on cluster,
}

/// A policy each: its name, its spec, and the warnings that kube-controller-manager 1.37.1 has written about it.
const RECORDED: &str = include_str!("../data/policy-warnings.jsonl");

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().define(definition_of_ovens()).controllers(&[controllers::POLICY_STATUS])
}

/// Fields that are not there, types that do not fit, variables, parameters, several kinds, and what is not checked.
pub(crate) async fn warnings_are_those_of_kube_controller_manager(cluster: &TestCluster) -> Result<(), Failure> {
    let recorded: Vec<Value> =
        RECORDED.lines().map(serde_json::from_str).collect::<Result<_, _>>().map_err(Failure::new)?;
    until_published(cluster).await?;
    for line in &recorded {
        create(cluster, &name(cluster, line), &line["spec"]).await?;
    }
    for line in &recorded {
        let name = name(cluster, line);
        let found = until_checked(cluster, &name, 1).await?;
        expect_eq(&format!("the warnings about {name}"), &found, &line["warnings"])?;
        policies(cluster).delete(&name, &DeleteParams::default()).await?;
    }
    Ok(())
}

/// What was wrong is right, and the warning goes.
pub(crate) async fn a_new_generation_is_checked_again(cluster: &TestCluster) -> Result<(), Failure> {
    let name = format!("{}-corrected", cluster.namespace());
    let rule = json!({
        "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"],
    });
    let spec = |expression: &str| json!({ "matchConstraints": { "resourceRules": [rule] }, "validations": [{ "expression": expression }] });
    create(cluster, &name, &spec("object.spec.replica > 1")).await?;
    let warning = "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replica'\n | object.spec.replica > \
                   1\n | ...........^\n";
    let want = json!([{ "fieldRef": "spec.validations[0].expression", "warning": warning }]);
    expect_eq("the warnings", &until_checked(cluster, &name, 1).await?, &want)?;
    let patch = Patch::Merge(json!({ "spec": spec("object.spec.replicas > 1") }));
    policies(cluster).patch(&name, &PatchParams::default(), &patch).await?;
    expect_eq("nothing is wrong", &until_checked(cluster, &name, 2).await?, &Value::Null)?;
    policies(cluster).delete(&name, &DeleteParams::default()).await?;
    Ok(())
}

fn name(cluster: &TestCluster, line: &Value) -> String {
    format!("{}-{}", cluster.namespace(), line["name"].as_str().unwrap_or_default())
}

pub(crate) fn policies(cluster: &TestCluster) -> Api<ValidatingAdmissionPolicy> {
    Api::all(cluster.client())
}

pub(crate) async fn create(cluster: &TestCluster, name: &str, spec: &Value) -> Result<(), Failure> {
    let policy = json!({ "metadata": { "name": name }, "spec": spec });
    let policy = serde_json::from_value(policy).map_err(Failure::new)?;
    policies(cluster).create(&PostParams::default(), &policy).await?;
    Ok(())
}

/// Waits for the schema of the definition: kube-apiserver publishes it a moment later, and a policy is checked only once.
async fn until_published(cluster: &TestCluster) -> Result<(), Failure> {
    let look = async || {
        let request = http::Request::get("/openapi/v3/apis/policy.example.com/v1").body(Vec::new());
        let answer = cluster.client().request_text(request.map_err(Failure::new)?).await;
        Ok(match answer {
            Ok(document) if document.contains("Oven") => Ok(()),
            Ok(_) => Err("there is no such kind".to_owned()),
            Err(error) => Err(error.to_string()),
        })
    };
    cluster.until("the schema is published", look).await
}

/// Waits until this generation is checked; answers the warnings, null if there are none.
pub(crate) async fn until_checked(cluster: &TestCluster, name: &str, generation: i64) -> Result<Value, Failure> {
    let look = async || {
        let status = policies(cluster).get(name).await?.status.unwrap_or_default();
        let status = serde_json::to_value(status).map_err(Failure::new)?;
        Ok(match status["observedGeneration"].as_i64() {
            Some(observed) if observed == generation => Ok(status["typeChecking"]["expressionWarnings"].clone()),
            observed => Err(format!("{name}: generation {observed:?}")),
        })
    };
    cluster.until("the policy is checked", look).await
}

fn definition_of_ovens() -> Value {
    let racks =
        json!({ "type": "array", "items": { "type": "object", "properties": { "width": { "type": "number" } } } });
    let spec = json!({ "type": "object", "properties": {
        "heat": { "type": "integer" },
        "name": { "type": "string" },
        "port": { "x-kubernetes-int-or-string": true },
        "racks": racks,
        "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    } });
    let schema = json!({ "type": "object", "properties": { "spec": spec } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "ovens.policy.example.com" },
        "spec": {
            "group": "policy.example.com", "scope": "Namespaced",
            "names": { "plural": "ovens", "singular": "oven", "kind": "Oven", "listKind": "OvenList" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
        },
    })
}
