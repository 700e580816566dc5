//! The lists of attached volumes in the statuses of nodes.

use std::sync::Arc;

use steersman_base::{ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::NodeView;
use steersman_model::{Kind, View};
use steersman_runtime::{Action, Context, Error, Patch, Reconciler, WriteError};

use super::Why;
use crate::persistentvolume_attach_detach::memory::Memory;
use crate::persistentvolume_attach_detach::object;

const NODES: &Resource = &NodeView::RESOURCE;

/// The controller's shell for the lists of nodes.
pub(in crate::persistentvolume_attach_detach) struct Lists {
    pub(in crate::persistentvolume_attach_detach) nodes: Lister<NodeView>,
    pub(in crate::persistentvolume_attach_detach) memory: Arc<Memory>,
}

// === impl Lists ===

impl Reconciler for Lists {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(node) = self.nodes.get(key) else { return Ok(Action::Done) };
        let Some(volumes) = self.memory.stale_list(&node) else { return Ok(Action::Done) };
        let patch = object::list(node.meta(), &volumes);
        let why = Why::List { volumes: volumes.len() };
        let write = cx.writer.on_behalf_of(&*node);
        match write.patch_subresource(NODES, key, "status", Patch::Strategic(&patch), &why).await {
            Ok(_) if self.memory.wrote(&key.name, &volumes) => Ok(Action::Again),
            // A node that is gone, or another one of its name, has an event of its own.
            Ok(_) | Err(WriteError::NotFound | WriteError::Conflict) => Ok(Action::Done),
            Err(error) => Err(error.into()),
        }
    }
}
