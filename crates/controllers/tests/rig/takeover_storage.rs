//! Claims and volumes in every state, and volumes that are attached, for the take-over.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::{CSIDriver, VolumeAttachment};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use steersman_testing::nodes::{AttacherOptions, DevicesOptions, NodesOptions, ProvisionerOptions};
use steersman_testing::objects::{self, ObjectBuilder as _, PodBuilder as _};
use steersman_testing::{Failure, TestCluster};

use crate::scenarios::attach_detach::{Disk, pod_on, until_ready};
use crate::scenarios::persistentvolume_binder::{bound_volume, claim, until_claim, until_volume, volume};
use crate::scenarios::persistentvolume_expander::grow;
use crate::scenarios::volumes::{claim_spec, class};

/// Nodes with a provisioner, a resizer, an attacher and a driver of devices, as drivers and sidecars are in a cluster.
pub(crate) fn nodes() -> NodesOptions {
    NodesOptions::count(2)
        .provisioner(Some(ProvisionerOptions::default().default_class(false)))
        .attacher(Some(AttacherOptions::default()))
        .devices(Some(DevicesOptions::default()))
}

/// Creates claims that are bound dynamically and by hand, that wait, and that have grown; volumes that are free, reserved and
/// released; and pods whose volumes are attached, or wait for that.
pub(crate) async fn create(cluster: &TestCluster) -> Result<(), Failure> {
    let at_once = class(cluster, "Immediate").await?;
    let for_pods = class(cluster, "WaitForFirstConsumer").await?;
    for (name, class) in [("dynamic", &at_once), ("first", &for_pods), ("alone", &for_pods)] {
        claim(cluster, name, json!({ "spec": claim_spec(class) })).await?;
    }
    until_claim(cluster, "dynamic", "Bound").await?;
    grow(cluster, "dynamic", "3Gi").await?;
    until_capacity(cluster, "dynamic", "3Gi").await?;
    consume(cluster, "consumer", "first").await?;
    let of_its_own = json!({ "volumeClaimTemplate": { "spec": claim_spec(&at_once) } });
    let scratch = json!({ "spec": { "volumes": [{ "name": "scratch", "ephemeral": of_its_own }] } });
    cluster.create(objects::pod("ephemeral").with(scratch)).await?;
    until_ready(cluster, "ephemeral").await?;
    by_hand(cluster).await?;
    attached(cluster).await
}

/// What happens while we are in charge: another claim is bound in each way, one grows, and the volume moves to another node.
pub(crate) async fn change(cluster: &TestCluster) -> Result<(), Failure> {
    let for_pods = format!("{}-waitforfirstconsumer", cluster.namespace());
    claim(cluster, "second", json!({ "spec": claim_spec(&for_pods) })).await?;
    consume(cluster, "consumer-of-ours", "second").await?;
    grow(cluster, "dynamic", "4Gi").await?;
    until_capacity(cluster, "dynamic", "4Gi").await?;
    claim(cluster, "static-of-ours", json!({})).await?;
    bound_volume(cluster, "static-of-ours").await?;
    for pod in ["attached", "shares"] {
        cluster.delete::<Pod>(pod).await?;
        cluster.until_gone::<Pod>(pod).await?;
    }
    until_ready(cluster, "waits").await?;
    let places = async || {
        let all = Api::<VolumeAttachment>::all(cluster.client()).list(&ListParams::default()).await?;
        Ok(all.items.into_iter().map(|attachment| attachment.spec.node_name).collect::<Vec<_>>())
    };
    cluster.until_eq("it is attached to the other node", places, vec![node(cluster, 1)]).await
}

/// A volume each that is bound, free, reserved for a claim that is not there, and released.
async fn by_hand(cluster: &TestCluster) -> Result<(), Failure> {
    for (name, size) in [("small", "512Mi"), ("static", "1Gi")] {
        volume(cluster, name, size, json!({})).await?;
    }
    let reserved = json!({ "spec": { "claimRef": { "namespace": cluster.namespace(), "name": "nobody" } } });
    let reserved = volume(cluster, "reserved", "1Gi", reserved).await?;
    claim(cluster, "static", json!({})).await?;
    bound_volume(cluster, "static").await?;
    let kept = volume(cluster, "kept", "1Gi", json!({})).await?;
    claim(cluster, "ended", json!({ "spec": { "volumeName": kept } })).await?;
    bound_volume(cluster, "ended").await?;
    cluster.delete::<PersistentVolumeClaim>("ended").await?;
    cluster.until_gone::<PersistentVolumeClaim>("ended").await?;
    until_volume(cluster, &kept, "Released").await?;
    let free = volume(cluster, "free", "1Gi", json!({})).await?;
    for name in [&reserved, &free] {
        until_volume(cluster, name, "Available").await?;
    }
    Ok(())
}

/// Two pods with different SELinux labels share a volume on one node, a third waits for it on the other; and the volume of a
/// fourth is attached without a driver.
async fn attached(cluster: &TestCluster) -> Result<(), Failure> {
    let disk = Disk::new(cluster, "ReadWriteOnce", true).await?;
    let mounts = Patch::Merge(json!({ "spec": { "seLinuxMount": true } }));
    Api::<CSIDriver>::all(cluster.client()).patch(disk.driver(), &PatchParams::default(), &mounts).await?;
    let here = node(cluster, 0);
    for (name, level) in [("attached", "s0:c1,c2"), ("shares", "s0:c3,c4")] {
        let context = json!({ "spec": { "securityContext": { "seLinuxOptions": { "level": level } } } });
        cluster.create(pod_on(&here, name).with(context)).await?;
        until_ready(cluster, name).await?;
    }
    disk.until_attached_to(&[&here]).await?;
    cluster.create(pod_on(&node(cluster, 1), "waits")).await?;
    let target = json!({ "targetPortal": "10.0.0.1:3260", "iqn": "iqn.2001-04.com.example:a", "lun": 1 });
    let iscsi = json!({ "spec": { "volumes": [{ "name": "disk", "iscsi": target }] } });
    cluster.create(objects::pod("iscsi").on_node(&here).with(iscsi)).await?;
    until_ready(cluster, "iscsi").await
}

/// The name of a simulated node.
fn node(cluster: &TestCluster, number: usize) -> String {
    format!("{}-{number}", cluster.namespace())
}

/// Creates a pod that uses a claim, and waits until it runs.
async fn consume(cluster: &TestCluster, pod: &str, claim: &str) -> Result<(), Failure> {
    cluster.create(objects::pod(pod).with(with_claim(claim))).await?;
    until_ready(cluster, pod).await?;
    until_claim(cluster, claim, "Bound").await
}

fn with_claim(claim: &str) -> Value {
    json!({ "spec": { "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": claim } }] } })
}

async fn until_capacity(cluster: &TestCluster, claim: &str, size: &str) -> Result<(), Failure> {
    let capacity = async || {
        let status = cluster.api::<PersistentVolumeClaim>().get(claim).await?.status.unwrap_or_default();
        Ok(status.capacity.unwrap_or_default().remove("storage").map(|size| size.0))
    };
    cluster.until_eq("the claim has grown", capacity, Some(size.to_owned())).await
}
