//! The shell: observe → decide when a pod leaves → set its condition → delete it.

use std::sync::Arc;

use steersman_base::{Istr, MicroTime, ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::{NodeView, PodView, Taint};
use steersman_model::{Kind, View};
use steersman_runtime::events::About;
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Delete, Error, Patch, Reconciler, WriteError, reasons};

use super::memory::Memory;
use super::plan::{Fate, came, fate, since};
use super::{DISRUPTION, map};
use crate::eviction::disrupted;
use crate::eviction::metrics::Metrics;
use crate::toleration::Comparison;

const PODS: &Resource = &PodView::RESOURCE;
/// The reason of all events, of announced and of cancelled evictions.
const EVENT: &str = "TaintManagerEviction";

/// The controller's shell: the caches that it reads from, and its memory.
pub(super) struct TaintEviction {
    pub(super) pods: Lister<PodView>,
    pub(super) nodes: Lister<NodeView>,
    pub(super) memory: Arc<Memory>,
    pub(super) comparison: Comparison,
    pub(super) metrics: Metrics,
}

reasons! {
    /// Why the taint eviction controller writes.
    pub enum Why {
        /// The pod does not tolerate the taints of its node, or not any more.
        Evict { node: Istr } => "it does not tolerate the taints of node {node} any longer",
    }
}

// === impl TaintEviction ===

impl Reconciler for TaintEviction {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let pod = self.pods.get(key).filter(|pod| !pod.meta().is_terminating());
        let Some(pod) = pod else {
            self.memory.pods.forget(key);
            return Ok(Action::Done);
        };
        let now = cx.clock.now_micros();
        let node = self.nodes.get(&map::node_key(&pod.spec.node_name));
        match self.fate(&pod, node.as_deref(), now) {
            Fate::Stays => {
                // The pods of a node that is gone are the pod garbage collector's.
                if self.memory.pods.forget(key) && node.is_some() {
                    let note = format!("Cancelling deletion of Pod {key}");
                    cx.events.normal(&About::new(PODS, pod.meta()), EVENT, note);
                }
                Ok(Action::Done)
            }
            Fate::Leaves(at) => {
                self.memory.pods.plan(pod.meta(), now);
                if at > now { Ok(Action::After(at.since(now))) } else { self.evict(cx, &pod, at).await }
            }
        }
    }
}

impl TaintEviction {
    fn fate(&self, pod: &PodView, node: Option<&NodeView>, now: MicroTime) -> Fate {
        let Some(node) = node else { return Fate::Stays };
        let taints: Vec<&Taint> = map::executing(node).collect();
        if taints.is_empty() {
            return Fate::Stays;
        }
        let known = self.memory.taints_seen(&node.meta().name, &taints, now);
        let pod_since = since(came(pod), self.memory.pods.seen(pod.meta(), now));
        fate(&pod.spec.shared.tolerations, &known, pod_since, self.comparison)
    }

    async fn evict(&self, cx: &Context, pod: &PodView, due: MicroTime) -> Result<Action, Error> {
        let meta = pod.meta();
        let key = meta.key();
        if self.memory.pods.announces(&key) {
            cx.events.normal(&About::new(PODS, meta), EVENT, format!("Marking for deletion Pod {key}"));
        }
        let why = Why::Evict { node: pod.spec.node_name.clone() };
        let write = cx.writer.on_behalf_of(meta);
        if let Some(patch) = disrupted(pod, DISRUPTION, cx.clock.now()) {
            match write.patch_subresource(PODS, &key, "status", Patch::Strategic(&patch), &why).await {
                Ok(_) => {}
                Err(WriteError::NotFound) => return Ok(self.done(&key)),
                // It may tolerate the taints now.
                Err(WriteError::Conflict) => return Ok(Action::Again),
                Err(error) => return Err(error.into()),
            }
        }
        write.delete(PODS, meta, Delete::default(), &why).await.ok_if_gone().ok_if_replaced()?;
        self.metrics.evicted(cx.clock.now_micros().since(due));
        Ok(self.done(&key))
    }

    fn done(&self, key: &ObjectKey) -> Action {
        self.memory.pods.forget(key);
        Action::Done
    }
}
