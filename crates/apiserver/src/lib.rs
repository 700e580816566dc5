//! An embedded Kubernetes API server: a control plane without etcd, Go or downloads.
//!
//! [`ApiServer`] is a [`tower::Service`]: give it to `kube::Client::new` and it answers in process, under tokio's paused
//! clock if a test wants that; give it to a [`listener`] and it serves kubectl over TLS.
//!
//! 1. It behaves like kube-apiserver 1.37 to kubectl, client-go and kube-rs; what differs is in `docs/apiserver.md`.
//! 2. It is table-driven: resources are rows, schemas are data, and what is special about a kind is one small file.
//! 3. Time comes from a [`Clock`](steersman_base::Clock) and from tokio's timers, never from the machine.
//!
//! | module | what it holds |
//! |---|---|
//! | [`server`] | [`ApiServer`]: how a server is made |
//! | [`http`] | requests and answers: paths, negotiation, bodies |
//! | [`listener`] | sockets, TLS, kubeconfig |
//! | [`auth`] | who asks, and who may |
//! | [`logs`] | what containers wrote |
//! | [`aggregated`] | groups that another part of the process serves |
//! | [`registry`] | resources, and the life of their objects |
//! | [`kinds`] | defaults and validation, kind by kind |
//! | [`schema`], [`decode`], [`patch`] | what an object may look like, and how one becomes another |
//! | [`store`] | where objects are kept, with history |
//! | [`table`], [`openapi`] | what `kubectl get` and `kubectl explain` show |
//! | [`status`], [`field`] | refusals, in upstream's words |

pub mod aggregated;
pub mod auth;
mod bootstrap;
pub mod decode;
mod discovery;
pub mod field;
mod findings;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod health;
pub mod http;
mod kinds;
pub mod listener;
pub mod logs;
pub mod openapi;
pub mod patch;
#[cfg(test)]
mod recorded;
pub mod registry;
pub mod schema;
pub mod server;
pub mod status;
pub mod store;
mod table;
mod watch;
mod webhook;

pub use auth::{BadKey, TokenKey};
pub use http::limits::{HeavyWork, RequestLimits};
pub use server::{ApiServer, Authorization, Options};
