//! Pods that use one volume with different SELinux labels.

use k8s_openapi::api::core::v1::{Event, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::CSIDriver;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use steersman_testing::objects::{self, ObjectBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster};

use crate::scenarios::support::controllers;

scenarios! {
    pods_with_different_labels_get_events_about_each_other on cluster,
    a_claim_that_is_bound_later_is_looked_at on cluster,
}

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(&[controllers::SELINUX_WARNING])
}

/// A pod that mounts the claim `data` with a level.
fn pod(name: &str, level: &str, policy: &str) -> Pod {
    let context = json!({ "seLinuxOptions": { "level": level }, "seLinuxChangePolicy": policy });
    let mount = json!([{ "name": "data", "mountPath": "/data" }]);
    objects::pod(name).with(json!({ "spec": {
        "securityContext": context,
        "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }],
        "containers": [{ "name": "main", "image": objects::IMAGE, "volumeMounts": mount }],
    } }))
}

fn names(cluster: &TestCluster) -> (String, String) {
    let namespace = cluster.namespace();
    (format!("selinux.{namespace}.example.com"), format!("{namespace}-selinux"))
}

/// Creates a driver that mounts with labels, a claim, and the volume that it is bound to.
async fn create(cluster: &TestCluster, is_bound: bool) -> Result<(), Failure> {
    let (driver, volume) = names(cluster);
    let object = json!({ "metadata": { "name": driver }, "spec": { "attachRequired": false, "seLinuxMount": true } });
    Api::<CSIDriver>::all(cluster.client()).create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    let size = json!({ "storage": "1Gi" });
    let claim = json!({ "metadata": { "name": "data" }, "spec": {
        "accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": volume, "resources": { "requests": size },
    } });
    let claim = cluster.create(serde_json::from_value::<PersistentVolumeClaim>(claim)?).await?;
    let claim_ref = json!({
        "kind": "PersistentVolumeClaim", "namespace": cluster.namespace(), "name": "data", "uid": claim.metadata.uid,
    });
    let object = json!({ "metadata": { "name": volume }, "spec": {
        "accessModes": ["ReadWriteMany"], "capacity": size, "claimRef": claim_ref,
        "csi": { "driver": driver, "volumeHandle": "h" },
    } });
    let volumes = Api::<PersistentVolume>::all(cluster.client());
    volumes.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    if is_bound {
        bind(cluster).await?;
    }
    Ok(())
}

async fn bind(cluster: &TestCluster) -> Result<(), Failure> {
    let bound = Patch::Merge(json!({ "status": { "phase": "Bound" } }));
    cluster.api::<PersistentVolumeClaim>().patch_status("data", &PatchParams::default(), &bound).await?;
    Ok(())
}

async fn clean(cluster: &TestCluster, pods: &[&str]) -> Result<(), Failure> {
    for pod in pods {
        cluster.api::<Pod>().delete(pod, &DeleteParams::default().grace_period(0)).await?;
    }
    let (driver, volume) = names(cluster);
    cluster.delete::<PersistentVolumeClaim>("data").await?;
    Api::<PersistentVolume>::all(cluster.client()).delete(&volume, &DeleteParams::default()).await?;
    Api::<CSIDriver>::all(cluster.client()).delete(&driver, &DeleteParams::default()).await?;
    Ok(())
}

/// Waits until a pod has exactly these events of the controller.
async fn until_notes(cluster: &TestCluster, pod: &str, want: &[String]) -> Result<(), Failure> {
    let about = ListParams::default().fields(&format!("involvedObject.name={pod}"));
    let look = async || {
        let events = cluster.api::<Event>().list(&about).await?.items.into_iter();
        let is_ours = |event: &Event| {
            event.source.as_ref().and_then(|source| source.component.as_deref()) == Some("selinux_warning")
        };
        let mut notes: Vec<String> = events.filter(is_ours).filter_map(|event| event.message).collect();
        notes.sort();
        Ok(notes)
    };
    let mut want = want.to_vec();
    want.sort();
    cluster.until_eq("the events about the pod", look, want).await
}

fn note(property: &str, value: &str, other: &str, other_value: &str) -> String {
    format!(
        "{property} \"{value}\" conflicts with pod {other} that uses the same volume as this pod with {property} \
         \"{other_value}\". If both pods land on the same node, only one of them may access the volume."
    )
}

/// Both pods get an event; one with the same label gets none; one with another policy conflicts with both.
pub(crate) async fn pods_with_different_labels_get_events_about_each_other(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    create(cluster, true).await?;
    cluster.create(pod("web", "s0:c1,c2", "MountOption")).await?;
    cluster.create(pod("same", "s0:c1,c2", "MountOption")).await?;
    cluster.settle().await?;
    cluster.create(pod("batch", "s0:c3,c4", "MountOption")).await?;
    let label = |value, other, other_value| note("SELinuxLabel", value, other, other_value);
    let ours = ":::s0:c1,c2";
    let theirs = ":::s0:c3,c4";
    until_notes(cluster, "web", &[label(ours, "batch", theirs)]).await?;
    until_notes(cluster, "same", &[label(ours, "batch", theirs)]).await?;
    until_notes(cluster, "batch", &[label(theirs, "same", ours), label(theirs, "web", ours)]).await?;
    cluster.create(pod("walks", "s0:c1,c2", "Recursive")).await?;
    let policy = note("SELinuxChangePolicy", "MountOption", "walks", "Recursive");
    until_notes(cluster, "web", &[label(ours, "batch", theirs), policy, label(ours, "walks", "")]).await?;
    clean(cluster, &["web", "same", "batch", "walks"]).await
}

/// Without its volume, nothing is known of a pod; two labels in one pod are a warning.
pub(crate) async fn a_claim_that_is_bound_later_is_looked_at(cluster: &TestCluster) -> Result<(), Failure> {
    create(cluster, false).await?;
    cluster.create(pod("web", "s0:c1,c2", "MountOption")).await?;
    cluster.create(pod("batch", "s0:c3,c4", "MountOption")).await?;
    let container = |name: &str, level: &str| -> Value {
        let mount = json!([{ "name": "data", "mountPath": "/data" }]);
        let context = json!({ "seLinuxOptions": { "level": level } });
        json!({ "name": name, "image": objects::IMAGE, "volumeMounts": mount, "securityContext": context })
    };
    let two = objects::pod("two").with(json!({ "spec": {
        "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }],
        "containers": [container("a", "s0:c1"), container("b", "s0:c2")],
    } }));
    cluster.create(two).await?;
    cluster.settle().await?;
    until_notes(cluster, "web", &[]).await?;
    bind(cluster).await?;
    until_notes(cluster, "web", &[note("SELinuxLabel", ":::s0:c1,c2", "batch", ":::s0:c3,c4")]).await?;
    let warning = "Volume \"data\" is mounted twice with different SELinux labels inside this pod";
    until_notes(cluster, "two", &[warning.to_owned()]).await?;
    clean(cluster, &["web", "batch", "two"]).await
}
