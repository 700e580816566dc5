//! The shell: decide → bind → report.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use steersman_base::{ConditionStatus, Istr, ObjectKey, Resource, names};
use steersman_informer::Lister;
use steersman_model::core::PersistentVolumeClaimView;
use steersman_model::resource::ResourceClaimView;
use steersman_model::storage::StorageClassView;
use steersman_model::{Kind, View};
use steersman_runtime::events::{About, Recorder};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Patch, Reconciler, WriteError, reasons};
use steersman_workqueue::{Priority, Queue};

use super::claims::{self, Verdict};
use super::ledger::{Decision, Ledger};
use super::map::{Part, part};
use crate::devices;
use crate::view::SimPodView;

const CLAIMS: &Resource = &PersistentVolumeClaimView::RESOURCE;
const PODS: &Resource = &SimPodView::RESOURCE;

/// The scheduler's shell.
pub(super) struct Scheduler {
    pub(super) pods: Lister<SimPodView>,
    /// The claims that pods wait for; `None` if they wait for none.
    pub(super) volumes: Option<Volumes>,
    /// Claims of devices; absent if nothing allocates them.
    pub(super) devices: Option<Lister<ResourceClaimView>>,
    pub(super) ledger: Arc<Mutex<Ledger>>,
    pub(super) name: Istr,
    pub(super) events: Recorder,
    pub(super) queue: Queue<ObjectKey>,
}

/// The caches of claims and classes.
pub(super) struct Volumes {
    pub(super) claims: Lister<PersistentVolumeClaimView>,
    pub(super) classes: Lister<StorageClassView>,
}

reasons! {
    /// Why the scheduler writes.
    pub enum Why {
        /// A node fits.
        Fits { node: Istr } => "{node} fits best",
        /// No node fits.
        NoNode { message: String } => "{message}",
        /// A claim waits for the node of its first pod.
        Select { node: Istr } => "its first pod will run on {node}",
    }
}

/// The maximum length of an event's note in the API.
const NOTE_MAX: usize = 1024;

// === impl Scheduler ===

impl Reconciler for Scheduler {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        if *key == super::try_again() {
            let keys = self.ledger.lock().try_again();
            self.queue.add_all(&keys, Priority::Live);
            return Ok(Action::Done);
        }
        // The queue is first in, first out. Waiting pods with a higher priority are decided first.
        while let Some(before) = self.take_before(key) {
            if let Err(error) = self.schedule(cx, &before).await {
                tracing::warn!(pod = %before, %error, "cannot be scheduled now; it will be tried again");
                self.queue.add_rate_limited(before);
            }
        }
        self.schedule(cx, key).await?;
        Ok(Action::Done)
    }
}

impl Scheduler {
    fn take_before(&self, key: &ObjectKey) -> Option<ObjectKey> {
        self.ledger.lock().take_before(key)
    }

    async fn schedule(&self, cx: &Context, key: &ObjectKey) -> Result<(), Error> {
        let Some(pod) = self.pods.get(key) else { return Ok(()) };
        if part(&pod, &self.name) != Part::Waiting {
            return Ok(());
        }
        if let Some(claims) = &self.devices {
            let is_allocated = |key: &ObjectKey| claims.get(key).is_some_and(|claim| claim.status.allocation.is_some());
            // A change of a claim, or of the pod, enqueues it again.
            if let Some(message) = devices::lacking(&pod, is_allocated) {
                return self.report_unschedulable(cx, &pod, &message).await;
            }
        }
        let to_select = match self.verdict(&pod) {
            Verdict::Bound => Vec::new(),
            Verdict::Select(claims) => claims,
            Verdict::Refused(why) => {
                let nodes = self.ledger.lock().set_aside(key);
                let message = format!("0/{nodes} nodes are available: {why}.");
                return self.report_unschedulable(cx, &pod, &message).await;
            }
        };
        let decision = self.ledger.lock().decide(&pod);
        match decision {
            Decision::Decided => Ok(()),
            Decision::Bind(node) if !to_select.is_empty() => {
                // The node is not reserved while the volumes are made: the pod is decided again when they are there.
                self.correct(key);
                self.ledger.lock().set_aside(key);
                self.select(cx, &to_select, &node).await?;
                // A claim that was bound while the pod was decided had no waiting pod.
                if !matches!(self.verdict(&pod), Verdict::Select(_)) {
                    self.queue.add_all(std::slice::from_ref(key), Priority::Live);
                }
                Ok(())
            }
            Decision::Bind(node) => self.bind(cx, &pod, &node).await,
            Decision::Wait(message) => self.report_unschedulable(cx, &pod, &message).await,
        }
    }

    fn verdict(&self, pod: &SimPodView) -> Verdict {
        let Some(volumes) = &self.volumes else { return Verdict::Bound };
        claims::verdict(pod, |key| volumes.claims.get(key), |key| volumes.classes.get(key))
    }

    /// Names the chosen node in claims that wait for it.
    async fn select(&self, cx: &Context, claims: &[Arc<PersistentVolumeClaimView>], node: &Istr) -> Result<(), Error> {
        // One that has a node already keeps it: its volume is on the way, and every node can reach it.
        for claim in claims.iter().filter(|claim| !claims::has_node(claim)) {
            let meta = claim.meta();
            let annotations = json!({ names::annotations::SELECTED_NODE: node });
            let patch = json!({ "metadata": { "uid": meta.uid, "annotations": annotations } });
            let why = Why::Select { node: node.clone() };
            let write = cx.writer.unowned();
            let patched = write.patch(CLAIMS, &meta.key(), Patch::Merge(&patch), &why).await;
            patched.ok_if_gone().ok_if_replaced()?;
        }
        Ok(())
    }

    async fn bind(&self, cx: &Context, pod: &SimPodView, node: &Istr) -> Result<(), Error> {
        let meta = &pod.metadata;
        let body = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": { "name": meta.name, "namespace": meta.namespace, "uid": meta.uid },
            "target": { "apiVersion": "v1", "kind": "Node", "name": node },
        });
        let key = meta.key();
        let body = body.to_string().into_bytes();
        let why = Why::Fits { node: node.clone() };
        // Not tracked by the consistency book: until the cache shows it, the ledger knows.
        match cx.writer.unowned().post_subresource(PODS, &key, "binding", body, &why).await {
            Ok(_) => {
                let note = format!("Successfully assigned {}/{} to {node}", meta.namespace, meta.name);
                self.events.normal(&About::new(PODS, meta), "Scheduled", note);
                Ok(())
            }
            Err(error) => {
                self.correct(&key);
                match error {
                    // Deleted, terminating, or bound by others: the cache will show it.
                    WriteError::NotFound | WriteError::Conflict => Ok(()),
                    error => Err(error.into()),
                }
            }
        }
    }

    /// Corrects an assumption that may not hold: the state of the cache counts.
    fn correct(&self, key: &ObjectKey) {
        let mut ledger = self.ledger.lock();
        ledger.free(key);
        match self.pods.get(key) {
            Some(pod) if part(&pod, &self.name) == Part::Placed => {
                ledger.place(&pod, &pod.spec.node_name);
            }
            Some(pod) if part(&pod, &self.name) == Part::Waiting => ledger.await_turn(&pod),
            _ => {}
        }
    }

    /// Reports in the pod's condition, and in an event, that no node fits; once for each reason.
    async fn report_unschedulable(&self, cx: &Context, pod: &SimPodView, message: &str) -> Result<(), Error> {
        let meta = &pod.metadata;
        let held = pod.status.condition("PodScheduled").filter(|held| held.status == ConditionStatus::False);
        if held.is_some_and(|held| held.reason == "Unschedulable" && held.message == message) {
            return Ok(());
        }
        let since = held.and_then(|held| held.last_transition_time).unwrap_or(cx.clock.now());
        let condition = json!({
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastProbeTime": null,
            "lastTransitionTime": since,
            "observedGeneration": meta.generation,
        });
        let patch = json!({ "metadata": { "uid": meta.uid }, "status": { "conditions": [condition] } });
        let why = Why::NoNode { message: message.to_owned() };
        let write = cx.writer.on_behalf_of(meta);
        match write.patch_subresource(PODS, &meta.key(), "status", Patch::Strategic(&patch), &why).await {
            Ok(_) => self.events.warning(&About::new(PODS, meta), "FailedScheduling", cut(message)),
            // Deleted or replaced meanwhile.
            Err(WriteError::NotFound | WriteError::Conflict) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

fn cut(message: &str) -> String {
    const SUFFIX: &str = " ...";
    if message.len() <= NOTE_MAX {
        return message.to_owned();
    }
    let mut end = NOTE_MAX - SUFFIX.len();
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{SUFFIX}", &message[..end])
}
