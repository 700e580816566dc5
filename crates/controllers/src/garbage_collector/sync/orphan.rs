//! An owner that is deleted with `orphan`: its dependents lose the reference, *then* it is deleted.

use std::sync::Arc;

use futures::StreamExt;
use steersman_base::ObjectKey;
use steersman_base::names::finalizers;
use steersman_runtime::{Action, Context, Error, Reconciler};

use super::server::Change;
use super::{CheckError, Collector, Server, Why, uid};
use crate::garbage_collector::identity::Identity;

/// Orphans the dependents of deleted owners. Keys are uids.
pub(in crate::garbage_collector) struct Orphans {
    pub(in crate::garbage_collector) collector: Collector,
    pub(in crate::garbage_collector) server: Arc<Server>,
}

/// The number of dependents of one owner that are patched concurrently. Upstream patches all at once, within its rate
/// limit of 40 a second.
const DEPENDENTS_AT_ONCE: usize = 20;

// === impl Orphans ===

impl Reconciler for Orphans {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        if !self.collector.ready().await {
            return Ok(Action::Done);
        }
        let Some((owner, dependents)) = self.collector.graph(|graph| graph.family(&uid(key))) else {
            return Ok(Action::Done);
        };
        if let Some(pass) = cx.writer.pass() {
            pass.saw("object", &owner);
            pass.saw("dependents", dependents.len());
        }
        match self.leave_behind(cx, &owner, &dependents).await {
            Ok(()) => Ok(Action::Done),
            Err(CheckError::Outrun) => Ok(Action::Again),
            Err(CheckError::UnknownKind(why)) => Err(Error::message(why)),
            Err(CheckError::OwnerInNamespace(other)) => Err(Error::terminal(format!("{other} has no namespace"))),
            Err(CheckError::Error(error)) => Err(error),
        }
    }
}

impl Orphans {
    async fn leave_behind(&self, cx: &Context, owner: &Identity, dependents: &[Identity]) -> Result<(), CheckError> {
        let changes: Vec<_> = dependents.iter().map(|dependent| self.orphan(cx, dependent, owner)).collect();
        let outcomes: Vec<_> = futures::stream::iter(changes).buffer_unordered(DEPENDENTS_AT_ONCE).collect().await;
        outcomes.into_iter().collect::<Result<(), CheckError>>()?;
        let location = self.server.location(owner).await?;
        let why = Why::AllLeftBehind { dependents: dependents.len() };
        self.server.take_off(cx, &location, &owner.uid, finalizers::ORPHAN, &why).await
    }

    async fn orphan(&self, cx: &Context, dependent: &Identity, owner: &Identity) -> Result<(), CheckError> {
        let location = self.server.location(dependent).await?;
        let why = Why::LeftBehind { owner: owner.name.clone() };
        let gone = [owner.uid.clone()];
        match self.server.change(cx, &location, &dependent.uid, None, Change::RemoveOwners(&gone), &why).await {
            Ok(_) => Ok(()),
            Err(trouble) if trouble.is_not_found() => Ok(()),
            Err(trouble) => Err(trouble),
        }
    }
}
