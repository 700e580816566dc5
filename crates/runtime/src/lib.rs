//! The controller runtime: connection, writer, worker loop.
//!
//! | module | what it holds |
//! |---|---|
//! | [`connection`] | how a client is made from a kubeconfig or from inside a cluster |
//! | [`controller`] | what a controller watches, and the one worker loop |
//! | [`source`], [`handler`], [`predicate`] | what is watched, which keys a change concerns, which changes count |
//! | [`manager`] | what controllers of one process share, and the order in which they start |
//! | [`lease`] | leader election: of several processes, one works |
//! | [`client`] | the client of a manager: cached reads, live reads, writes |
//! | [`mapper`] | which kinds a program and a server know |
//! | [`owner`], [`finalizer`], [`retry`], [`wait`] | helpers around the client |
//! | [`live`] | reads that go round the caches |
//! | [`reconcile`] | the contract between a controller and the worker loop |
//! | `webhook` (a feature) | admission and conversion webhooks |
//! | [`writer`] | the one way to write: with a reason, on behalf of an owner |
//! | [`serving`] | a small HTTP and HTTPS server |
//! | [`reason`] | why a controller writes |
//! | [`events`] | what `kubectl describe` shows below an object |
//! | [`decisions`] | what controllers did, what they refused, and why |
//! | [`metrics`], [`health`], [`admin`] | what a manager counts, whether it is well, and what is served about it |
//! | [`descriptor`] | a controller as a row of the table that the binary starts from |

pub mod admin;
pub mod client;
pub mod connection;
pub mod controller;
pub mod decisions;
pub mod descriptor;
pub mod events;
pub mod finalizer;
pub mod handler;
pub mod health;
pub mod lease;
pub mod live;
pub mod manager;
pub mod mapper;
pub mod metrics;
pub mod owner;
pub mod predicate;
pub mod reason;
pub mod reconcile;
pub mod retry;
pub mod serving;
pub mod source;
mod trigger;
pub mod wait;
#[cfg(feature = "webhook")]
pub mod webhook;
pub mod writer;

pub use client::{CacheMiss, CachedClient, ClientError, ClientOptions};
pub use controller::{BuildContext, Controller};
pub use descriptor::{Build, Descriptor, Enabled, Stage, Workers};
pub use lease::{Elector, Leadership, LeaseOptions, NotLeader};
pub use manager::{Group, Inspection, Manager, ManagerError, ManagerOptions, Runnable};
pub use reason::Reason;
pub use reconcile::{Action, Context, Error, Freshness, Reconciler};
pub use writer::{Delete, Patch, Propagation, WriteError, Writer, Written};
