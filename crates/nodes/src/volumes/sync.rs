//! The shell: the volumes of a node's pods → its status.

use std::collections::BTreeSet;

use serde_json::json;
use steersman_base::{Istr, ObjectKey, Resource};
use steersman_informer::{Index, Lister};
use steersman_model::Kind;
use steersman_model::core::NodeView;
use steersman_runtime::{Action, Context, Error, Patch, Reconciler, WriteError, reasons};

use super::Volumes;
use crate::fleet::Fleet;
use crate::view::SimPodView;

const NODES: &Resource = &NodeView::RESOURCE;

/// Reports which volumes nodes use.
pub(super) struct InUse {
    pub(super) nodes: Lister<NodeView>,
    pub(super) by_node: Index<Istr, SimPodView>,
    pub(super) volumes: Volumes,
    pub(super) fleet: Fleet,
}

reasons! {
    /// Why kubelets write about volumes.
    pub enum Why {
        /// Other volumes are in use than the status says.
        InUse { volumes: usize } => "its pods use {volumes} attached volumes",
    }
}

// === impl InUse ===

impl Reconciler for InUse {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        if self.fleet.working(&key.name).is_none() {
            return Ok(Action::Done);
        }
        let Some(node) = self.nodes.get(key) else { return Ok(Action::Done) };
        let pods = self.by_node.get(&key.name);
        let names = pods.iter().filter(|pod| !pod.is_over()).flat_map(|pod| self.volumes.to_attach(pod));
        let used: BTreeSet<Istr> = names.collect();
        if node.status.volumes_in_use.iter().cloned().collect::<BTreeSet<_>>() == used {
            return Ok(Action::Done);
        }
        let list = if used.is_empty() { json!(null) } else { json!(used) };
        let patch = json!({ "metadata": { "uid": node.metadata.uid }, "status": { "volumesInUse": list } });
        let why = Why::InUse { volumes: used.len() };
        let write = cx.writer.on_behalf_of(&*node);
        match write.patch_subresource(NODES, key, "status", Patch::Strategic(&patch), &why).await {
            // A node that is gone, or another one of its name, has an event of its own.
            Ok(_) | Err(WriteError::NotFound | WriteError::Conflict) => Ok(Action::Done),
            Err(error) => Err(error.into()),
        }
    }
}
