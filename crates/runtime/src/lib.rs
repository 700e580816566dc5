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
//! | [`children`], [`found`] | objects by their controller or by a key of one's own, from the cache or, if that lags, from the server |
//! | [`live`] | reads that go round the caches |
//! | [`reconcile`] | the contract between a controller and the worker loop |
//! | `webhook` (a feature) | admission and conversion webhooks |
//! | [`writer`] | the one way to write: with a reason, on behalf of an owner |
//! | [`serving`] | a small HTTP and HTTPS server |
//! | [`signals`] | Ctrl-C and SIGTERM, which end a program in order |
//! | [`definition`] | installing CustomResourceDefinitions |
//! | [`conditions`] | conditions of a status |
//! | [`reason`] | why a controller writes |
//! | [`events`] | what `kubectl describe` shows below an object |
//! | [`decisions`] | what controllers did, what they refused, and why |
//! | [`metrics`], [`health`], [`admin`] | what a manager counts, whether it is well, and what is served about it |
//! | [`descriptor`] | a controller before it is built: a row of facts, its options and its `build` function |

pub mod admin;
pub mod children;
pub mod client;
pub mod conditions;
pub mod connection;
pub mod controller;
pub mod decisions;
pub mod definition;
pub mod descriptor;
pub mod events;
pub mod finalizer;
pub mod found;
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
pub mod signals;
pub mod source;
#[cfg(test)]
mod test_server;
mod trigger;
pub mod wait;
#[cfg(feature = "webhook")]
pub mod webhook;
pub mod writer;

pub use children::Children;
pub use client::{CacheMiss, CachedClient, ClientError, ClientOptions};
pub use controller::{BuildContext, Controller};
pub use descriptor::{Build, Descriptor, Stage};
pub use lease::{Elector, Leadership, LeaseOptions, NotLeader};
pub use manager::{Group, Inspection, Manager, ManagerError, ManagerOptions, Runnable};
pub use reason::Reason;
pub use reconcile::{Action, Context, Error, Freshness, Reconciler};
pub use writer::{Delete, Patch, Propagation, WriteError, Writer, Written};

/// Reads objects of a kind from a manager's cache: types of `k8s-openapi`, and types that derive `kube::CustomResource`.
///
/// [`Manager::lister`] returns it. Objects come as `Arc<Typed<K>>`, which dereferences to `K`. Built-in controllers, and programs
/// with hundreds of thousands of objects, use listers of views: [`steersman_informer::Lister`].
pub type Lister<K> = steersman_informer::Lister<steersman_informer::Typed<K>>;
