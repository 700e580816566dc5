//! Attachments under the clock and under faults: forced detaches, crashes, and a server that does not answer.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use steersman_testing::nodes::{AttacherOptions, NodesOptions};
use steersman_testing::{Builder, Failure, TestCluster, Verb};

use crate::quiet;
use crate::scenarios::attach_detach::{CONTROLLERS, Disk, pod_on, with_attacher};
use crate::scenarios::support::controllers;
use crate::scenarios::support::crash::{Scene, crash_after_each_write};

/// A node that vanishes with a pod that uses a volume: after six minutes the volume is detached.
#[tokio::test(start_paused = true)]
async fn a_silent_node_loses_its_volume_after_six_minutes() -> Result<(), Failure> {
    let controllers = [CONTROLLERS, &[controllers::NODE_LIFECYCLE]].concat();
    let attacher = Some(AttacherOptions::default());
    let nodes = NodesOptions::count(2).attacher(attacher);
    let cluster = TestCluster::builder().controllers(&controllers).nodes_with(nodes).start().await?;
    let disk = Disk::new(&cluster, "ReadWriteOnce", true).await?;
    cluster.create(pod_on("node-0", "web")).await?;
    disk.until_attached_to(&["node-0"]).await?;
    cluster.settle().await?;
    cluster.nodes().stop_heartbeats("node-0")?;
    // The node lifecycle controller finds it silent.
    cluster.advance(Duration::from_secs(120)).await;
    cluster.api::<Pod>().delete("web", &DeleteParams::default().grace_period(0)).await?;
    cluster.create(pod_on("node-1", "next")).await?;
    cluster.advance(Duration::from_secs(350)).await;
    disk.until_attached_to(&["node-0"]).await?;
    cluster.advance(Duration::from_secs(30)).await;
    disk.until_attached_to(&["node-1"]).await?;
    cluster.delete::<Pod>("next").await?;
    disk.until_attached_to(&[]).await?;
    quiet(cluster).await
}

/// The node and its object are gone: it counts as not ready, and uses what it used.
#[tokio::test(start_paused = true)]
async fn a_deleted_node_loses_its_volume_after_six_minutes() -> Result<(), Failure> {
    let cluster = with_attacher().start().await?;
    let disk = Disk::new(&cluster, "ReadWriteOnce", true).await?;
    cluster.create(pod_on("node-0", "web")).await?;
    disk.until_attached_to(&["node-0"]).await?;
    cluster.settle().await?;
    cluster.nodes().remove("node-0")?;
    let exists = async || Ok(Api::<Node>::all(cluster.client()).get_opt("node-0").await?.is_some());
    cluster.until_eq("the node is gone", exists, false).await?;
    // Its pod is there, and needs the volume, whatever became of the node.
    cluster.advance(Duration::from_secs(600)).await;
    assert_eq!(disk.attachments().await?.len(), 1);
    cluster.api::<Pod>().delete("web", &DeleteParams::default().grace_period(0)).await?;
    cluster.advance(Duration::from_secs(350)).await;
    assert_eq!(disk.attachments().await?.len(), 1);
    cluster.advance(Duration::from_secs(30)).await;
    assert_eq!(disk.attachments().await?.len(), 0);
    quiet(cluster).await
}

/// A reply that is lost, and a refusal: the attachment is found, and nothing is asked for twice.
#[tokio::test(start_paused = true)]
async fn a_lost_reply_and_a_refusal_do_not_hurt() -> Result<(), Failure> {
    let cluster = with_attacher().start().await?;
    let disk = Disk::new(&cluster, "ReadWriteOnce", true).await?;
    cluster.settle().await?;
    cluster.faults().on(Verb::Create, "volumeattachments").nth(1).lose_reply();
    cluster.faults().on(Verb::Patch, "nodes").nth(2).refuse(http::StatusCode::INTERNAL_SERVER_ERROR);
    cluster.create(pod_on("node-0", "web")).await?;
    disk.until_attached_to(&["node-0"]).await?;
    cluster.faults().on(Verb::Delete, "volumeattachments").nth(1).lose_reply();
    cluster.delete::<Pod>("web").await?;
    disk.until_attached_to(&[]).await?;
    quiet(cluster).await
}

/// An attachment that somebody deletes while its pod runs is made again.
#[tokio::test(start_paused = true)]
async fn an_attachment_that_was_deleted_by_hand_is_made_again() -> Result<(), Failure> {
    let cluster = with_attacher().start().await?;
    let disk = Disk::new(&cluster, "ReadWriteOnce", true).await?;
    cluster.create(pod_on("node-0", "web")).await?;
    disk.until_attached_to(&["node-0"]).await?;
    let before = disk.attachments().await?.remove(0).metadata;
    let attachments = Api::<VolumeAttachment>::all(cluster.client());
    attachments.delete(&before.name.unwrap_or_default(), &DeleteParams::default()).await?;
    let uids = async || Ok(disk.attachments().await?.into_iter().map(|it| it.metadata.uid).collect::<Vec<_>>());
    let is_another = |uids: &Vec<Option<String>>| uids.len() == 1 && uids[0] != before.uid;
    cluster.until_right("there is another one", uids, is_another).await?;
    disk.until_attached_to(&["node-0"]).await?;
    cluster.delete::<Pod>("web").await?;
    disk.until_attached_to(&[]).await?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_of_the_attacher_changes_nothing() -> Result<(), Failure> {
    let builder = || -> Builder {
        let attacher = Some(AttacherOptions::default().delay(Duration::from_secs(1)));
        TestCluster::builder().nodes_with(NodesOptions::count(2).attacher(attacher))
    };
    let story = async |scene: &Scene<'_>| {
        let cluster = scene.cluster();
        let disk = Disk::new(cluster, "ReadWriteOnce", true).await?;
        cluster.create(pod_on("node-0", "web")).await?;
        disk.until_attached_to(&["node-0"]).await?;
        cluster.create(pod_on("node-1", "next")).await?;
        scene.rest().await?;
        cluster.delete::<Pod>("web").await?;
        disk.until_attached_to(&["node-1"]).await?;
        Ok(())
    };
    let world = async |cluster: &TestCluster| {
        let attachments = Api::<VolumeAttachment>::all(cluster.client()).list(&ListParams::default()).await?.items;
        let nodes = Api::<Node>::all(cluster.client()).list(&ListParams::default()).await?.items;
        let attached = attachments.into_iter().map(|it| format!("{} {:?}", it.spec.node_name, it.status));
        let listed = nodes.into_iter().map(|node| {
            let status = node.status.unwrap_or_default();
            format!("{:?} {:?} {:?}", node.metadata.name, status.volumes_attached, status.volumes_in_use)
        });
        let world = attached.chain(listed).map(|text| text.replace(cluster.namespace(), "NAMESPACE"));
        Ok(world.collect())
    };
    let deaths = crash_after_each_write(builder, CONTROLLERS, story, world).await?;
    assert!(deaths >= 5, "two requests, a deletion, and the lists of nodes: {deaths}");
    Ok(())
}
