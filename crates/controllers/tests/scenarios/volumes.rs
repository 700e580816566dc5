//! Claims get volumes from the provisioner of simulated nodes, which the binder asks for them, and volumes go with their
//! claims. Who protects both runs beside it.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use steersman_testing::nodes::provisioner::NAME;
use steersman_testing::nodes::{NodesOptions, ProvisionerOptions};
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use crate::scenarios::statefulset::{patch, set};
use crate::scenarios::support::controllers;

scenarios! {
    a_stateful_set_runs_on_volumes_that_come_with_its_pods_and_go_with_its_claims on with_volumes,
    a_claim_is_bound_at_once_if_its_class_says_so on with_volumes,
}

pub(crate) fn with_volumes() -> Builder {
    let provisioner = Some(ProvisionerOptions::default().default_class(false));
    TestCluster::builder()
        .controllers(&[
            controllers::STATEFUL_SET,
            controllers::CLAIM_PROTECTION,
            controllers::VOLUME_PROTECTION,
            controllers::VOLUME_BINDER,
            controllers::VOLUME_EXPANDER,
        ])
        .nodes_with(NodesOptions::count(2).provisioner(provisioner))
}

/// Creates a class of the test's own, and returns its name.
pub(crate) async fn class(cluster: &TestCluster, mode: &str) -> Result<String, Failure> {
    let name = format!("{}-{}", cluster.namespace(), mode.to_lowercase());
    let class = json!({
        "metadata": { "name": name }, "provisioner": NAME, "volumeBindingMode": mode, "allowVolumeExpansion": true,
    });
    classes(cluster).create(&PostParams::default(), &serde_json::from_value(class)?).await?;
    Ok(name)
}

pub(crate) fn classes(cluster: &TestCluster) -> Api<StorageClass> {
    Api::all(cluster.client())
}

pub(crate) fn claim_spec(class: &str) -> Value {
    json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": { "requests": { "storage": "1Gi" } },
    })
}

/// Waits until a claim is bound; returns the name of its volume.
pub(crate) async fn until_bound(cluster: &TestCluster, claim: &str) -> Result<String, Failure> {
    let look = async || Ok(cluster.api::<PersistentVolumeClaim>().get_opt(claim).await?.unwrap_or_default());
    let is_bound = |claim: &PersistentVolumeClaim| {
        claim.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Bound"))
    };
    let claim = cluster.until_right("the claim is bound", look, is_bound).await?;
    let capacity = claim.status.and_then(|status| status.capacity).unwrap_or_default();
    expect_eq("the capacity", &capacity.get("storage").map(|size| size.0.as_str()), &Some("1Gi"))?;
    Ok(claim.spec.and_then(|spec| spec.volume_name).unwrap_or_default())
}

pub(crate) async fn until_volume_gone(cluster: &TestCluster, volume: &str) -> Result<(), Failure> {
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    let is_gone = async || Ok(volumes.get_opt(volume).await?.is_none());
    cluster.until_eq("the volume is gone", is_gone, true).await
}

/// Under `WaitForFirstConsumer` a claim waits for its pod. A claim that is deleted stays until its pod is gone, and its
/// volume goes with it; scaling up again makes both anew.
pub(crate) async fn a_stateful_set_runs_on_volumes_that_come_with_its_pods_and_go_with_its_claims(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let class = class(cluster, "WaitForFirstConsumer").await?;
    let claims = cluster.api::<PersistentVolumeClaim>();
    let alone = json!({ "metadata": { "name": "alone" }, "spec": claim_spec(&class) });
    cluster.create(serde_json::from_value::<PersistentVolumeClaim>(alone)?).await?;

    let template = json!({ "metadata": { "name": "data" }, "spec": claim_spec(&class) });
    cluster.create(set(2, json!({ "volumeClaimTemplates": [template] }))).await?;
    let first = until_bound(cluster, "data-web-0").await?;
    let second = until_bound(cluster, "data-web-1").await?;
    expect(first != second, "each has a volume of its own", &(&first, &second))?;
    let volume = Api::<PersistentVolume>::all(cluster.client()).get(&first).await?;
    let spec = volume.spec.unwrap_or_default();
    let claim = spec.claim_ref.and_then(|claim| claim.name);
    expect_eq(
        "claim and policy",
        &(claim.as_deref(), spec.persistent_volume_reclaim_policy.as_deref()),
        &(Some("data-web-0"), Some("Delete")),
    )?;
    expect_eq("the class", &spec.storage_class_name, &Some(class.clone()))?;
    let ready = async || {
        let status = cluster.api::<StatefulSet>().get("web").await?.status.unwrap_or_default();
        Ok(status.ready_replicas)
    };
    cluster.until_eq("both pods are ready", ready, Some(2)).await?;
    let phase = claims.get("alone").await?.status.and_then(|status| status.phase);
    expect_eq("a claim without a pod", &phase.as_deref(), &Some("Pending"))?;

    cluster.delete::<PersistentVolumeClaim>("data-web-1").await?;
    expect(claims.get("data-web-1").await?.metadata.deletion_timestamp.is_some(), "its pod has it", &())?;
    patch(cluster, json!({ "spec": { "replicas": 1 } })).await?;
    cluster.until_gone::<PersistentVolumeClaim>("data-web-1").await?;
    until_volume_gone(cluster, &second).await?;
    patch(cluster, json!({ "spec": { "replicas": 2 } })).await?;
    let third = until_bound(cluster, "data-web-1").await?;
    expect(third != second, "it is a new one", &third)?;

    cluster.delete::<StatefulSet>("web").await?;
    for pod in cluster.api::<Pod>().list(&ListParams::default()).await?.items {
        let name = pod.metadata.name.unwrap_or_default();
        cluster.delete::<Pod>(&name).await?;
        cluster.until_gone::<Pod>(&name).await?;
    }
    for (claim, volume) in [("data-web-0", first), ("data-web-1", third)] {
        cluster.delete::<PersistentVolumeClaim>(claim).await?;
        until_volume_gone(cluster, &volume).await?;
    }
    cluster.delete::<PersistentVolumeClaim>("alone").await?;
    classes(cluster).delete(&class, &DeleteParams::default()).await?;
    Ok(())
}

/// No pod is needed; and a claim of a class that comes later waits for it.
pub(crate) async fn a_claim_is_bound_at_once_if_its_class_says_so(cluster: &TestCluster) -> Result<(), Failure> {
    let late = format!("{}-immediate", cluster.namespace());
    let claim = json!({ "metadata": { "name": "data" }, "spec": claim_spec(&late) });
    cluster.create(serde_json::from_value::<PersistentVolumeClaim>(claim)?).await?;
    cluster.settle().await?;
    let class = class(cluster, "Immediate").await?;
    let volume = until_bound(cluster, "data").await?;
    let claim = cluster.api::<PersistentVolumeClaim>().get("data").await?;
    let annotations = claim.metadata.annotations.unwrap_or_default();
    let completed = annotations.get("pv.kubernetes.io/bind-completed").map(String::as_str);
    expect_eq("the annotation of a binder", &completed, &Some("yes"))?;
    cluster.delete::<PersistentVolumeClaim>("data").await?;
    until_volume_gone(cluster, &volume).await?;
    classes(cluster).delete(&class, &DeleteParams::default()).await?;
    Ok(())
}
