//! The shell: observe → plan → patch the status → delete.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt as _, stream};
use parking_lot::Mutex;
use steersman_base::{Istr, ObjectKey, Resource, Time};
use steersman_informer::{Index, Lister};
use steersman_model::core::{NodeView, PodView};
use steersman_model::{Kind, View};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Delete, Error, Patch, Reconciler, WriteError, reasons};

use super::metrics::Metrics;
use super::patch;
use super::plan::{Cause, is_asked_for, of_terminating, too_many};
use super::quarantine::Quarantine;

const PODS: &Resource = &PodView::RESOURCE;
const NODES: &Resource = &NodeView::RESOURCE;
/// The number of concurrent deletions: a node with many pods is cleared in a few round trips, and the server can serve
/// others.
const AT_ONCE: usize = 32;

/// The controller's shell: the caches that it reads from.
pub(super) struct PodGarbageCollector {
    pub(super) ended: Index<(), PodView>,
    pub(super) terminating: Index<(), PodView>,
    pub(super) by_node: Index<Istr, PodView>,
    pub(super) nodes: Lister<NodeView>,
    pub(super) quarantine: Mutex<Quarantine>,
    pub(super) threshold: Option<usize>,
    pub(super) metrics: Metrics,
}

reasons! {
    /// Why the pod garbage collector writes.
    pub enum Why {
        /// More pods have ended than are kept.
        Terminated { threshold: usize } => "it has ended, and more than {threshold} pods have",
        /// The pod is terminating, and no kubelet will end it.
        OutOfService { node: Istr } => "it is being deleted, and node {node} is out of service",
        /// The pod's node does not exist.
        Orphaned { node: Istr } => "node {node} is gone",
        /// The pod is terminating, and was never scheduled.
        Unscheduled => "it is being deleted, and was never on a node",
    }
}

// === impl PodGarbageCollector ===

impl Reconciler for PodGarbageCollector {
    async fn reconcile(&self, cx: &Context, _key: &ObjectKey) -> Result<Action, Error> {
        let now = cx.clock.now();
        let pods = self.to_delete(cx, now).await;
        let ends = stream::iter(pods.into_values()).map(|(pod, cause)| self.end(cx, pod, cause, now));
        ends.buffer_unordered(AT_ONCE).collect::<()>().await;
        Ok(Action::Done)
    }
}

impl PodGarbageCollector {
    /// Returns the pods to delete, each once, with the first reason that applies.
    async fn to_delete(&self, cx: &Context, now: Time) -> BTreeMap<ObjectKey, (Arc<PodView>, Cause)> {
        let mut found = BTreeMap::new();
        let mut add = |pod: Arc<PodView>, cause| {
            if !is_asked_for(&pod) {
                found.entry(pod.meta().key()).or_insert((pod, cause));
            }
        };
        if let Some(threshold) = self.threshold.filter(|&threshold| self.ended.count(&()) > threshold) {
            too_many(self.ended.get(&()), threshold).into_iter().for_each(|pod| add(pod, Cause::Terminated));
        }
        for pod in self.terminating.get(&()) {
            let node = self.nodes.get(&ObjectKey { namespace: Istr::default(), name: pod.spec.node_name.clone() });
            if let Some(cause) = of_terminating(&pod, node.as_deref()) {
                add(pod, cause);
            }
        }
        self.orphans(cx, now).await.into_iter().for_each(|pod| add(pod, Cause::Orphaned));
        found
    }

    /// Returns the pods on nodes that have been missing long enough, and that the server does not have either. They were there
    /// before the server was asked: one that came later may be on a node that was registered again.
    async fn orphans(&self, cx: &Context, now: Time) -> Vec<Arc<PodView>> {
        let key = |node: &Istr| ObjectKey { namespace: Istr::default(), name: node.clone() };
        let used = self.by_node.keys().into_iter();
        let missing = used.filter(|node| self.nodes.get(&key(node)).is_none()).collect();
        let due = self.quarantine.lock().pass(&missing, now).into_iter();
        let due: Vec<_> = due.map(|node| (self.by_node.get(&node), node)).collect();
        let mut orphans = Vec::new();
        for (pods, node) in due {
            match cx.live.get_meta(NODES, &key(&node)).await {
                Ok(None) => orphans.extend(pods),
                Ok(Some(_)) => {}
                Err(error) => tracing::warn!(%node, %error, "the node could not be read"),
            }
        }
        orphans
    }

    /// Sets a pod to `Failed`, and deletes it. Failures are retried by a later pass.
    async fn end(&self, cx: &Context, pod: Arc<PodView>, cause: Cause, now: Time) {
        // Deleted or replaced meanwhile: nothing is left to do.
        let outcome = self.try_to_end(cx, &pod, cause, now).await.ok_if_gone().ok_if_replaced();
        self.metrics.count(&pod.meta().namespace, cause, outcome.is_err());
        if let Err(error) = outcome {
            tracing::warn!(pod = %pod.meta().key(), %error, cause = cause.label(), "the pod could not be deleted");
        }
    }

    async fn try_to_end(&self, cx: &Context, pod: &PodView, cause: Cause, now: Time) -> Result<(), WriteError> {
        let node = || pod.spec.node_name.clone();
        let why = match cause {
            Cause::Terminated => Why::Terminated { threshold: self.threshold.unwrap_or_default() },
            Cause::OutOfService => Why::OutOfService { node: node() },
            Cause::Orphaned => Why::Orphaned { node: node() },
            Cause::Unscheduled => Why::Unscheduled,
        };
        // Not tracked by the consistency book: a pass reads every pod anew, and each write names its uid.
        let write = cx.writer.unowned();
        if let Some(patch) = patch::failed(pod, cause, now) {
            let patch = Patch::Strategic(&patch);
            write.patch_subresource(PODS, &pod.meta().key(), "status", patch, &why).await?;
        }
        let at_once = Delete::default().grace_period_seconds(0);
        write.delete(PODS, pod.meta(), at_once, &why).await
    }
}
