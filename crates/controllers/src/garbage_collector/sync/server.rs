//! Requests to the server.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;
use serde_json::Value;
use steersman_base::{Istr, Meta, ObjectKey, OwnerRef, Resource, Scope, Uid};
use steersman_informer::{InformerFactory, MetaSource};
use steersman_runtime::__internal::descriptor::ControllerContext;
use steersman_runtime::mapper::RestMapper;
use steersman_runtime::{Context, Delete, Patch, Propagation, WriteError, Written};

use super::{CheckError, Collector, Why};
use crate::garbage_collector::identity::Identity;
use crate::garbage_collector::patch;
use crate::garbage_collector::plan::{self, OwnerState};

/// The server, for the workers.
pub(in crate::garbage_collector) struct Server {
    mapper: RestMapper,
    informers: InformerFactory,
    collector: Collector,
    /// Resources whose lists cannot be merged: custom resources, and some aggregated APIs.
    unmergeable: Mutex<BTreeSet<Resource>>,
}

/// The resource and key of an object.
pub(super) struct Location {
    pub(super) resource: Resource,
    pub(super) key: ObjectKey,
}

/// A change of owner references.
#[derive(Clone, Copy)]
pub(super) enum Change<'a> {
    /// Removes these owners.
    RemoveOwners(&'a [Uid]),
    /// Makes all references stop blocking.
    Unblock,
}

/// The result of a deletion.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Deleted {
    /// The object is deleted, or terminating.
    Yes,
    /// The object was absent already.
    NotThere,
}

/// The number of owners of one object that are read concurrently: few objects have more, and one with thousands must
/// not occupy the whole connection.
const OWNERS_AT_ONCE: usize = 8;
/// The maximum number of times that the removal of a finalizer is retried after a conflict, and the first delay:
/// client-go's figures.
const CONFLICTS_MAX: u32 = 4;
const CONFLICT_WAIT: Duration = Duration::from_millis(10);
const UNSUPPORTED_MEDIA_TYPE: u16 = 415;

// === impl Server ===

impl Server {
    pub(in crate::garbage_collector) fn new(cx: &ControllerContext, collector: &Collector) -> Self {
        Self {
            mapper: cx.manager().mapper().clone(),
            informers: cx.informers.clone(),
            collector: collector.clone(),
            unmergeable: Mutex::default(),
        }
    }

    /// Returns the resource and key of an object with this identity.
    pub(super) async fn location(&self, identity: &Identity) -> Result<Location, CheckError> {
        let group = identity.group();
        let version = identity.version();
        let found = self.mapper.resource_for(group, Some(version), &identity.kind).await?;
        let namespace = match found.resource.scope {
            Scope::Cluster => "",
            Scope::Namespaced if identity.namespace.is_empty() => {
                return Err(CheckError::OwnerInNamespace(identity.clone()));
            }
            Scope::Namespaced => &identity.namespace,
        };
        Ok(Location { key: ObjectKey::new(namespace, &identity.name), resource: found.resource })
    }

    /// Reads an object.
    pub(super) async fn get(&self, cx: &Context, location: &Location) -> Result<Option<Meta>, CheckError> {
        Ok(cx.live.get_meta(&location.resource, &location.key).await?)
    }

    /// Classifies each owner of an object in this namespace.
    ///
    /// The namespace is that of the object as it was read. The namespace of a virtual node is its dependent's, which is
    /// wrong for a cluster-scoped object: its owner would be looked for there, and not be found. (Upstream does so.)
    pub(super) async fn owner_states(
        &self,
        cx: &Context,
        namespace: &Istr,
        owners: &[OwnerRef],
    ) -> Result<Vec<OwnerState>, CheckError> {
        let mut locations = HashMap::new();
        let mut distinct = Vec::new();
        let mut order = Vec::with_capacity(owners.len());
        for owner in owners {
            let at = *locations.entry(Identity::referred_to(owner, namespace)).or_insert_with(|| {
                distinct.push(owner);
                distinct.len() - 1
            });
            order.push(at);
        }
        let asked: Vec<_> = distinct.into_iter().map(|owner| self.owner_state(cx, namespace, owner)).collect();
        let found: Vec<OwnerState> = futures::stream::iter(asked).buffered(OWNERS_AT_ONCE).try_collect().await?;
        Ok(order.into_iter().map(|at| found[at]).collect())
    }

    async fn owner_state(&self, cx: &Context, namespace: &Istr, owner: &OwnerRef) -> Result<OwnerState, CheckError> {
        let identity = Identity::referred_to(owner, namespace);
        if self.is_known_absent(&identity) {
            return Ok(OwnerState::Dangling);
        }
        let location = self.location(&identity).await?;
        let found = self.get(cx, &location).await?;
        let owner_state = plan::owner_state(owner, found.as_ref());
        if owner_state == OwnerState::Dangling {
            let absent = if location.key.namespace.is_empty() { identity.cluster_wide() } else { identity };
            self.collector.graph(|graph| graph.absent.add(absent));
        }
        Ok(owner_state)
    }

    /// Classifies the owners of an object without a request, if all are known to be absent.
    pub(super) fn all_dangling(&self, object: &Meta) -> Option<Vec<OwnerState>> {
        let mut owners = object.owner_references.iter();
        let is_dangling = |owner| self.is_known_absent(&Identity::referred_to(owner, &object.namespace));
        owners.all(is_dangling).then(|| vec![OwnerState::Dangling; object.owner_references.len()])
    }

    fn is_known_absent(&self, identity: &Identity) -> bool {
        let everywhere = identity.clone().cluster_wide();
        self.collector.graph(|graph| graph.absent.has(&everywhere) || graph.absent.has(identity))
    }

    /// Changes the owner references of an object; `known` is its last read state, if any.
    pub(super) async fn change(
        &self,
        cx: &Context,
        location: &Location,
        uid: &Uid,
        known: Option<&Meta>,
        change: Change<'_>,
        why: &Why,
    ) -> Result<Written, CheckError> {
        let write = cx.writer.unowned();
        if let Some(body) = change.strategic(uid, known)
            && !self.unmergeable.lock().contains(&location.resource)
        {
            match write.patch(&location.resource, &location.key, Patch::Strategic(&body), why).await {
                Err(WriteError::Rejected(refusal)) if refusal.code == UNSUPPORTED_MEDIA_TYPE => {
                    self.unmergeable.lock().insert(location.resource.clone());
                }
                outcome => return Ok(outcome?),
            }
        }
        let read = if known.is_none() { self.read(cx, location, uid).await? } else { None };
        let Some(object) = known.or(read.as_ref()) else { return Err(WriteError::NotFound.into()) };
        Ok(write.patch(&location.resource, &location.key, Patch::Merge(&change.merge(object)), why).await?)
    }

    /// Returns an object from a cache, or else from the server. The patch that follows is conditional.
    async fn read(&self, cx: &Context, location: &Location, uid: &Uid) -> Result<Option<Meta>, CheckError> {
        match self.seen(location, uid) {
            Some(seen) => Ok(Some(seen)),
            None => Ok(self.get(cx, location).await?.filter(|meta| meta.uid == *uid)),
        }
    }

    /// Returns an object from a cache.
    pub(super) fn seen(&self, location: &Location, uid: &Uid) -> Option<Meta> {
        let mut seen = None;
        let cache = self.informers.declared_meta(&location.resource)?;
        cache.with_meta(&location.key, &mut |meta| seen = Some(meta.clone()));
        seen.filter(|meta| meta.uid == *uid)
    }

    /// Deletes an object as it was read. If it changed since, it is deleted only if its owners are the same: frequent
    /// changes of other fields do not prevent the deletion.
    pub(super) async fn delete(
        &self,
        cx: &Context,
        location: &Location,
        object: &Meta,
        how: Propagation,
        why: &Why,
    ) -> Result<Deleted, CheckError> {
        match self.delete_version(cx, location, object, how, why).await {
            Err(CheckError::Outrun) => {}
            outcome => return outcome,
        }
        let Some(now) = self.get(cx, location).await? else { return Ok(Deleted::NotThere) };
        let changed = now.resource_version != object.resource_version;
        if now.uid != object.uid || !changed || now.owner_references != object.owner_references {
            return Err(CheckError::Outrun);
        }
        Deleted::of(cx.writer.unowned().delete(&location.resource, object, how, why).await)
    }

    /// Deletes an object on condition of this resourceVersion.
    pub(super) async fn delete_version(
        &self,
        cx: &Context,
        location: &Location,
        object: &Meta,
        how: Propagation,
        why: &Why,
    ) -> Result<Deleted, CheckError> {
        let unchanged = Delete::from(how).unchanged_only();
        Deleted::of(cx.writer.unowned().delete(&location.resource, object, unchanged, why).await)
    }

    /// Removes a finalizer from an object, if the object exists and has it.
    pub(super) async fn take_off(
        &self,
        cx: &Context,
        location: &Location,
        uid: &Uid,
        finalizer: &str,
        why: &Why,
    ) -> Result<(), CheckError> {
        let mut conflicts = 0;
        loop {
            let Some(object) = self.get(cx, location).await?.filter(|object| object.uid == *uid) else { return Ok(()) };
            let Some(body) = patch::without_finalizer(&object, finalizer) else { return Ok(()) };
            match cx.writer.unowned().patch(&location.resource, &location.key, Patch::Merge(&body), why).await {
                Ok(_) | Err(WriteError::NotFound) => return Ok(()),
                Err(WriteError::Conflict) if conflicts < CONFLICTS_MAX => {
                    tokio::time::sleep(CONFLICT_WAIT * 5_u32.pow(conflicts)).await;
                    conflicts += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

// === impl Deleted ===

impl Deleted {
    fn of(outcome: Result<(), WriteError>) -> Result<Self, CheckError> {
        match outcome {
            Ok(()) => Ok(Self::Yes),
            Err(WriteError::NotFound) => Ok(Self::NotThere),
            Err(error) => Err(error.into()),
        }
    }
}

// === impl Change ===

impl Change<'_> {
    /// Returns `None` if the object must be read first.
    fn strategic(self, uid: &Uid, known: Option<&Meta>) -> Option<Value> {
        match self {
            Self::RemoveOwners(owners) => Some(patch::remove_owners(uid, owners)),
            Self::Unblock => known.map(patch::unblock),
        }
    }

    fn merge(self, object: &Meta) -> Value {
        match self {
            Self::RemoveOwners(owners) => patch::let_go_merge(object, owners),
            Self::Unblock => patch::unblock_merge(object),
        }
    }
}
