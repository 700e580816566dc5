//! Changes of what users have made.

use serde::{Deserialize, Serialize};

/// One change of an owner's spec. What an owner has no field for is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Edit {
    /// How many pods it wants.
    Replicas(u32),
    /// The image of its pods.
    Image(u32),
    /// A variable of its pods.
    Env(u32),
    /// The node selector of its pods: one with an empty value, one with a value, or none.
    NodeSelector(Option<bool>),
    /// How long its pods take to be ready.
    ReadyDelay(u32),
    /// Whether its pods are never ready.
    NeverReady(bool),
    /// How old pods make room for new ones.
    Strategy {
        /// All old ones go first.
        recreate: bool,
        /// How many more pods there may be.
        surge: Share,
        /// How many pods may be missing.
        unavailable: Share,
    },
    /// Whether it rolls out.
    Paused(bool),
    /// For how many seconds a pod must be ready to be available.
    MinReady(u32),
    /// How many old ReplicaSets are kept.
    History(u32),
    /// After how many seconds without progress a rollout is stuck.
    Deadline(u32),
    /// Whose pods a Service selects.
    Selects(usize),
    /// The port of a Service.
    Port(u16),
    /// How many objects of a tree belong to it, and to each of these.
    Children(u32),
    /// One object of a tree belongs to another owner, too.
    SharedWith(usize),
    /// Whether the pods of a StatefulSet are made all at once. It is decided when the StatefulSet is made.
    Parallel,
    /// The pods of a StatefulSet have claims. It is decided when the StatefulSet is made.
    Claims,
    /// What becomes of the claims of a StatefulSet.
    Retention {
        /// Whether they go with the StatefulSet.
        deleted: bool,
        /// Whether they go with pods that are not wanted any more.
        scaled: bool,
    },
    /// From which ordinal on pods of a StatefulSet are updated.
    Partition(u32),
    /// The first ordinal of a StatefulSet.
    FirstOrdinal(u32),
    /// Whether old pods are replaced when somebody deletes them, and not before.
    OnDelete(bool),
    /// How many pods of a Job run at once.
    Parallelism(u32),
    /// How many pods of a Job must succeed. Of a Job with indexes, as many run at once: only then can it be changed.
    Completions(u32),
    /// The pods of a Job have indexes. It is decided when the Job is made.
    Indexed,
    /// How many pods of a Job may fail. It is decided when the Job is made.
    FailuresMax(u32),
    /// How many pods of each index of a Job may fail. It is decided when the Job is made.
    IndexFailuresMax(u32),
    /// A Job fails with the exit code 42, and an evicted pod does not count. It is decided when the Job is made.
    FailurePolicy,
    /// After how many seconds a Job fails.
    Lifetime(u32),
    /// How the pods of a Job end: after how many seconds, and with which code. Of a Job it is decided when it is made.
    Ends {
        /// After how many seconds.
        seconds: u32,
        /// The exit code.
        code: u8,
    },
    /// Whether a Job or CronJob is suspended.
    Suspended(bool),
    /// Every how many minutes a CronJob is due.
    EveryMinutes(u32),
    /// What becomes of a CronJob's Job that still runs when the next one is due.
    Concurrency(Concurrency),
    /// How many finished Jobs of a CronJob are kept.
    Kept {
        /// Of those that have succeeded.
        succeeded: u32,
        /// Of those that have failed.
        failed: u32,
    },
    /// How many pods of a budget must be available.
    AvailableMin(Share),
    /// How many pods of a budget may be unavailable.
    UnavailableMax(Share),
    /// How many addresses the Endpoints of a Service without selector have.
    Addresses(u32),
    /// The rules of a role that is a part of another one, by its number.
    Rules(u32),
    /// How much CPU each pod uses, in thousandths.
    Load(u32),
    /// Between how many pods an autoscaler decides.
    Bounds {
        /// The least number; zero is allowed with an external metric.
        min: u32,
        /// The largest number.
        max: u32,
    },
    /// Whose pods an autoscaler scales.
    Scales(usize),
    /// Whether an autoscaler goes by the CPU of the pods, or else by a metric of its own.
    ByLoad(bool),
    /// The value of an autoscaler's own metric: it wants one pod for each ten.
    Demand(u32),
    /// How many pods an autoscaler adds per minute; none for the default policies.
    AddsAtMost(Option<u32>),
    /// What a certificate is asked for, by its number. It is decided when the request is made.
    Asks(usize),
    /// Whether a request for a certificate is approved or denied.
    Approved(bool),
    /// Whether a claim asks for a volume that users make, or else for one of the default class. It is decided when the claim is
    /// made.
    Static(bool),
    /// The volume that a claim names. It is decided when the claim is made.
    Names(usize),
    /// How many gibibytes a claim asks for.
    Size(u32),
    /// The claim that a volume is reserved for, by hand; none takes the reference away.
    Reserved(Option<usize>),
    /// The claim that a pod uses. It is decided when the pod is made.
    Uses(usize),
    /// How many seconds after its end a Job is deleted; none for never.
    TimeToLive(Option<u32>),
    /// How many pods a quota allows.
    PodsMax(u32),
}

/// What becomes of a CronJob's Job that still runs when the next one is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Concurrency {
    /// It goes on beside the next one.
    Allow,
    /// It goes on, and the next one is not started.
    Forbid,
    /// It is deleted.
    Replace,
}

/// A number, or a percentage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Share {
    /// A number.
    Count(u32),
    /// A percentage.
    Percent(u32),
}

// === impl Edit ===

impl Edit {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Replicas(_) => "scale",
            Self::Image(_) => "roll image",
            Self::Env(_) => "roll env",
            Self::NodeSelector(_) => "roll node selector",
            Self::ReadyDelay(_) => "ready delay",
            Self::NeverReady(_) => "never ready",
            Self::Strategy { .. } => "change strategy",
            Self::Paused(true) => "pause",
            Self::Paused(false) => "resume",
            Self::MinReady(_) => "min ready seconds",
            Self::History(_) => "history limit",
            Self::Deadline(_) => "progress deadline",
            Self::Selects(_) => "service selector",
            Self::Port(_) => "service port",
            Self::Children(_) => "grow tree",
            Self::SharedWith(_) => "second owner",
            Self::Retention { .. } => "claim retention",
            Self::Partition(_) => "partition",
            Self::FirstOrdinal(_) => "first ordinal",
            Self::OnDelete(_) => "update on delete",
            Self::Parallelism(_) => "parallelism",
            Self::Completions(_) => "completions",
            Self::Lifetime(_) => "job deadline",
            Self::Ends { .. } => "job template",
            Self::Suspended(true) => "suspend",
            Self::Suspended(false) => "go on",
            Self::EveryMinutes(_) => "schedule",
            Self::Concurrency(_) => "concurrency policy",
            Self::Kept { .. } => "job history",
            Self::AvailableMin(_) | Self::UnavailableMax(_) => "budget",
            Self::Addresses(_) => "mirrored addresses",
            Self::Rules(_) => "aggregated rules",
            Self::Load(_) => "load",
            Self::Bounds { .. } => "autoscaler bounds",
            Self::Scales(_) => "autoscaler target",
            Self::ByLoad(_) => "autoscaler metric",
            Self::Demand(_) => "demand",
            Self::AddsAtMost(_) => "autoscaler policy",
            Self::Approved(true) => "approve certificate",
            Self::Approved(false) => "deny certificate",
            Self::Size(_) => "claim size",
            Self::Reserved(_) => "volume by hand",
            Self::TimeToLive(_) => "time to live",
            Self::PodsMax(_) => "quota",
            Self::Parallel
            | Self::Claims
            | Self::Indexed
            | Self::FailuresMax(_)
            | Self::IndexFailuresMax(_)
            | Self::FailurePolicy
            | Self::Asks(_)
            | Self::Static(_)
            | Self::Names(_)
            | Self::Uses(_) => "create",
        }
    }
}
