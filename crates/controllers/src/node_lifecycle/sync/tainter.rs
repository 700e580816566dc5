//! `NoExecute` taints: one node of a zone after the other, at the zone's rate.

use std::sync::Arc;
use std::time::Duration;

use steersman_base::{Istr, ObjectKey};
use steersman_informer::Lister;
use steersman_model::View;
use steersman_model::core::NodeView;
use steersman_runtime::{Action, Context, Error, Reconciler};

use super::{Tainted, Why, set_taints};
use crate::node_lifecycle::memory::Memory;
use crate::node_lifecycle::metrics::Metrics;
use crate::node_lifecycle::zones::Next;
use crate::node_lifecycle::{health, map, plan, taints};

/// Sets the `NoExecute` taints of the nodes of a zone.
pub(in crate::node_lifecycle) struct Tainter {
    pub(in crate::node_lifecycle) nodes: Lister<NodeView>,
    pub(in crate::node_lifecycle) memory: Arc<Memory>,
    pub(in crate::node_lifecycle) metrics: Arc<Metrics>,
}

/// The pause after a taint that could not be set.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

// === impl Tainter ===

impl Reconciler for Tainter {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let zone = &key.name;
        let needs_taint = |name: &Istr| plan::needs_taint(self.nodes.get(&map::key(name)).as_deref());
        loop {
            let node = match self.memory.next(zone, needs_taint) {
                Next::Idle => return Ok(Action::Done),
                Next::Wait(wait) => return Ok(Action::After(wait)),
                Next::Take(node) => node,
            };
            if let Err(error) = self.taint(cx, zone, &node).await {
                tracing::warn!(%node, %error, "the node could not be tainted; it will be tried again");
                self.memory.put_back(zone, &node);
                return Ok(Action::After(AFTER_FAILURE));
            }
        }
    }
}

impl Tainter {
    async fn taint(&self, cx: &Context, zone: &Istr, name: &Istr) -> Result<(), Error> {
        let Some(node) = self.nodes.get(&map::key(name)) else { return Ok(()) };
        let now = cx.clock.now();
        let wanted = |node: &NodeView| {
            let ready = health::ready(node)?.status;
            taints::Cause::of(ready)?;
            taints::executing(node, ready, Some(now))
        };
        let why = Why::Evict { node: node.meta().name.clone() };
        if set_taints(cx, cx.writer.unowned(), &node, wanted, &why).await? == Tainted::Set {
            self.memory.tainted(zone);
            self.metrics.evicted(zone);
        }
        Ok(())
    }
}
