//! The group `apps`.

mod deployment;
mod replica_set;

pub use deployment::{DeploymentSpec, DeploymentStatus, DeploymentStrategy, DeploymentView, RollingUpdate};
pub use replica_set::{ReplicaSetSpec, ReplicaSetStatus, ReplicaSetView};
