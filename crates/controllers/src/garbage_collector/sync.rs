//! The shell: informers → graph → queues → live reads → writes.

mod check;
mod monitors;
mod orphan;
mod pages;
mod server;

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use steersman_base::watch;
use steersman_base::{Istr, Meta, ObjectKey, Resource, Uid};
use steersman_informer::Change;
use steersman_model::HasMeta;
use steersman_runtime::events::{About, Recorder};
use steersman_runtime::live::LiveReadError;
use steersman_runtime::mapper::MapperError;
use steersman_runtime::{Error, WriteError, reasons};
use steersman_workqueue::{Priority, Queue};

pub(super) use check::Checks;
pub(super) use monitors::Monitors;
pub(super) use orphan::Orphans;
pub(super) use pages::serve;
pub(super) use server::Server;

use super::graph::{Graph, Misplaced, NodeState, Work};
use super::identity::{Identity, Kind};

/// The graph, and the queues that its changes fill. Cheap to clone; clones share one graph.
#[derive(Clone)]
pub(super) struct Collector(Arc<Shared>);

struct Shared {
    /// Locked for one change at a time.
    graph: Mutex<Graph>,
    queues: Queues,
    /// The progress of filling the graph.
    ready: watch::Sender<Ready>,
    events: Recorder,
}

/// Nothing is enqueued before the workers of a queue [begin](Collector::begin): a standby has no use for old work.
/// Pending work is in the graph.
#[derive(Default)]
struct Queues {
    to_check: Begun,
    orphan: Begun,
}

/// A queue, once its workers have started.
#[derive(Default)]
struct Begun(OnceLock<Queue<ObjectKey>>);

/// One of the two queues.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Checks,
    Orphans,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ready {
    /// Dependents may be missing.
    NotYet,
    /// The graph is filled, as far as possible.
    Yes,
    /// Workers are stopping.
    Stopped,
}

/// An object that is being checked. Unless the check [is done](InProgress::done), it stays pending.
struct InProgress<'a> {
    collector: &'a Collector,
    node: NodeState,
    is_done: bool,
}

/// Why a check failed.
enum CheckError {
    /// The server does not know the kind: it may be added, or the reference is wrong. Retried with backoff.
    UnknownKind(String),
    /// A cluster-scoped object cannot have a namespaced owner. A retry does not help.
    OwnerInNamespace(Identity),
    /// A conflict with another writer. Expected: check again.
    Outrun,
    /// Any other error.
    Error(Error),
}

reasons! {
    /// Why the garbage collector writes.
    pub enum Why {
        /// All owners of the object are absent.
        OwnersGone { owners: usize } => "all of its {owners} owners are gone",
        /// An owner of the object waits for its deletion.
        OwnerWaits { owners: usize } => "none of its {owners} owners stays, and one waits for it to go",
        /// Owners of the object are absent, or wait for its deletion, and others exist.
        SomeOwnersGone { gone: usize, owners: usize } => "{gone} of {owners} owners are gone or going, others stay",
        /// The object, an owner and a dependent of it wait for each other.
        Cycle => "it waits for its dependents, and an owner of them waits for it",
        /// The object was deleted in the foreground, and its dependents are gone.
        DependentsGone => "no dependent keeps it from going",
        /// An owner of the object was deleted with `orphan`.
        LeftBehind { owner: Istr } => "its owner {owner} was deleted and leaves its dependents behind",
        /// All dependents of the object are orphaned.
        AllLeftBehind { dependents: usize } => "its {dependents} dependents are left behind",
    }
}

// === impl Collector ===

impl Collector {
    pub(super) fn new(events: Recorder) -> Self {
        let ready = watch::Sender::new(Ready::NotYet);
        Self(Arc::new(Shared { graph: Mutex::default(), queues: Queues::default(), ready, events }))
    }

    /// Starts the workers of a queue: pending work is enqueued, and new work from now on. The queue is set while the
    /// graph is locked, so work that was not enqueued before is in the graph at that time.
    pub(super) fn begin(&self, purpose: Purpose, queue: &Queue<ObjectKey>) {
        let queues = &self.0.queues;
        let (begun, uids) = self.graph(|graph| {
            let (begun, uids) = match purpose {
                Purpose::Checks => (&queues.to_check, graph.to_check()),
                Purpose::Orphans => (&queues.orphan, graph.to_orphan()),
            };
            // Workers start once.
            let _ = begun.0.set(queue.clone());
            (begun, uids)
        });
        begun.add(&uids, Priority::Background);
    }

    /// Forgets absent objects: the server went back in time, as after a restore from a backup.
    fn went_back(&self) {
        self.graph(|graph| graph.absent.clear());
    }

    /// Applies a change to the graph.
    fn take_in(&self, resource: &Resource, kind: &Kind, change: &Change<dyn HasMeta>) {
        let mut work = Work::default();
        let mut priority = Priority::Live;
        match change {
            Change::Updated { old, new } if says_the_same(old.meta(), new.meta()) => return,
            Change::Updated { old, new } => {
                self.graph(|graph| graph.observed(kind, new.meta(), Some(old.meta()), &mut work));
            }
            Change::Added { new, initial } => {
                if *initial {
                    priority = Priority::Background;
                }
                self.graph(|graph| graph.observed(kind, new.meta(), None, &mut work));
            }
            Change::Deleted { last, end } => self.graph(|graph| graph.deleted(kind, last.meta(), *end, &mut work)),
        }
        if work != Work::default() {
            tracing::trace!(%resource, ?work, "the graph changed");
        }
        self.dispatch(&work, priority);
    }

    /// Records that the server has no such object.
    fn mark_absent(&self, identity: &Identity) {
        let mut work = Work::default();
        self.graph(|graph| graph.mark_absent(identity, &mut work));
        self.dispatch(&work, Priority::Live);
    }

    fn graph<T>(&self, access: impl FnOnce(&mut Graph) -> T) -> T {
        access(&mut self.0.graph.lock())
    }

    fn dispatch(&self, work: &Work, priority: Priority) {
        let queues = &self.0.queues;
        queues.to_check.add(&work.to_check, priority);
        queues.orphan.add(&work.orphan, priority);
        work.misplaced.iter().for_each(|misplaced| self.report(misplaced));
    }

    fn report(&self, misplaced: &Misplaced) {
        let Misplaced { dependent, reference } = misplaced;
        let owner = Identity::referred_to(reference, &dependent.namespace);
        tracing::warn!(object = %dependent, %owner, "the owner reference names another namespace");
        let note = format!("ownerRef {owner} does not exist in namespace {:?}", &*dependent.namespace);
        let group = dependent.group().to_owned();
        let version = dependent.version().to_owned();
        let resource = Resource {
            group: group.into(),
            version: version.into(),
            kind: dependent.kind.to_string().into(),
            ..Resource::namespaced("", "", "", "")
        };
        let meta = Meta {
            name: dependent.name.clone(),
            namespace: dependent.namespace.clone(),
            uid: dependent.uid.clone(),
            ..Meta::default()
        };
        self.0.events.warning(&About::new(&resource, &meta), "OwnerRefInvalidNamespace", note);
    }

    /// Records that the graph is filled, as far as possible.
    fn set_ready(&self) {
        self.0
            .ready
            .send_if_modified(|ready| *ready == Ready::NotYet && std::mem::replace(ready, Ready::Yes) != Ready::Yes);
    }

    /// Stops the workers, also those that wait for the graph.
    pub(super) fn stop(&self) {
        self.0.ready.send_replace(Ready::Stopped);
    }

    /// Waits until the graph is filled: unknown dependents would be missed. Returns false if the workers are stopping.
    async fn ready(&self) -> bool {
        // The sender lives as long as `self`, so there is no error.
        let mut ready = self.0.ready.subscribe();
        ready.wait_for(|ready| *ready != Ready::NotYet).await.is_ok_and(|ready| *ready == Ready::Yes)
    }

    fn take(&self, uid: &Uid) -> Option<InProgress<'_>> {
        let node = self.graph(|graph| graph.take(uid))?;
        Some(InProgress { collector: self, node, is_done: false })
    }
}

// === impl Begun ===

impl Begun {
    fn add(&self, uids: &[Uid], priority: Priority) {
        if let Some(queue) = self.0.get().filter(|_| !uids.is_empty()) {
            queue.add_all(&uids.iter().map(key).collect::<Vec<_>>(), priority);
        }
    }
}

/// Returns a node as a key of a queue: its uid, which does not change with the node's identity.
fn key(uid: &Uid) -> ObjectKey {
    ObjectKey::cluster(&uid.to_string())
}

fn uid(key: &ObjectKey) -> Uid {
    Uid::new(&key.name)
}

/// Whether nothing changed that the graph holds, as for nearly every change of a pod.
fn says_the_same(old: &Meta, new: &Meta) -> bool {
    old.owner_references == new.owner_references
        && old.is_terminating() == new.is_terminating()
        && old.finalizers() == new.finalizers()
}

// === impl InProgress ===

impl InProgress<'_> {
    fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.collector.graph(|graph| graph.put_back(&self.node.identity.uid));
        }
    }
}

// === impl CheckError ===

impl From<WriteError> for CheckError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Conflict => Self::Outrun,
            error => Self::Error(error.into()),
        }
    }
}

impl From<LiveReadError> for CheckError {
    fn from(error: LiveReadError) -> Self {
        Self::Error(error.into())
    }
}

impl From<MapperError> for CheckError {
    fn from(error: MapperError) -> Self {
        match error {
            MapperError::NoKind { .. } => Self::UnknownKind(error.to_string()),
            error => Self::Error(error.into()),
        }
    }
}

impl CheckError {
    /// Whether the object to change is deleted.
    fn is_not_found(&self) -> bool {
        let Self::Error(error) = self else { return false };
        matches!(error.source().downcast_ref::<WriteError>(), Some(WriteError::NotFound))
    }
}
