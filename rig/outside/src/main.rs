//! A controller of one's own beside a built-in one, in a test cluster: every ReplicaSet has a ConfigMap that says how many pods it wants.

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use steersman::controllers::replicaset;
use steersman::kube::api::ListParams;
use steersman::prelude::*;
use steersman::testing::objects::{self, WorkloadBuilder as _};
use steersman::testing::{Failure, TestCluster};

reasons! {
    /// Why the controller writes.
    enum Why {
        /// The note is missing, or not true.
        NeedsNote => "the ReplicaSet has no note, or a false one",
    }
}

struct Notes {
    sets: Lister<ReplicaSet>,
}

impl Reconciler for Notes {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(set) = self.sets.get(key) else { return Ok(Action::Done) };
        // Optional in the oldest version of the API's schema, required in the newest.
        let replicas = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        let mut note = ConfigMap::default();
        note.metadata.name = Some(key.name.to_string());
        note.metadata.namespace = Some(key.namespace.to_string());
        note.data = Some([("replicas".to_owned(), replicas.to_string())].into());
        let note = note.controlled_by(&*set)?;
        cx.writer.on_behalf_of(&*set).create_or_patch(&note, Why::NeedsNote).await?;
        Ok(Action::Done)
    }
}

fn add_notes(manager: &Manager) -> Controller {
    let notes = Notes { sets: manager.lister() };
    manager.controller::<ReplicaSet>("notes").owns::<ConfigMap>().reconcile_with(notes)
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Failure> {
    let cluster = TestCluster::builder()
        .controllers(&[replicaset::DESCRIPTOR])
        .with(|manager| drop(add_notes(manager)))
        .nodes(1)
        .start()
        .await?;
    cluster.create(objects::replica_set("web").replicas(3)).await?;
    let note = cluster.until_exists::<ConfigMap>("web").await?;
    assert_eq!(note.data.unwrap_or_default()["replicas"], "3");
    cluster.settle().await?;
    let pods = cluster.api::<Pod>().list(&ListParams::default()).await?;
    assert_eq!(pods.items.len(), 3);
    println!("Kubernetes 1.33: a ReplicaSet has its pods and its note");
    cluster.stop().await
}
