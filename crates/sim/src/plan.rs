//! What happens in a world, and when: data, made from a seed, written as JSON.

mod edit;
mod generate;
mod names;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use steersman_runtime::Descriptor;

pub use edit::{Concurrency, Edit, Share};
pub use generate::{FULL, NAMESPACES, OWNERS, Owner, OwnerKind, SMALL, Size, generate, home_of};
pub(crate) use generate::{RULE, RULES};

/// Milliseconds since the world began.
pub type Millis = u64;

/// The time in which a world heals whose clocks are right.
pub(crate) const HEALS_WITHIN: Millis = minutes(20);
/// The name and the label of the objects that [`Fault::Unreadable`] makes unreadable for managers.
pub(crate) const BYSTANDER: &str = "bystander";

/// A world: its participants, what users do, and the faults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The seed of all chance in the world that the plan does not settle.
    pub seed: u64,
    /// The participants.
    pub options: Options,
    /// What users do, in order.
    pub operations: Vec<Step>,
    /// The faults.
    pub faults: Vec<Window>,
}

/// The participants of a world, and its duration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// How many managers there are; they share a lease.
    pub managers: usize,
    /// How many nodes there are.
    pub nodes: usize,
    /// Whether nodes serve metrics, provision and attach volumes and have devices, and users use all that.
    pub furnished: bool,
    /// Which controllers run, by name; all, if none is named.
    pub controllers: Vec<String>,
    /// By how many seconds the clock of each manager differs from the world's.
    pub skew_seconds: Vec<i64>,
    /// When users and faults are done.
    pub ends: Millis,
    /// How long the world may take after that to match its specs.
    pub heals_within: Millis,
    /// How long it must then stay so without a write.
    pub quiet_for: Millis,
    /// The maximum latency of a request, in each direction.
    pub latency_max: Millis,
}

/// Something that a user does at some time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// When.
    pub at: Millis,
    /// What.
    #[serde(rename = "do")]
    pub operation: Operation,
}

/// A fault with a duration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// From when on.
    pub from: Millis,
    /// Until when.
    pub to: Millis,
    /// To whom.
    #[serde(default, skip_serializing_if = "Target::is_everything")]
    pub on: Target,
    /// What.
    pub fault: Fault,
}

/// Which requests a fault applies to: all conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Target {
    /// Requests of this manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manager: Option<usize>,
    /// Requests of this controller: its writes, and what it reads round the caches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
    /// Requests with this verb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verb: Option<Verb>,
    /// Requests about this resource, as in `pods` or `deployments.apps`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads a collection.
    List,
    /// Follows a collection.
    Watch,
    /// Makes an object.
    Create,
    /// Replaces an object.
    Update,
    /// Changes an object.
    Patch,
    /// Writes the status of an object.
    Status,
    /// Removes an object or a collection.
    Delete,
}

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Events arrive late by this time, or when the fault ends.
    WatchLate(Millis),
    /// Events arrive when the fault ends.
    WatchStill,
    /// Watches break at the beginning.
    WatchCut,
    /// Events come again.
    WatchRepeats,
    /// Events never arrive; in the end the watch expires, and a new list shows what became of it all.
    WatchHides,
    /// Watches expire at the beginning. Lists show the state of this time before; what happened since arrives at the end.
    ListsFromThePast(Millis),
    /// One in this many requests is made, and its response is lost.
    RepliesLost(u32),
    /// One in this many requests is not made, and fails.
    RequestsLost(u32),
    /// One in this many requests is made, and answered with this code.
    DoneThen(u16, u32),
    /// One in this many writes is answered with this code at once, and made this much later: it was still on its way.
    AnsweredThenDone(u16, Millis, u32),
    /// One in this many requests is taken, and neither made nor ever answered; the connection stays.
    NeverAnswered(u32),
    /// Requests reach the server late by this time.
    RequestsLate(Millis),
    /// The server refuses the connection; what is open breaks.
    ServerAway,
    /// The server accepts requests and does not respond; open streams stall.
    ServerSilent,
    /// The manager is killed after this many writes, or at the end, and replaced after this time.
    Killed {
        /// After how many writes.
        writes: u32,
        /// How long it is dead.
        away: Millis,
    },
    /// The process is stopped: it sends and receives nothing.
    Frozen,
    /// One in this many requests is answered with 429.
    Throttled(u32),
    /// Pods are refused, because a quota is used up.
    QuotaRefuses,
    /// One in this many writes is refused by a webhook.
    WebhookRefuses(u32),
    /// Status writes wait until the fault ends.
    StatusHeld,
    /// What kubelets write arrives late by this time.
    SlowKubelets(Millis),
    /// One object cannot be decoded, as after an upgrade of the server: no other object depends on it, and it is not
    /// deleted.
    Unreadable,
}

/// What a user does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Makes an owner, if it is not there.
    Create {
        /// Which one, by its number among [`OWNERS`].
        owner: usize,
        /// What it is like.
        changes: Vec<Edit>,
    },
    /// Changes an owner, all at once.
    Edit {
        /// Which one.
        owner: usize,
        /// What.
        changes: Vec<Edit>,
    },
    /// Goes back to the pod template before.
    Undo {
        /// Of which Deployment.
        owner: usize,
    },
    /// Deletes an owner.
    Delete {
        /// Which one.
        owner: usize,
        /// What becomes of what it owns.
        policy: Propagation,
    },
    /// Deletes an owner and makes it again under the same name, at once.
    Recreate {
        /// Which one.
        owner: usize,
        /// What becomes of what it owned.
        policy: Propagation,
        /// What it is like.
        changes: Vec<Edit>,
    },
    /// Takes a pod away from its owner by changing its label.
    Relabel {
        /// Whose pod.
        owner: usize,
        /// Which one of them.
        pick: usize,
    },
    /// Gives an orphaned pod the label that an owner selects; creates one if there is none.
    Adopt {
        /// The owner that adopts it.
        owner: usize,
        /// Which one.
        pick: usize,
    },
    /// Deletes a pod.
    DeletePod {
        /// Whose pod.
        owner: usize,
        /// Which one of them.
        pick: usize,
        /// Whether it is killed at once.
        now: bool,
    },
    /// Evicts a pod: its budget is asked.
    Evict {
        /// Whose pod.
        owner: usize,
        /// Which one of them.
        pick: usize,
    },
    /// A pod fails, as when its kubelet evicts it.
    FailPod {
        /// Whose pod.
        owner: usize,
        /// Which one of them.
        pick: usize,
    },
    /// Puts a finalizer on an owner.
    Hold {
        /// Which one.
        owner: usize,
    },
    /// Takes the finalizer off again.
    Release {
        /// Of which one.
        owner: usize,
    },
    /// Deletes a namespace.
    DeleteNamespace {
        /// Which one, by its number.
        namespace: usize,
    },
    /// Makes a namespace, if it is not there.
    CreateNamespace {
        /// Which one.
        namespace: usize,
    },
    /// Deletes something that a controller keeps in every namespace.
    DeleteKept {
        /// Where.
        namespace: usize,
        /// The account `default`, or else the root certificate.
        account: bool,
    },
    /// Creates pods without owner that end by themselves.
    RunPods {
        /// Where.
        namespace: usize,
        /// What they are called.
        pick: usize,
    },
    /// A node is taken away, with its object.
    RemoveNode {
        /// Which one.
        node: usize,
    },
    /// A node's kubelet falls silent.
    SilenceNode {
        /// Which one.
        node: usize,
    },
    /// A node is well again, or is back.
    ResumeNode {
        /// Which one.
        node: usize,
    },
    /// A node is cordoned, and its pods are evicted.
    Drain {
        /// Which one.
        node: usize,
    },
    /// A node takes pods again.
    Uncordon {
        /// Which one.
        node: usize,
    },
    /// The label `disk` of a node changes: nodes are `ssd` at first.
    LabelNode {
        /// Which one.
        node: usize,
        /// Whether the label is another one than at first.
        slow: bool,
    },
    /// The taint of a node changes.
    TaintNode {
        /// Which one.
        node: usize,
        /// Whether the taint ends pods, too; none if it is removed.
        ends_pods: Option<bool>,
    },
    /// Sends a request about an object that is nobody's owner: exhaustive plans need many kinds.
    Request {
        /// What it does.
        how: How,
        /// The path: that of a collection, an object, or a subresource.
        path: String,
        /// The object, or a merge patch.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        body: Value,
    },
}

/// What a user's request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// Creates an object.
    Create,
    /// Changes an object by a merge patch.
    Patch,
    /// Deletes an object.
    Delete,
}

/// What becomes of what a deleted object owned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Propagation {
    /// Background deletion.
    Background,
    /// Foreground deletion.
    Foreground,
    /// Orphaning.
    Orphan,
}

// === impl Options ===

impl Default for Options {
    fn default() -> Self {
        Self {
            managers: 1,
            nodes: 4,
            furnished: false,
            controllers: Vec::new(),
            skew_seconds: Vec::new(),
            ends: minutes(40),
            // Longer than the longest back-off of a queue, 1000 s.
            heals_within: HEALS_WITHIN,
            quiet_for: minutes(10),
            latency_max: 20,
        }
    }
}

impl Options {
    /// Whether a controller runs.
    pub(crate) fn runs(&self, descriptor: &Descriptor) -> bool {
        self.controllers.is_empty() || self.controllers.iter().any(|name| descriptor.is_called(name))
    }
}

// === impl Target ===

impl Target {
    fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

// === impl Operation ===

impl Operation {
    /// The number of the owner that it is about, if it is about one.
    #[must_use]
    pub const fn owner(&self) -> Option<usize> {
        match self {
            Self::Create { owner, .. }
            | Self::Edit { owner, .. }
            | Self::Undo { owner }
            | Self::Delete { owner, .. }
            | Self::Recreate { owner, .. }
            | Self::Relabel { owner, .. }
            | Self::Adopt { owner, .. }
            | Self::DeletePod { owner, .. }
            | Self::Evict { owner, .. }
            | Self::FailPod { owner, .. }
            | Self::Hold { owner }
            | Self::Release { owner } => Some(*owner),
            Self::DeleteNamespace { .. }
            | Self::CreateNamespace { .. }
            | Self::DeleteKept { .. }
            | Self::RunPods { .. }
            | Self::RemoveNode { .. }
            | Self::SilenceNode { .. }
            | Self::ResumeNode { .. }
            | Self::Drain { .. }
            | Self::Uncordon { .. }
            | Self::LabelNode { .. }
            | Self::TaintNode { .. }
            | Self::Request { .. } => None,
        }
    }
}

/// Returns minutes in milliseconds.
#[must_use]
pub const fn minutes(minutes: u64) -> Millis {
    minutes * 60_000
}

/// Returns seconds in milliseconds.
#[must_use]
pub const fn seconds(seconds: u64) -> Millis {
    seconds * 1000
}
