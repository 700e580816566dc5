//! The shell: observe → patch the annotation.

use std::sync::Arc;

use steersman_base::{ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::NodeView;
use steersman_model::{Kind, View};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Patch, Reconciler, reasons};

use super::memory::Size;
use super::plan;

const NODES: &Resource = &NodeView::RESOURCE;

/// The controller's shell: the cache that it reads from.
pub(super) struct Ttl {
    pub(super) nodes: Lister<NodeView>,
    pub(super) size: Arc<Size>,
}

reasons! {
    /// Why the TTL controller writes.
    pub enum Why {
        /// A node does not say how long its kubelet may cache objects, or says something else.
        WrongTtl { seconds: u32 } => "kubelets may cache Secrets and ConfigMaps for {seconds} s in a cluster of this size",
    }
}

// === impl Ttl ===

impl Reconciler for Ttl {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(node) = self.nodes.get(key) else { return Ok(Action::Done) };
        let seconds = self.size.seconds();
        if plan::says(node.meta(), seconds) {
            return Ok(Action::Done);
        }
        let write = cx.writer.on_behalf_of(node.meta());
        let patch = plan::patch(node.meta(), seconds);
        let patched = write.patch(NODES, key, Patch::Strategic(&patch), &Why::WrongTtl { seconds }).await;
        // A node that was deleted or replaced has an event of its own.
        patched.ok_if_gone().ok_if_replaced()?;
        Ok(Action::Done)
    }
}
