//! Claims, volumes and their classes are not deleted while they are in use.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttributesClass;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use steersman_testing::objects::{self, ObjectBuilder as _, PodBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use crate::scenarios::support::controllers::{self, Controller};

scenarios! {
    a_claim_stays_while_a_scheduled_pod_has_it_and_goes_with_the_pod on cluster,
    a_claim_of_a_pod_without_a_node_goes_at_once on cluster,
    a_claim_without_the_finalizer_gets_it_back on cluster,
    a_bound_claim_says_since_when_no_pod_uses_it on cluster,
    a_bound_volume_stays_until_it_is_released on cluster,
    a_class_stays_while_a_claim_names_it on cluster,
}

pub(crate) const CONTROLLERS: &[Controller] =
    &[controllers::CLAIM_PROTECTION, controllers::VOLUME_PROTECTION, controllers::CLASS_PROTECTION];

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(CONTROLLERS)
}

/// A claim that is deleted while a pod on a node has it goes when the pod does.
pub(crate) async fn a_claim_stays_while_a_scheduled_pod_has_it_and_goes_with_the_pod(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    cluster.create(claim("data")).await?;
    cluster.create(pod_with("web", "data").on_node("somewhere")).await?;
    cluster.delete::<PersistentVolumeClaim>("data").await?;
    cluster.settle().await?;
    let held = cluster.api::<PersistentVolumeClaim>().get("data").await?;
    expect(held.metadata.deletion_timestamp.is_some(), "it is terminating", &held.metadata)?;
    end(cluster, "web").await?;
    cluster.until_gone::<PersistentVolumeClaim>("data").await
}

/// No kubelet has seen the pod, and none starts it with a claim that is terminating.
pub(crate) async fn a_claim_of_a_pod_without_a_node_goes_at_once(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(claim("data")).await?;
    cluster.create(pod_with("waiting", "data")).await?;
    cluster.delete::<PersistentVolumeClaim>("data").await?;
    cluster.until_gone::<PersistentVolumeClaim>("data").await?;
    cluster.api::<Pod>().get("waiting").await?;
    end(cluster, "waiting").await
}

/// Somebody takes the finalizer off; it comes back.
pub(crate) async fn a_claim_without_the_finalizer_gets_it_back(cluster: &TestCluster) -> Result<(), Failure> {
    const PROTECTION: &str = "kubernetes.io/pvc-protection";
    cluster.create(claim("data").finalizer("example.com/mine")).await?;
    let finalizers = async || {
        let claim = cluster.api::<PersistentVolumeClaim>().get("data").await?;
        Ok(claim.metadata.finalizers.unwrap_or_default())
    };
    cluster.until_eq("it is protected", finalizers, ["example.com/mine", PROTECTION]).await?;
    patch_claim(cluster, json!({ "metadata": { "finalizers": ["example.com/mine"] } }), "").await?;
    cluster.until_eq("it is protected again", finalizers, ["example.com/mine", PROTECTION]).await?;
    patch_claim(cluster, json!({ "metadata": { "finalizers": [PROTECTION] } }), "").await?;
    cluster.delete::<PersistentVolumeClaim>("data").await?;
    cluster.until_gone::<PersistentVolumeClaim>("data").await
}

/// The condition `Unused` follows the pods, and its time is that of the change.
pub(crate) async fn a_bound_claim_says_since_when_no_pod_uses_it(cluster: &TestCluster) -> Result<(), Failure> {
    let unused = async || {
        let claim = cluster.api::<PersistentVolumeClaim>().get("data").await?;
        let conditions = claim.status.and_then(|status| status.conditions).unwrap_or_default();
        let unused = conditions.into_iter().find(|condition| condition.type_ == "Unused");
        Ok(unused.map(|unused| (unused.status, unused.reason.unwrap_or_default())))
    };
    let want = |status: &str, reason: &str| Some((status.to_owned(), reason.to_owned()));
    cluster.create(claim("data")).await?;
    cluster.settle().await?;
    expect_eq("a claim that is not bound has no condition", &unused().await?, &None)?;
    patch_claim(cluster, json!({ "status": { "phase": "Bound" } }), "status").await?;
    cluster.until_eq("no pod uses it", unused, want("True", "NoPodsUsingPVC")).await?;
    cluster.create(pod_with("web", "data").on_node("somewhere")).await?;
    cluster.until_eq("a pod uses it", unused, want("False", "PodUsingPVC")).await?;
    end(cluster, "web").await?;
    cluster.until_eq("no pod uses it any more", unused, want("True", "NoPodsUsingPVC")).await?;
    cluster.delete::<PersistentVolumeClaim>("data").await?;
    cluster.until_gone::<PersistentVolumeClaim>("data").await
}

/// A volume that a claim has is not deleted under it.
pub(crate) async fn a_bound_volume_stays_until_it_is_released(cluster: &TestCluster) -> Result<(), Failure> {
    let name = format!("{}-disk", cluster.namespace());
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    let volume: PersistentVolume = serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "capacity": { "storage": "1Gi" },
            "accessModes": ["ReadWriteOnce"],
            "hostPath": { "path": "/tmp/disk" },
        },
    }))
    .map_err(Failure::new)?;
    volumes.create(&PostParams::default(), &volume).await?;
    let phase = async |phase: &str| {
        let patch = Patch::Merge(json!({ "status": { "phase": phase } }));
        volumes.patch_status(&name, &PatchParams::default(), &patch).await
    };
    phase("Bound").await?;
    volumes.delete(&name, &DeleteParams::default()).await?;
    cluster.settle().await?;
    let held = volumes.get(&name).await?;
    expect(held.metadata.deletion_timestamp.is_some(), "it is terminating", &held.metadata)?;
    phase("Released").await?;
    let exists = async || Ok(volumes.get_opt(&name).await?.is_some());
    cluster.until_eq("the volume goes", exists, false).await
}

/// A class that a claim names goes when the claim does.
pub(crate) async fn a_class_stays_while_a_claim_names_it(cluster: &TestCluster) -> Result<(), Failure> {
    let name = format!("{}-gold", cluster.namespace());
    let classes: Api<VolumeAttributesClass> = Api::all(cluster.client());
    let class = VolumeAttributesClass {
        metadata: objects::named(&name),
        driver_name: "csi.example.com".into(),
        parameters: Some([("iops".to_owned(), "100".to_owned())].into()),
    };
    let class = classes.create(&PostParams::default(), &class).await?;
    let finalizers = class.metadata.finalizers.unwrap_or_default();
    expect_eq("its finalizers", &finalizers, &vec!["kubernetes.io/vac-protection".to_owned()])?;
    cluster.create(claim("data").with(json!({ "spec": { "volumeAttributesClassName": name } }))).await?;
    classes.delete(&name, &DeleteParams::default()).await?;
    cluster.settle().await?;
    let held = classes.get(&name).await?;
    expect(held.metadata.deletion_timestamp.is_some(), "it is terminating", &held.metadata)?;
    cluster.delete::<PersistentVolumeClaim>("data").await?;
    cluster.until_gone::<PersistentVolumeClaim>("data").await?;
    let exists = async || Ok(classes.get_opt(&name).await?.is_some());
    cluster.until_eq("the class goes", exists, false).await
}

pub(crate) fn claim(name: &str) -> PersistentVolumeClaim {
    let claim = json!({
        "metadata": { "name": name },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    });
    serde_json::from_value(claim).expect("it is a claim")
}

/// A pod with a volume of this claim.
pub(crate) fn pod_with(name: &str, claim: &str) -> Pod {
    let volume = json!({ "name": "data", "persistentVolumeClaim": { "claimName": claim } });
    objects::pod(name).with(json!({ "spec": { "volumes": [volume] } }))
}

/// Deletes a pod at once: no kubelet does.
pub(crate) async fn end(cluster: &TestCluster, pod: &str) -> Result<(), Failure> {
    cluster.api::<Pod>().delete(pod, &DeleteParams::default().grace_period(0)).await?;
    cluster.until_gone::<Pod>(pod).await
}

pub(crate) async fn patch_claim(cluster: &TestCluster, patch: Value, subresource: &str) -> Result<(), Failure> {
    let claims = cluster.api::<PersistentVolumeClaim>();
    let patch = Patch::Merge(patch);
    match subresource {
        "" => claims.patch("data", &PatchParams::default(), &patch).await?,
        _ => claims.patch_status("data", &PatchParams::default(), &patch).await?,
    };
    Ok(())
}
