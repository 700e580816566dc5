//! Jobs: what controllers read of the spec, and the status whole, because it is PUT.

use steersman_base::{Condition, ConditionStatus, Istr, LabelSelector, Meta, Time, Uid};

use crate::conditions::JobCondition;
use crate::template::{RawJson, Template};
use crate::view;
use crate::wire::Unique;

view! {
    /// A Job.
    pub struct JobView for namespaced("batch", "v1", "jobs", "Job") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: JobSpec = 2,
        /// The status.
        status: JobStatus = 3,
    }
}

view! {
    /// The spec of a Job.
    pub struct JobSpec {
        /// The maximum number of active pods; absent means one.
        parallelism: Option<i32> = 1,
        /// The number of pods that must succeed; absent if any success is enough.
        completions: Option<i32> = 2,
        /// The number of seconds for which the Job may be active.
        active_deadline_seconds: Option<i64> = 3,
        /// The pods that belong to it. Compile it to match with it.
        selector: Option<LabelSelector> = 4,
        /// The template of the pods.
        template: Template = 6,
        /// The number of failures before the Job fails; absent means six.
        backoff_limit: Option<i32> = 7,
        /// The number of seconds for which it is kept after it has finished.
        ttl_seconds_after_finished: Option<i32> = 8,
        /// `NonIndexed` or `Indexed`.
        completion_mode: Option<Istr> = 9,
        /// Whether it has no pods for now.
        suspend: Option<bool> = 10,
        /// The policy for failed pods.
        pod_failure_policy: Option<FailurePolicy> = 11,
        /// The number of failures of an index before it fails.
        backoff_limit_per_index: Option<i32> = 12,
        /// The number of failed indexes before the Job fails.
        max_failed_indexes: Option<i32> = 13,
        /// `TerminatingOrFailed` or `Failed`.
        pod_replacement_policy: Option<Istr> = 14,
        /// The controller that reconciles it; absent means the built-in one.
        managed_by: Option<Istr> = 15,
        /// The policy for success: the indexes that are enough.
        success_policy: Option<SuccessPolicy> = 16,
        /// The wishes for the scheduling of its pods, as raw JSON.
        scheduling: RawJson = 17,
    }
}

view! {
    /// The policy for failed pods: the first matching rule applies.
    pub struct FailurePolicy {
        /// The rules.
        rules: Box<[FailureRule]> = 1,
    }
}

view! {
    /// A rule about failed pods.
    pub struct FailureRule {
        /// `FailJob`, `FailIndex`, `Ignore` or `Count`.
        action: Istr = 1,
        /// Matches pods by the exit codes of their containers.
        on_exit_codes: Option<ExitCodes> = 2,
        /// Matches pods that have one of these conditions.
        on_pod_conditions: Box<[PodConditionPattern]> = 3,
    }
}

view! {
    /// Exit codes of containers.
    pub struct ExitCodes {
        /// The container; absent means any.
        container_name: Option<Istr> = 1,
        /// `In` or `NotIn`.
        operator: Istr = 2,
        /// The codes.
        values: Box<[i32]> = 3,
    }
}

view! {
    /// A condition of a pod.
    pub struct PodConditionPattern {
        /// Its type.
        type_ "type": Istr = 1,
        /// Its status.
        status: ConditionStatus = 2,
    }
}

view! {
    /// The policy for success: one matching rule is.
    pub struct SuccessPolicy {
        /// The rules.
        rules: Box<[SuccessRule]> = 1,
    }
}

view! {
    /// A rule about succeeded indexes.
    pub struct SuccessRule {
        /// The indexes that count, such as `0-3,7`; absent means all.
        succeeded_indexes: Option<Istr> = 1,
        /// The number of them that must succeed; absent means all.
        succeeded_count: Option<i32> = 2,
    }
}

view! {
    /// The status of a Job.
    pub struct JobStatus: Serialize {
        /// The conditions.
        conditions: Box<[Condition]> as Vec<JobCondition> = 1,
        /// The time at which it was started, or resumed.
        start_time: Option<Time> = 2,
        /// The time at which it was completed.
        completion_time: Option<Time> = 3,
        /// The number of active pods.
        active: i32 = 4,
        /// The number of pods that have succeeded; of an indexed Job, of indexes.
        succeeded: i32 = 5,
        /// The number of pods that have failed.
        failed: i32 = 6,
        /// The indexes that have succeeded, such as `0-3,7`.
        completed_indexes: Istr as Unique = 7,
        /// Pods that have ended and are not counted yet.
        uncounted_terminated_pods: Option<UncountedPods> = 8,
        /// The number of ready pods.
        ready: Option<i32> = 9,
        /// The indexes that have failed; absent without a limit per index.
        failed_indexes: Option<Istr> = 10,
        /// The number of terminating pods.
        terminating: Option<i32> = 11,
    }
}

view! {
    /// Pods that have ended and are not counted yet, by uid.
    pub struct UncountedPods: Serialize {
        /// Those that have succeeded.
        succeeded: Box<[Uid]> = 1,
        /// Those that have failed.
        failed: Box<[Uid]> = 2,
    }
}
