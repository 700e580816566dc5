//! Evictions.

use std::sync::Arc;

use steersman_base::{ObjectKey, Resource};
use steersman_model::core::PodView;
use steersman_model::{Kind, View};
use steersman_runtime::events::About;
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Delete, Error, Patch, Reconciler, WriteError};

use super::super::memory::Memory;
use super::super::plan::Eviction;
use super::{Observed, Why};
use crate::eviction::metrics::Metrics;
use crate::eviction::{Disruption, disrupted};

const PODS: &Resource = &PodView::RESOURCE;
/// The reason of all events, of announced and of cancelled evictions.
const EVENT: &str = "DeviceTaintManagerEviction";
const DISRUPTION: Disruption = Disruption {
    reason: "DeletionByDeviceTaintManager",
    message: "Device Taint manager: deleting due to NoExecute taint",
};

/// The shell of the queue of pods.
pub(in super::super) struct Pods {
    pub(in super::super) observed: Arc<Observed>,
    pub(in super::super) memory: Arc<Memory>,
    pub(in super::super) metrics: Metrics,
}

// === impl Pods ===

impl Reconciler for Pods {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let planned = &self.memory.pods;
        let pod = self.observed.pods.get(key).filter(|pod| !pod.meta().is_terminating());
        let Some(pod) = pod else {
            planned.forget(key);
            return Ok(Action::Done);
        };
        let now = cx.clock.now_micros();
        let Some(eviction) = self.observed.eviction(&pod, planned.seen(pod.meta(), now)) else {
            if planned.forget(key) {
                cx.events.normal(&About::new(PODS, pod.meta()), EVENT, "Cancelling deletion");
            }
            return Ok(Action::Done);
        };
        planned.plan(pod.meta(), now);
        if eviction.at > now {
            Ok(Action::After(eviction.at.since(now)))
        } else {
            self.evict(cx, &pod, &eviction).await
        }
    }
}

impl Pods {
    async fn evict(&self, cx: &Context, pod: &PodView, eviction: &Eviction) -> Result<Action, Error> {
        let meta = pod.meta();
        let key = meta.key();
        let planned = &self.memory.pods;
        if planned.announces(&key) {
            cx.events.normal(&About::new(PODS, meta), EVENT, "Marking for deletion");
        }
        let write = cx.writer.on_behalf_of(meta);
        if let Some(patch) = disrupted(pod, DISRUPTION, cx.clock.now()) {
            match write.patch_subresource(PODS, &key, "status", Patch::Strategic(&patch), &Why::Evict).await {
                Ok(_) => {}
                Err(WriteError::NotFound) => {
                    planned.forget(&key);
                    return Ok(Action::Done);
                }
                // It has changed: whether it has to leave is decided again.
                Err(WriteError::Conflict) => return Ok(Action::Again),
                Err(error) => return Err(error.into()),
            }
        }
        write.delete(PODS, meta, Delete::default(), &Why::Evict).await.ok_if_gone().ok_if_replaced()?;
        self.metrics.evicted(cx.clock.now_micros().since(eviction.at));
        self.memory.evicted_by(&eviction.rules);
        planned.forget(&key);
        Ok(Action::Done)
    }
}
