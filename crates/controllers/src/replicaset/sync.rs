//! The shell: observe → claim → plan → write → status.

use std::sync::Arc;

use steersman_base::{ObjectKey, Resource, Selector};
use steersman_informer::{Index, Lister, Scope};
use steersman_model::apps::ReplicaSetStatus;
use steersman_model::core::PodView;
use steersman_model::{Kind, PodName, View, status_body};
use steersman_runtime::writer::Naming;
use steersman_runtime::{Action, Context, Error, Freshness, Propagation, Reconciler, WriteError, reasons};

use super::metrics::Metrics;
use super::plan::{Plan, plan, wanted};
use super::{Options, Replicated, status};
use crate::claim::map::OwnerKey;
use crate::claim::{Claim, Claimer, claim, owner_ref, usable};
use crate::doomed::Doomed;
use crate::pod;

const PODS: &Resource = &PodView::RESOURCE;

/// The controller's shell: what it reads from.
pub(super) struct Sets<V> {
    pub(super) client: kube::Client,
    pub(super) sets: Lister<V>,
    pub(super) sets_by_owner: Index<OwnerKey, V>,
    pub(super) pods_by_owner: Index<OwnerKey, PodView>,
    pub(super) options: Options,
    pub(super) metrics: Metrics,
    pub(super) doomed: Doomed,
}

reasons! {
    /// Why the ReplicaSet controller writes.
    pub enum Why {
        /// Fewer pods are active than wanted.
        TooFew { have: usize, want: usize } => "{have} of {want} pods are active"
            event "SuccessfulCreate" |pod| "Created pod: {pod}"
            or "FailedCreate" |error| "Error creating: {error}",
        /// More pods are active than wanted.
        TooMany { have: usize, want: usize } => "{have} pods are active, {want} are wanted"
            event "SuccessfulDelete" |pod| "Deleted pod: {pod}"
            or "FailedDelete" |error| "Error deleting: {error}",
        /// The status is not what is seen.
        Status { have: i32, ready: i32 } => "{have} pods are active, {ready} of them ready",
    }
}

/// What the pass has found.
struct Seen {
    active: Vec<Arc<PodView>>,
    terminating: usize,
}

// === impl Sets ===

impl<V: Replicated> Reconciler for Sets<V> {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(set) = self.set(cx, key).await? else { return Ok(Action::Done) };
        let selector = usable(set.selector(), set.template().labels())
            .map_err(|problem| Error::terminal(format!("{} {key} is left alone: {problem}", V::RESOURCE.kind)))?;
        let seen = self.observe(cx, &*set, &selector).await?;
        let now = cx.clock.now();
        let outcome = match plan(&*set, &seen.active, || self.related(&set), self.options, now) {
            Plan::Nothing => Ok(()),
            Plan::Create { .. } if self.doomed.has(&set.meta().uid) => Ok(()),
            Plan::Create { count } => self.create(cx, &*set, &seen, count).await,
            Plan::Delete { pods } => {
                self.metrics.count(&seen.active, &pods, now);
                delete(cx, &*set, seen.active.len(), pods).await
            }
        };
        let failure = outcome.as_ref().err().map(WriteError::message);
        let status = status::status(&*set, &seen.active, seen.terminating, failure.as_deref(), self.options, now);
        let next_check = status::next_check(&*set, &status, &seen.active, now);
        put_status(cx, &*set, status).await?;
        outcome?;
        Ok(next_check.map_or(Action::Done, Action::After))
    }
}

impl<V: Replicated> Sets<V> {
    /// The set as it can be trusted: the cache may be as late with its status as with its pods.
    async fn set(&self, cx: &Context, key: &ObjectKey) -> Result<Option<Arc<V>>, Error> {
        let Some(cached) = self.sets.get(key) else { return Ok(None) };
        if cx.freshness == Freshness::CaughtUp {
            return Ok(Some(cached));
        }
        let live = cx.get_live::<V>(&self.client, key).await?;
        // Another one of that name comes with an event of its own.
        Ok(live.filter(|live| live.meta().uid == cached.meta().uid).map(Arc::new))
    }

    /// The pods that are the set's own, after those that should be are adopted and those that should not are let go.
    async fn observe(&self, cx: &Context, set: &V, selector: &Selector) -> Result<Seen, Error> {
        let mut seen = Seen { active: Vec::new(), terminating: 0 };
        let mut claimer = Claimer::new(cx, &self.client, set, selector);
        for pod in self.pods(cx, set).await? {
            if pod::is_terminating(&pod) {
                seen.terminating += usize::from(claim(set.meta(), selector, pod.meta()) == Claim::Keep);
            } else if pod::is_active(&pod) && claimer.claim(&*pod).await? {
                seen.active.push(pod);
            }
        }
        Ok(seen)
    }

    /// The pods that are ours, or nobody's.
    async fn pods(&self, cx: &Context, set: &V) -> Result<Vec<Arc<PodView>>, Error> {
        if cx.freshness == Freshness::ReadLive {
            // Whose else a pod is, is decided as for any other.
            return Ok(cx.list_live(&self.client, Scope::namespace(&set.meta().namespace)).await?);
        }
        let mut pods = self.pods_by_owner.get(&OwnerKey::Controller(set.meta().uid.clone()));
        pods.extend(self.pods_by_owner.get(&OwnerKey::OrphanIn(set.meta().namespace.clone())));
        Ok(pods)
    }

    async fn create(&self, cx: &Context, set: &V, seen: &Seen, count: usize) -> Result<(), WriteError> {
        let write = cx.writer.on_behalf_of(set.meta());
        let prefix = pod::name_prefix(&set.meta().name);
        let template = set.template();
        let pod = template.new_pod(PodName::Prefix(&prefix), &set.meta().namespace, &owner_ref(set));
        let body = |name: &str| template.pod_body(&pod.under(PodName::Chosen { name, prefix: &prefix }));
        let why = Why::TooFew { have: seen.active.len(), want: wanted(set) };
        let naming =
            Naming { prefix: &prefix, is_seen: &|name| seen.active.iter().any(|pod| pod.meta().name == *name) };
        let (_, failure) = write.slow_start(count, |_| write.create_named(PODS, naming, &body, &why)).await;
        match failure {
            None => Ok(()),
            // Every creation will fail until it is gone, and then there is nothing to create in.
            Some(WriteError::NamespaceTerminating) => {
                self.doomed.add(&set.meta().uid);
                Ok(())
            }
            Some(error) => Err(error),
        }
    }

    /// All pods of the ReplicaSets of the same Deployment.
    fn related(&self, set: &V) -> Vec<Arc<PodView>> {
        let Some(owner) = set.meta().controller() else { return Vec::new() };
        let siblings = self.sets_by_owner.get(&OwnerKey::Controller(owner.uid.clone()));
        siblings.iter().flat_map(|set| self.pods_by_owner.get(&OwnerKey::Controller(set.meta().uid.clone()))).collect()
    }
}

async fn delete(cx: &Context, set: &impl Replicated, have: usize, pods: Vec<Arc<PodView>>) -> Result<(), WriteError> {
    let write = cx.writer.on_behalf_of(set.meta());
    let why = Why::TooMany { have, want: wanted(set) };
    let deletes = pods.iter().map(|pod| write.delete(PODS, pod.meta(), Propagation::Background, &why));
    let outcomes = futures::future::join_all(deletes).await;
    let failure = outcomes.into_iter().find_map(|outcome| match outcome {
        // Gone, or another one of that name by now: what was wanted.
        Ok(()) | Err(WriteError::NotFound | WriteError::Conflict) => None,
        Err(error) => Some(error),
    });
    failure.map_or(Ok(()), Err)
}

/// Writes the status if it is not what it should be. A conflict is left to the next pass: it comes with the change.
async fn put_status<V: Replicated>(cx: &Context, set: &V, status: ReplicaSetStatus) -> Result<(), Error> {
    if status == set.status() {
        return Ok(());
    }
    let why = Why::Status { have: status.replicas, ready: status.ready_replicas };
    let body = status_body::<V>(set.meta(), &status);
    match cx.writer.on_behalf_of(set.meta()).put_status(&V::RESOURCE, &set.meta().key(), body, &why).await {
        Ok(_) | Err(WriteError::NotFound) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
