//! History: the templates that a StatefulSet or DaemonSet had, as ControllerRevisions.
//!
//! 1. The data of a revision is a patch that restores the template. It is byte for byte what kube-controller-manager
//!    writes, so that neither adds a revision to the history of the other.
//! 2. A revision is found by its data, never by its hash. A template that was used before has its old revision again,
//!    with the highest number.
//! 3. The name of a StatefulSet's revision is upstream's: the hash of data and collision count.
//! 4. Revisions that a pod has, and the newest one, are kept; of the others `revisionHistoryLimit`.
//!
//! Follows `pkg/controller/history` of Kubernetes 1.37.1.

pub(crate) mod data;
pub(crate) mod memory;
pub(crate) mod plan;
pub(crate) mod sync;
#[cfg(test)]
mod tests;
