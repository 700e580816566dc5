//! Claims and volumes that are bound to each other.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Event, PersistentVolume, PersistentVolumeClaim, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use steersman_testing::objects::merged;
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use crate::scenarios::support::controllers::{self, Controller};
use crate::scenarios::volumes::classes;

scenarios! {
    the_smallest_volume_that_suits_is_taken_and_the_other_claim_waits on cluster,
    a_claim_that_waits_gets_a_volume_that_comes_later on cluster,
    a_reserved_volume_is_for_its_claim_only on cluster,
    a_claim_gets_the_volume_that_it_names_if_that_suits on cluster,
    a_new_claim_of_the_name_does_not_get_a_retained_volume on cluster,
    a_volume_edited_by_hand_goes_back_to_its_claim on cluster,
    a_bound_claim_whose_uid_is_removed_from_its_volume_is_lost_until_it_is_back on cluster,
    a_claim_whose_volume_is_gone_is_lost on cluster,
    a_claim_that_waits_for_its_first_pod_is_not_bound on cluster,
    a_claim_without_a_class_gets_the_default_one_later on cluster alone,
    a_claim_of_a_migrated_class_is_handed_to_its_driver on cluster,
    a_volume_that_nobody_can_delete_or_recycle_fails on cluster,
    a_volume_is_recycled_by_a_pod_and_free_again on cluster,
}

pub(crate) const CONTROLLERS: &[Controller] = &[controllers::VOLUME_BINDER];

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(CONTROLLERS)
}

fn volumes(cluster: &TestCluster) -> Api<PersistentVolume> {
    Api::all(cluster.client())
}

/// The class of a test: volumes are the whole cluster's, and tests run beside each other.
fn own_class(cluster: &TestCluster) -> String {
    format!("{}-static", cluster.namespace())
}

/// Creates a volume of the test's own class; returns its name.
pub(crate) async fn volume(cluster: &TestCluster, name: &str, size: &str, more: Value) -> Result<String, Failure> {
    let name = format!("{}-{name}", cluster.namespace());
    let base = json!({
        "metadata": { "name": name },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": { "storage": size }, "storageClassName": own_class(cluster),
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": { "path": format!("/simulated/{name}") },
        },
    });
    volumes(cluster).create(&PostParams::default(), &serde_json::from_value(merged(base, more))?).await?;
    Ok(name)
}

/// Creates a claim of 1Gi of the test's own class.
pub(crate) async fn claim(cluster: &TestCluster, name: &str, more: Value) -> Result<PersistentVolumeClaim, Failure> {
    let base = json!({
        "metadata": { "name": name },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
            "storageClassName": own_class(cluster),
        },
    });
    cluster.create(serde_json::from_value(merged(base, more))?).await
}

/// Waits until a claim is bound; returns its volume.
pub(crate) async fn bound_volume(cluster: &TestCluster, name: &str) -> Result<String, Failure> {
    until_claim(cluster, name, "Bound").await?;
    let spec = cluster.api::<PersistentVolumeClaim>().get(name).await?.spec.unwrap_or_default();
    Ok(spec.volume_name.unwrap_or_default())
}

pub(crate) async fn until_claim(cluster: &TestCluster, name: &str, phase: &str) -> Result<(), Failure> {
    let look = async || {
        let claim = cluster.api::<PersistentVolumeClaim>().get_opt(name).await?;
        Ok(claim.and_then(|claim| claim.status).and_then(|status| status.phase))
    };
    cluster.until_eq(&format!("the claim {name} is {phase}"), look, Some(phase.to_owned())).await
}

pub(crate) async fn until_volume(cluster: &TestCluster, name: &str, phase: &str) -> Result<PersistentVolume, Failure> {
    let look = async || Ok(volumes(cluster).get(name).await?);
    let is_so =
        |volume: &PersistentVolume| volume.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some(phase));
    cluster.until_right(&format!("the volume {name} is {phase}"), look, is_so).await
}

/// Waits until there is an event with this reason about an object; returns its message.
pub(crate) async fn until_event(cluster: &TestCluster, about: &str, reason: &str) -> Result<String, Failure> {
    // Events about volumes are in the namespace `default`.
    let all: Api<Event> = Api::all(cluster.client());
    let is_meant = |event: &Event| {
        let object = &event.involved_object;
        let is_here = object.namespace.as_deref().is_none_or(|namespace| namespace == cluster.namespace());
        object.name.as_deref() == Some(about) && event.reason.as_deref() == Some(reason) && is_here
    };
    let look = async || {
        let events = all.list(&ListParams::default()).await?.items.into_iter();
        Ok(events.filter(is_meant).find_map(|event| event.message))
    };
    let found = cluster.until_right(&format!("an event {reason} about {about}"), look, Option::is_some).await?;
    Ok(found.unwrap_or_default())
}

/// Deletes a claim, and removes the finalizers that nobody else removes here.
pub(crate) async fn end_claim(cluster: &TestCluster, name: &str) -> Result<(), Failure> {
    let claims = cluster.api::<PersistentVolumeClaim>();
    cluster.delete::<PersistentVolumeClaim>(name).await?;
    let none = json!({ "metadata": { "finalizers": null } });
    match claims.patch(name, &PatchParams::default(), &Patch::Merge(none)).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        Err(error) => return Err(error.into()),
    }
    cluster.until_gone::<PersistentVolumeClaim>(name).await
}

/// Deletes a volume, and removes the finalizers that nobody else removes here.
pub(crate) async fn end_volume(cluster: &TestCluster, name: &str) -> Result<(), Failure> {
    volumes(cluster).delete(name, &DeleteParams::default()).await?;
    let is_gone = async || {
        // A write of the binder may be faster.
        let none = json!({ "metadata": { "finalizers": null } });
        let _ = volumes(cluster).patch(name, &PatchParams::default(), &Patch::Merge(none)).await;
        Ok(volumes(cluster).get_opt(name).await?.is_none())
    };
    cluster.until_eq("the volume is gone", is_gone, true).await
}

async fn patch_volume(cluster: &TestCluster, name: &str, patch: Value) -> Result<(), Failure> {
    volumes(cluster).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

fn annotations_of(annotations: Option<BTreeMap<String, String>>) -> Vec<String> {
    let ours = |key: &String| key.starts_with("pv.kubernetes.io/");
    annotations.unwrap_or_default().into_keys().filter(ours).collect()
}

/// Two claims and one volume that suits both: one gets it, and the other stays Pending.
pub(crate) async fn the_smallest_volume_that_suits_is_taken_and_the_other_claim_waits(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let small = volume(cluster, "small", "512Mi", json!({})).await?;
    let middle = volume(cluster, "middle", "2Gi", json!({})).await?;
    let block = volume(cluster, "block", "1Gi", json!({ "spec": { "volumeMode": "Block" } })).await?;
    for name in [&small, &middle, &block] {
        until_volume(cluster, name, "Available").await?;
    }
    let first = claim(cluster, "first", json!({})).await?;
    expect_eq("its volume", &bound_volume(cluster, "first").await?, &middle)?;
    let bound = until_volume(cluster, &middle, "Bound").await?;
    let reference = bound.spec.and_then(|spec| spec.claim_ref).unwrap_or_default();
    expect_eq("the uid", &reference.uid, &first.metadata.uid)?;
    expect_eq(
        "marks of the volume",
        &annotations_of(bound.metadata.annotations),
        &vec!["pv.kubernetes.io/bound-by-controller".to_owned()],
    )?;
    let held = cluster.api::<PersistentVolumeClaim>().get("first").await?;
    expect_eq(
        "marks of the claim",
        &annotations_of(held.metadata.annotations),
        &vec!["pv.kubernetes.io/bind-completed".to_owned(), "pv.kubernetes.io/bound-by-controller".to_owned()],
    )?;
    let status = held.status.unwrap_or_default();
    expect_eq("access modes", &status.access_modes, &Some(vec!["ReadWriteOnce".to_owned()]))?;
    let size = status.capacity.unwrap_or_default().remove("storage").map(|size| size.0);
    expect_eq("the size is that of the volume", &size.as_deref(), &Some("2Gi"))?;

    claim(cluster, "second", json!({})).await?;
    let message = until_event(cluster, "second", "ProvisioningFailed").await?;
    let want = format!("storageclass.storage.k8s.io {:?} not found", own_class(cluster));
    expect_eq("the second claim says why it waits", &message, &want)?;
    until_claim(cluster, "second", "Pending").await?;
    until_volume(cluster, &small, "Available").await?;
    until_volume(cluster, &block, "Available").await?;
    for name in ["first", "second"] {
        end_claim(cluster, name).await?;
    }
    for name in [small, middle, block] {
        end_volume(cluster, &name).await?;
    }
    Ok(())
}

/// Nobody waits for the next regular look.
pub(crate) async fn a_claim_that_waits_gets_a_volume_that_comes_later(cluster: &TestCluster) -> Result<(), Failure> {
    let picky = json!({ "spec": { "selector": { "matchLabels": { "tier": "db" } } } });
    claim(cluster, "data", picky).await?;
    cluster.settle().await?;
    let other = volume(cluster, "other", "1Gi", json!({})).await?;
    until_volume(cluster, &other, "Available").await?;
    let name = volume(cluster, "disk", "1Gi", json!({ "metadata": { "labels": { "tier": "db" } } })).await?;
    expect_eq("its volume", &bound_volume(cluster, "data").await?, &name)?;
    until_volume(cluster, &other, "Available").await?;
    end_claim(cluster, "data").await?;
    end_volume(cluster, &name).await?;
    end_volume(cluster, &other).await
}

/// The volume names a claim that does not exist yet; another claim that it would suit does not get it.
pub(crate) async fn a_reserved_volume_is_for_its_claim_only(cluster: &TestCluster) -> Result<(), Failure> {
    let reference = json!({ "namespace": cluster.namespace(), "name": "mine" });
    let name = volume(cluster, "disk", "1Gi", json!({ "spec": { "claimRef": reference } })).await?;
    until_volume(cluster, &name, "Available").await?;
    claim(cluster, "other", json!({})).await?;
    until_event(cluster, "other", "ProvisioningFailed").await?;
    let mine = claim(cluster, "mine", json!({})).await?;
    expect_eq("its volume", &bound_volume(cluster, "mine").await?, &name)?;
    let bound = until_volume(cluster, &name, "Bound").await?;
    let reference = bound.spec.and_then(|spec| spec.claim_ref).unwrap_or_default();
    expect_eq("the uid", &reference.uid, &mine.metadata.uid)?;
    expect_eq("the user's reference has no mark", &annotations_of(bound.metadata.annotations), &Vec::new())?;
    until_claim(cluster, "other", "Pending").await?;
    end_claim(cluster, "other").await?;
    end_claim(cluster, "mine").await?;
    end_volume(cluster, &name).await
}

/// Three claims name one volume: one is too large, one gets it, one is too late.
pub(crate) async fn a_claim_gets_the_volume_that_it_names_if_that_suits(cluster: &TestCluster) -> Result<(), Failure> {
    let name = format!("{}-disk", cluster.namespace());
    let named =
        |size: &str| json!({ "spec": { "volumeName": name, "resources": { "requests": { "storage": size } } } });
    claim(cluster, "large", named("5Gi")).await?;
    volume(cluster, "disk", "2Gi", json!({})).await?;
    let message = until_event(cluster, "large", "VolumeMismatch").await?;
    let want = format!("Cannot bind to requested volume {name:?}: requested PV is too small");
    expect_eq("the large claim says why", &message, &want)?;
    claim(cluster, "data", named("1Gi")).await?;
    expect_eq("its volume", &bound_volume(cluster, "data").await?, &name)?;
    let held = cluster.api::<PersistentVolumeClaim>().get("data").await?;
    expect_eq(
        "the user's choice has no mark",
        &annotations_of(held.metadata.annotations),
        &vec!["pv.kubernetes.io/bind-completed".to_owned()],
    )?;
    claim(cluster, "late", named("1Gi")).await?;
    let message = until_event(cluster, "late", "FailedBinding").await?;
    expect_eq("the late claim says why", &message, &format!("volume {name:?} already bound to a different claim."))?;
    until_claim(cluster, "late", "Pending").await?;
    for name in ["large", "late", "data"] {
        end_claim(cluster, name).await?;
    }
    end_volume(cluster, &name).await
}

/// The data on the volume is the old claim's.
pub(crate) async fn a_new_claim_of_the_name_does_not_get_a_retained_volume(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let name = volume(cluster, "disk", "1Gi", json!({})).await?;
    let old = claim(cluster, "data", json!({})).await?;
    expect_eq("its volume", &bound_volume(cluster, "data").await?, &name)?;
    end_claim(cluster, "data").await?;
    until_volume(cluster, &name, "Released").await?;
    claim(cluster, "data", json!({})).await?;
    until_event(cluster, "data", "ProvisioningFailed").await?;
    claim(cluster, "named", json!({ "spec": { "volumeName": name } })).await?;
    until_event(cluster, "named", "FailedBinding").await?;
    cluster.settle().await?;
    until_claim(cluster, "data", "Pending").await?;
    let released = until_volume(cluster, &name, "Released").await?;
    let reference = released.spec.and_then(|spec| spec.claim_ref).unwrap_or_default();
    expect_eq("it is still the old claim's", &reference.uid, &old.metadata.uid)?;
    // An administrator gives it away.
    end_claim(cluster, "named").await?;
    patch_volume(cluster, &name, json!({ "spec": { "claimRef": null } })).await?;
    expect_eq("its volume", &bound_volume(cluster, "data").await?, &name)?;
    end_claim(cluster, "data").await?;
    end_volume(cluster, &name).await
}

/// A claim that waits for such a volume does not get it.
pub(crate) async fn a_volume_edited_by_hand_goes_back_to_its_claim(cluster: &TestCluster) -> Result<(), Failure> {
    let name = volume(cluster, "disk", "1Gi", json!({})).await?;
    let owner = claim(cluster, "data", json!({})).await?;
    expect_eq("its volume", &bound_volume(cluster, "data").await?, &name)?;
    claim(cluster, "greedy", json!({})).await?;
    until_event(cluster, "greedy", "ProvisioningFailed").await?;
    patch_volume(cluster, &name, json!({ "spec": { "claimRef": null } })).await?;
    let reference = async || {
        let spec = volumes(cluster).get(&name).await?.spec.unwrap_or_default();
        Ok(spec.claim_ref.and_then(|claim| claim.uid))
    };
    cluster.until_eq("it is the claim's again", reference, owner.metadata.uid).await?;
    until_volume(cluster, &name, "Bound").await?;
    until_claim(cluster, "data", "Bound").await?;
    until_claim(cluster, "greedy", "Pending").await?;
    end_claim(cluster, "greedy").await?;
    end_claim(cluster, "data").await?;
    end_volume(cluster, &name).await
}

/// As upstream: the volume is only reserved for the name, so the claim is not believed. Nobody else gets the volume.
pub(crate) async fn a_bound_claim_whose_uid_is_removed_from_its_volume_is_lost_until_it_is_back(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let name = volume(cluster, "disk", "1Gi", json!({})).await?;
    let owner = claim(cluster, "data", json!({})).await?;
    expect_eq("its volume", &bound_volume(cluster, "data").await?, &name)?;
    patch_volume(cluster, &name, json!({ "spec": { "claimRef": { "uid": null } } })).await?;
    until_claim(cluster, "data", "Lost").await?;
    let reported = until_event(cluster, "data", "ClaimMisbound").await?;
    expect_eq(
        "the event",
        &reported.as_str(),
        &"Two claims are bound to the same volume, this one is bound incorrectly",
    )?;
    let reserved = until_volume(cluster, &name, "Available").await?;
    claim(cluster, "greedy", json!({})).await?;
    until_event(cluster, "greedy", "ProvisioningFailed").await?;
    let reference = reserved.spec.and_then(|spec| spec.claim_ref).unwrap_or_default();
    expect_eq("who it is reserved for", &(reference.name.as_deref(), reference.uid), &(Some("data"), None))?;
    patch_volume(cluster, &name, json!({ "spec": { "claimRef": { "uid": owner.metadata.uid } } })).await?;
    until_volume(cluster, &name, "Bound").await?;
    until_claim(cluster, "data", "Bound").await?;
    end_claim(cluster, "greedy").await?;
    end_claim(cluster, "data").await?;
    end_volume(cluster, &name).await
}

/// The claim says so, and has no capacity any more.
pub(crate) async fn a_claim_whose_volume_is_gone_is_lost(cluster: &TestCluster) -> Result<(), Failure> {
    let name = volume(cluster, "disk", "1Gi", json!({})).await?;
    claim(cluster, "data", json!({})).await?;
    bound_volume(cluster, "data").await?;
    end_volume(cluster, &name).await?;
    until_claim(cluster, "data", "Lost").await?;
    let message = until_event(cluster, "data", "ClaimLost").await?;
    let want = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
    expect_eq("the event", &message.as_str(), &want)?;
    let status = cluster.api::<PersistentVolumeClaim>().get("data").await?.status.unwrap_or_default();
    expect(status.capacity.is_none_or(|capacity| capacity.is_empty()), "it has no capacity", &"some")?;
    end_claim(cluster, "data").await
}

/// Not even to a volume that suits: the scheduler chooses, with the pod's node in mind.
pub(crate) async fn a_claim_that_waits_for_its_first_pod_is_not_bound(cluster: &TestCluster) -> Result<(), Failure> {
    let class = json!({
        "metadata": { "name": own_class(cluster) }, "provisioner": "example.com/disk",
        "volumeBindingMode": "WaitForFirstConsumer",
    });
    classes(cluster).create(&PostParams::default(), &serde_json::from_value(class)?).await?;
    let name = volume(cluster, "disk", "1Gi", json!({})).await?;
    until_volume(cluster, &name, "Available").await?;
    claim(cluster, "data", json!({})).await?;
    let message = until_event(cluster, "data", "WaitForFirstConsumer").await?;
    expect_eq("the event", &message.as_str(), &"waiting for first consumer to be created before binding")?;
    cluster.settle().await?;
    until_claim(cluster, "data", "Pending").await?;
    until_volume(cluster, &name, "Available").await?;
    // The scheduler chooses a node, and finds no volume for it.
    let selected = json!({ "metadata": { "annotations": { "volume.kubernetes.io/selected-node": "node-1" } } });
    let claims = cluster.api::<PersistentVolumeClaim>();
    claims.patch("data", &PatchParams::default(), &Patch::Merge(selected)).await?;
    let message = until_event(cluster, "data", "ExternalProvisioning").await?;
    expect(message.contains("'example.com/disk'"), "the event names the provisioner", &message)?;
    let asked = claims.get("data").await?.metadata.annotations.unwrap_or_default();
    for key in ["volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"] {
        expect_eq(key, &asked.get(key).map(String::as_str), &Some("example.com/disk"))?;
    }
    // The scheduler chooses a volume, for another claim of the class.
    let second = claim(cluster, "second", json!({})).await?;
    let reference = json!({ "namespace": cluster.namespace(), "name": "second", "uid": second.metadata.uid });
    patch_volume(cluster, &name, json!({ "spec": { "claimRef": reference } })).await?;
    expect_eq("its volume", &bound_volume(cluster, "second").await?, &name)?;
    end_claim(cluster, "data").await?;
    end_claim(cluster, "second").await?;
    end_volume(cluster, &name).await?;
    classes(cluster).delete(&own_class(cluster), &DeleteParams::default()).await?;
    Ok(())
}

/// The claim was there before the class.
pub(crate) async fn a_claim_without_a_class_gets_the_default_one_later(cluster: &TestCluster) -> Result<(), Failure> {
    claim(cluster, "data", json!({ "spec": { "storageClassName": null } })).await?;
    claim(cluster, "none", json!({ "spec": { "storageClassName": "" } })).await?;
    let message = until_event(cluster, "data", "FailedBinding").await?;
    let want = "no persistent volumes available for this claim and no storage class is set";
    expect_eq("the event", &message.as_str(), &want)?;
    let class = json!({
        "metadata": {
            "name": own_class(cluster), "annotations": { "storageclass.kubernetes.io/is-default-class": "true" },
        },
        "provisioner": "example.com/disk",
    });
    classes(cluster).create(&PostParams::default(), &serde_json::from_value(class)?).await?;
    let class_of = async |name: &str| -> Result<Option<String>, Failure> {
        let claim = cluster.api::<PersistentVolumeClaim>().get(name).await?;
        Ok(claim.spec.and_then(|spec| spec.storage_class_name))
    };
    cluster.until_eq("its class", async || class_of("data").await, Some(own_class(cluster))).await?;
    until_event(cluster, "data", "ExternalProvisioning").await?;
    expect_eq("one that asks for none has none", &class_of("none").await?, &Some(String::new()))?;
    end_claim(cluster, "data").await?;
    end_claim(cluster, "none").await?;
    classes(cluster).delete(&own_class(cluster), &DeleteParams::default()).await?;
    Ok(())
}

/// The class names an in-tree plug-in; the claim names the CSI driver.
pub(crate) async fn a_claim_of_a_migrated_class_is_handed_to_its_driver(cluster: &TestCluster) -> Result<(), Failure> {
    let class = json!({ "metadata": { "name": own_class(cluster) }, "provisioner": "kubernetes.io/cinder" });
    classes(cluster).create(&PostParams::default(), &serde_json::from_value(class)?).await?;
    claim(cluster, "data", json!({})).await?;
    let message = until_event(cluster, "data", "ExternalProvisioning").await?;
    expect(message.contains("'cinder.csi.openstack.org'"), "the event names the driver", &message)?;
    // Provisioned before the migration.
    let old = json!({
        "metadata": {
            "annotations": { "pv.kubernetes.io/provisioned-by": "kubernetes.io/cinder" },
            "finalizers": ["kubernetes.io/pv-controller"],
        },
        "spec": { "hostPath": null, "cinder": { "volumeID": "x" }, "storageClassName": "" },
    });
    let name = volume(cluster, "old", "1Gi", old).await?;
    let look = async || {
        let meta = volumes(cluster).get(&name).await?.metadata;
        let to = meta.annotations.unwrap_or_default().remove("pv.kubernetes.io/migrated-to");
        let is_held = meta.finalizers.unwrap_or_default().contains(&"kubernetes.io/pv-controller".to_owned());
        Ok((to, is_held))
    };
    cluster.until_eq("the volume names its driver", look, (Some("cinder.csi.openstack.org".to_owned()), false)).await?;
    end_claim(cluster, "data").await?;
    end_volume(cluster, &name).await?;
    classes(cluster).delete(&own_class(cluster), &DeleteParams::default()).await?;
    Ok(())
}

/// The volume says why, once, and keeps its content.
pub(crate) async fn a_volume_that_nobody_can_delete_or_recycle_fails(cluster: &TestCluster) -> Result<(), Failure> {
    for (disk, policy, source, reason, want) in [
        (
            "nfs",
            "Delete",
            json!({ "hostPath": null, "nfs": { "server": "example.com", "path": "/" } }),
            "VolumeFailedDelete",
            "no deletable volume plugin matched",
        ),
        (
            "csi",
            "Recycle",
            json!({ "hostPath": null, "csi": { "driver": "example.com", "volumeHandle": "x" } }),
            "VolumeFailedRecycle",
            "No recycler plugin found for the volume!",
        ),
        (
            "path",
            "Delete",
            json!({}),
            "VolumeFailedDelete",
            "host_path deleter only supports /tmp/.+ but received provided /simulated/",
        ),
    ] {
        let policy = json!({ "persistentVolumeReclaimPolicy": policy });
        let name = volume(cluster, disk, "1Gi", json!({ "spec": merged(policy, source) })).await?;
        claim(cluster, "data", json!({})).await?;
        expect_eq("its volume", &bound_volume(cluster, "data").await?, &name)?;
        end_claim(cluster, "data").await?;
        let failed = until_volume(cluster, &name, "Failed").await?;
        let said = failed.status.and_then(|status| status.message).unwrap_or_default();
        expect(said.contains(want), "the status says why", &said)?;
        let message = until_event(cluster, &name, reason).await?;
        expect(message.contains(want), "and so does the event", &message)?;
        end_volume(cluster, &name).await?;
    }
    Ok(())
}

/// The volume is no other claim's before the pod has succeeded.
pub(crate) async fn a_volume_is_recycled_by_a_pod_and_free_again(cluster: &TestCluster) -> Result<(), Failure> {
    let nfs = json!({
        "hostPath": null, "nfs": { "server": "example.com", "path": "/" }, "persistentVolumeReclaimPolicy": "Recycle",
    });
    let name = volume(cluster, "disk", "1Gi", json!({ "spec": nfs })).await?;
    let recycler = format!("recycler-for-{name}");
    claim(cluster, "data", json!({})).await?;
    expect_eq("its volume", &bound_volume(cluster, "data").await?, &name)?;
    end_claim(cluster, "data").await?;
    let everywhere: Api<Pod> = Api::all(cluster.client());
    let of_name = ListParams::default().fields(&format!("metadata.name={recycler}"));
    let look = async || Ok(everywhere.list(&of_name).await?.items.pop());
    let pod = cluster.until_right("there is a recycler", look, Option::is_some).await?.unwrap_or_default();
    // On the rig, the controllers see the test's namespace only.
    let pods: Api<Pod> = Api::namespaced(cluster.client(), pod.metadata.namespace.as_deref().unwrap_or_default());
    let spec = pod.spec.unwrap_or_default();
    expect_eq("its deadline", &spec.active_deadline_seconds, &Some(300))?;
    let phase = volumes(cluster).get(&name).await?.status.and_then(|status| status.phase);
    expect_eq("meanwhile", &phase.as_deref(), &Some("Released"))?;
    let done = json!({ "status": { "phase": "Succeeded" } });
    pods.patch_status(&recycler, &PatchParams::default(), &Patch::Merge(done)).await?;
    let free = until_volume(cluster, &name, "Available").await?;
    expect(free.spec.is_some_and(|spec| spec.claim_ref.is_none()), "it is no claim's", &())?;
    let is_gone =
        async || Ok(pods.get_opt(&recycler).await?.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some()));
    cluster.until_eq("the recycler is gone", is_gone, true).await?;
    until_event(cluster, &name, "VolumeRecycled").await?;
    let _ = pods.delete(&recycler, &DeleteParams::default().grace_period(0)).await;
    end_volume(cluster, &name).await
}
