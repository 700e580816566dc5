#![doc = include_str!("../docs/job-controller.md")]
//!
//! Follows `pkg/controller/job` of Kubernetes 1.37.1.

use std::sync::Arc;
use std::time::Duration;

use steersman_base::{Meta, ObjectKey};
use steersman_informer::{Change, Lister};
use steersman_model::batch::JobView;
use steersman_model::core::PodView;
use steersman_model::scheduling::{PodGroupView, WorkloadView};
use steersman_model::{Kind, View};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled, Flags};
use steersman_runtime::Descriptor;
use steersman_runtime::handler::Keys;

use crate::claim::map::{Owners, controller_of};
use crate::quota_room::room;
use crate::table;

mod backoff;
mod failure;
mod gang;
mod indexes;
mod map;
mod memory;
mod metrics;
mod plan;
mod pods;
mod ranking;
pub(crate) mod spec;
mod status;
mod success;
mod sync;
mod tally;
#[cfg(test)]
mod tests;

pub use gang::TEMPLATE_ANNOTATION;
use pods::is_tracked;
pub use sync::Why;

/// The descriptor of the job controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "job-controller",
    needs: const { &[JobView::RESOURCE, PodView::RESOURCE] },
    options: Options::from_flags,
    build,
});

/// Options of the controller, set by feature gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Whether a suspended Job loses its start time, so that its template can be changed:
    /// `MutableSchedulingDirectivesForSuspendedJobs`.
    pub mutable_scheduling_directives: bool,
    /// Whether Jobs have Workloads and PodGroups, so that their pods can be scheduled together: `WorkloadWithJob`.
    pub workloads: bool,
}

/// The maximum number of pods that one pass creates or deletes: upstream's figure.
pub const BURST: usize = 500;
/// The maximum number of pods that one pass counts: upstream's figure, so that a status stays below 20 KB.
pub const UNCOUNTED_MAX: usize = 500;
/// The time for which changes of pods and of a Job's status are batched: upstream's figure.
pub const BATCHED_FOR: Duration = Duration::from_secs(1);

/// The queue of pods whose finalizer no Job will remove.
const ORPHANS: &str = "job-orphan-pods";

// === impl Options ===

impl Options {
    /// Returns the options that flags and feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        Self {
            mutable_scheduling_directives: flags.gate("MutableSchedulingDirectivesForSuspendedJobs", true),
            workloads: flags.gate("WorkloadWithJob", false),
        }
    }

    /// Sets whether a suspended Job loses its start time, so that its template can be changed.
    #[must_use]
    pub fn mutable_scheduling_directives(mut self, mutable_scheduling_directives: bool) -> Self {
        self.mutable_scheduling_directives = mutable_scheduling_directives;
        self
    }

    /// Sets whether Jobs have Workloads and PodGroups, so that their pods can be scheduled together.
    #[must_use]
    pub fn workloads(mut self, workloads: bool) -> Self {
        self.workloads = workloads;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

fn build(cx: &ControllerContext, options: Options) -> Result<Built, Disabled> {
    let jobs = cx.informer::<JobView>();
    let pods = cx.informer::<PodView>();
    let metrics = metrics::Metrics::new(cx.metrics())?;
    let memory = Arc::new(memory::Memory::default());

    let owners = Owners::new(&jobs);
    let of_pods = metrics.clone();
    let jobs_of_pod = move |change: &Change<PodView>| {
        of_pods.pod_changed(change);
        Keys::after(owners.of(change), BATCHED_FOR)
    };
    let of_jobs = metrics.clone();
    let job_itself = move |change: &Change<JobView>| {
        of_jobs.job_changed(change);
        Keys::after([change.key()], map::delay(change))
    };
    let room = room(cx, jobs.lister(), spec::lacks_pods);
    let mut counted = cx.controller(&jobs).watch_main(job_itself).watch(&pods, jobs_of_pod).source(room).reads_live();
    let caches = options.workloads.then(|| (cx.informer::<WorkloadView>(), cx.informer::<PodGroupView>()));
    if let Some((workloads, _)) = &caches {
        let by_parent = jobs.shared_index(gang::delegating);
        counted = counted.watch(workloads, move |change: &Change<WorkloadView>| {
            Keys::after(gang::delegated(change, |parent| by_parent.get(parent)), BATCHED_FOR)
        });
    }
    let gangs = caches.as_ref().map(|(workloads, groups)| sync::Gangs {
        workloads: cx.children(workloads),
        groups: cx.children(groups),
        by_described: workloads.shared_index(gang::described),
    });
    let counted = counted.reconcile(sync::Jobs {
        jobs: jobs.lister(),
        pods: cx.children(&pods),
        gangs,
        options,
        memory: Arc::clone(&memory),
        metrics,
    });

    let lister = jobs.lister();
    let orphan = move |change: &Change<PodView>| map::orphan(change, |pod| job_of(&lister, pod));
    let children = cx.children(&pods);
    let abandoned = move |change: &Change<JobView>| {
        let pods = if map::abandons(change) { children.cached(change.object().meta()) } else { Vec::new() };
        let tracked = pods.iter().filter(|pod| is_tracked(pod));
        tracked.map(|pod| pod.meta().key()).collect::<Vec<ObjectKey>>()
    };
    let orphans = cx.another(ORPHANS, &pods).queue(1).without_main_watch().watch(&pods, orphan).watch(&jobs, abandoned);
    let orphans = orphans.reconcile(sync::Orphans { jobs: jobs.lister(), pods: pods.lister(), memory });
    Ok(counted.and(orphans))
}

/// Returns the Job that controls a pod, if it exists.
fn job_of(jobs: &Lister<JobView>, pod: &Meta) -> Option<Arc<JobView>> {
    let key = controller_of::<JobView>(pod, |key| Some(jobs.get(key)?.meta().uid.clone()))?;
    jobs.get(&key)
}
