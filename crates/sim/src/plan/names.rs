//! The names under which faults and operations are counted.

use super::{Fault, Operation, Propagation};

// === impl Fault ===

impl Fault {
    /// The names of all faults, as they are counted.
    pub const NAMES: [&'static str; 24] = [
        "watch late",
        "watch still",
        "watch cut",
        "watch repeats",
        "watch hides",
        "lists from the past",
        "replies lost",
        "requests lost",
        "done then 5xx",
        "requests late",
        "server away",
        "server silent",
        "killed",
        "frozen",
        "throttled",
        "quota refuses",
        "webhook refuses",
        "status held",
        "slow kubelets",
        "unreadable object",
        "5xx then done",
        "never answered",
        "two managers",
        "skewed clock",
    ];

    /// The name under which it is counted.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        Self::NAMES[match self {
            Self::WatchLate(_) => 0,
            Self::WatchStill => 1,
            Self::WatchCut => 2,
            Self::WatchRepeats => 3,
            Self::WatchHides => 4,
            Self::ListsFromThePast(_) => 5,
            Self::RepliesLost(_) => 6,
            Self::RequestsLost(_) => 7,
            Self::DoneThen(..) => 8,
            Self::RequestsLate(_) => 9,
            Self::ServerAway => 10,
            Self::ServerSilent => 11,
            Self::Killed { .. } => 12,
            Self::Frozen => 13,
            Self::Throttled(_) => 14,
            Self::QuotaRefuses => 15,
            Self::WebhookRefuses(_) => 16,
            Self::StatusHeld => 17,
            Self::SlowKubelets(_) => 18,
            Self::Unreadable => 19,
            Self::AnsweredThenDone(..) => 20,
            Self::NeverAnswered(_) => 21,
        }]
    }
}

// === impl Operation ===

impl Operation {
    /// The names of all operations, as they are counted.
    pub const NAMES: [&'static str; 68] = [
        "create",
        "scale",
        "roll image",
        "roll env",
        "roll node selector",
        "ready delay",
        "never ready",
        "change strategy",
        "pause",
        "resume",
        "min ready seconds",
        "history limit",
        "progress deadline",
        "service selector",
        "service port",
        "grow tree",
        "second owner",
        "several in one patch",
        "undo",
        "delete in background",
        "delete in foreground",
        "orphan",
        "recreate",
        "relabel pod",
        "adopt pod",
        "delete pod",
        "set finalizer",
        "release finalizer",
        "delete namespace",
        "create namespace",
        "delete kept",
        "run pods",
        "remove node",
        "silence node",
        "drain node",
        "resume node",
        "label node",
        "taint node",
        "evict pod",
        "fail pod",
        "partition",
        "update on delete",
        "first ordinal",
        "claim retention",
        "parallelism",
        "completions",
        "suspend",
        "go on",
        "job deadline",
        "schedule",
        "concurrency policy",
        "job history",
        "job template",
        "budget",
        "mirrored addresses",
        "aggregated rules",
        "load",
        "autoscaler bounds",
        "autoscaler target",
        "autoscaler metric",
        "demand",
        "autoscaler policy",
        "approve certificate",
        "deny certificate",
        "claim size",
        "volume by hand",
        "time to live",
        "quota",
    ];

    /// The name under which it is counted.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create",
            Self::Edit { changes, .. } => match changes.as_slice() {
                [change] => change.name(),
                _ => "several in one patch",
            },
            Self::Undo { .. } => "undo",
            Self::Delete { policy: Propagation::Background, .. } => "delete in background",
            Self::Delete { policy: Propagation::Foreground, .. } => "delete in foreground",
            Self::Delete { policy: Propagation::Orphan, .. } => "orphan",
            Self::Recreate { .. } => "recreate",
            Self::Relabel { .. } => "relabel pod",
            Self::Adopt { .. } => "adopt pod",
            Self::DeletePod { .. } => "delete pod",
            Self::Evict { .. } => "evict pod",
            Self::FailPod { .. } => "fail pod",
            Self::Hold { .. } => "set finalizer",
            Self::Release { .. } => "release finalizer",
            Self::DeleteNamespace { .. } => "delete namespace",
            Self::CreateNamespace { .. } => "create namespace",
            Self::DeleteKept { .. } => "delete kept",
            Self::RunPods { .. } => "run pods",
            Self::RemoveNode { .. } => "remove node",
            Self::SilenceNode { .. } => "silence node",
            Self::Drain { .. } => "drain node",
            Self::ResumeNode { .. } | Self::Uncordon { .. } => "resume node",
            Self::LabelNode { .. } => "label node",
            Self::TaintNode { .. } => "taint node",
            // Random worlds have none: it is not among the names.
            Self::Request { .. } => "request",
        }
    }
}
