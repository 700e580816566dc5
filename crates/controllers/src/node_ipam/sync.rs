//! The shell: reserve ranges → give them to the node.

use std::sync::Arc;

use steersman_base::{Istr, ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::NodeView;
use steersman_model::{Kind, View};
use steersman_runtime::events::About;
use steersman_runtime::{Action, Context, Error, Patch, Reconciler, WriteError, reasons};

use super::memory::Memory;
use super::{map, plan};

const NODES: &Resource = &NodeView::RESOURCE;

/// The controller's shell: the cache that it reads from, and the ranges in use.
pub(super) struct NodeIpam {
    pub(super) nodes: Lister<NodeView>,
    pub(super) memory: Arc<Memory>,
}

reasons! {
    /// Why the node IPAM controller writes.
    pub enum Why {
        /// The node has no range of pod addresses.
        NoRange { ranges: String } => "the node has no pod addresses, and gets {ranges}",
    }
}

// === impl NodeIpam ===

impl Reconciler for NodeIpam {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let node = self.nodes.get(key).filter(|node| !node.meta().is_terminating());
        let Some(node) = node else { return Ok(Action::Done) };
        let meta = node.meta();
        if !node.spec.pod_cidrs.is_empty() {
            let unreadable = |text: Istr| Error::terminal(format!("failed to parse node {}, CIDR {text}", meta.name));
            map::ranges(&node).map_err(unreadable)?;
            return Ok(Action::Done);
        }
        let ranges = self.memory.reserve(meta).inspect_err(|_| event(cx, &node, "CIDRNotAvailable"))?;
        let texts: Vec<String> = ranges.iter().map(ToString::to_string).collect();
        let why = Why::NoRange { ranges: texts.join(", ") };
        let patch = plan::patch(meta, &ranges);
        match cx.writer.on_behalf_of(meta).patch(NODES, key, Patch::Strategic(&patch), &why).await {
            // A node that is gone, or another one of its name, has an event of its own.
            Ok(_) | Err(WriteError::NotFound | WriteError::Conflict) => Ok(Action::Done),
            // The ranges stay reserved for this node, and the next pass tries again with them.
            Err(error) => {
                event(cx, &node, "CIDRAssignmentFailed");
                Err(error.into())
            }
        }
    }
}

fn event(cx: &Context, node: &NodeView, what: &str) {
    let note = format!("Node {} status is now: {what}", node.meta().name);
    cx.events.normal(&About::new(NODES, node.meta()), what, note);
}
