//! A look at one object: does it stay, or does it go?

use std::sync::Arc;

use steersman_base::names::finalizers;
use steersman_base::{Meta, ObjectKey};
use steersman_runtime::{Action, Context, Error, Propagation, Reconciler};

use super::server::{Change, Deleted, Place};
use super::{Collector, Server, Trouble, Why, uid};
use crate::garbage_collector::classify::{self, Dependents, Fate};
use crate::garbage_collector::graph::{Look, Work};
use crate::garbage_collector::identity::Identity;

/// Looks at objects that may have to go. Keys are uids.
pub(in crate::garbage_collector) struct Looks {
    pub(in crate::garbage_collector) collector: Collector,
    pub(in crate::garbage_collector) server: Arc<Server>,
}

// === impl Looks ===

impl Reconciler for Looks {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        if !self.collector.ready().await {
            return Ok(Action::Done);
        }
        let uid = uid(key);
        let Some(taken) = self.collector.take_up(&uid) else { return Ok(Action::Done) };
        let pass = cx.writer.pass();
        if let Some(pass) = pass {
            pass.saw("object", &taken.look.identity);
        }
        let refused = |rule, why: &dyn std::fmt::Display| {
            if let Some(pass) = pass {
                pass.refused(rule, why);
            }
        };
        match self.look_at(cx, &taken.look).await {
            Ok(()) => taken.done(),
            Err(Trouble::Outrun) => return Ok(Action::Again),
            Err(Trouble::UnknownKind(why)) => {
                refused("UnknownKind", &why);
                return Ok(Action::Again);
            }
            Err(Trouble::OwnerInNamespace(owner)) => {
                tracing::warn!(object = %taken.look.identity, %owner, "a cluster-wide object cannot have an owner in a namespace");
                refused(
                    "OwnerInNamespace",
                    &format_args!("a cluster-wide object refers to {owner}, which is in a namespace"),
                );
                taken.done();
                return Ok(Action::Done);
            }
            Err(Trouble::Error(error)) => return Err(error),
        }
        // Until an informer shows it, nobody tells when it goes (kubernetes/kubernetes issue 56121).
        Ok(if self.collector.graph(|graph| graph.is_virtual(&uid)) { Action::Again } else { Action::Done })
    }
}

impl Looks {
    async fn look_at(&self, cx: &Context, look: &Look) -> Result<(), Trouble> {
        let identity = &look.identity;
        if look.is_being_deleted && !look.is_deleting_dependents {
            // It is on its way. What hangs on it is looked at when it has gone.
            return Ok(());
        }
        let place = self.server.place(identity).await?;
        if !look.is_virtual && self.goes_as_seen(cx, identity, &place).await? {
            return Ok(());
        }
        let live = match self.server.get(cx, &place).await? {
            Some(live) if live.uid == identity.uid => live,
            _ => {
                self.collector.gone(identity);
                return Ok(());
            }
        };
        if live.is_terminating() {
            let waits = live.has_finalizer(finalizers::FOREGROUND_DELETION);
            return if waits { self.wait_for_dependents(cx, identity, &place).await } else { Ok(()) };
        }
        if live.owner_references.is_empty() {
            return Ok(());
        }
        let standings = self.server.standings(cx, &live.namespace, &live.owner_references).await?;
        let dependents = self.collector.graph(|graph| graph.dependents_known(&identity.uid));
        match classify::fate(&live, &standings, dependents) {
            Fate::Stays => Ok(()),
            Fate::LetsGo(gone) => {
                let why = Why::SomeOwnersGone { gone: gone.len(), owners: live.owner_references.len() };
                let change = Change::LetGo(&gone);
                self.server.change(cx, &place, &identity.uid, Some(&live), change, &why).await?;
                Ok(())
            }
            Fate::GoesInForeground { in_cycle } => {
                let live = if in_cycle { self.unblock(cx, &place, live).await? } else { live };
                let why = Why::OwnerWaits { owners: live.owner_references.len() };
                self.delete(cx, identity, &place, &live, Propagation::Foreground, &why).await
            }
            Fate::Goes(how) => {
                let why = Why::OwnersGone { owners: live.owner_references.len() };
                self.delete(cx, identity, &place, &live, how, &why).await
            }
        }
    }

    /// An object whose owners are all known to be gone, as a cache shows it, is deleted on condition that it is still in that
    /// version: if it is, a read would have shown the same. False if the object has to be read.
    async fn goes_as_seen(&self, cx: &Context, identity: &Identity, place: &Place) -> Result<bool, Trouble> {
        let Some(seen) = self.server.seen(place, &identity.uid).filter(|seen| !seen.is_terminating()) else {
            return Ok(false);
        };
        let Some(standings) = self.server.all_dangling(&seen) else { return Ok(false) };
        let Fate::Goes(how) = classify::fate(&seen, &standings, Dependents::default()) else { return Ok(false) };
        let why = Why::OwnersGone { owners: seen.owner_references.len() };
        match self.server.delete_version(cx, place, &seen, how, &why).await {
            Err(Trouble::Outrun) => Ok(false),
            outcome => self.conclude(identity, outcome).map(|()| true),
        }
    }

    /// An object that is deleted in the foreground goes when no dependent keeps it; until then, those are looked at.
    async fn wait_for_dependents(&self, cx: &Context, identity: &Identity, place: &Place) -> Result<(), Trouble> {
        let mut work = Work::default();
        let is_blocked = self.collector.graph(|graph| graph.want_blocking(&identity.uid, &mut work));
        self.collector.dispatch(&work, steersman_workqueue::Priority::Live);
        if is_blocked {
            return Ok(());
        }
        let finalizer = finalizers::FOREGROUND_DELETION;
        self.server.take_off(cx, place, &identity.uid, finalizer, &Why::DependentsGone).await
    }

    /// Opens a cycle: the object keeps no owner from going any more. The answer is the object as it is then.
    async fn unblock(&self, cx: &Context, place: &Place, live: Meta) -> Result<Meta, Trouble> {
        let written = self.server.change(cx, place, &live.uid, Some(&live), Change::Unblock, &Why::Cycle).await?;
        Ok(if written.resource_version.is_empty() { live } else { written })
    }

    async fn delete(
        &self,
        cx: &Context,
        identity: &Identity,
        place: &Place,
        live: &Meta,
        how: Propagation,
        why: &Why,
    ) -> Result<(), Trouble> {
        self.conclude(identity, self.server.delete(cx, place, live, how, why).await)
    }

    fn conclude(&self, identity: &Identity, outcome: Result<Deleted, Trouble>) -> Result<(), Trouble> {
        if outcome? == Deleted::NotThere {
            self.collector.gone(identity);
        }
        Ok(())
    }
}
