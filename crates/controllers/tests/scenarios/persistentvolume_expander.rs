//! Claims that grow.

use k8s_openapi::api::core::v1::{Event, PersistentVolume, PersistentVolumeClaim};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;
use steersman_testing::{Builder, Failure, TestCluster, expect_eq};

use crate::scenarios::persistentvolume_binder::{self as binder, bound_volume, claim, volume};
use crate::scenarios::support::controllers;
pub(crate) use crate::scenarios::volumes::with_volumes;
use crate::scenarios::volumes::{claim_spec, class, classes, until_bound, until_volume_gone};

scenarios! {
    a_claim_grows_and_says_who_it_waits_for on with_volumes,
    a_migrated_volume_names_its_driver on cluster,
}

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(&[controllers::VOLUME_BINDER, controllers::VOLUME_EXPANDER])
}

pub(crate) async fn grow(cluster: &TestCluster, name: &str, size: &str) -> Result<(), Failure> {
    let patch = json!({ "spec": { "resources": { "requests": { "storage": size } } } });
    cluster.api::<PersistentVolumeClaim>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

async fn until_reported(cluster: &TestCluster, want: &str) -> Result<(), Failure> {
    let notes = async || {
        let events = cluster.api::<Event>().list(&ListParams::default()).await?.items.into_iter();
        let of_reason = events.filter(|event| event.reason.as_deref() == Some("ExternalExpanding"));
        Ok(of_reason.filter_map(|event| event.message).next())
    };
    cluster.until_eq("the claim says who it waits for", notes, Some(want.to_owned())).await
}

/// The expander says who is waited for, the resizer of simulated nodes makes the volume and the claim larger.
pub(crate) async fn a_claim_grows_and_says_who_it_waits_for(cluster: &TestCluster) -> Result<(), Failure> {
    let class = class(cluster, "Immediate").await?;
    let claim = json!({ "metadata": { "name": "data" }, "spec": claim_spec(&class) });
    cluster.create(serde_json::from_value::<PersistentVolumeClaim>(claim)?).await?;
    let volume = until_bound(cluster, "data").await?;
    grow(cluster, "data", "3Gi").await?;
    let capacity = async || {
        let status = cluster.api::<PersistentVolumeClaim>().get("data").await?.status;
        Ok(status.and_then(|status| status.capacity).and_then(|all| all.get("storage").map(|size| size.0.clone())))
    };
    cluster.until_eq("the claim has grown", capacity, Some("3Gi".to_owned())).await?;
    until_reported(cluster, "waiting for an external controller to expand this PVC").await?;
    let grown = Api::<PersistentVolume>::all(cluster.client()).get(&volume).await?;
    let size = grown.spec.and_then(|spec| spec.capacity).unwrap_or_default();
    expect_eq("the size of the volume", &size.get("storage").map(|size| size.0.as_str()), &Some("3Gi"))?;
    cluster.delete::<PersistentVolumeClaim>("data").await?;
    until_volume_gone(cluster, &volume).await?;
    classes(cluster).delete(&class, &DeleteParams::default()).await?;
    Ok(())
}

/// The volume is one of an in-tree plug-in: its resizer is the driver that has taken it over.
pub(crate) async fn a_migrated_volume_names_its_driver(cluster: &TestCluster) -> Result<(), Failure> {
    // Only claims of a class that allows it may grow.
    let class = format!("{}-gce", cluster.namespace());
    let body = json!({
        "metadata": { "name": class }, "provisioner": "kubernetes.io/gce-pd", "allowVolumeExpansion": true,
    });
    classes(cluster).create(&Default::default(), &serde_json::from_value(body)?).await?;
    let disk = json!({ "hostPath": null, "gcePersistentDisk": { "pdName": "disk" }, "storageClassName": class });
    let name = volume(cluster, "disk", "1Gi", json!({ "spec": disk })).await?;
    claim(cluster, "data", json!({ "spec": { "storageClassName": class, "volumeName": name } })).await?;
    bound_volume(cluster, "data").await?;
    grow(cluster, "data", "2Gi").await?;
    let resizer = async || {
        let claim = cluster.api::<PersistentVolumeClaim>().get("data").await?;
        let annotations = claim.metadata.annotations.unwrap_or_default();
        Ok(annotations.get("volume.kubernetes.io/storage-resizer").cloned())
    };
    cluster.until_eq("its resizer", resizer, Some("pd.csi.storage.gke.io".to_owned())).await?;
    let want = "CSI migration enabled for kubernetes.io/gce-pd; waiting for external resizer to expand the pvc";
    until_reported(cluster, want).await?;
    binder::end_claim(cluster, "data").await?;
    binder::end_volume(cluster, &name).await?;
    classes(cluster).delete(&class, &DeleteParams::default()).await?;
    Ok(())
}
