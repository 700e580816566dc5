//! The shell: register, report, renew.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use steersman_base::{Istr, Meta, MicroTime, ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::NodeView;
use steersman_model::{Kind, LeaseView};
use steersman_runtime::events::{About, Recorder};
use steersman_runtime::{Action, Context, Delete, Error, Patch, Reconciler, WriteError, reasons};

use super::object;
use crate::fleet::{Fleet, Health, Machine, Registration};
use crate::options::NodesOptions;

mod heartbeats;

pub(super) use heartbeats::Heartbeats;

const NODES: &Resource = &NodeView::RESOURCE;
const LEASES: &Resource = &LeaseView::RESOURCE;
/// The namespace of node leases.
pub(super) const LEASES_IN: &str = "kube-node-lease";

/// A cache shows a new node within moments; after this time the node is created again.
const SEEN_WITHIN: Duration = Duration::from_secs(10);

/// Keeps the nodes in the cluster.
pub(super) struct Registry {
    pub(super) nodes: Lister<NodeView>,
    pub(super) fleet: Fleet,
    pub(super) options: Arc<NodesOptions>,
    pub(super) events: Recorder,
}

reasons! {
    /// Why simulated nodes write.
    pub enum Why {
        /// The cluster does not have the node.
        Register { node: Istr } => "{node} is new",
        /// The node reports its status.
        Status { node: Istr } => "{node} says how it is",
        /// The node is ready, and its taint is removed.
        Untaint { node: Istr } => "{node} is ready",
        /// The node sends a heartbeat.
        Renew { node: Istr } => "{node} lives",
        /// The node was removed.
        Remove { node: Istr } => "{node} was taken away",
    }
}

// === impl Registry ===

impl Reconciler for Registry {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(machine) = self.fleet.get(&key.name) else { return Ok(Action::Done) };
        let node = self.nodes.get(key);
        match machine.health {
            Health::Silent => return Ok(Action::Done),
            Health::Removed => {
                if let Some(node) = node {
                    remove(cx, &node.metadata).await?;
                }
                return Ok(Action::Done);
            }
            Health::Well => {}
        }
        let Some(node) = node else { return self.register(cx, &key.name, &machine).await };
        if machine.registration == Registration::Missing {
            self.fleet.change(&key.name, |machine| {
                machine.registration = Registration::Seen;
                machine.reported = object::last_heartbeat(&node).map(MicroTime::from);
            });
            self.report(
                &node.metadata,
                &[("Starting", "Starting kubelet.".to_owned()), status_is("NodeReady", key)],
                cx,
            );
        }
        if machine.cordoned != node.spec.unschedulable {
            let what = if node.spec.unschedulable { "NodeNotSchedulable" } else { "NodeSchedulable" };
            self.fleet.note(&key.name, |machine| machine.cordoned = node.spec.unschedulable);
            self.report(&node.metadata, &[status_is(what, key)], cx);
        }
        if object::is_wrong(&node, &self.options) {
            heartbeats::report(&cx.writer, &node, &machine, &self.options, cx.clock.now()).await?;
        }
        untaint(cx, &node).await?;
        Ok(Action::Done)
    }
}

impl Registry {
    /// Sends the events of a node that its kubelet would send.
    fn report(&self, node: &Meta, events: &[(&str, String)], cx: &Context) {
        if self.fleet.may_send(events.len(), cx.clock.now_micros()) {
            let recorder = self.events.on_host(node.name.clone());
            for (reason, note) in events {
                recorder.normal(&About::new(NODES, node), reason, note.as_str());
            }
        }
    }

    async fn register(&self, cx: &Context, name: &Istr, machine: &Machine) -> Result<Action, Error> {
        if machine.registration == Registration::Seen {
            tracing::info!(node = %name, "somebody deleted the node; it stays away");
            self.fleet.change(name, |machine| machine.health = Health::Removed);
            return Ok(Action::Done);
        }
        let body = object::node(name, machine, &self.options, cx.clock.now()).to_string().into_bytes();
        let why = Why::Register { node: name.clone() };
        ordinary(cx.writer.unowned().create_in(None, NODES, body, &why).await.map(drop))?;
        // The cache will show it; if it does not, somebody deleted it at once.
        Ok(Action::After(SEEN_WITHIN))
    }
}

/// Returns a kubelet's message for a state of its node.
fn status_is<'a>(what: &'a str, node: &ObjectKey) -> (&'a str, String) {
    (what, format!("Node {} status is now: {what}", node.name))
}

/// Removes the taint of new nodes once the node is ready.
async fn untaint(cx: &Context, node: &NodeView) -> Result<(), Error> {
    let Some(kept) = object::kept_taints(node) else { return Ok(()) };
    let meta = &node.metadata;
    // Others change taints, too: none of theirs gets lost.
    let patch = json!({ "metadata": { "resourceVersion": meta.resource_version }, "spec": { "taints": kept } });
    let why = Why::Untaint { node: meta.name.clone() };
    let write = cx.writer.on_behalf_of(meta);
    ordinary(write.patch(NODES, &meta.key(), Patch::Strategic(&patch), &why).await.map(drop))
}

async fn remove(cx: &Context, node: &Meta) -> Result<(), Error> {
    let why = Why::Remove { node: node.name.clone() };
    let write = cx.writer.on_behalf_of(node);
    ordinary(write.delete(NODES, node, Delete::default(), &why).await)?;
    // The lease is identified by its name; its uid was not read.
    let lease = Meta { name: node.name.clone(), namespace: Istr::interned(LEASES_IN), ..Meta::default() };
    ordinary(cx.writer.unowned().delete(LEASES, &lease, Delete::default(), &why).await)
}

/// Ignores conflicts: the next pass sees the result.
fn ordinary(outcome: Result<(), WriteError>) -> Result<(), Error> {
    match outcome {
        Ok(()) | Err(WriteError::NotFound | WriteError::Conflict | WriteError::AlreadyExists) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
