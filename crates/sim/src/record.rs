//! What happened at the store, one [`Change`] per write, whoever recorded it: the simulator's own store, or a recorder
//! that watches a real API server. Invariants see nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use steersman_base::{Istr, ObjectKey, Time};

/// One committed write.
#[derive(Clone, Debug)]
pub struct Change {
    /// The store's revision of the write.
    pub revision: u64,
    /// When it was committed, by the world's clock.
    pub at: Time,
    /// Plural and group of the resource, as in `pods` or `deployments.apps`.
    pub resource: Istr,
    /// The namespace and name of the object.
    pub key: ObjectKey,
    /// The object before the write; none if it was created.
    pub before: Option<Arc<Value>>,
    /// The object after the write; none if it is deleted.
    pub after: Option<Arc<Value>>,
    /// The author.
    pub by: Actor,
    /// What the author had been shown at that time; none for actors that are not managers, and where it is unknown.
    pub shown: Option<Arc<Shown>>,
}

/// The author of a write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Actor {
    /// A controller of one of the managers.
    Controller {
        /// The number of the manager, from 0. One that was killed and started again has another number: it remembers nothing.
        manager: usize,
        /// The name of the controller, as in `replicaset-controller`.
        name: Istr,
    },
    /// A simulated kubelet or the scheduler.
    Node,
    /// A user of the cluster.
    User,
    /// The API server itself, or unknown.
    Server,
}

/// What a manager had been shown when it sent a request: per resource, the revision up to which it was given every event
/// that was not hidden from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The revision per resource; a resource that is missing was never listed.
    pub revisions: Arc<BTreeMap<Istr, u64>>,
    /// The lowest revision per resource that was the newest one shown at some time of the last
    /// [`PASS_SECONDS`](crate::world::PASS_SECONDS): by what a pass has read that began before. Where it is missing, that is
    /// the revision above.
    pub since: Arc<BTreeMap<Istr, u64>>,
    /// The revisions per resource that were hidden from the manager and that no later list has made up for.
    pub hidden: BTreeMap<Istr, BTreeSet<u64>>,
    /// When the request was sent, by the world's clock; none if it took a second at most.
    pub sent: Option<Time>,
}

// === impl Actor ===

impl Actor {
    /// Returns the controller's name, if a controller made the write.
    #[must_use]
    pub fn controller(&self) -> Option<&str> {
        match self {
            Self::Controller { name, .. } => Some(name),
            Self::Node | Self::User | Self::Server => None,
        }
    }

    /// Returns the number of the manager, if a controller made the write.
    #[must_use]
    pub fn manager(&self) -> Option<usize> {
        match self {
            Self::Controller { manager, .. } => Some(*manager),
            Self::Node | Self::User | Self::Server => None,
        }
    }
}

impl std::fmt::Display for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Controller { manager, name } => write!(f, "{manager}/{name}"),
            Self::Node => f.write_str("node"),
            Self::User => f.write_str("user"),
            Self::Server => f.write_str("server"),
        }
    }
}
