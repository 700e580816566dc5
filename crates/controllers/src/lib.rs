//! The built-in controllers of Kubernetes, one module each, all of one anatomy.
//!
//! ```text
//! replicaset.rs        the door: what it guarantees, and its row in the table of controllers
//! replicaset/
//!     map.rs           pure: which keys an event concerns; index functions
//!     plan.rs          pure: what is seen -> what is to be done
//!     status.rs        pure: status and conditions
//!     <topic>.rs       pure: one decision per file
//!     sync.rs          the shell: observe -> plan -> write -> status
//!     tests.rs         tables for the pure parts
//! ```
//!
//! Scenarios, which need a cluster, live in `tests/`.

pub mod pod;
pub mod replicaset;

use steersman_runtime::Descriptor;

/// Every controller there is, in upstream's order.
pub static ALL: &[Descriptor] = &[replicaset::DESCRIPTOR];
