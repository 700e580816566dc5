//! The range of cluster sizes that the cluster is in: at a boundary it depends on where the cluster was before.

use parking_lot::Mutex;
use steersman_base::ObjectKey;
use steersman_informer::{Change, Lister};
use steersman_model::View;
use steersman_model::core::NodeView;

use super::plan::{Step, says};

/// The size of the cluster.
pub(super) struct Size {
    nodes: Lister<NodeView>,
    step: Mutex<Step>,
}

// === impl Size ===

impl Size {
    pub(super) fn new(nodes: Lister<NodeView>) -> Self {
        Self { nodes, step: Mutex::default() }
    }

    /// Returns the time for a cluster of this size.
    pub(super) fn seconds(&self) -> u32 {
        self.step.lock().seconds()
    }

    /// Returns the nodes to check: all, if the cluster has reached another range; else the changed one, if it says
    /// something else.
    pub(super) fn nodes_to_check(&self, change: &Change<NodeView>) -> Vec<ObjectKey> {
        let mut step = self.step.lock();
        let next = step.of(self.nodes.len());
        let is_other = next != *step;
        *step = next;
        if is_other {
            return self.nodes.list().iter().map(|node| node.meta().key()).collect();
        }
        match change {
            Change::Added { new: node, .. } | Change::Updated { new: node, .. }
                if !says(node.meta(), next.seconds()) =>
            {
                vec![node.meta().key()]
            }
            _ => Vec::new(),
        }
    }
}
