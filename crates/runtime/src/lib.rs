//! The controller runtime: connection, writer, worker loop.
//!
//! | module | what it holds |
//! |---|---|
//! | [`connection`] | how a client is made from a kubeconfig or from inside a cluster |
//! | [`controller`] | what a controller watches, and the one worker loop |
//! | [`manager`] | what controllers of one process share, and the order in which they start |
//! | [`live`] | reads that go round the caches |
//! | [`reconcile`] | the contract between a controller and the worker loop |
//! | [`writer`] | the one way to write: with a reason, on behalf of an owner |
//! | [`reason`] | why a controller writes |
//! | [`descriptor`] | a controller as a row of the table that the binary starts from |

pub mod connection;
pub mod controller;
pub mod descriptor;
pub mod live;
pub mod manager;
pub mod reason;
pub mod reconcile;
pub mod writer;

pub use controller::{BuildContext, Controller};
pub use descriptor::Descriptor;
pub use manager::{Inspection, Manager, ManagerOptions};
pub use reason::Reason;
pub use reconcile::{Action, Context, Error, Freshness, Reconciler};
pub use writer::{Propagation, WriteError, Writer, Written};
