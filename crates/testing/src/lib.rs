//! Clusters for tests: ours, and yours.
//!
//! ```
//! use steersman_testing::objects::{PodBuilder as _, pod};
//! use steersman_testing::{Failure, TestCluster};
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Failure> {
//!     let cluster = TestCluster::builder().start().await?;
//!     let pod = cluster.create(pod("web").on_node("node-1")).await?;
//!     assert_eq!(pod.spec.and_then(|spec| spec.restart_policy).as_deref(), Some("Always"));
//!     cluster.stop().await
//! }
//! ```
//!
//! 1. **Everything is in the process**: the API server, the controllers you name, simulated nodes
//!    ([`Builder::nodes`]), and a `kube::Client`. Nothing is
//!    downloaded, no port is opened, hundreds run beside each other.
//! 2. **Virtual time.** Under `#[tokio::test(start_paused = true)]` the clock stands still while anything can run, and
//!    jumps when everything waits: an hour of back-off takes no time. [`TestCluster::advance`] lets it pass.
//! 3. **[`settle`](TestCluster::settle)** waits until nothing is left to do;
//!    [`expect_quiet`](TestCluster::expect_quiet) fails if controllers write anything for a while.
//! 4. **[`faults`](TestCluster::faults)** happen to the controllers' requests, never to the test's own.
//! 5. **Failures show the state**: the pods, and the last writes.
//!
//! A *scenario* is a function that takes a `&TestCluster`: the same function runs on the embedded server and on the *rig*,
//! a real kube-apiserver that `cargo xtask k8s test` starts ([`Builder::start_on_rig`]).

mod cluster;
mod failure;
mod faults;
mod journal;
pub mod objects;
mod pods;
/// Servers of their own for the tests of this workspace.
#[doc(hidden)]
pub mod rig;

pub use cluster::{Builder, TestCluster, build};
pub use failure::{Failure, expect, expect_eq};
pub use faults::{Fault, Faults, Rule};
pub use journal::{Verb, Write};
pub use pods::PodsOf;
/// Simulated nodes: their options, metrics and volumes.
pub use steersman_nodes as nodes;
pub use steersman_nodes::NodesOptions;
