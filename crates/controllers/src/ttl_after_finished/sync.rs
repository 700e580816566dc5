//! The shell: observe → read from the server → delete.

use steersman_base::{ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::batch::JobView;
use steersman_model::{Kind, View};
use steersman_runtime::{Action, Context, Delete, Error, Propagation, Reconciler, WriteError, reasons};

use super::metrics::Metrics;
use super::plan::{Due, due};

const JOBS: &Resource = &JobView::RESOURCE;

/// The controller's shell: the cache that it reads from.
pub(super) struct Finished {
    pub(super) jobs: Lister<JobView>,
    pub(super) metrics: Metrics,
}

reasons! {
    /// Why the ttl-after-finished controller writes.
    pub enum Why {
        /// The time to live of a finished Job is over.
        Expired { ttl: i32 } => "it has finished, and ttlSecondsAfterFinished ({ttl} s) are over",
    }
}

// === impl Finished ===

impl Reconciler for Finished {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(seen) = self.jobs.get(key) else { return Ok(Action::Done) };
        if let Some(action) = wait(cx, &seen)? {
            return Ok(action);
        }
        // The cache may lag behind a longer time to live, or behind another Job of the name.
        let Some(job) = cx.live.get::<JobView>(key).await? else { return Ok(Action::Done) };
        if let Some(action) = wait(cx, &job)? {
            return Ok(action);
        }
        let why = Why::Expired { ttl: job.spec.ttl_seconds_after_finished.unwrap_or_default() };
        let delete = Delete::from(Propagation::Foreground).unchanged_only();
        match cx.writer.on_behalf_of(job.meta()).delete(JOBS, job.meta(), delete, &why).await {
            Ok(()) => {
                if let Ok(Due::Since(time)) = due(&job, cx.clock.now_micros()) {
                    self.metrics.deleted(cx.clock.now().since(time));
                }
                Ok(Action::Done)
            }
            Err(WriteError::NotFound) => Ok(Action::Done),
            // The Job has been changed since it was read: its time to live, perhaps.
            Err(WriteError::Conflict) => Ok(Action::Again),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the result of a pass over a Job that has not expired.
fn wait(cx: &Context, job: &JobView) -> Result<Option<Action>, Error> {
    match due(job, cx.clock.now_micros()).map_err(Error::terminal)? {
        Due::Kept => Ok(Some(Action::Done)),
        Due::In { wait, is_skewed } => {
            if is_skewed {
                tracing::warn!(job = %job.meta().key(), "the Job has finished in the future: the clocks of the cluster differ");
            }
            Ok(Some(Action::After(wait)))
        }
        Due::Since(_) => Ok(None),
    }
}
