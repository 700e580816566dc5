//! Pure: the taints that a node should have, by its conditions.

use serde_json::{Value, json};
use steersman_base::names::taints as keys;
use steersman_base::{ConditionStatus, Meta, Time};
use steersman_model::core::{NodeView, Taint};

/// Why pods have to leave a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// It reports that it is not ready.
    NotReady,
    /// It is silent.
    Unreachable,
}

const NO_SCHEDULE: &str = "NoSchedule";
const NO_EXECUTE: &str = "NoExecute";

/// Conditions, and the taints that follow from their states.
const BY_CONDITION: [(&str, ConditionStatus, &str); 6] = [
    ("Ready", ConditionStatus::False, keys::NOT_READY),
    ("Ready", ConditionStatus::Unknown, keys::UNREACHABLE),
    ("MemoryPressure", ConditionStatus::True, keys::MEMORY_PRESSURE),
    ("DiskPressure", ConditionStatus::True, keys::DISK_PRESSURE),
    ("NetworkUnavailable", ConditionStatus::True, keys::NETWORK_UNAVAILABLE),
    ("PIDPressure", ConditionStatus::True, keys::PID_PRESSURE),
];

// === impl Cause ===

impl Cause {
    pub(super) const ALL: [Self; 2] = [Self::NotReady, Self::Unreachable];

    /// Returns why pods have to leave a node whose condition `Ready` has this status; `None` if they may stay.
    pub(super) const fn of(ready: ConditionStatus) -> Option<Self> {
        match ready {
            ConditionStatus::True => None,
            ConditionStatus::False => Some(Self::NotReady),
            ConditionStatus::Unknown => Some(Self::Unreachable),
        }
    }

    pub(super) const fn status(self) -> ConditionStatus {
        match self {
            Self::NotReady => ConditionStatus::False,
            Self::Unreachable => ConditionStatus::Unknown,
        }
    }

    /// Returns the other cause: a node has the taint of one of them at most.
    pub(super) const fn other(self) -> Self {
        match self {
            Self::NotReady => Self::Unreachable,
            Self::Unreachable => Self::NotReady,
        }
    }

    const fn key(self) -> &'static str {
        match self {
            Self::NotReady => keys::NOT_READY,
            Self::Unreachable => keys::UNREACHABLE,
        }
    }

    /// Whether a node has the taint of this cause.
    pub(super) fn is_on(self, node: &NodeView) -> bool {
        node.spec.taints.iter().any(|taint| taint.key == self.key() && taint.effect == NO_EXECUTE)
    }
}

/// Returns the taints of a node with those `NoSchedule` ones that follow from its conditions; `None` if it has them.
pub(super) fn by_condition(node: &NodeView, now: Option<Time>) -> Option<Vec<Taint>> {
    let holds = |type_: &str, status| {
        node.status.conditions.iter().any(|condition| condition.type_ == type_ && condition.status == status)
    };
    let wanted = BY_CONDITION.iter().filter(|(type_, status, _)| holds(type_, *status)).map(|(.., key)| *key);
    let cordoned = node.spec.unschedulable.then_some(keys::UNSCHEDULABLE);
    let wanted: Vec<&str> = wanted.chain(cordoned).collect();
    let is_ours = |key: &str| key == keys::UNSCHEDULABLE || BY_CONDITION.iter().any(|(.., ours)| *ours == key);
    changed(node, NO_SCHEDULE, &wanted, is_ours, now)
}

/// Returns the taints of a node with the `NoExecute` one that follows from this status of its condition `Ready`; `None`
/// if they are right.
pub(super) fn executing(node: &NodeView, ready: ConditionStatus, now: Option<Time>) -> Option<Vec<Taint>> {
    let wanted = Cause::of(ready).map(Cause::key);
    let is_ours = |key: &str| Cause::ALL.iter().any(|cause| cause.key() == key);
    changed(node, NO_EXECUTE, wanted.as_slice(), is_ours, now)
}

/// Returns the patch that sets the taints of a node. Others set taints, too: the version is a precondition.
pub(super) fn patch(node: &Meta, taints: &[Taint]) -> Value {
    json!({
        "metadata": { "uid": node.uid, "resourceVersion": node.resource_version },
        "spec": { "taints": taints },
    })
}

/// Returns the taints of a node with the wanted ones of an effect, and without the others of ours; `None` if they are so.
fn changed(
    node: &NodeView,
    effect: &str,
    wanted: &[&str],
    is_ours: impl Fn(&str) -> bool,
    now: Option<Time>,
) -> Option<Vec<Taint>> {
    let held = &node.spec.taints;
    let stays = |taint: &&Taint| taint.effect != effect || !is_ours(&taint.key) || wanted.contains(&&*taint.key);
    let is_held = |key: &str| held.iter().any(|taint| taint.effect == effect && taint.key == key);
    let mut taints: Vec<Taint> = held.iter().filter(stays).cloned().collect();
    for key in wanted.iter().filter(|key| !is_held(key)) {
        taints.push(Taint { key: (*key).into(), effect: effect.into(), time_added: now, ..Taint::default() });
    }
    (taints.len() != held.len() || wanted.iter().any(|key| !is_held(key))).then_some(taints)
}
