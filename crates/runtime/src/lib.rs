//! The controller runtime: manager, controllers, worker loop, writer, leader election.
//!
//! | module | contents |
//! |---|---|
//! | [`connection`] | clients from a kubeconfig or from inside a cluster |
//! | [`controller`] | building controllers, and the one worker loop |
//! | [`source`], [`handler`], [`predicate`] | what is watched, which keys a change enqueues, which changes are ignored |
//! | [`manager`] | what the controllers of one process share, and the order in which they start |
//! | [`lease`] | leader election: of several processes, one works |
//! | [`client`] | the client of a manager: cached and live reads, and writes outside of reconciles |
//! | [`mapper`] | the kinds that a program and a server know |
//! | [`owner`], [`finalizer`], [`retry`], [`wait`] | helpers around the client |
//! | [`live`] | reads that bypass the caches |
//! | [`reconcile`] | the contract between a controller and the worker loop |
//! | `webhook` (a feature) | admission and conversion webhooks |
//! | [`writer`] | the one way to write in a reconcile: with a reason, on behalf of an owner |
//! | [`serving`] | a small HTTP and HTTPS server |
//! | [`signals`] | Ctrl-C and SIGTERM, which shut a program down in order |
//! | [`definition`] | installing CustomResourceDefinitions |
//! | [`conditions`] | conditions of a status |
//! | [`reason`] | reasons of writes |
//! | [`events`] | Kubernetes events, which `kubectl describe` shows below an object |
//! | [`decisions`] | the decision log: what controllers did, what they refused, and why |
//! | [`metrics`], [`health`], [`admin`] | metrics, health checks, and the pages about a manager |

pub mod admin;
mod children;
pub mod client;
pub mod conditions;
pub mod connection;
pub mod controller;
pub mod decisions;
pub mod definition;
mod descriptor;
pub mod events;
pub mod finalizer;
mod found;
pub mod handler;
pub mod health;
pub mod lease;
pub mod live;
pub mod manager;
pub mod mapper;
pub mod metrics;
pub mod owner;
pub mod predicate;
mod process;
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

/// The crate whose registries and metrics appear in signatures.
pub use prometheus;

pub use client::{CacheMiss, CachedClient, ClientError, ClientOptions};
pub use controller::{BuildContext, Controller};
pub use descriptor::{Build, Descriptor};
pub use lease::{Elector, Leadership, LeaseOptions, NotLeader};
pub use manager::{Group, Inspection, Manager, ManagerError, ManagerOptions, Runnable};
pub use reason::Reason;
pub use reconcile::{Action, Context, Error, Reconciler};
pub use writer::{Delete, Patch, Propagation, WriteError, Writer, Written};

/// Reads objects of a kind from a manager's cache: types of `k8s-openapi`, and types that derive `kube::CustomResource`.
///
/// [`Manager::lister`] returns it. Objects come as `Arc<Typed<K>>`, which dereferences to `K`. Built-in controllers, and programs
/// with hundreds of thousands of objects, use listers of views: [`steersman_informer::Lister`].
pub type Lister<K> = steersman_informer::Lister<steersman_informer::Typed<K>>;

/// Items that the crates of this project use of each other. Not for others: they change without notice.
#[doc(hidden)]
pub mod __internal {
    pub use crate::children::Children;
    pub use crate::found::Found;
    pub use crate::reconcile::Freshness;

    pub mod admin {
        pub use crate::admin::auth::{Guard, GuardError, GuardOptions, Lookup, RequestHeaderOptions, RequestHeaders};
        pub use crate::admin::page::{json, text as text_page};
        pub use crate::admin::zpages::StatusInfo;
    }
    pub mod connection {
        pub use crate::connection::limits::Throttle;
        pub use crate::connection::transport::{Transport, user_agent};
    }
    pub mod descriptor {
        pub use crate::descriptor::{
            ApiServers, Asked, AskedFor, Build, Built, BuiltIn, ControllerContext, Descriptor, Disabled, Enabled,
            FlagFile, FlagSource, FlagValue, Flags, IntoBuilt, Limiter, Row, Stage, Workers,
        };
    }
    pub mod events {
        pub use crate::events::{Broadcaster, DRAIN_WITHIN};
    }
    pub mod health {
        pub use crate::health::{Ask, Reasons, Report};
    }
    pub mod mapper {
        pub use crate::mapper::allowance::{REFRESH_BURST, REFRESH_EVERY};
    }
    pub mod metrics {
        pub use crate::metrics::build::{BuildInfo, register_build_info, register_features, register_version_info};
        pub use crate::metrics::process::ProcessMetrics;
    }
    pub mod process {
        pub use crate::process::dies_with_parent;
    }
    pub mod serving {
        pub use crate::serving::client::{AuthorityError, ClientAuthority, Identity, NotBelieved, PeerCertificates};
    }
    pub mod writer {
        pub use crate::writer::naming::{Created, Naming};
    }
}
