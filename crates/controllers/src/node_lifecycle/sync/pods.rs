//! Pods that were bound to a node that is not ready.

use steersman_base::ObjectKey;
use steersman_informer::Lister;
use steersman_model::View;
use steersman_model::core::{NodeView, PodView};
use steersman_runtime::{Action, Context, Error, Reconciler};

use super::{is_unready, mark_unready};
use crate::node_lifecycle::map;

/// Marks pods that are on a node that is not ready.
pub(in crate::node_lifecycle) struct Pods {
    pub(in crate::node_lifecycle) pods: Lister<PodView>,
    pub(in crate::node_lifecycle) nodes: Lister<NodeView>,
}

// === impl Pods ===

impl Reconciler for Pods {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(pod) = self.pods.get(key) else { return Ok(Action::Done) };
        let node = self.nodes.get(&map::key(&pod.spec.node_name));
        if node.is_some_and(|node| is_unready(&node)) {
            mark_unready(cx, cx.writer.on_behalf_of(pod.meta()), &pod).await?;
        }
        Ok(Action::Done)
    }
}
