//! What is asked of the server, and what it is asked to do.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;
use serde_json::Value;
use steersman_base::{Istr, Meta, ObjectKey, OwnerRef, Resource, Scope, Uid};
use steersman_informer::{InformerFactory, MetaSource};
use steersman_runtime::descriptor::ControllerContext;
use steersman_runtime::mapper::RestMapper;
use steersman_runtime::{Context, Delete, Patch, Propagation, WriteError, Written};

use super::{Collector, Trouble, Why};
use crate::garbage_collector::classify::{self, Standing};
use crate::garbage_collector::identity::Identity;
use crate::garbage_collector::patch;

/// The server, as workers use it.
pub(in crate::garbage_collector) struct Server {
    mapper: RestMapper,
    informers: InformerFactory,
    collector: Collector,
    /// Resources whose lists cannot be merged: custom resources, and some aggregated APIs.
    unmergeable: Mutex<BTreeSet<Resource>>,
}

/// Where an object is found.
pub(super) struct Place {
    pub(super) resource: Resource,
    pub(super) key: ObjectKey,
}

/// A change of owner references.
#[derive(Clone, Copy)]
pub(super) enum Change<'a> {
    /// Lets go of these owners.
    LetGo(&'a [Uid]),
    /// Blocks no owner any more.
    Unblock,
}

/// What came of a deletion.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Deleted {
    /// It is gone, or on its way.
    Yes,
    /// It was gone already.
    NotThere,
}

/// How many owners of one object are asked for at once: few objects have more, and one with thousands must not take up the
/// whole connection.
const OWNERS_AT_ONCE: usize = 8;
/// How often a finalizer is taken off anew after a conflict, and how long the first wait is: client-go's figures.
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

    /// Where an object with this identity would be.
    pub(super) async fn place(&self, identity: &Identity) -> Result<Place, Trouble> {
        let (group, version) = (identity.group(), identity.version());
        let found = self.mapper.resource_for(group, Some(version), &identity.kind).await?;
        let namespace = match found.resource.scope {
            Scope::Cluster => "",
            Scope::Namespaced if identity.namespace.is_empty() => {
                return Err(Trouble::OwnerInNamespace(identity.clone()));
            }
            Scope::Namespaced => &identity.namespace,
        };
        Ok(Place { key: ObjectKey::new(namespace, &identity.name), resource: found.resource })
    }

    /// What is there now.
    pub(super) async fn get(&self, cx: &Context, place: &Place) -> Result<Option<Meta>, Trouble> {
        Ok(cx.live.get_meta(&place.resource, &place.key).await?)
    }

    /// What each owner of an object in this namespace is worth.
    ///
    /// The namespace is that of the object as it was read. That of a virtual node is its dependent's, which a cluster-wide
    /// object does not have: an owner that it cannot have would be looked for there, and not be found. (Upstream does.)
    pub(super) async fn standings(
        &self,
        cx: &Context,
        namespace: &Istr,
        owners: &[OwnerRef],
    ) -> Result<Vec<Standing>, Trouble> {
        let mut places = HashMap::new();
        let mut distinct = Vec::new();
        let mut order = Vec::with_capacity(owners.len());
        for owner in owners {
            let at = *places.entry(Identity::referred_to(owner, namespace)).or_insert_with(|| {
                distinct.push(owner);
                distinct.len() - 1
            });
            order.push(at);
        }
        let asked: Vec<_> = distinct.into_iter().map(|owner| self.standing(cx, namespace, owner)).collect();
        let found: Vec<Standing> = futures::stream::iter(asked).buffered(OWNERS_AT_ONCE).try_collect().await?;
        Ok(order.into_iter().map(|at| found[at]).collect())
    }

    async fn standing(&self, cx: &Context, namespace: &Istr, owner: &OwnerRef) -> Result<Standing, Trouble> {
        let identity = Identity::referred_to(owner, namespace);
        if self.is_known_absent(&identity) {
            return Ok(Standing::Dangling);
        }
        let place = self.place(&identity).await?;
        let found = self.get(cx, &place).await?;
        let standing = classify::standing(owner, found.as_ref());
        if standing == Standing::Dangling {
            let absent = if place.key.namespace.is_empty() { identity.cluster_wide() } else { identity };
            self.collector.graph(|graph| graph.absent.add(absent));
        }
        Ok(standing)
    }

    /// What the owners of an object are worth if all are known not to be there, so that nothing has to be asked.
    pub(super) fn all_dangling(&self, object: &Meta) -> Option<Vec<Standing>> {
        let mut owners = object.owner_references.iter();
        let is_dangling = |owner| self.is_known_absent(&Identity::referred_to(owner, &object.namespace));
        owners.all(is_dangling).then(|| vec![Standing::Dangling; object.owner_references.len()])
    }

    fn is_known_absent(&self, identity: &Identity) -> bool {
        let everywhere = identity.clone().cluster_wide();
        self.collector.graph(|graph| graph.absent.has(&everywhere) || graph.absent.has(identity))
    }

    /// Changes the owner references of an object; `known` is what it was read as, if it was.
    pub(super) async fn change(
        &self,
        cx: &Context,
        place: &Place,
        uid: &Uid,
        known: Option<&Meta>,
        change: Change<'_>,
        why: &Why,
    ) -> Result<Written, Trouble> {
        let write = cx.writer.unowned();
        if let Some(body) = change.strategic(uid, known)
            && !self.unmergeable.lock().contains(&place.resource)
        {
            match write.patch(&place.resource, &place.key, Patch::Strategic(&body), why).await {
                Err(WriteError::Rejected(refusal)) if refusal.code == UNSUPPORTED_MEDIA_TYPE => {
                    self.unmergeable.lock().insert(place.resource.clone());
                }
                outcome => return Ok(outcome?),
            }
        }
        let read = if known.is_none() { self.read(cx, place, uid).await? } else { None };
        let Some(object) = known.or(read.as_ref()) else { return Err(WriteError::NotFound.into()) };
        Ok(write.patch(&place.resource, &place.key, Patch::Merge(&change.merge(object)), why).await?)
    }

    /// An object as a cache shows it, or else the server. The patch that comes of it is conditional.
    async fn read(&self, cx: &Context, place: &Place, uid: &Uid) -> Result<Option<Meta>, Trouble> {
        match self.seen(place, uid) {
            Some(seen) => Ok(Some(seen)),
            None => Ok(self.get(cx, place).await?.filter(|meta| meta.uid == *uid)),
        }
    }

    /// An object as a cache shows it.
    pub(super) fn seen(&self, place: &Place, uid: &Uid) -> Option<Meta> {
        let mut seen = None;
        let cache = self.informers.declared_meta(&place.resource)?;
        cache.with_meta(&place.key, &mut |meta| seen = Some(meta.clone()));
        seen.filter(|meta| meta.uid == *uid)
    }

    /// Deletes an object as it was read. If it changed since, it goes only if its owners are the same: rapid changes of
    /// something else do not keep it.
    pub(super) async fn delete(
        &self,
        cx: &Context,
        place: &Place,
        object: &Meta,
        how: Propagation,
        why: &Why,
    ) -> Result<Deleted, Trouble> {
        match self.delete_version(cx, place, object, how, why).await {
            Err(Trouble::Outrun) => {}
            outcome => return outcome,
        }
        let Some(now) = self.get(cx, place).await? else { return Ok(Deleted::NotThere) };
        let changed = now.resource_version != object.resource_version;
        if now.uid != object.uid || !changed || now.owner_references != object.owner_references {
            return Err(Trouble::Outrun);
        }
        Deleted::of(cx.writer.unowned().delete(&place.resource, object, how, why).await)
    }

    /// Deletes an object in the version that is given, and in no other.
    pub(super) async fn delete_version(
        &self,
        cx: &Context,
        place: &Place,
        object: &Meta,
        how: Propagation,
        why: &Why,
    ) -> Result<Deleted, Trouble> {
        let unchanged = Delete { unchanged_only: true, ..how.into() };
        Deleted::of(cx.writer.unowned().delete(&place.resource, object, unchanged, why).await)
    }

    /// Takes a finalizer off an object, if it is there and has it.
    pub(super) async fn take_off(
        &self,
        cx: &Context,
        place: &Place,
        uid: &Uid,
        finalizer: &str,
        why: &Why,
    ) -> Result<(), Trouble> {
        let mut conflicts = 0;
        loop {
            let Some(object) = self.get(cx, place).await?.filter(|object| object.uid == *uid) else { return Ok(()) };
            let Some(body) = patch::without_finalizer(&object, finalizer) else { return Ok(()) };
            match cx.writer.unowned().patch(&place.resource, &place.key, Patch::Merge(&body), why).await {
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
    fn of(outcome: Result<(), WriteError>) -> Result<Self, Trouble> {
        match outcome {
            Ok(()) => Ok(Self::Yes),
            Err(WriteError::NotFound) => Ok(Self::NotThere),
            Err(error) => Err(error.into()),
        }
    }
}

// === impl Change ===

impl Change<'_> {
    /// None if the object must be read first.
    fn strategic(self, uid: &Uid, known: Option<&Meta>) -> Option<Value> {
        match self {
            Self::LetGo(owners) => Some(patch::let_go(uid, owners)),
            Self::Unblock => known.map(patch::unblock),
        }
    }

    fn merge(self, object: &Meta) -> Value {
        match self {
            Self::LetGo(owners) => patch::let_go_merge(object, owners),
            Self::Unblock => patch::unblock_merge(object),
        }
    }
}
