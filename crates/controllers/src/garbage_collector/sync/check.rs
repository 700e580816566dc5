//! The check of one object: is it kept or deleted?

use std::sync::Arc;

use steersman_base::names::finalizers;
use steersman_base::{Meta, ObjectKey};
use steersman_runtime::{Action, Context, Error, Propagation, Reconciler};

use super::server::{Change, Deleted, Location};
use super::{CheckError, Collector, Server, Why, uid};
use crate::garbage_collector::graph::{NodeState, Work};
use crate::garbage_collector::identity::Identity;
use crate::garbage_collector::plan::{self, Dependents, Plan};

/// Checks objects that may have to be deleted. Keys are uids.
pub(in crate::garbage_collector) struct Checks {
    pub(in crate::garbage_collector) collector: Collector,
    pub(in crate::garbage_collector) server: Arc<Server>,
}

// === impl Checks ===

impl Reconciler for Checks {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        if !self.collector.ready().await {
            return Ok(Action::Done);
        }
        let uid = uid(key);
        let Some(taken) = self.collector.take(&uid) else { return Ok(Action::Done) };
        let pass = cx.writer.pass();
        if let Some(pass) = pass {
            pass.saw("object", &taken.node.identity);
        }
        let refused = |rule, why: &dyn std::fmt::Display| {
            if let Some(pass) = pass {
                pass.refused(rule, why);
            }
        };
        match self.check(cx, &taken.node).await {
            Ok(()) => taken.done(),
            Err(CheckError::Outrun) => return Ok(Action::Again),
            Err(CheckError::UnknownKind(why)) => {
                refused("UnknownKind", &why);
                return Ok(Action::Again);
            }
            Err(CheckError::OwnerInNamespace(owner)) => {
                tracing::warn!(object = %taken.node.identity, %owner, "a cluster-scoped object cannot have a namespaced owner");
                refused(
                    "OwnerInNamespace",
                    &format_args!("a cluster-wide object refers to {owner}, which is in a namespace"),
                );
                taken.done();
                return Ok(Action::Done);
            }
            Err(CheckError::Error(error)) => return Err(error),
        }
        // Until an informer shows it, no event would report its deletion (kubernetes/kubernetes issue 56121).
        Ok(if self.collector.graph(|graph| graph.is_virtual(&uid)) { Action::Again } else { Action::Done })
    }
}

impl Checks {
    async fn check(&self, cx: &Context, node: &NodeState) -> Result<(), CheckError> {
        let identity = &node.identity;
        if node.is_being_deleted && !node.is_deleting_dependents {
            // It is terminating. Its dependents are enqueued when it is deleted.
            return Ok(());
        }
        let location = self.server.location(identity).await?;
        if !node.is_virtual && self.delete_as_cached(cx, identity, &location).await? {
            return Ok(());
        }
        let live = match self.server.get(cx, &location).await? {
            Some(live) if live.uid == identity.uid => live,
            _ => {
                self.collector.mark_absent(identity);
                return Ok(());
            }
        };
        if live.is_terminating() {
            let waits = live.has_finalizer(finalizers::FOREGROUND_DELETION);
            return if waits { self.wait_for_dependents(cx, identity, &location).await } else { Ok(()) };
        }
        if live.owner_references.is_empty() {
            return Ok(());
        }
        let owner_states = self.server.owner_states(cx, &live.namespace, &live.owner_references).await?;
        let dependents = self.collector.graph(|graph| graph.dependents_known(&identity.uid));
        match plan::plan(&live, &owner_states, dependents) {
            Plan::Keep => Ok(()),
            Plan::RemoveOwners(gone) => {
                let why = Why::SomeOwnersGone { gone: gone.len(), owners: live.owner_references.len() };
                let change = Change::RemoveOwners(&gone);
                self.server.change(cx, &location, &identity.uid, Some(&live), change, &why).await?;
                Ok(())
            }
            Plan::DeleteInForeground { in_cycle } => {
                let live = if in_cycle { self.unblock(cx, &location, live).await? } else { live };
                let why = Why::OwnerWaits { owners: live.owner_references.len() };
                self.delete(cx, identity, &location, &live, Propagation::Foreground, &why).await
            }
            Plan::Delete(how) => {
                let why = Why::OwnersGone { owners: live.owner_references.len() };
                self.delete(cx, identity, &location, &live, how, &why).await
            }
        }
    }

    /// Deletes an object whose owners are all known to be absent, as a cache shows it, on condition of that
    /// resourceVersion: if it is current, a read would have shown the same. Returns false if the object has to be read.
    async fn delete_as_cached(
        &self,
        cx: &Context,
        identity: &Identity,
        location: &Location,
    ) -> Result<bool, CheckError> {
        let Some(seen) = self.server.seen(location, &identity.uid).filter(|seen| !seen.is_terminating()) else {
            return Ok(false);
        };
        let Some(owner_states) = self.server.all_dangling(&seen) else { return Ok(false) };
        let Plan::Delete(how) = plan::plan(&seen, &owner_states, Dependents::default()) else { return Ok(false) };
        let why = Why::OwnersGone { owners: seen.owner_references.len() };
        match self.server.delete_version(cx, location, &seen, how, &why).await {
            Err(CheckError::Outrun) => Ok(false),
            outcome => self.conclude(identity, outcome).map(|()| true),
        }
    }

    /// An object in foreground deletion is deleted when no dependent blocks it; until then, the dependents are
    /// enqueued.
    async fn wait_for_dependents(
        &self,
        cx: &Context,
        identity: &Identity,
        location: &Location,
    ) -> Result<(), CheckError> {
        let mut work = Work::default();
        let is_blocked = self.collector.graph(|graph| graph.want_blocking(&identity.uid, &mut work));
        self.collector.dispatch(&work, steersman_workqueue::Priority::Live);
        if is_blocked {
            return Ok(());
        }
        let finalizer = finalizers::FOREGROUND_DELETION;
        self.server.take_off(cx, location, &identity.uid, finalizer, &Why::DependentsGone).await
    }

    /// Breaks a cycle: the object blocks no owner any more. Returns the patched object.
    async fn unblock(&self, cx: &Context, location: &Location, live: Meta) -> Result<Meta, CheckError> {
        let written = self.server.change(cx, location, &live.uid, Some(&live), Change::Unblock, &Why::Cycle).await?;
        Ok(if written.resource_version.is_empty() { live } else { written })
    }

    async fn delete(
        &self,
        cx: &Context,
        identity: &Identity,
        location: &Location,
        live: &Meta,
        how: Propagation,
        why: &Why,
    ) -> Result<(), CheckError> {
        self.conclude(identity, self.server.delete(cx, location, live, how, why).await)
    }

    fn conclude(&self, identity: &Identity, outcome: Result<Deleted, CheckError>) -> Result<(), CheckError> {
        if outcome? == Deleted::NotThere {
            self.collector.mark_absent(identity);
        }
        Ok(())
    }
}
