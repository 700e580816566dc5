//! Taints and labels that follow from the node itself.

use steersman_base::ObjectKey;
use steersman_informer::Lister;
use steersman_model::View;
use steersman_model::core::NodeView;
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Patch, Reconciler};

use super::{NODES, Why, set_taints};
use crate::node_lifecycle::{plan, taints};

/// Keeps the `NoSchedule` taints and the older labels of nodes.
pub(in crate::node_lifecycle) struct Nodes {
    pub(in crate::node_lifecycle) nodes: Lister<NodeView>,
}

// === impl Nodes ===

impl Reconciler for Nodes {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(node) = self.nodes.get(key) else { return Ok(Action::Done) };
        let meta = node.meta();
        let write = cx.writer.on_behalf_of(meta);
        let now = cx.clock.now();
        let why = Why::Conditions { node: meta.name.clone() };
        set_taints(cx, write, &node, |node| taints::by_condition(node, Some(now)), &why).await?;
        let labels = plan::labels(meta);
        if !labels.is_empty() {
            let patch = plan::label_patch(meta, &labels);
            let why = Why::Labels { node: meta.name.clone() };
            // A node that was deleted or replaced has an event of its own.
            write.patch(NODES, key, Patch::Strategic(&patch), &why).await.ok_if_gone().ok_if_replaced()?;
        }
        Ok(Action::Done)
    }
}
