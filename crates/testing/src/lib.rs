//! Clusters for tests, and what scenarios say about them.
//!
//! A *scenario* is a function that takes a [`Cluster`]. The same function runs on every cluster there is: today the rig, a
//! real kube-apiserver that `cargo xtask k8s test` starts; the embedded server follows.
//!
//! ```no_run
//! # use steersman_testing::{Cluster, Failure, objects};
//! async fn pods_come(cluster: &Cluster) -> Result<(), Failure> {
//!     let set = cluster.create(objects::replica_set("web", 3)).await?;
//!     cluster.pods_of(&set).until_count(3).await?;
//!     Ok(())
//! }
//! ```

mod cluster;
pub mod objects;
mod pods;

pub use cluster::{Cluster, Failure};
pub use pods::PodsOf;
