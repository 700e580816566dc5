//! The group `apps`.

mod controller_revision;
mod daemon_set;
mod deployment;
mod replica_set;
mod stateful_set;

pub use controller_revision::ControllerRevisionView;
pub use daemon_set::{DaemonSetSpec, DaemonSetStatus, DaemonSetUpdateStrategy, DaemonSetView};
pub use deployment::{DeploymentSpec, DeploymentStatus, DeploymentStrategy, DeploymentView, RollingUpdate};
pub use replica_set::{ReplicaSetSpec, ReplicaSetStatus, ReplicaSetView};
pub use stateful_set::{
    ClaimRetentionPolicy, RollingUpdateStatefulSet, StatefulSetOrdinals, StatefulSetSpec, StatefulSetStatus,
    StatefulSetUpdateStrategy, StatefulSetView,
};
