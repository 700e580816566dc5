//! The shell: observe → delete old Jobs → repair the list → start a Job → status.

use std::sync::Arc;
use std::time::Duration;

use steersman_base::{Istr, Meta, ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::batch::{CronJobStatus, CronJobView, JobView};
use steersman_model::core::ObjectReference;
use steersman_model::{Kind, View};
use steersman_runtime::__internal::Children;
use steersman_runtime::events::About;
use steersman_runtime::writer::{Behalf, Outcome};
use steersman_runtime::{Action, Context, Error, Propagation, Reconciler, WriteError, reasons};

use super::metrics::Metrics;
use super::plan::{Notice, Start, job_body, job_name, plan};
use super::{active, history};

const CRON_JOBS: &Resource = &CronJobView::RESOURCE;
const JOBS: &Resource = &JobView::RESOURCE;

/// The controller's shell: the caches that it reads from.
pub(super) struct CronJobs {
    pub(super) cron_jobs: Lister<CronJobView>,
    pub(super) jobs: Children<JobView>,
    pub(super) metrics: Metrics,
}

/// One pass over one CronJob.
struct Pass<'a> {
    shell: &'a CronJobs,
    cx: &'a Context,
    cron_job: &'a CronJobView,
    write: Behalf<'a>,
}

reasons! {
    /// Why the CronJob controller writes.
    pub enum Why {
        /// The CronJob is due.
        Due => "the CronJob is due"
            event "SuccessfulCreate" |job| "Created job {job}",
        /// More finished Jobs are kept than wanted.
        Old => "more finished Jobs are kept than wanted"
            event "SuccessfulDelete" |job| "Deleted job {job}"
            or "FailedDelete" |error| "Deleted job: {error}",
        /// A Job still runs when the next one is due.
        Replaced => "the next Job is due"
            event "SuccessfulDelete" |job| "Deleted job {job}"
            or "FailedDelete" |error| "Deleted job: {error}",
        /// The status is out of date.
        Status { active: usize } => "{active} Jobs are running",
    }
}

// === impl CronJobs ===

impl Reconciler for CronJobs {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(cron_job) = cx.main(&self.cron_jobs, key).await? else { return Ok(Action::Done) };
        let write = cx.writer.on_behalf_of(cron_job.meta());
        Pass { shell: self, cx, cron_job: &cron_job, write }.run().await
    }
}

// === impl Pass ===

impl Pass<'_> {
    async fn run(&self) -> Result<Action, Error> {
        let Self { shell, cx, cron_job, write } = self;
        let meta = cron_job.meta();
        let jobs = shell.jobs.of_any(cx, &meta.namespace, &[meta]).await?;
        let seen = active::look(cron_job, &jobs);
        self.report_seen(&seen.notices);
        if seen.status.last_schedule_time != cron_job.status.last_schedule_time {
            // A start that was not noted. It is noted before its Job may be deleted, or the Job would be started again.
            let why = Why::Status { active: seen.status.active.len() };
            write
                .put_status_if_changed::<CronJobView, _>(meta, &cron_job.status, &seen.status, &why)
                .await
                .ok_if_gone()?;
            return Ok(Action::After(Duration::ZERO));
        }
        let mut status = self.delete_old(&jobs, seen.status).await;
        status = self.without_gone(status, seen.unseen).await?;
        let now = cx.clock.now_micros();
        let plan = plan(cron_job, &status, now);
        self.report(&plan.notices);
        let failure = match &plan.start {
            Some(start) => self.start(start, &jobs, &mut status).await.err(),
            None => None,
        };
        let why = Why::Status { active: status.active.len() };
        write.put_status_if_changed::<CronJobView, _>(meta, &cron_job.status, &status, &why).await.ok_if_gone()?;
        failure.map_or(Ok(()), Err)?;
        Ok(plan.again_in.map_or(Action::Done, Action::After))
    }

    /// Deletes finished Jobs beyond the limits. One that cannot be deleted is tried again in the next pass.
    async fn delete_old(&self, jobs: &[Arc<JobView>], mut status: CronJobStatus) -> CronJobStatus {
        for job in history::surplus(self.cron_job, jobs) {
            if self.delete(job.meta(), &Why::Old).await.is_ok() {
                status = active::without(&status, job.meta());
            }
        }
        status
    }

    async fn delete(&self, job: &Meta, why: &Why) -> Result<(), WriteError> {
        self.write.delete(JOBS, job, Propagation::Background, why).await.ok_if_gone().ok_if_replaced()
    }

    /// Removes entries of the list whose Job is gone. The cache may not show it yet: the server is asked.
    async fn without_gone(
        &self,
        mut status: CronJobStatus,
        unseen: Vec<ObjectReference>,
    ) -> Result<CronJobStatus, Error> {
        for entry in unseen {
            let key = ObjectKey { namespace: entry.namespace.clone(), name: entry.name.clone() };
            let live = self.cx.live.get_meta(JOBS, &key).await?;
            if live.is_none_or(|live| live.uid != entry.uid) {
                let about = About::new(CRON_JOBS, self.cron_job.meta());
                self.cx.events.normal(&about, "MissingJob", format!("Active job went missing: {}", entry.name));
                let gone = Meta { uid: entry.uid.clone(), ..Meta::default() };
                status = active::without(&status, &gone);
            }
        }
        Ok(status)
    }

    /// Starts a Job, and notes it in the list.
    async fn start(&self, start: &Start, jobs: &[Arc<JobView>], status: &mut CronJobStatus) -> Result<(), Error> {
        if start.is_replacement {
            for entry in status.active.clone() {
                let job = Meta {
                    namespace: entry.namespace.clone(),
                    name: entry.name.clone(),
                    uid: entry.uid.clone(),
                    ..Meta::default()
                };
                self.delete(&job, &Why::Replaced).await?;
                *status = active::without(status, &job);
            }
        }
        let created = match self.write.create(JOBS, job_body(self.cron_job, start.time), &Why::Due).await {
            Ok(created) => {
                let time = created.creation_timestamp.unwrap_or_else(|| self.cx.clock.now());
                self.shell.metrics.created(time.since(start.time));
                Some(created)
            }
            Err(WriteError::AlreadyExists) => self.existing(start, jobs).await?,
            Err(error) => {
                if !matches!(error, WriteError::NamespaceTerminating | WriteError::NotLeader) {
                    let about = About::new(CRON_JOBS, self.cron_job.meta());
                    let note = format!("Error creating job: {}", error.message());
                    self.cx.events.warning(&about, "FailedCreate", note);
                }
                return Err(error.into());
            }
        };
        // The name is another's: nothing can be started for this time.
        let Some(job) = created else { return Ok(()) };
        if status.active.iter().all(|entry| entry.uid != job.uid) {
            *status = active::with(status, active::reference(&job));
        }
        status.last_schedule_time = Some(start.time);
        Ok(())
    }

    /// Returns the Job of this name, if it is ours: the manager ended before it was noted. `None` if it is another's.
    async fn existing(&self, start: &Start, jobs: &[Arc<JobView>]) -> Result<Option<Meta>, Error> {
        let name = Istr::from(job_name(self.cron_job, start.time));
        let is_it = |job: &&Arc<JobView>| job.meta().name == *name;
        if let Some(job) = jobs.iter().find(is_it).filter(|job| active::is_running(job)) {
            return Ok(Some(job.meta().clone()));
        }
        let key = ObjectKey { namespace: self.cron_job.meta().namespace.clone(), name };
        let live = self.cx.live.get_meta(JOBS, &key).await?;
        match active::holder(self.cron_job, live) {
            active::Holder::Ours(job) => Ok(Some(job)),
            active::Holder::Another => Ok(None),
            active::Holder::Nobody => {
                Err(Error::message(format!("Job {key} was deleted just now: it is created again")))
            }
        }
    }

    fn report_seen(&self, notices: &[active::Notice]) {
        let about = About::new(CRON_JOBS, self.cron_job.meta());
        for notice in notices {
            match notice {
                active::Notice::Finished { name, condition } => {
                    let note = format!("Saw completed job: {name}, condition: {condition}");
                    self.cx.events.normal(&about, "SawCompletedJob", note);
                }
                active::Notice::Unexpected { name } => {
                    let note = format!("Saw a job that the controller did not create or forgot: {name}");
                    self.cx.events.warning(&about, "UnexpectedJob", note);
                }
            }
        }
    }

    fn report(&self, notices: &[Notice]) {
        let about = About::new(CRON_JOBS, self.cron_job.meta());
        for notice in notices {
            match notice {
                Notice::Normal(reason, text) => self.cx.events.normal(&about, reason, text.as_str()),
                Notice::Warning(reason, text) => self.cx.events.warning(&about, reason, text.as_str()),
            }
        }
    }
}
