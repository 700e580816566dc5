//! One pass over one Job.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::join_all;
use steersman_base::names::finalizers;
use steersman_base::{Istr, Time, Uid};
use steersman_informer::Selection;
use steersman_model::View;
use steersman_model::batch::{JobStatus, JobView};
use steersman_model::core::PodView;
use steersman_runtime::__internal::writer::Naming;
use steersman_runtime::events::About;
use steersman_runtime::writer::{Behalf, Outcome};
use steersman_runtime::{Action, Context, Error, Propagation, WriteError};

use super::{JOBS, Jobs, PODS, Why, release};
use crate::claim::{claimed_with, usable};
use crate::job::plan::{End, Plan, Step, Verdict, Wanted, completed, plan};
use crate::job::pods::{NewPod, is_tracked, new_indexed_pods, new_pods};
use crate::job::spec;
use crate::job::status::{Progress, Suspension, Tracking, finished, settle, track, tracked};
use crate::job::tally::{Tally, count, tally};
use crate::pod;

/// One pass over one Job.
pub(super) struct Pass<'a> {
    shell: &'a Jobs,
    cx: &'a Context,
    job: &'a JobView,
    write: Behalf<'a>,
    /// The PodGroup of new pods, if they are in one.
    group: Option<Istr>,
    action: &'static str,
}

/// Pods that were deleted.
#[derive(Default)]
struct Deleted {
    count: i32,
    ready: i32,
    failure: Option<WriteError>,
}

// === impl Pass ===

impl<'a> Pass<'a> {
    pub(super) fn new(shell: &'a Jobs, cx: &'a Context, job: &'a JobView) -> Self {
        Self { shell, cx, job, write: cx.writer.on_behalf_of(job.meta()), group: None, action: "reconciling" }
    }

    /// Returns what the pass did, in upstream's words for metrics.
    pub(super) fn action(&self) -> &'static str {
        self.action
    }

    pub(super) async fn run(&mut self) -> Result<Action, Error> {
        // What was just adopted has an event of its own, and the finalizer then.
        let Some(pods) = self.pods().await? else { return Ok(Action::Done) };
        let job = self.job;
        if let Some(gangs) = &self.shell.gangs {
            self.group = gangs.ensure(self.cx, &self.write, job, &pods).await?;
        }
        let now = self.cx.clock.now();
        let start = job.status.start_time.or_else(|| (!spec::is_suspended(job)).then_some(now));
        let tally = tally(job, &pods, self.shell.memory.record(job.meta()));
        let plan = plan(job, &pods, &tally, start, now);
        let (progress, failure) = self.act(&plan, &pods, &tally, start).await;
        let tracking = track(job, &pods, &tally, &progress, self.shell.options, now);
        self.record(&pods, &tally, tracking, progress.verdict.as_ref(), now).await?;
        failure.map_or(Ok(()), Err)?;
        Ok(plan.again_in.map_or(Action::Done, Action::After))
    }

    /// Returns the pods of the Job; `None` if one was adopted, of which the cache shows an older state.
    async fn pods(&self) -> Result<Option<Vec<Arc<PodView>>>, Error> {
        let Self { shell, cx, job, .. } = *self;
        let key = job.meta().key();
        let selector = usable(crate::claim::Selecting::selector(job), job.spec.template.labels())
            .map_err(|problem| Error::terminal(format!("Job {key} is left alone: {problem}")))?;
        let claimed = claimed_with(cx, &shell.pods, job, &selector, |_| true, finalizers::JOB_TRACKING).await?;
        if claimed.has_adopted {
            return Ok(None);
        }
        if self.has_unseen(&claimed.own) {
            // A pod that is noted and not in the cache counts as released. Before that is done, the server is asked: it must
            // not turn up later.
            let mut pods: Vec<Arc<PodView>> = cx.live.list(Selection::namespace(&job.meta().namespace)).await?;
            pods.retain(|pod| pod.meta().is_controlled_by(job.meta()));
            return Ok(Some(pods));
        }
        Ok(Some(claimed.own))
    }

    /// Whether the status notes a pod that is not among these.
    fn has_unseen(&self, pods: &[Arc<PodView>]) -> bool {
        let Some(uncounted) = &self.job.status.uncounted_terminated_pods else { return false };
        if uncounted.succeeded.is_empty() && uncounted.failed.is_empty() {
            return false;
        }
        let seen: BTreeSet<&Uid> = pods.iter().map(|pod| &pod.meta().uid).collect();
        uncounted.succeeded.iter().chain(&uncounted.failed).any(|uid| !seen.contains(uid))
    }

    /// Creates and deletes pods.
    async fn act(
        &mut self,
        plan: &Plan,
        pods: &[Arc<PodView>],
        tally: &Tally,
        start: Option<Time>,
    ) -> (Progress, Option<WriteError>) {
        let mut progress = Progress {
            active: count(tally.active.len()),
            ready: tally.ready,
            terminating: tally.terminating,
            start,
            verdict: plan.verdict.clone(),
            is_managed: plan.verdict.is_none() && !self.job.meta().is_terminating(),
        };
        if progress.is_managed {
            self.action = "tracking";
        }
        let failure = match &plan.step {
            Step::Nothing => None,
            Step::Wait => {
                self.action = "pods_created";
                None
            }
            Step::Finish { pods } => {
                let reason = plan.verdict.as_ref().map(|verdict| verdict.reason.clone()).unwrap_or_default();
                let deleted = self.delete(pods, &Why::Ends { reason }, false).await;
                // The end is not announced while an active pod is left.
                if deleted.failure.is_some() {
                    progress.verdict = None;
                }
                progress.after(deleted)
            }
            Step::Remove { pods, want } => {
                self.action = "pods_deleted";
                let why = Why::TooMany { have: tally.active.len(), want: *want };
                progress.after(self.delete(pods, &why, true).await)
            }
            Step::Create { pods: wanted, want } => {
                self.action = "pods_created";
                let (made, failure) = self.create(wanted, pods, tally, *want).await;
                progress.active += count(made);
                failure
            }
        };
        if plan.verdict.is_none() {
            progress.verdict = completed(self.job, tally, progress.active);
        }
        (progress, failure)
    }

    async fn create(
        &self,
        wanted: &Wanted,
        pods: &[Arc<PodView>],
        tally: &Tally,
        want: usize,
    ) -> (usize, Option<WriteError>) {
        let new: Vec<NewPod<'_>> = match wanted {
            Wanted::Any(count) => new_pods(self.job, *count, self.group.as_deref()),
            Wanted::Indexes(indexes) => new_indexed_pods(self.job, indexes, self.group.as_deref()),
        };
        let why = Why::TooFew { have: tally.active.len(), want };
        let is_seen = |name: &str| pods.iter().any(|pod| pod.meta().name == *name);
        let create = |at: usize| {
            let pod = &new[at];
            let naming = Naming { prefix: &pod.prefix, purpose: "", is_seen: &is_seen };
            self.write.create_named(PODS, naming, |name: &str| pod.body(name), &why)
        };
        let (made, failure) = self.write.slow_start(new.len(), create).await;
        self.shell.metrics.created(self.job, tally, made, usize::from(failure.is_some()));
        // Nothing can be created in a terminating namespace.
        let failure = failure.map_or(Ok(()), Err).ok_if_terminating().err();
        (made, failure)
    }

    /// Deletes pods. A pod that is not to be counted loses its finalizer first.
    async fn delete(&self, pods: &[Arc<PodView>], why: &Why, is_uncounted: bool) -> Deleted {
        let delete = async |pod: &Arc<PodView>| {
            let meta = pod.meta();
            if is_uncounted && is_tracked(pod) {
                release(&self.write, meta, false, &Why::Unwanted { pod: meta.name.clone() }).await?;
            }
            self.write.delete(PODS, meta, Propagation::Background, why).await.ok_if_gone().ok_if_replaced()
        };
        let outcomes = join_all(pods.iter().map(delete)).await;
        let mut deleted = Deleted::default();
        for (pod, outcome) in pods.iter().zip(outcomes) {
            match outcome {
                Ok(()) => {
                    deleted.count += 1;
                    deleted.ready += i32::from(pod::is_ready(pod));
                }
                Err(error) => deleted.failure = deleted.failure.or(Some(error)),
            }
        }
        deleted
    }

    /// Writes the status, removes finalizers, and counts the pods that have lost them.
    async fn record(
        &self,
        pods: &[Arc<PodView>],
        tally: &Tally,
        tracking: Tracking,
        verdict: Option<&Verdict>,
        now: Time,
    ) -> Result<(), Error> {
        let Self { shell, job, .. } = *self;
        let Tracking { status, release: to_release, is_cut, suspension, actions } = tracking;
        let mut meta = job.meta().clone();
        if status != job.status {
            let Some(version) = self.put(&meta, &job.status, &status, &status_reason(&status)).await? else {
                return Ok(());
            };
            meta.resource_version = version;
            shell.memory.keep(job.meta(), tally.record);
            self.report_suspension(suspension);
        }
        shell.metrics.handled(&actions);
        let mut left = tracked(pods);
        let failure = self.release(&to_release, &mut left).await;
        let settled = settle(&status, &left);
        let end = verdict.filter(|_| failure.is_none() && !is_cut);
        let ended = end.and_then(|verdict| Some((verdict, finished(&settled, verdict, now)?)));
        let (last, why) = match &ended {
            Some((verdict, last)) => (last, Why::Finished { reason: verdict.reason.clone() }),
            None => (&settled, status_reason(&settled)),
        };
        if *last != status && self.put(&meta, &status, last, &why).await?.is_some() {
            self.report_end(ended.as_ref().map(|(verdict, _)| *verdict), last);
        }
        failure.map_or(Ok(()), |failure| Err(failure.into()))
    }

    /// Writes a status and returns its version; `None` if the Job is gone.
    async fn put(
        &self,
        meta: &steersman_base::Meta,
        before: &JobStatus,
        status: &JobStatus,
        why: &Why,
    ) -> Result<Option<steersman_base::ResourceVersion>, WriteError> {
        match self.write.put_status_of::<JobView>(meta, status, why).await {
            Ok(written) => {
                self.shell.metrics.counted(self.job, before, status);
                Ok(Some(written.resource_version))
            }
            Err(WriteError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes the finalizers of pods, and their uids from `left`. Returns the first failure.
    async fn release(&self, pods: &[Arc<PodView>], left: &mut BTreeSet<Uid>) -> Option<WriteError> {
        let remove = async |pod: &Arc<PodView>| {
            release(&self.write, pod.meta(), false, &Why::Counted { pod: pod.meta().name.clone() }).await
        };
        let outcomes = join_all(pods.iter().map(remove)).await;
        let mut failure = None;
        for (pod, outcome) in pods.iter().zip(outcomes) {
            match outcome {
                Ok(()) => drop(left.remove(&pod.meta().uid)),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure
    }

    fn report_suspension(&self, suspension: Option<Suspension>) {
        let about = About::new(JOBS, self.job.meta());
        match suspension {
            Some(Suspension::Suspended) => self.cx.events.normal(&about, "Suspended", "Job suspended"),
            Some(Suspension::Resumed) => self.cx.events.normal(&about, "Resumed", "Job resumed"),
            None => {}
        }
    }

    fn report_end(&self, verdict: Option<&Verdict>, status: &JobStatus) {
        let Some(verdict) = verdict else { return };
        let about = About::new(JOBS, self.job.meta());
        self.shell.metrics.finished(self.job, verdict);
        if verdict.end == End::Failed {
            self.cx.events.warning(&about, &verdict.reason, &*verdict.message);
            return;
        }
        if self.job.spec.completions.is_some_and(|wanted| status.succeeded > wanted) {
            let note = "Too many succeeded pods running after completion count reached";
            self.cx.events.warning(&about, "TooManySucceededPods", note);
        }
        self.cx.events.normal(&about, "Completed", "Job completed");
    }
}

fn status_reason(status: &JobStatus) -> Why {
    Why::Status { active: status.active, succeeded: status.succeeded, failed: status.failed }
}

// === impl Progress ===

impl Progress {
    /// Notes pods that were deleted. Returns the failure of the others.
    fn after(&mut self, deleted: Deleted) -> Option<WriteError> {
        self.active -= deleted.count;
        self.ready -= deleted.ready;
        self.terminating += deleted.count;
        deleted.failure
    }
}
