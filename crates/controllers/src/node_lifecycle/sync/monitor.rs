//! The health check of all nodes, at regular times.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures::{StreamExt as _, stream};
use steersman_base::{ConditionStatus, Istr, Meta, ObjectKey, Uid};
use steersman_informer::{Index, Lister, SharedInformer};
use steersman_model::core::{NodeView, PodView};
use steersman_model::{NodeLeaseView, View};
use steersman_runtime::events::About;
use steersman_runtime::{Action, Context, Error, Patch, Reconciler, WriteError};
use tokio::time::Instant;

use super::{NODES, TRIES, Why, is_answer, live, mark_unready, set_taints};
use crate::node_lifecycle::health::{Grace, ready};
use crate::node_lifecycle::memory::Memory;
use crate::node_lifecycle::metrics::Metrics;
use crate::node_lifecycle::plan::Eviction;
use crate::node_lifecycle::zones::{Count, Turn};
use crate::node_lifecycle::{LEASES_IN, Options, map, plan, status, taints};

/// Checks the health of all nodes.
pub(in crate::node_lifecycle) struct Monitor {
    pub(in crate::node_lifecycle) nodes: Lister<NodeView>,
    pub(in crate::node_lifecycle) leases: SharedInformer<NodeLeaseView>,
    pub(in crate::node_lifecycle) by_node: Index<Istr, PodView>,
    pub(in crate::node_lifecycle) memory: Arc<Memory>,
    pub(in crate::node_lifecycle) metrics: Arc<Metrics>,
    pub(in crate::node_lifecycle) options: Options,
}

/// The state of a node after its check.
struct Checked {
    /// The node, as last read.
    node: Arc<NodeView>,
    /// The status of its condition `Ready`; `None` without one.
    ready: Option<ConditionStatus>,
    /// Whether it was ready until this check found it silent.
    was_ready: bool,
}

/// The outcome of a check.
enum Found {
    Checked(Checked),
    /// It is gone, or could not be written: nothing is known of it in this pass.
    Nothing,
    /// The cache of leases lags: nothing is known of any node.
    StaleLeases,
}

/// The number of concurrent checks: upstream's.
const AT_ONCE: usize = 8;

// === impl Monitor ===

impl Reconciler for Monitor {
    async fn reconcile(&self, cx: &Context, _key: &ObjectKey) -> Result<Action, Error> {
        let started = Instant::now();
        let nodes = self.nodes.list();
        self.report(cx, &nodes);
        let mut counts: BTreeMap<Istr, Count> = BTreeMap::new();
        let (well, others): (Vec<_>, Vec<_>) = nodes.iter().cloned().partition(|node| self.is_well(node));
        well.iter().for_each(|node| count(&mut counts, node, Some(ConditionStatus::True)));
        let mut is_stale = false;
        let mut checks = stream::iter(others).map(|node| self.check_and_act(cx, node)).buffer_unordered(AT_ONCE);
        while let Some(found) = checks.next().await {
            match found {
                Found::Checked(Checked { node, ready, .. }) => count(&mut counts, &node, ready),
                Found::Nothing => {}
                Found::StaleLeases => is_stale = true,
            }
        }
        drop(checks);
        if is_stale {
            self.memory.give_up();
            tracing::warn!(
                "the cache of leases lags behind the server: no node is called unhealthy before it does not"
            );
        } else {
            self.assess(cx, &counts, &nodes).await;
        }
        self.memory.notify();
        self.metrics.checked_all(started.elapsed());
        Ok(Action::Done)
    }
}

impl Monitor {
    /// Sends the events of nodes that are new, or gone. To a new leader, old nodes are not new.
    fn report(&self, cx: &Context, nodes: &[Arc<NodeView>]) {
        let there: HashMap<&str, &Uid> = nodes.iter().map(|node| (&*node.meta().name, &node.meta().uid)).collect();
        let event = |node: &Meta, reason: &str, what: String| {
            cx.events.normal(&About::new(NODES, node), reason, format!("Node {} event: {what}", node.name));
        };
        for node in self.memory.forget_absent(|node| there.get(&*node.name) == Some(&&node.uid)) {
            let node = node.meta();
            event(node, "RemovingNode", format!("Removing Node {} from Controller", node.name));
        }
        let begins = self.memory.begins();
        let now = cx.clock.now();
        let is_new = |node: &&Meta| !self.memory.knows(node) && (!begins || plan::is_recent(node, now));
        for node in nodes.iter().map(|node| node.meta()).filter(is_new) {
            event(node, "RegisteredNode", format!("Registered Node {} in Controller", node.name));
        }
    }

    /// Whether there is nothing to do for a node: it is ready, not silent, and has no taints of this controller. This is
    /// so for nearly all, and costs a lookup.
    fn is_well(&self, node: &Arc<NodeView>) -> bool {
        let started = Instant::now();
        let lease = self.lease(node.meta());
        let health = self.memory.observe(node, lease.as_deref());
        let status = ready(node).map(|ready| ready.status);
        let is_well = status == Some(ConditionStatus::True)
            && !health.is_silent(self.grace(), self.memory.now())
            && plan::eviction(node, status) == Eviction::None;
        if is_well {
            self.memory.dequeue(node.meta());
            self.memory.set_marked(&node.meta().name, false);
            self.metrics.checked(started.elapsed());
        }
        is_well
    }

    fn grace(&self) -> Grace {
        Grace { monitor: self.options.monitor_grace_period, startup: self.options.startup_grace_period }
    }

    fn lease(&self, node: &Meta) -> Option<Arc<NodeLeaseView>> {
        self.leases.lister().get(&lease_key(node))
    }

    async fn check_and_act(&self, cx: &Context, node: Arc<NodeView>) -> Found {
        let started = Instant::now();
        let found = self.check(cx, node).await;
        if let Found::Checked(checked) = &found {
            self.act(cx, checked).await;
        }
        self.metrics.checked(started.elapsed());
        found
    }

    /// Looks at a node, and calls it unhealthy if it has been silent for too long.
    async fn check(&self, cx: &Context, mut node: Arc<NodeView>) -> Found {
        if self.memory.lacks_leases(self.leases.reached().as_ref()) {
            return Found::StaleLeases;
        }
        for _ in 0..TRIES {
            let lease = self.lease(node.meta());
            let health = self.memory.observe(&node, lease.as_deref());
            let status = ready(&node).map(|ready| ready.status);
            let unchanged = |node| Found::Checked(Checked { node, ready: status, was_ready: false });
            if !health.is_silent(self.grace(), self.memory.now()) {
                return unchanged(node);
            }
            let Some(patch) = status::silent(&node, cx.clock.now()) else { return unchanged(node) };
            if self.options.checks_leases {
                match cx.live.get::<NodeLeaseView>(&lease_key(node.meta())).await {
                    Ok(Some(live)) if health.missed(&live) => {
                        self.memory.await_leases(live.meta().resource_version.clone());
                        return Found::StaleLeases;
                    }
                    Ok(_) => {}
                    Err(error) => return skipped(&node, &error),
                }
            }
            let meta = node.meta();
            let why = Why::Silent { node: meta.name.clone() };
            let write = cx.writer.unowned();
            match write.patch_subresource(NODES, &meta.key(), "status", Patch::Strategic(&patch), &why).await {
                Ok(_) => {
                    let was_ready = status == Some(ConditionStatus::True);
                    return Found::Checked(Checked { node, ready: Some(ConditionStatus::Unknown), was_ready });
                }
                Err(WriteError::NotFound) => return Found::Nothing,
                Err(WriteError::Conflict) => match live(cx, &node).await {
                    Ok(Some(live)) => node = live,
                    Ok(None) => return Found::Nothing,
                    Err(error) => return skipped(&node, &error),
                },
                Err(error) => return skipped(&node, &error),
            }
        }
        skipped(&node, &"others change it all the time")
    }

    /// Does what follows from a node's state, to its taints and pods.
    async fn act(&self, cx: &Context, checked: &Checked) {
        let Checked { node, ready, was_ready } = checked;
        let meta = node.meta();
        match plan::eviction(node, *ready) {
            Eviction::None => self.memory.dequeue(meta),
            Eviction::InTurn => self.memory.enqueue(meta),
            Eviction::Now => {
                self.memory.dequeue(meta);
                self.correct_taints(cx, node, ready.unwrap_or_default()).await;
            }
        }
        if *was_ready {
            let note = format!("Node {} status is now: NodeNotReady", meta.name);
            cx.events.normal(&About::new(NODES, meta), "NodeNotReady", note);
        }
        match ready {
            Some(ConditionStatus::Unknown) => self.mark_pods(cx, node).await,
            _ => self.memory.set_marked(&meta.name, false),
        }
    }

    /// Marks the pods of a silent node as not ready, once while it is silent.
    async fn mark_pods(&self, cx: &Context, node: &Arc<NodeView>) {
        let name = &node.meta().name;
        if self.memory.has_marked(name) {
            return;
        }
        let mut are_marked = true;
        for pod in self.by_node.get(name) {
            let Err(error) = mark_unready(cx, cx.writer.unowned(), &pod).await else { continue };
            let pod = pod.meta().key();
            tracing::warn!(node = %name, %pod, %error, "a pod could not be marked as not ready; it will be tried again");
            are_marked = false;
            // Others get no answer either, and the check of all nodes would wait for each of them.
            if !is_answer(&error) {
                break;
            }
        }
        self.memory.set_marked(name, are_marked);
    }

    /// Takes the count of all zones into account.
    async fn assess(&self, cx: &Context, counts: &BTreeMap<Istr, Count>, nodes: &[Arc<NodeView>]) {
        self.metrics.count(counts);
        let turn = self.memory.assess(counts);
        match turn {
            Turn::Usual | Turn::StillLost => {}
            Turn::AllLost => tracing::warn!("no node is ready: nothing is evicted until one is"),
            Turn::SomeBack => tracing::info!("some nodes are ready again: evictions continue"),
        }
        if matches!(turn, Turn::AllLost | Turn::StillLost) {
            for node in nodes {
                self.correct_taints(cx, node, ConditionStatus::True).await;
            }
        }
    }

    /// Sets the `NoExecute` taints of a node to those of this status of its condition `Ready`. A failure is retried by
    /// the next check.
    async fn correct_taints(&self, cx: &Context, node: &Arc<NodeView>, ready: ConditionStatus) {
        let name = &node.meta().name;
        let now = cx.clock.now();
        let why = match taints::Cause::of(ready) {
            None => Why::Spare { node: name.clone() },
            Some(_) => Why::Evict { node: name.clone() },
        };
        let wanted = |node: &NodeView| taints::executing(node, ready, Some(now));
        if let Err(error) = set_taints(cx, cx.writer.unowned(), node, wanted, &why).await {
            tracing::warn!(node = %name, %error, "the taints of the node could not be changed; it will be tried again");
        }
    }
}

/// Counts a node in its zone.
fn count(counts: &mut BTreeMap<Istr, Count>, node: &NodeView, ready: Option<ConditionStatus>) {
    if map::is_excluded(node.meta()) {
        return;
    }
    let count = counts.entry(map::zone(node.meta())).or_default();
    if ready == Some(ConditionStatus::True) {
        count.ready += 1;
    } else {
        count.unready += 1;
    }
}

fn lease_key(node: &Meta) -> ObjectKey {
    ObjectKey { namespace: Istr::interned(LEASES_IN), name: node.name.clone() }
}

/// The health of a node is not known in this pass: none of its pods is evicted.
fn skipped(node: &NodeView, error: &dyn std::fmt::Display) -> Found {
    tracing::warn!(node = %node.meta().name, %error, "the health of the node could not be updated");
    Found::Nothing
}
