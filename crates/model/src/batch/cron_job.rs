//! CronJobs: the template of their Jobs as raw JSON, and the status whole, because it is PUT.

use steersman_base::{Istr, Meta, Time};

use crate::core::ObjectReference;
use crate::template::Template;
use crate::view;

view! {
    /// A CronJob.
    pub struct CronJobView for namespaced("batch", "v1", "cronjobs", "CronJob") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: CronJobSpec = 2,
        /// The status.
        status: CronJobStatus = 3,
    }
}

view! {
    /// The spec of a CronJob.
    pub struct CronJobSpec {
        /// The schedule, in the format of cron.
        schedule: Istr = 1,
        /// The number of seconds by which a Job may be started late.
        starting_deadline_seconds: Option<i64> = 2,
        /// `Allow`, `Forbid` or `Replace`.
        concurrency_policy: Istr = 3,
        /// Whether no Jobs are started for now.
        suspend: Option<bool> = 4,
        /// The template of the Jobs: labels, annotations and a raw spec.
        job_template: Template = 5,
        /// The number of succeeded Jobs that are kept; absent means three.
        successful_jobs_history_limit: Option<i32> = 6,
        /// The number of failed Jobs that are kept; absent means one.
        failed_jobs_history_limit: Option<i32> = 7,
        /// The time zone of the schedule; absent means that of the manager.
        time_zone: Option<Istr> = 8,
    }
}

view! {
    /// The status of a CronJob.
    pub struct CronJobStatus: Serialize {
        /// The Jobs that are running.
        active: Box<[ObjectReference]> = 1,
        /// The time at which a Job was last due and started.
        last_schedule_time: Option<Time> = 4,
        /// The time at which a Job last completed.
        last_successful_time: Option<Time> = 5,
    }
}
