//! The shell: observe → decide → set conditions, taints and labels.

use std::sync::Arc;
use std::time::Duration;

use steersman_base::{Istr, Resource};
use steersman_model::core::{NodeView, PodView, Taint};
use steersman_model::{Kind, View};
use steersman_runtime::events::About;
use steersman_runtime::writer::Behalf;
use steersman_runtime::{Context, Error, Patch, WriteError, reasons};

use super::{map, status, taints};

mod monitor;
mod nodes;
mod pods;
mod tainter;

pub(super) use monitor::Monitor;
pub(super) use nodes::Nodes;
pub(super) use pods::Pods;
pub(super) use tainter::Tainter;

const NODES: &Resource = &NodeView::RESOURCE;
const PODS: &Resource = &PodView::RESOURCE;

/// The maximum number of times that a write is tried if others change the node meanwhile, and the pause between the
/// tries: upstream's for the health of nodes.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(20);

reasons! {
    /// Why the node lifecycle controller writes.
    pub enum Why {
        /// A node has been silent for longer than it may be.
        Silent { node: Istr } => "node {node} has stopped its heartbeats",
        /// The conditions of a node have changed, and taints follow them.
        Conditions { node: Istr } => "the taints of {node} follow its conditions",
        /// Pods have to leave a node that is not ready, or silent.
        Evict { node: Istr } => "node {node} is not ready, and it is its turn to lose its pods",
        /// Pods may stay on a node.
        Spare { node: Istr } => "pods may stay on node {node}",
        /// Labels repeat others.
        Labels { node: Istr } => "the older labels of {node} follow the newer ones",
        /// A pod cannot be ready on a node that is not.
        UnreadyNode { node: Istr } => "its node {node} is not ready",
    }
}

/// The result of setting the taints of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tainted {
    /// They were set.
    Set,
    /// There was nothing to set, or there is no such node any more.
    Unneeded,
}

/// Sets the taints that `wanted` returns for a node, if they are others. Others change nodes, too: it tries again with the
/// node as it is on the server.
async fn set_taints(
    cx: &Context,
    write: Behalf<'_>,
    node: &Arc<NodeView>,
    wanted: impl Fn(&NodeView) -> Option<Vec<Taint>>,
    why: &Why,
) -> Result<Tainted, Error> {
    let mut node = Arc::clone(node);
    let key = node.meta().key();
    for tries in 1.. {
        let Some(taints) = wanted(&node) else { return Ok(Tainted::Unneeded) };
        let patch = taints::patch(node.meta(), &taints);
        match write.patch(NODES, &key, Patch::Strategic(&patch), why).await {
            Ok(_) => return Ok(Tainted::Set),
            Err(WriteError::NotFound) => return Ok(Tainted::Unneeded),
            Err(WriteError::Conflict) if tries < TRIES => {}
            Err(error) => return Err(error.into()),
        }
        match live(cx, &node).await? {
            Some(live) => node = live,
            None => return Ok(Tainted::Unneeded),
        }
    }
    Ok(Tainted::Unneeded)
}

/// Reads a node from the server, after a pause; `None` if it is gone, or another one has its name.
async fn live(cx: &Context, node: &NodeView) -> Result<Option<Arc<NodeView>>, Error> {
    tokio::time::sleep(PAUSE).await;
    let live = cx.live.get::<NodeView>(&node.meta().key()).await?;
    Ok(live.filter(|live| live.meta().uid == node.meta().uid).map(Arc::new))
}

/// Marks a pod as not ready, because its node is not.
async fn mark_unready(cx: &Context, write: Behalf<'_>, pod: &PodView) -> Result<(), WriteError> {
    if !status::is_to_mark(pod) {
        return Ok(());
    }
    let patch = status::unready(pod, cx.clock.now());
    let why = Why::UnreadyNode { node: pod.spec.node_name.clone() };
    let patch = Patch::Strategic(&patch);
    match write.patch_subresource(PODS, &pod.meta().key(), "status", patch, &why).await {
        Ok(_) => {
            cx.events.warning(&About::new(PODS, pod.meta()), "NodeNotReady", "Node is not ready");
            Ok(())
        }
        // It is gone, or another pod has its name.
        Err(WriteError::NotFound | WriteError::Conflict) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether the server has answered about this object: its answer about another one may be different.
fn is_answer(error: &WriteError) -> bool {
    match error {
        WriteError::Rejected(_) | WriteError::Invalid(_) | WriteError::NamespaceTerminating => true,
        // A webhook that cannot be called may be asked about some pods only.
        WriteError::Unknown(answer) => answer.code > 0,
        _ => false,
    }
}

/// Whether a node is not ready.
fn is_unready(node: &NodeView) -> bool {
    map::is_unready(node)
}
