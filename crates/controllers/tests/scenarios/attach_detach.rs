//! Volumes of CSI drivers are attached to the nodes of their pods, and detached from all others.

use k8s_openapi::api::core::v1::{Event, Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::{CSIDriver, VolumeAttachment};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use steersman_testing::nodes::{AttacherOptions, NodesOptions};
use steersman_testing::objects::{self, ObjectBuilder as _, PodBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use crate::scenarios::support::beside::Beside;
use crate::scenarios::support::controllers::{self, Controller};

scenarios! {
    a_volume_is_attached_for_its_pod_and_detached_after_it on with_attacher,
    a_volume_of_one_writer_waits_for_its_first_node on with_attacher,
    a_node_out_of_service_loses_its_volumes on with_attacher,
    a_driver_that_needs_no_attachment_gets_none on with_attacher,
    a_request_goes_on_after_a_restart on without_controllers,
    a_driver_that_fails_is_reported_and_asked_again on without_attacher,
    volumes_without_a_driver_are_recorded on without_attacher,
}

pub(crate) const CONTROLLERS: &[Controller] = &[controllers::ATTACH_DETACH];

pub(crate) fn with_attacher() -> Builder {
    let attacher = Some(AttacherOptions::default());
    TestCluster::builder().controllers(CONTROLLERS).nodes_with(NodesOptions::count(2).attacher(attacher))
}

pub(crate) fn without_attacher() -> Builder {
    TestCluster::builder().controllers(CONTROLLERS).nodes(2)
}

pub(crate) fn without_controllers() -> Builder {
    TestCluster::builder().nodes(1)
}

/// A volume of a driver of the test's own, bound to its claim `data`.
pub(crate) struct Disk<'a> {
    cluster: &'a TestCluster,
    driver: String,
    volume: String,
}

impl<'a> Disk<'a> {
    pub(crate) async fn new(cluster: &'a TestCluster, mode: &str, is_attached: bool) -> Result<Self, Failure> {
        let namespace = cluster.namespace();
        let disk =
            Self { cluster, driver: format!("disk.{namespace}.example.com"), volume: format!("{namespace}-data") };
        let driver = json!({ "metadata": { "name": disk.driver }, "spec": { "attachRequired": is_attached } });
        disk.drivers().create(&PostParams::default(), &serde_json::from_value(driver)?).await?;
        disk.create_volume(mode, &json!({ "csi": { "driver": disk.driver, "volumeHandle": "h" } })).await?;
        Ok(disk)
    }

    async fn create_volume(&self, mode: &str, source: &Value) -> Result<(), Failure> {
        let size = json!({ "storage": "1Gi" });
        let spec = json!({
            "accessModes": [mode], "storageClassName": "", "volumeName": self.volume, "resources": { "requests": size },
        });
        let claim = json!({ "metadata": { "name": "data" }, "spec": spec });
        let claim = self.cluster.create(serde_json::from_value::<PersistentVolumeClaim>(claim)?).await?;
        let claim_ref = json!({
            "kind": "PersistentVolumeClaim", "namespace": self.cluster.namespace(), "name": "data", "uid": claim.metadata.uid,
        });
        let mut spec = json!({ "accessModes": [mode], "capacity": size, "claimRef": claim_ref });
        if let (Some(spec), Some(source)) = (spec.as_object_mut(), source.as_object()) {
            spec.extend(source.clone());
        }
        let volume = json!({ "metadata": { "name": self.volume }, "spec": spec });
        let volumes = Api::<PersistentVolume>::all(self.cluster.client());
        volumes.create(&PostParams::default(), &serde_json::from_value(volume)?).await?;
        let bound = Patch::Merge(json!({ "status": { "phase": "Bound" } }));
        let claims = self.cluster.api::<PersistentVolumeClaim>();
        claims.patch_status("data", &PatchParams::default(), &bound).await?;
        Ok(())
    }

    fn drivers(&self) -> Api<CSIDriver> {
        Api::all(self.cluster.client())
    }

    pub(crate) fn driver(&self) -> &str {
        &self.driver
    }

    pub(crate) fn unique_name(&self) -> String {
        format!("kubernetes.io/csi/{}^h", self.driver())
    }

    /// The attachments of the volume.
    pub(crate) async fn attachments(&self) -> Result<Vec<VolumeAttachment>, Failure> {
        let all = Api::<VolumeAttachment>::all(self.cluster.client()).list(&ListParams::default()).await?;
        Ok(all.items.into_iter().filter(|it| it.spec.attacher == self.driver).collect())
    }

    /// Waits until the volume is attached to exactly these nodes.
    pub(crate) async fn until_attached_to(&self, nodes: &[&str]) -> Result<(), Failure> {
        let look = async || {
            let attachments = self.attachments().await?.into_iter();
            let mut attached: Vec<_> =
                attachments.map(|it| (it.spec.node_name, it.status.is_some_and(|it| it.attached))).collect();
            attached.sort();
            Ok(attached)
        };
        let want: Vec<_> = nodes.iter().map(|node| ((*node).to_owned(), true)).collect();
        self.cluster.until_eq("the volume is attached there", look, want).await?;
        for node in self.cluster.nodes().names() {
            let want = if nodes.contains(&node.as_str()) { vec![self.unique_name()] } else { Vec::new() };
            let look = async || Ok(lists(self.cluster, &node).await?.map_or_else(Vec::new, |(attached, _)| attached));
            self.cluster.until_eq(&format!("{node} lists it, or not"), look, want).await?;
        }
        Ok(())
    }

    /// Sets the status of the only attachment, as an external attacher does.
    async fn answer(&self, status: Value) -> Result<(), Failure> {
        let attachment = self.attachments().await?.pop().ok_or_else(|| Failure::new("there is no attachment"))?;
        let name = attachment.metadata.name.unwrap_or_default();
        let patch = Patch::Merge(json!({ "status": status }));
        Api::<VolumeAttachment>::all(self.cluster.client())
            .patch_status(&name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    pub(crate) async fn clean(self) -> Result<(), Failure> {
        let none = async || Ok(self.attachments().await?.len());
        self.cluster.until_eq("no attachment is left", none, 0).await?;
        self.cluster.delete::<PersistentVolumeClaim>("data").await?;
        Api::<PersistentVolume>::all(self.cluster.client()).delete(&self.volume, &DeleteParams::default()).await?;
        self.drivers().delete(&self.driver, &DeleteParams::default()).await?;
        Ok(())
    }
}

/// A pod with the claim, on a node.
pub(crate) fn pod_on(node: &str, name: &str) -> Pod {
    let volume = json!({ "name": "data", "persistentVolumeClaim": { "claimName": "data" } });
    objects::pod(name).on_node(node).with(json!({ "spec": { "volumes": [volume] } }))
}

/// The volumes that a node lists as attached, and as in use; `None` if there is no such node.
async fn lists(cluster: &TestCluster, node: &str) -> Result<Option<(Vec<String>, Vec<String>)>, Failure> {
    let node = Api::<Node>::all(cluster.client()).get_opt(node).await?;
    Ok(node.map(|node| {
        let status = node.status.unwrap_or_default();
        let attached = status.volumes_attached.unwrap_or_default().into_iter().map(|volume| volume.name).collect();
        (attached, status.volumes_in_use.unwrap_or_default())
    }))
}

pub(crate) async fn until_ready(cluster: &TestCluster, pod: &str) -> Result<(), Failure> {
    let look = async || {
        let status = cluster.api::<Pod>().get(pod).await?.status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        Ok(conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"))
    };
    cluster.until_eq("the pod is ready", look, true).await
}

/// Waits until the pod has exactly these events of the controller, each counted once.
pub(crate) async fn until_notes(cluster: &TestCluster, pod: &str, want: &[(&str, String)]) -> Result<(), Failure> {
    let about = ListParams::default().fields(&format!("involvedObject.name={pod}"));
    let look = async || {
        let events = cluster.api::<Event>().list(&about).await?.items.into_iter();
        let is_ours = |event: &Event| {
            let source = event.source.as_ref().and_then(|source| source.component.as_deref());
            source == Some("attachdetach-controller")
        };
        let note = |event: Event| (event.reason.unwrap_or_default(), event.message.unwrap_or_default());
        let mut notes: Vec<_> = events.filter(is_ours).map(note).collect();
        notes.sort();
        Ok(notes)
    };
    let mut want: Vec<_> = want.iter().map(|(reason, note)| ((*reason).to_owned(), note.clone())).collect();
    want.sort();
    cluster.until_eq("the events about the pod", look, want).await
}

fn succeeded(disk: &Disk<'_>) -> (&'static str, String) {
    ("SuccessfulAttachVolume", format!("AttachVolume.Attach succeeded for volume \"{}\" ", disk.volume))
}

async fn delete_pod(cluster: &TestCluster, name: &str) -> Result<(), Failure> {
    cluster.delete::<Pod>(name).await?;
    cluster.until_gone::<Pod>(name).await
}

fn nodes_of(cluster: &TestCluster) -> Vec<String> {
    cluster.nodes().names().iter().map(ToString::to_string).collect()
}

/// The pod waits for its volume; a second one on the node shares it; it goes when both are gone.
pub(crate) async fn a_volume_is_attached_for_its_pod_and_detached_after_it(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let node = &nodes_of(cluster)[0];
    let disk = Disk::new(cluster, "ReadWriteOnce", true).await?;
    cluster.create(pod_on(node, "web")).await?;
    until_ready(cluster, "web").await?;
    disk.until_attached_to(&[node]).await?;
    until_notes(cluster, "web", &[succeeded(&disk)]).await?;
    let attachment = disk.attachments().await?.remove(0);
    let name = attachment.metadata.name.unwrap_or_default();
    expect(name.len() == "csi-".len() + 64 && name.starts_with("csi-"), "its name is upstream's", &name)?;
    expect_eq("the volume", &attachment.spec.source.persistent_volume_name, &Some(disk.volume.clone()))?;
    let used = lists(cluster, node).await?.map(|(_, used)| used);
    expect_eq("the node uses it", &used, &Some(vec![disk.unique_name()]))?;

    cluster.create(pod_on(node, "more")).await?;
    until_ready(cluster, "more").await?;
    delete_pod(cluster, "web").await?;
    cluster.settle().await?;
    disk.until_attached_to(&[node]).await?;
    until_notes(cluster, "more", &[]).await?;

    delete_pod(cluster, "more").await?;
    disk.until_attached_to(&[]).await?;
    disk.clean().await
}

/// Two pods on two nodes: the second one gets the volume when the first is gone, and gets an event that says why it waits.
pub(crate) async fn a_volume_of_one_writer_waits_for_its_first_node(cluster: &TestCluster) -> Result<(), Failure> {
    let nodes = nodes_of(cluster);
    let disk = Disk::new(cluster, "ReadWriteOnce", true).await?;
    cluster.create(pod_on(&nodes[0], "first")).await?;
    until_ready(cluster, "first").await?;
    cluster.create(pod_on(&nodes[1], "second")).await?;
    let waits = format!("Waiting for detach for volume \"{}\" Volume is already used by pod(s) first", disk.volume);
    let waits = ("FailedAttachVolume", waits);
    until_notes(cluster, "second", std::slice::from_ref(&waits)).await?;
    cluster.settle().await?;
    disk.until_attached_to(&[&nodes[0]]).await?;
    delete_pod(cluster, "first").await?;
    disk.until_attached_to(&[&nodes[1]]).await?;
    until_ready(cluster, "second").await?;
    until_notes(cluster, "second", &[waits, succeeded(&disk)]).await?;
    delete_pod(cluster, "second").await?;
    disk.clean().await
}

/// A silent node with a pod that was deleted by force keeps its volume, until it is declared to be out of service.
pub(crate) async fn a_node_out_of_service_loses_its_volumes(cluster: &TestCluster) -> Result<(), Failure> {
    let nodes = nodes_of(cluster);
    let disk = Disk::new(cluster, "ReadWriteOnce", true).await?;
    cluster.create(pod_on(&nodes[0], "web")).await?;
    until_ready(cluster, "web").await?;
    cluster.nodes().stop_heartbeats(&nodes[0])?;
    cluster.api::<Pod>().delete("web", &DeleteParams::default().grace_period(0)).await?;
    cluster.until_gone::<Pod>("web").await?;
    cluster.create(pod_on(&nodes[1], "next")).await?;
    let waits = "Volume is already exclusively attached to one node, waiting on detach before it can be attached to another node";
    let waits = ("FailedAttachVolume", format!("Waiting for detach for volume \"{}\" {waits}", disk.volume));
    until_notes(cluster, "next", std::slice::from_ref(&waits)).await?;
    let taint = json!([{ "key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute" }]);
    let patch = Patch::Merge(json!({ "spec": { "taints": taint } }));
    Api::<Node>::all(cluster.client()).patch(&nodes[0], &PatchParams::default(), &patch).await?;
    disk.until_attached_to(&[&nodes[1]]).await?;
    until_ready(cluster, "next").await?;
    delete_pod(cluster, "next").await?;
    disk.clean().await
}

/// Nothing is attached, and the pod does not wait; a driver that needs it later gets it for pods that run.
pub(crate) async fn a_driver_that_needs_no_attachment_gets_none(cluster: &TestCluster) -> Result<(), Failure> {
    let node = &nodes_of(cluster)[0];
    let disk = Disk::new(cluster, "ReadWriteOnce", false).await?;
    cluster.create(pod_on(node, "web")).await?;
    until_ready(cluster, "web").await?;
    cluster.settle().await?;
    expect_eq("attachments", &disk.attachments().await?.len(), &0)?;
    expect_eq("what the node lists", &lists(cluster, node).await?, &Some((Vec::new(), Vec::new())))?;
    delete_pod(cluster, "web").await?;
    disk.clean().await
}

/// A manager asks, and dies; the next one waits for the same attachment, and one that nobody needs any more is deleted.
pub(crate) async fn a_request_goes_on_after_a_restart(cluster: &TestCluster) -> Result<(), Failure> {
    let node = &nodes_of(cluster)[0];
    let disk = Disk::new(cluster, "ReadWriteOnce", true).await?;
    let first = Beside::start_within(cluster, cluster.client(), CONTROLLERS)?;
    cluster.create(pod_on(node, "web")).await?;
    let uid = async || Ok(disk.attachments().await?.into_iter().map(|it| it.metadata.uid).collect::<Vec<_>>());
    let asked = cluster.until_right("it is asked for", uid, |found| found.len() == 1).await?;
    first.kill().await;
    disk.answer(json!({ "attached": true })).await?;
    let second = Beside::start_within(cluster, cluster.client(), CONTROLLERS)?;
    disk.until_attached_to(&[node]).await?;
    expect_eq("it is the same", &uid().await?, &asked)?;
    until_notes(cluster, "web", &[succeeded(&disk)]).await?;
    second.kill().await;
    delete_pod(cluster, "web").await?;
    let third = Beside::start_within(cluster, cluster.client(), CONTROLLERS)?;
    disk.until_attached_to(&[]).await?;
    third.stop().await?;
    disk.clean().await
}

/// The driver's message is an event; when it succeeds, the volume is attached.
pub(crate) async fn a_driver_that_fails_is_reported_and_asked_again(cluster: &TestCluster) -> Result<(), Failure> {
    let node = &nodes_of(cluster)[0];
    let disk = Disk::new(cluster, "ReadWriteOnce", true).await?;
    cluster.create(pod_on(node, "web")).await?;
    let count = async || Ok(disk.attachments().await?.len());
    cluster.until_eq("it is asked for", count, 1).await?;
    disk.answer(json!({ "attached": false, "attachError": { "message": "no slot is free" } })).await?;
    let failed = format!("AttachVolume.Attach failed for volume \"{}\" : no slot is free", disk.volume);
    let failed = ("FailedAttachVolume", failed);
    until_notes(cluster, "web", std::slice::from_ref(&failed)).await?;
    disk.answer(json!({ "attached": true, "attachError": null })).await?;
    disk.until_attached_to(&[node]).await?;
    until_notes(cluster, "web", &[failed, succeeded(&disk)]).await?;
    delete_pod(cluster, "web").await?;
    disk.clean().await
}

/// Nodes attach iSCSI volumes themselves; the list says that they may.
pub(crate) async fn volumes_without_a_driver_are_recorded(cluster: &TestCluster) -> Result<(), Failure> {
    let node = &nodes_of(cluster)[0];
    let iscsi = json!({ "targetPortal": "10.0.0.1:3260", "iqn": "iqn.2001-04.com.example:a", "lun": 1 });
    let volume = json!({ "name": "disk", "iscsi": iscsi });
    let pod = objects::pod("web").on_node(node).with(json!({ "spec": { "volumes": [volume] } }));
    cluster.create(pod).await?;
    let attached = async || Ok(lists(cluster, node).await?.map_or_else(Vec::new, |(attached, _)| attached));
    let want = vec!["kubernetes.io/iscsi/10.0.0.1:3260:iqn.2001-04.com.example:a:1".to_owned()];
    cluster.until_eq("the node lists it", attached, want).await?;
    let note = "AttachVolume.Attach succeeded for volume \"disk\" ".to_owned();
    until_notes(cluster, "web", &[("SuccessfulAttachVolume", note)]).await?;
    delete_pod(cluster, "web").await?;
    cluster.until_eq("the node does not list it", attached, Vec::<String>::new()).await
}
