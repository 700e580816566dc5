//! The shell: decide → bind → report.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use steersman_base::{ConditionStatus, Istr, ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::Kind;
use steersman_model::resource::ResourceClaimView;
use steersman_runtime::events::{About, Recorder};
use steersman_runtime::{Action, Context, Error, Patch, Reconciler, WriteError, reasons};
use steersman_workqueue::{Priority, Queue};

use super::ledger::{Decision, Ledger};
use super::map::{Part, part};
use crate::devices;
use crate::view::SimPodView;

const PODS: &Resource = &SimPodView::RESOURCE;

/// The scheduler's shell.
pub(super) struct Scheduler {
    pub(super) pods: Lister<SimPodView>,
    /// Claims of devices; absent if nothing allocates them.
    pub(super) claims: Option<Lister<ResourceClaimView>>,
    pub(super) ledger: Arc<Mutex<Ledger>>,
    pub(super) name: Istr,
    pub(super) events: Recorder,
    pub(super) queue: Queue<ObjectKey>,
}

reasons! {
    /// Why the scheduler writes.
    pub enum Why {
        /// A node fits.
        Fits { node: Istr } => "{node} fits best",
        /// No node fits.
        NoNode { message: String } => "{message}",
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
        if let Some(claims) = &self.claims {
            let is_allocated = |key: &ObjectKey| claims.get(key).is_some_and(|claim| claim.status.allocation.is_some());
            // A change of a claim, or of the pod, enqueues it again.
            if let Some(message) = devices::lacking(&pod, is_allocated) {
                return self.report_unschedulable(cx, &pod, &message).await;
            }
        }
        let decision = self.ledger.lock().decide(&pod);
        match decision {
            Decision::Decided => Ok(()),
            Decision::Bind(node) => self.bind(cx, &pod, &node).await,
            Decision::Wait(message) => self.report_unschedulable(cx, &pod, &message).await,
        }
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
