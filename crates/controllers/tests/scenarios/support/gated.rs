//! What APIs behind gates do: on the rig with the gates, on the embedded server with definitions of custom resources.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams};
use serde_json::{Value, json};
use steersman_controllers::resourceclaim;
use steersman_testing::objects::{self, ObjectBuilder as _, PodBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use super::controllers;
use crate::scenarios::device_taint_eviction::{clean, create_rule, driver, rules, use_device};
use crate::scenarios::protection::end;
use crate::scenarios::resourceclaim::{claims, pod_with_template, remove_claims, set_phase, template, until_claimed};

pub(crate) fn group_claims() -> Builder {
    let options = resourceclaim::Options::default().generic_workload(true).workload_claims(true);
    TestCluster::builder().options(options).controllers(&[controllers::RESOURCE_CLAIM])
}

pub(crate) fn protection() -> Builder {
    TestCluster::builder().controllers(&[controllers::POD_GROUP_PROTECTION])
}

pub(crate) fn pool_status() -> Builder {
    TestCluster::builder().controllers(&[controllers::POOL_STATUS])
}

/// The claim is made for the group, once; its pods share it.
pub(crate) async fn the_pods_of_a_group_share_its_claim(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(template("gpus")).await?;
    let of_group = json!({ "resourceClaims": [{ "name": "gpu", "resourceClaimTemplateName": "gpus" }] });
    create_group(cluster, "gang", of_group).await?;
    let in_group = json!({ "spec": { "schedulingGroup": { "podGroupName": "gang" } } });
    for name in ["one", "two"] {
        cluster.create(pod_with_template(name, "gpus").with(in_group.clone())).await?;
    }
    let first = until_claimed(cluster, "one", None).await?;
    let second = until_claimed(cluster, "two", None).await?;
    expect_eq("they share it", &first, &second)?;
    cluster.settle().await?;
    expect_eq("there is one claim", &claims(cluster).await?, &vec![first.clone()])?;
    let gang = groups(cluster).get("gang").await?;
    let want = json!([{ "name": "gpu", "resourceClaimName": first }]);
    expect_eq("the group's status", &gang.data["status"]["resourceClaimStatuses"], &want)?;
    let owner = cluster.api::<ResourceClaim>().get(&first).await?.metadata.owner_references.unwrap_or_default();
    expect_eq("its owner", &owner.first().map(|owner| owner.kind.as_str()), &Some("PodGroup"))?;
    for name in ["one", "two"] {
        end(cluster, name).await?;
    }
    remove_group(cluster, "gang").await?;
    remove_claims(cluster).await
}

/// A group that is deleted stays until its last pod has ended; a pod of another group does not count.
pub(crate) async fn a_group_stays_while_a_pod_of_it_runs(cluster: &TestCluster) -> Result<(), Failure> {
    for group in ["gang", "other"] {
        create_group(cluster, group, json!({})).await?;
    }
    for (name, group) in [("one", "gang"), ("two", "gang"), ("three", "other")] {
        cluster.create(member(name, group)).await?;
    }
    cluster.settle().await?;
    groups(cluster).delete("gang", &DeleteParams::default()).await?;
    end(cluster, "one").await?;
    cluster.settle().await?;
    let held = groups(cluster).get("gang").await?;
    expect(held.metadata.deletion_timestamp.is_some(), "it is terminating", &held.metadata)?;
    // A pod that has ended and still exists does not hold it.
    set_phase(cluster, "two", "Succeeded").await?;
    let is_gone = async || Ok(groups(cluster).get_opt("gang").await?.is_none());
    cluster.until_eq("it is gone", is_gone, true).await?;
    for pod in ["two", "three"] {
        end(cluster, pod).await?;
    }
    remove_group(cluster, "other").await?;
    let is_gone = async || Ok(groups(cluster).get_opt("other").await?.is_none());
    cluster.until_eq("the other is gone", is_gone, true).await
}

/// Of three devices one is in use, and one is tainted; a rule taints all of them.
pub(crate) async fn a_request_is_answered_from_slices_claims_and_rules(cluster: &TestCluster) -> Result<(), Failure> {
    let broken = json!([{ "key": "example.com/broken", "effect": "NoSchedule" }]);
    let devices = json!([{ "name": "gpu-0" }, { "name": "gpu-1", "taints": broken }, { "name": "gpu-2" }]);
    publish_pool(cluster, "pool", 1, &devices).await?;
    use_device(cluster, "web", "gpu-0", &json!([])).await?;
    cluster.settle().await?;
    ask(cluster, "before", json!({})).await?;
    let pool = |unavailable: u32, available: u32| {
        json!([{
            "driver": driver(cluster), "poolName": "pool", "generation": 1, "resourceSliceCount": 1, "totalDevices": 3,
            "allocatedDevices": 1, "unavailableDevices": unavailable, "availableDevices": available,
        }])
    };
    let answer = until_answered(cluster, "before").await?;
    expect_eq("its pools", &answer["pools"], &pool(1, 1))?;
    expect_eq("their number", &answer["poolCount"], &json!(1))?;
    let condition = &answer["conditions"][0];
    expect_eq("type", &condition["type"], &json!("Complete"))?;
    expect_eq("reason", &condition["reason"], &json!("CalculationComplete"))?;
    expect_eq("message", &condition["message"], &json!("Calculated status for 1 pools"))?;

    let rule = create_rule(cluster, "NoExecute").await?;
    cluster.settle().await?;
    ask(cluster, "after", json!({ "poolName": "pool" })).await?;
    expect_eq("with a rule", &until_answered(cluster, "after").await?["pools"], &pool(2, 0))?;
    ask(cluster, "nothing", json!({ "poolName": "another" })).await?;
    expect_eq("no pool", &until_answered(cluster, "nothing").await?["poolCount"], &json!(0))?;
    rules(cluster).delete(&rule, &DeleteParams::default()).await?;
    for request in asked(cluster).await? {
        requests(cluster).delete(&request, &DeleteParams::default()).await?;
    }
    remove_slices(cluster).await?;
    clean(cluster, &["web"]).await
}

/// A driver publishes the second of two slices later.
pub(crate) async fn a_request_waits_for_the_slices_of_a_pool(cluster: &TestCluster) -> Result<(), Failure> {
    publish_slice(cluster, "half-1", "half", 2, &json!([{ "name": "gpu-0" }])).await?;
    ask(cluster, "waiting", json!({})).await?;
    cluster.settle().await?;
    expect(requests(cluster).get("waiting").await?.data["status"].is_null(), "no answer", &"an answer")?;
    publish_slice(cluster, "half-2", "half", 2, &json!([{ "name": "gpu-1" }])).await?;
    let answer = until_answered(cluster, "waiting").await?;
    expect_eq("devices", &answer["pools"][0]["totalDevices"], &json!(2))?;
    requests(cluster).delete("waiting", &DeleteParams::default()).await?;
    remove_slices(cluster).await
}

// === pod groups ===

pub(crate) fn groups(cluster: &TestCluster) -> Api<DynamicObject> {
    Api::namespaced_with(cluster.client(), cluster.namespace(), &group_resource())
}

fn group_resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("scheduling.k8s.io", "v1beta1", "PodGroup"))
}

/// Creates a group, protected as kube-apiserver does.
pub(crate) async fn create_group(cluster: &TestCluster, name: &str, more: Value) -> Result<(), Failure> {
    let spec = objects::merged(json!({ "schedulingPolicy": { "basic": {} } }), more);
    let mut group = DynamicObject::new(name, &group_resource()).data(json!({ "spec": spec }));
    group.metadata.finalizers = Some(vec!["scheduling.k8s.io/podgroup-protection".into()]);
    groups(cluster).create(&PostParams::default(), &group).await?;
    Ok(())
}

/// Deletes a group, and its finalizer with it, if nobody else does.
async fn remove_group(cluster: &TestCluster, name: &str) -> Result<(), Failure> {
    groups(cluster).delete(name, &DeleteParams::default()).await?;
    let patch = kube::api::Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    match groups(cluster).patch(name, &kube::api::PatchParams::default(), &patch).await {
        Err(kube::Error::Api(error)) if error.code == 404 => Ok(()),
        done => Ok(done.map(drop)?),
    }
}

/// A pod of a group, on a node.
pub(crate) fn member(name: &str, group: &str) -> Pod {
    let in_group = json!({ "spec": { "schedulingGroup": { "podGroupName": group } } });
    objects::pod(name).with(in_group).on_node("somewhere")
}

pub(crate) fn pod_groups() -> Value {
    definition("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", "Namespaced")
}

// === requests for the status of pools ===

pub(crate) fn requests(cluster: &TestCluster) -> Api<DynamicObject> {
    Api::all_with(cluster.client(), &request_resource())
}

fn request_resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("resource.k8s.io", "v1alpha3", "ResourcePoolStatusRequest"))
}

pub(crate) async fn ask(cluster: &TestCluster, name: &str, more: Value) -> Result<(), Failure> {
    let spec = objects::merged(json!({ "driver": driver(cluster) }), more);
    let request = DynamicObject::new(name, &request_resource()).data(json!({ "spec": spec }));
    requests(cluster).create(&PostParams::default(), &request).await?;
    Ok(())
}

pub(crate) async fn asked(cluster: &TestCluster) -> Result<Vec<String>, Failure> {
    let requests = requests(cluster).list(&ListParams::default()).await?.items.into_iter();
    Ok(requests.filter_map(|request| request.metadata.name).collect())
}

pub(crate) async fn until_answered(cluster: &TestCluster, name: &str) -> Result<Value, Failure> {
    let look = async || {
        let request = requests(cluster).get(name).await?;
        let status = request.data["status"].clone();
        Ok(if status.is_null() { Err("it has no status".to_owned()) } else { Ok(status) })
    };
    cluster.until(&format!("{name} is answered"), look).await
}

pub(crate) async fn publish_pool(
    cluster: &TestCluster,
    pool: &str,
    slices: u32,
    devices: &Value,
) -> Result<(), Failure> {
    publish_slice(cluster, pool, pool, slices, devices).await
}

async fn publish_slice(
    cluster: &TestCluster,
    name: &str,
    pool: &str,
    slices: u32,
    devices: &Value,
) -> Result<(), Failure> {
    let pool = json!({ "name": pool, "generation": 1, "resourceSliceCount": slices });
    let spec = json!({ "driver": driver(cluster), "pool": pool, "allNodes": true, "devices": devices });
    let metadata = objects::named(&format!("{}-{name}", cluster.namespace()));
    let slice = ResourceSlice { metadata, ..ResourceSlice::default() }.with(json!({ "spec": spec }));
    Api::<ResourceSlice>::all(cluster.client()).create(&PostParams::default(), &slice).await?;
    Ok(())
}

pub(crate) async fn remove_slices(cluster: &TestCluster) -> Result<(), Failure> {
    let slices = Api::<ResourceSlice>::all(cluster.client());
    slices.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    Ok(())
}

pub(crate) fn requests_defined() -> Value {
    let plural = "resourcepoolstatusrequests";
    definition("resource.k8s.io", "v1alpha3", plural, "ResourcePoolStatusRequest", "Cluster")
}

pub(crate) fn definition(group: &str, version: &str, plural: &str, kind: &str, scope: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            "annotations": { "api-approved.kubernetes.io": "unapproved, for a test" },
        },
        "spec": {
            "group": group,
            "scope": scope,
            "names": { "plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List") },
            "versions": [{
                "name": version, "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
                "subresources": { "status": {} },
            }],
        },
    })
}
