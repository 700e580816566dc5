//! The shell: observe → claim → history → plan → write → status.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};
use steersman_base::names::labels;
use steersman_base::{Istr, ObjectKey, Resource, Selector, StringMap};
use steersman_informer::Lister;
use steersman_model::apps::{ControllerRevisionView, DaemonSetView};
use steersman_model::core::{NodeView, PodView};
use steersman_model::template::raw_body;
use steersman_model::{Kind, PodName, View};
use steersman_runtime::__internal::Children;
use steersman_runtime::__internal::writer::Naming;
use steersman_runtime::events::About;
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Propagation, Reconciler, WriteError, reasons};

use super::memory::{Backoff, OfSet};
use super::placement::Placement;
use super::plan::{Deletion, Observed, Plan, Reason, plan};
use super::pods::{Wanted, by_node};
use super::status;
use crate::claim::{Selecting, claimed, owner_ref, usable};
use crate::history::memory::Patches;
use crate::pod;
use crate::toleration::Comparison;

mod revisions;

const SETS: &Resource = &DaemonSetView::RESOURCE;
const PODS: &Resource = &PodView::RESOURCE;

/// The controller's shell: the caches that it reads from.
pub(super) struct Sets {
    pub(super) sets: Lister<DaemonSetView>,
    pub(super) nodes: Lister<NodeView>,
    pub(super) pods: Children<PodView>,
    pub(super) revisions: Children<ControllerRevisionView>,
    pub(super) patches: Patches,
    pub(super) backoff: Backoff,
    pub(super) comparison: Comparison,
}

reasons! {
    /// Why the DaemonSet controller writes.
    pub enum Why {
        /// A node has no pod, or needs a second one.
        Missing { node: Istr } => "node {node} needs a pod"
            event "SuccessfulCreate" |pod| "Created pod: {pod}"
            or "FailedCreate" |error| "Error creating: {error}",
        /// A pod has ended.
        Ended { node: Istr } => "it has ended on node {node}, and is replaced"
            event "SuccessfulDelete" |pod| "Deleted pod: {pod}"
            or "FailedDelete" |error| "Error deleting: {error}",
        /// Another pod runs on the node.
        Duplicate { node: Istr } => "another one runs on node {node}"
            event "SuccessfulDelete" |pod| "Deleted pod: {pod}"
            or "FailedDelete" |error| "Error deleting: {error}",
        /// The node should run no pod, or does not exist.
        Misplaced { node: Istr } => "node {node} should run none, or does not exist"
            event "SuccessfulDelete" |pod| "Deleted pod: {pod}"
            or "FailedDelete" |error| "Error deleting: {error}",
        /// A pod is of an old template.
        Old { hash: Istr } => "it is not of revision {hash}"
            event "SuccessfulDelete" |pod| "Deleted pod: {pod}"
            or "FailedDelete" |error| "Error deleting: {error}",
        /// The revision that the pod is of was a duplicate.
        Relabel { hash: Istr } => "its revision is kept as {hash}",
        /// The name of a new revision is taken by another owner.
        Collision { count: i32 } => "the name of the new revision is taken, for the {count}th time",
        /// The status is out of date.
        Status { desired: i32, ready: i32, updated: i32 } =>
            "{desired} nodes should run a pod; {ready} pods are ready, {updated} updated",
    }
}

// === impl Sets ===

impl Reconciler for Sets {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(set) = cx.main(&self.sets, key).await? else {
            self.patches.forget(key);
            return Ok(Action::Done);
        };
        let selector = set.selector();
        if selector.as_ref().is_some_and(Selector::is_everything) {
            let text = "This daemon set is selecting all pods. A non-empty selector is required.";
            cx.events.warning(&About::new(SETS, set.meta()), "SelectingAll", text);
            return Ok(Action::Done);
        }
        // Its revisions may be gone already, without which its status cannot be computed.
        if set.meta().is_terminating() {
            return Ok(Action::Done);
        }
        let unusable = |problem| Error::terminal(format!("DaemonSet {key} is left alone: {problem}"));
        let selector = usable(selector, set.spec.template.labels()).map_err(unusable)?;
        let pods = claimed(cx, &self.pods, &*set, &selector, |_| true).await?.own;
        let held = claimed(cx, &self.revisions, &*set, &selector, |_| true).await?.own;
        let Some(history) = revisions::history(cx, &set, held, &pods, &self.patches).await? else {
            return Ok(Action::Done);
        };
        self.work(cx, &set, &history, &pods).await
    }
}

impl Sets {
    async fn work(
        &self,
        cx: &Context,
        set: &DaemonSetView,
        history: &revisions::History,
        pods: &[Arc<PodView>],
    ) -> Result<Action, Error> {
        let now = cx.clock.now();
        let placement = Placement::of(&set.spec.template, self.comparison);
        let mut nodes = self.nodes.list();
        nodes.sort_by(|left, right| left.meta().name.cmp(&right.meta().name));
        let generation = set.status.observed_generation;
        let backoff = OfSet { backoff: &self.backoff, set: set.meta().uid.clone(), generation };
        let on_nodes = by_node(pods);
        let seen = Observed {
            set,
            placement: &placement,
            nodes: &nodes,
            pods: &on_nodes,
            wanted: &Wanted::new(set, history.hash.clone()),
            now,
            waits: &|node| backoff.wait(node, now),
        };
        let plan = plan(&seen);
        let outcome = perform(cx, &seen, &plan, &backoff).await;
        let truncated = match outcome {
            Ok(()) => {
                let label = |pod: &Arc<PodView>| pod.meta().labels.get(labels::CONTROLLER_REVISION_HASH).cloned();
                let live: HashSet<Istr> = pods.iter().filter_map(label).collect();
                revisions::truncate(cx, set, history, &live).await
            }
            Err(_) => Ok(()),
        };
        let status = status::status(&seen);
        let why = Why::Status {
            desired: status.desired_number_scheduled,
            ready: status.number_ready,
            updated: status.updated_number_scheduled,
        };
        let write = cx.writer.on_behalf_of(set.meta());
        let stored = write.put_status_if_changed::<DaemonSetView, _>(set.meta(), &set.status, &status, &why).await;
        outcome?;
        truncated?;
        // A conflict is left to the next pass: the change triggers it.
        stored.ok_if_gone()?;
        let checks = [plan.check_in, status::next_check(&seen)];
        Ok(checks.into_iter().flatten().min().map_or(Action::Done, Action::After))
    }
}

/// Creates and deletes pods; returns the first failure.
async fn perform(cx: &Context, seen: &Observed<'_>, plan: &Plan, backoff: &OfSet<'_>) -> Result<(), Error> {
    let created = create(cx, seen, &plan.create).await;
    for deletion in &plan.delete {
        announce(cx, seen, deletion, backoff);
    }
    let deletes = plan.delete.iter().map(|deletion| delete(cx, seen, deletion));
    let deleted = futures::future::join_all(deletes).await;
    created?;
    deleted.into_iter().try_for_each(|outcome| outcome)?;
    Ok(())
}

/// Reports a pod that has ended.
fn announce(cx: &Context, seen: &Observed<'_>, deletion: &Deletion, backoff: &OfSet<'_>) {
    let about = About::new(SETS, seen.set.meta());
    let key = deletion.pod.meta().key();
    let node = &deletion.node;
    match deletion.reason {
        Reason::Failed => {
            backoff.next(node, seen.now);
            let text = format!("Found failed daemon pod {key} on node {node}, will try to kill it");
            cx.events.warning(&about, "FailedDaemonPod", text.as_str());
        }
        Reason::Succeeded => {
            let text = format!("Found succeeded daemon pod {key} on node {node}, will try to delete it");
            cx.events.normal(&about, "SucceededDaemonPod", text.as_str());
        }
        Reason::Duplicate | Reason::Misplaced | Reason::Old => {}
    }
}

async fn create(cx: &Context, seen: &Observed<'_>, nodes: &[Istr]) -> Result<(), WriteError> {
    let set = seen.set;
    let write = cx.writer.on_behalf_of(set.meta());
    let prefix = pod::name_prefix(&set.meta().name);
    let template = &set.spec.template;
    let mut metadata = template.new_pod(PodName::Prefix(&prefix), &set.meta().namespace, &owner_ref(set));
    metadata.labels = labelled(&metadata.labels, seen.wanted);
    let spec: Map<String, Value> = serde_json::from_str(template.spec().as_str()).unwrap_or_default();
    let pinned = seen.placement.pinned(spec);
    let is_seen = |name: &str| seen.pods.values().flatten().any(|pod| pod.meta().name == *name);
    let make = |at: usize| {
        let node = &nodes[at];
        let spec = pinned.to(node);
        let metadata = &metadata;
        let prefix = &prefix;
        let is_seen = &is_seen;
        async move {
            let body = |name: &str| {
                let metadata = metadata.under(PodName::Chosen { name, prefix });
                raw_body("v1", "Pod", &metadata, &spec)
            };
            // A pod that an earlier create makes late is on the node that it was for.
            let naming = Naming { prefix, purpose: node, is_seen };
            write.create_named(PODS, naming, &body, &Why::Missing { node: node.clone() }).await
        }
    };
    let (_, failure) = write.slow_start(nodes.len(), make).await;
    // Nothing can be created in a terminating namespace.
    failure.map_or(Ok(()), Err).ok_if_terminating()
}

fn labelled(held: &StringMap, wanted: &Wanted) -> StringMap {
    let hash = (Istr::interned(labels::CONTROLLER_REVISION_HASH), wanted.hash.clone());
    let generation = wanted
        .generation
        .map(|generation| (Istr::interned(labels::POD_TEMPLATE_GENERATION), Istr::new(&generation.to_string())));
    held.iter().map(|(key, value)| (key.clone(), value.clone())).chain([hash]).chain(generation).collect()
}

async fn delete(cx: &Context, seen: &Observed<'_>, deletion: &Deletion) -> Result<(), WriteError> {
    let node = deletion.node.clone();
    let why = match deletion.reason {
        Reason::Failed | Reason::Succeeded => Why::Ended { node },
        Reason::Duplicate => Why::Duplicate { node },
        Reason::Misplaced => Why::Misplaced { node },
        Reason::Old => Why::Old { hash: seen.wanted.hash.clone() },
    };
    let write = cx.writer.on_behalf_of(seen.set.meta());
    let deleted = write.delete(PODS, deletion.pod.meta(), Propagation::Background, &why).await;
    // Deleted or replaced meanwhile: nothing is left to do.
    deleted.ok_if_gone().ok_if_replaced()
}
