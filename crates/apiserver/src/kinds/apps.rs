//! The group `apps`: Deployments, ReplicaSets, StatefulSets, DaemonSets and their revisions.

mod controller_revision;
mod daemon_set;
mod deployment;
mod replica_set;
mod stateful_set;

use crate::kinds::Kinds;

/// The kinds of the group `apps`.
pub(super) const KINDS: Kinds = &[
    ("ControllerRevision", &controller_revision::RULES),
    ("DaemonSet", &daemon_set::RULES),
    ("Deployment", &deployment::RULES),
    ("ReplicaSet", &replica_set::RULES),
    ("StatefulSet", &stateful_set::RULES),
];
