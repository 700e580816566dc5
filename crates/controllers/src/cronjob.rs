#![doc = include_str!("../docs/cronjob-controller.md")]
//!
//! Follows `pkg/controller/cronjob` of Kubernetes 1.37.1.

use steersman_base::ObjectKey;
use steersman_informer::{Change, Lister};
use steersman_model::batch::{CronJobView, JobView};
use steersman_model::{Kind, View};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled, Flags};
use steersman_runtime::Descriptor;
use steersman_runtime::handler::Keys;

use crate::table;

mod active;
mod due;
mod history;
mod map;
mod metrics;
mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the cronjob controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "cronjob-controller",
    needs: const { &[CronJobView::RESOURCE, JobView::RESOURCE] },
    options: |_: &Flags<'_>| (),
    build,
});

fn build(cx: &ControllerContext, (): ()) -> Result<Built, Disabled> {
    let cron_jobs = cx.informer::<CronJobView>();
    let jobs = cx.informer::<JobView>();
    let clock = cx.clock.clone();
    let itself =
        move |change: &Change<CronJobView>| Keys::after([change.key()], map::delay(change, clock.now_micros()));
    let lister = cron_jobs.lister();
    let cron_jobs_of_job = move |change: &Change<JobView>| map::owners(change, |key| uid_of(&lister, key));
    Ok(cx.controller(&cron_jobs).watch_main(itself).watch(&jobs, cron_jobs_of_job).reads_live().reconcile(
        sync::CronJobs {
            cron_jobs: cron_jobs.lister(),
            jobs: cx.children(&jobs),
            metrics: metrics::Metrics::new(cx.metrics())?,
        },
    ))
}

fn uid_of(cron_jobs: &Lister<CronJobView>, key: &ObjectKey) -> Option<steersman_base::Uid> {
    Some(cron_jobs.get(key)?.meta().uid.clone())
}
