//! An embedded Kubernetes API server: a control plane without etcd, Go or downloads.
//!
//! [`ApiServer`] is a [`tower::Service`]: give it to `kube::Client::new` and it answers in process, under tokio's paused
//! clock if a test wants that; give it to a [`listener`] and it serves kubectl over TLS.
//!
//! 1. It behaves like kube-apiserver 1.37 to kubectl, client-go and kube-rs; what differs is in `docs/apiserver.md`.
//! 2. It is table-driven: resources are rows, schemas are data, and what is special about a kind is one small file.
//! 3. Time comes from a [`Clock`](steersman_base::Clock) and from tokio's timers, never from the machine.
//!
//! | module | contents |
//! |---|---|
//! | the root | [`ApiServer`], its [`Options`], and the [`Body`] of its responses |
//! | [`listener`] | sockets, TLS, kubeconfig |
//! | [`logs`] | the source of the logs of containers |
//! | [`aggregated`] | API groups that another part of the process serves |
//! | [`store`] | the storage of objects, with history |

pub mod aggregated;
mod auth;
mod bootstrap;
mod decode;
mod discovery;
mod field;
mod findings;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod health;
mod http;
mod kinds;
pub mod listener;
pub mod logs;
mod openapi;
mod patch;
#[cfg(test)]
mod recorded;
mod registry;
mod schema;
mod server;
mod status;
pub mod store;
mod table;
mod watch;
mod webhook;

pub use auth::{BadKey, NoRandom, TokenKey};
pub use http::limits::{HeavyWork, RequestLimits};
pub use http::{Body, BoxError};
pub use server::{ApiServer, Authorization, Options};

/// Items that the crates of this project use of each other. Not for others: they change without notice.
#[doc(hidden)]
pub mod __internal {
    /// Returns the built-in resources, in the order of discovery.
    pub fn built_in() -> impl Iterator<Item = &'static steersman_base::Resource> {
        crate::registry::built_in().iter().map(|row| &row.resource)
    }
}
