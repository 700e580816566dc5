//! Pods whose finalizer no Job will remove.

use std::sync::Arc;

use steersman_base::{ObjectKey, OwnerRef};
use steersman_informer::Lister;
use steersman_model::batch::JobView;
use steersman_model::core::PodView;
use steersman_model::{Kind, View};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Reconciler};

use super::{JOBS, Why, release};
use crate::job::memory::Memory;
use crate::job::pods::is_tracked;
use crate::job::{job_of, spec};

/// Removes the finalizers of pods that no Job will count: the Job has finished or is gone, or there never was one.
pub(in crate::job) struct Orphans {
    pub(in crate::job) jobs: Lister<JobView>,
    pub(in crate::job) pods: Lister<PodView>,
    pub(in crate::job) memory: Arc<Memory>,
}

// === impl Orphans ===

impl Reconciler for Orphans {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(pod) = self.pods.get(key).filter(|pod| is_tracked(pod)) else { return Ok(Action::Done) };
        if !self.is_orphan(cx, &pod).await? {
            return Ok(Action::Done);
        }
        let write = cx.writer.on_behalf_of(pod.meta());
        let why = Why::Orphaned { pod: pod.meta().name.clone() };
        // A Job may adopt it at the same time: then it has changed, and there is an event for that.
        release(&write, pod.meta(), true, &why).await.ok_if_replaced()?;
        Ok(Action::Done)
    }
}

impl Orphans {
    async fn is_orphan(&self, cx: &Context, pod: &PodView) -> Result<bool, Error> {
        let Some(owner) = pod.meta().controller() else { return Ok(true) };
        if owner.kind != *JobView::RESOURCE.kind || *owner.api_version != *JobView::RESOURCE.api_version() {
            return Ok(false);
        }
        if let Some(job) = job_of(&self.jobs, pod.meta()) {
            return Ok(spec::managed_elsewhere(&job).is_none() && spec::is_finished(&job));
        }
        self.is_gone(cx, pod, owner).await
    }

    /// Whether a Job that is not in the cache is gone: the cache may not show a new one yet.
    async fn is_gone(&self, cx: &Context, pod: &PodView, owner: &OwnerRef) -> Result<bool, Error> {
        if self.memory.is_gone(&owner.uid) {
            return Ok(true);
        }
        let key = ObjectKey { namespace: pod.meta().namespace.clone(), name: owner.name.clone() };
        let live = cx.live.get_meta(JOBS, &key).await?;
        let is_gone = live.is_none_or(|live| live.uid != owner.uid);
        if is_gone {
            self.memory.gone(&owner.uid);
        }
        Ok(is_gone)
    }
}
