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

mod claim;
pub mod deployment;
pub mod endpoint_slice;
pub mod endpoints;
pub mod garbage_collector;
pub mod namespace;
pub mod pod;
pub mod pod_gc;
pub mod replicaset;
pub mod replication_controller;
pub mod root_ca;
pub mod service_account;
pub mod service_account_token;
mod service_pods;
pub mod table;
#[cfg(test)]
mod test_objects;

use steersman_runtime::Descriptor;

/// Every controller there is, in upstream's order.
pub static ALL: &[Descriptor] = &[
    service_account_token::DESCRIPTOR,
    endpoints::DESCRIPTOR,
    endpoint_slice::DESCRIPTOR,
    replication_controller::DESCRIPTOR,
    pod_gc::DESCRIPTOR,
    namespace::DESCRIPTOR,
    service_account::DESCRIPTOR,
    garbage_collector::DESCRIPTOR,
    deployment::DESCRIPTOR,
    replicaset::DESCRIPTOR,
    root_ca::DESCRIPTOR,
];
