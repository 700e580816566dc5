//! API servers that are gone are taken out of StorageVersions.
//!
//! The API is off by default, and the embedded server does not have it: there it is a definition. Servers that have it report their
//! own resources; these here are of nobody.

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use steersman_testing::{Builder, Failure, TestCluster, expect_eq};

use crate::scenarios::support::controllers;

scenarios! {
    a_server_that_is_gone_is_taken_out_and_the_last_one_takes_the_object_along on cluster alone,
    servers_without_a_lease_are_taken_out_of_new_objects on cluster alone,
}

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().define(definition()).controllers(&[controllers::STORAGE_VERSION_GC])
}

/// Two servers end, one after the other.
pub(crate) async fn a_server_that_is_gone_is_taken_out_and_the_last_one_takes_the_object_along(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    for server in ["server-a", "server-b"] {
        create_lease(cluster, server, true).await?;
    }
    create_version(cluster, "shop.deployments", &[("server-a", "v1"), ("server-b", "v2")]).await?;
    create_version(cluster, "shop.daemonsets", &[("server-b", "v1")]).await?;
    cluster.settle().await?;
    expect_eq("both report", &reported(cluster, "shop.deployments").await?, &known(&["server-a", "server-b"]))?;
    leases(cluster).delete("server-a", &DeleteParams::default()).await?;
    let look = async || reported(cluster, "shop.deployments").await;
    cluster.until_eq("one is left", look, known(&["server-b"])).await?;
    let status = versions(cluster).get("shop.deployments").await?.data["status"].clone();
    expect_eq("the common version", &status["commonEncodingVersion"], &json!("v2"))?;
    let condition = &status["conditions"][0];
    let reports = ["type", "status", "reason", "message"].map(|field| condition[field].as_str().unwrap_or_default());
    let want = ["AllEncodingVersionsEqual", "True", "CommonEncodingVersionSet", "Common encoding version set"];
    expect_eq("its condition", &reports, &want)?;
    leases(cluster).delete("server-b", &DeleteParams::default()).await?;
    for name in ["shop.deployments", "shop.daemonsets"] {
        let look = async || reported(cluster, name).await;
        cluster.until_eq("the object goes with its last server", look, None).await?;
    }
    Ok(())
}

/// A Lease of somebody else is none of an API server.
pub(crate) async fn servers_without_a_lease_are_taken_out_of_new_objects(cluster: &TestCluster) -> Result<(), Failure> {
    create_lease(cluster, "server-c", true).await?;
    create_lease(cluster, "somebody", false).await?;
    cluster.settle().await?;
    create_version(cluster, "shop.jobs", &[("nobody", "v1"), ("somebody", "v1"), ("server-c", "v1")]).await?;
    let look = async || reported(cluster, "shop.jobs").await;
    cluster.until_eq("one has a Lease", look, known(&["server-c"])).await?;
    cluster.settle().await?;
    expect_eq("it stays", &reported(cluster, "shop.jobs").await?, &known(&["server-c"]))
}

fn known(servers: &[&str]) -> Option<Vec<String>> {
    Some(servers.iter().map(|server| (*server).to_owned()).collect())
}

/// The API servers that a storage version names; none if there is no such object.
pub(crate) async fn reported(cluster: &TestCluster, name: &str) -> Result<Option<Vec<String>>, Failure> {
    let Some(version) = versions(cluster).get_opt(name).await? else { return Ok(None) };
    let entries = version.data["status"]["storageVersions"].as_array().cloned().unwrap_or_default();
    let server = |entry: &Value| entry["apiServerID"].as_str().unwrap_or_default().to_owned();
    Ok(Some(entries.iter().map(server).collect()))
}

pub(crate) fn versions(cluster: &TestCluster) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("internal.apiserver.k8s.io", "v1alpha1", "StorageVersion");
    Api::all_with(cluster.client(), &ApiResource::from_gvk_with_plural(&kind, "storageversions"))
}

pub(crate) fn leases(cluster: &TestCluster) -> Api<Lease> {
    Api::namespaced(cluster.client(), "kube-system")
}

async fn create_lease(cluster: &TestCluster, name: &str, is_server: bool) -> Result<(), Failure> {
    let labels = json!({ "apiserver.kubernetes.io/identity": if is_server { "kube-apiserver" } else { "other" } });
    let lease = json!({ "metadata": { "name": name, "labels": labels }, "spec": { "holderIdentity": name } });
    leases(cluster).create(&PostParams::default(), &serde_json::from_value(lease).map_err(Failure::new)?).await?;
    Ok(())
}

async fn create_version(cluster: &TestCluster, name: &str, servers: &[(&str, &str)]) -> Result<(), Failure> {
    let entries: Vec<_> = servers
        .iter()
        .map(|(server, encoding)| {
            json!({ "apiServerID": server, "encodingVersion": encoding, "decodableVersions": [encoding] })
        })
        .collect();
    let object = json!({
        "apiVersion": "internal.apiserver.k8s.io/v1alpha1", "kind": "StorageVersion",
        "metadata": { "name": name }, "spec": {},
    });
    let object = serde_json::from_value(object).map_err(Failure::new)?;
    versions(cluster).create(&PostParams::default(), &object).await?;
    let first = servers.first().map(|(_, encoding)| *encoding);
    let common = first.filter(|first| servers.iter().all(|(_, encoding)| encoding == first));
    let status = Patch::Merge(json!({ "status": { "storageVersions": entries, "commonEncodingVersion": common } }));
    versions(cluster).patch_status(name, &PatchParams::default(), &status).await?;
    Ok(())
}

/// The kind as a definition. Groups of Kubernetes need the annotation.
fn definition() -> Value {
    let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "storageversions.internal.apiserver.k8s.io",
            "annotations": { "api-approved.kubernetes.io": "unapproved, for a test" },
        },
        "spec": {
            "group": "internal.apiserver.k8s.io",
            "scope": "Cluster",
            "names": {
                "plural": "storageversions", "singular": "storageversion", "kind": "StorageVersion",
                "listKind": "StorageVersionList",
            },
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": anything },
            }],
        },
    })
}
