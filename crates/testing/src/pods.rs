//! The pods of an owner.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use crate::{Failure, TestCluster};

/// The pods that one object controls.
pub struct PodsOf<'a> {
    cluster: &'a TestCluster,
    owner_uid: String,
}

// === impl PodsOf ===

impl<'a> PodsOf<'a> {
    pub(crate) fn new(cluster: &'a TestCluster, owner_uid: String) -> Self {
        Self { cluster, owner_uid }
    }

    /// Returns the existing pods that are not terminating, by name.
    ///
    /// # Errors
    /// The server refuses.
    pub async fn list(&self) -> Result<Vec<Pod>, Failure> {
        let pods = self.cluster.api::<Pod>().list(&ListParams::default()).await?;
        let mine = |pod: &Pod| {
            let owners = pod.metadata.owner_references.iter().flatten();
            let controlled =
                owners.filter(|owner| owner.controller == Some(true)).any(|owner| owner.uid == self.owner_uid);
            controlled && pod.metadata.deletion_timestamp.is_none()
        };
        Ok(pods.items.into_iter().filter(mine).collect())
    }

    /// Waits until there is this number of pods, and returns them.
    ///
    /// # Errors
    /// The number is never reached.
    pub async fn until_count(&self, count: usize) -> Result<Vec<Pod>, Failure> {
        self.cluster
            .until(&format!("{count} pods"), || async {
                let pods = self.list().await?;
                let names: Vec<_> = pods.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect();
                let seen = format!("{} pods: {names:?}", pods.len());
                Ok(if pods.len() == count { Ok(pods) } else { Err(seen) })
            })
            .await
    }

    /// Sets the status of each pod as a kubelet would for a running and ready pod.
    ///
    /// # Errors
    /// The server refuses.
    pub async fn make_ready(&self) -> Result<(), Failure> {
        for pod in self.list().await? {
            let status = json!({ "status": {
                "phase": "Running",
                "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" }],
            } });
            let name = pod.metadata.name.unwrap_or_default();
            let patch = Patch::Strategic(&status);
            self.cluster.api::<Pod>().patch_status(&name, &PatchParams::default(), &patch).await?;
        }
        Ok(())
    }
}
