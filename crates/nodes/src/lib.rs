//! Simulated nodes: a scheduler, and kubelets without containers, for any Kubernetes API server.
//!
//! ```no_run
//! use steersman_nodes::{Nodes, NodesOptions};
//! use steersman_runtime::{Manager, ManagerOptions};
//!
//! # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let manager = Manager::new(client, ManagerOptions::default())?;
//! let nodes = Nodes::build(&manager.context(), NodesOptions::count(3))?;
//! // … the manager runs: three nodes register, pods are scheduled, run, are ready.
//! nodes.stop_heartbeats("node-1")?;
//! println!("{}", nodes.logs("default", "web-0", &Default::default())?);
//! # Ok(())
//! # }
//! ```
//!
//! Everything is done through the API, by three controllers: the [nodes](node) register and renew their leases, the
//! [scheduler] binds pods, and one controller is the [kubelet] of all nodes. There is no task and no timer per node or
//! pod, so that a thousand nodes with a hundred thousand pods fit into one process.
//!
//! # What containers do
//!
//! Common commands are simulated: `true`, `false`, `exit N`, `sleep N`, `echo …`, and `sh -c` of these with `;`, `&&`
//! and `||`. All others, and images without a command, run until the pod is deleted.
//!
//! Annotations script the rest, for all main containers or, with `.<container>` after the name, for one of any kind:
//!
//! | `nodes.steersman.dev/…` | |
//! |---|---|
//! | `accept-delay`, `start-delay`, `ready-delay` | delay before the pod is accepted, a container starts, is ready |
//! | `run-time` | the container ends after this time, with `exit-code` or 0 |
//! | `crash-after` | the container ends after this time, with `exit-code` or 1 |
//! | `exit-code` | the exit code; alone: the container ends at once |
//! | `never-ready` | the container runs and is never ready |
//! | `stop-delay`, `stop-code` | how long the pod takes to stop (its grace period at most), and its exit code |
//! | `cpu-usage`, `memory-usage` | what the container uses, for the [metrics APIs](metrics); half of its requests by default |
//! | `metric.<name>` | a custom metric of the pod |
//!
//! Durations are written `500ms`, `2s`, `1m30s`; a number alone is in seconds. Invalid values are ignored and reported
//! by an event. A custom table of [`Stages`] defines more.

pub mod attacher;
pub mod devices;
mod duration;
mod fleet;
mod handle;
pub mod kubelet;
pub mod metrics;
pub mod node;
mod options;
pub mod provisioner;
pub mod resizer;
pub mod scheduler;
pub mod view;
pub mod volumes;

pub use attacher::AttacherOptions;
pub use devices::DevicesOptions;
pub use handle::{NoSuchNode, Nodes};
pub use kubelet::{Log, LogError, LogQuery, Stages, StagesError};
pub use metrics::Metrics;
pub use options::{COUNT_MAX, NodesError, NodesOptions};
pub use provisioner::ProvisionerOptions;
pub use view::SimPodView;
