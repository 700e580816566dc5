//! The shell: informers → graph → queues → live reads → writes.

mod look;
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

pub(super) use look::Looks;
pub(super) use monitors::Monitors;
pub(super) use orphan::Orphans;
pub(super) use pages::serve;
pub(super) use server::Server;

use super::graph::{Graph, Look, Misplaced, Work};
use super::identity::{Identity, Kind};

/// The graph, and the queues that its changes fill. Cheap to clone; clones are the same.
#[derive(Clone)]
pub(super) struct Collector(Arc<Shared>);

struct Shared {
    /// One change at a time.
    graph: Mutex<Graph>,
    queues: Queues,
    /// How far the graph is filled.
    ready: watch::Sender<Ready>,
    events: Recorder,
}

/// Nothing is put into a queue before its workers [begin](Collector::begin): a standby has no use for what was to be looked at
/// once. What still is, the graph knows.
#[derive(Default)]
struct Queues {
    look_at: Begun,
    orphan: Begun,
}

/// A queue, once its workers have begun.
#[derive(Default)]
struct Begun(OnceLock<Queue<ObjectKey>>);

/// One of the two queues.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of {
    Looks,
    Orphans,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ready {
    /// Dependents may be missing.
    NotYet,
    /// The graph is filled, as far as it can be.
    Yes,
    /// Workers are to end.
    Stopped,
}

/// An object that is being looked at. Unless that [is done](TakenUp::done), it is still to be.
struct TakenUp<'a> {
    collector: &'a Collector,
    look: Look,
    is_done: bool,
}

/// Why a look came to nothing.
enum Trouble {
    /// The server knows no such kind: it may come, or be a reference to nowhere. Tried again, less and less often.
    UnknownKind(String),
    /// An object of the whole cluster cannot have an owner in a namespace. Trying again does not help.
    OwnerInNamespace(Identity),
    /// Somebody was faster. Ordinary: look again.
    Outrun,
    /// Anything else.
    Error(Error),
}

reasons! {
    /// Why the garbage collector writes.
    pub enum Why {
        /// All owners of the object have gone.
        OwnersGone { owners: usize } => "all of its {owners} owners are gone",
        /// An owner of the object waits for it to go.
        OwnerWaits { owners: usize } => "none of its {owners} owners stays, and one waits for it to go",
        /// Owners of the object have gone, or wait for it to go, and others stay.
        SomeOwnersGone { gone: usize, owners: usize } => "{gone} of {owners} owners are gone or going, others stay",
        /// The object, an owner and a dependent of it wait for each other.
        Cycle => "it waits for its dependents, and an owner of them waits for it",
        /// The object was deleted in the foreground, and its dependents have gone.
        DependentsGone => "no dependent keeps it from going",
        /// An owner of the object was deleted, and leaves its dependents behind.
        LeftBehind { owner: Istr } => "its owner {owner} was deleted and leaves its dependents behind",
        /// All dependents of the object have been left behind.
        AllLeftBehind { dependents: usize } => "its {dependents} dependents are left behind",
    }
}

// === impl Collector ===

impl Collector {
    pub(super) fn new(events: Recorder) -> Self {
        let ready = watch::Sender::new(Ready::NotYet);
        Self(Arc::new(Shared { graph: Mutex::default(), queues: Queues::default(), ready, events }))
    }

    /// Workers begin: what is to be done by now goes into their queue, and what comes up from now on. The queue is set while
    /// the graph is held, so what is not put into it before that is in the graph when that is asked.
    pub(super) fn begin(&self, of: Of, queue: &Queue<ObjectKey>) {
        let queues = &self.0.queues;
        let (begun, uids) = self.graph(|graph| {
            let (begun, uids) = match of {
                Of::Looks => (&queues.look_at, graph.to_look_at()),
                Of::Orphans => (&queues.orphan, graph.to_orphan()),
            };
            // Workers begin once.
            let _ = begun.0.set(queue.clone());
            (begun, uids)
        });
        begun.add(&uids, Priority::Background);
    }

    /// The server went back in time, as one that was restored from a backup: what was gone may be there.
    fn went_back(&self) {
        self.graph(|graph| graph.absent.clear());
    }

    /// Takes a change into the graph.
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

    /// The server says that there is no such object.
    fn gone(&self, identity: &Identity) {
        let mut work = Work::default();
        self.graph(|graph| graph.gone(identity, &mut work));
        self.dispatch(&work, Priority::Live);
    }

    fn graph<T>(&self, look: impl FnOnce(&mut Graph) -> T) -> T {
        look(&mut self.0.graph.lock())
    }

    fn dispatch(&self, work: &Work, priority: Priority) {
        let queues = &self.0.queues;
        queues.look_at.add(&work.look_at, priority);
        queues.orphan.add(&work.orphan, priority);
        work.misplaced.iter().for_each(|misplaced| self.report(misplaced));
    }

    fn report(&self, misplaced: &Misplaced) {
        let Misplaced { dependent, reference } = misplaced;
        let owner = Identity::referred_to(reference, &dependent.namespace);
        tracing::warn!(object = %dependent, %owner, "the owner is in another namespace, which cannot be");
        let note = format!("ownerRef {owner} does not exist in namespace {:?}", &*dependent.namespace);
        let (group, version) = (dependent.group().to_owned(), dependent.version().to_owned());
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

    /// The graph is filled, as far as it can be.
    fn set_ready(&self) {
        self.0
            .ready
            .send_if_modified(|ready| *ready == Ready::NotYet && std::mem::replace(ready, Ready::Yes) != Ready::Yes);
    }

    /// Workers are to end, also those that wait for the graph.
    pub(super) fn stop(&self) {
        self.0.ready.send_replace(Ready::Stopped);
    }

    /// Waits until the graph is filled: dependents that are not known yet would be forgotten. False if it will not be, because
    /// the workers are to end.
    async fn ready(&self) -> bool {
        // The sender lives as long as `self`, so an error cannot come.
        let mut ready = self.0.ready.subscribe();
        ready.wait_for(|ready| *ready != Ready::NotYet).await.is_ok_and(|ready| *ready == Ready::Yes)
    }

    fn take_up(&self, uid: &Uid) -> Option<TakenUp<'_>> {
        let look = self.graph(|graph| graph.take_up(uid))?;
        Some(TakenUp { collector: self, look, is_done: false })
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

/// A node as a key of a queue: its uid, which stays the same whoever the node turns out to be.
fn key(uid: &Uid) -> ObjectKey {
    ObjectKey::cluster(&uid.to_string())
}

fn uid(key: &ObjectKey) -> Uid {
    Uid::new(&key.name)
}

/// Whether nothing changed that the graph holds: so it is with nearly every change of a pod.
fn says_the_same(old: &Meta, new: &Meta) -> bool {
    old.owner_references == new.owner_references
        && old.is_terminating() == new.is_terminating()
        && old.finalizers() == new.finalizers()
}

// === impl TakenUp ===

impl TakenUp<'_> {
    fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for TakenUp<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.collector.graph(|graph| graph.put_back(&self.look.identity.uid));
        }
    }
}

// === impl Trouble ===

impl From<WriteError> for Trouble {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Conflict => Self::Outrun,
            error => Self::Error(error.into()),
        }
    }
}

impl From<LiveReadError> for Trouble {
    fn from(error: LiveReadError) -> Self {
        Self::Error(error.into())
    }
}

impl From<MapperError> for Trouble {
    fn from(error: MapperError) -> Self {
        match error {
            MapperError::NoKind { .. } => Self::UnknownKind(error.to_string()),
            error => Self::Error(error.into()),
        }
    }
}

impl Trouble {
    /// Whether the object that was to be changed is gone.
    fn is_not_found(&self) -> bool {
        let Self::Error(error) = self else { return false };
        matches!(error.source().downcast_ref::<WriteError>(), Some(WriteError::NotFound))
    }
}
