//! The shell: observe → claim → plan → write → status.

use std::sync::Arc;

use steersman_base::{ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::PodView;
use steersman_model::{Kind, PodName, View};
use steersman_runtime::__internal::Children;
use steersman_runtime::__internal::writer::Naming;
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Propagation, Reconciler, WriteError, reasons};

use super::metrics::Metrics;
use super::plan::{Plan, plan, wanted};
use super::{Options, Replicated, status};
use crate::claim::{Claimed, claimed, owner_ref, usable};
use crate::pod;

const PODS: &Resource = &PodView::RESOURCE;

/// The controller's shell: the caches that it reads from.
pub(super) struct Sets<V> {
    pub(super) sets: Lister<V>,
    pub(super) siblings: Children<V>,
    pub(super) pods: Children<PodView>,
    pub(super) options: Options,
    pub(super) metrics: Metrics,
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
        /// The status is out of date.
        Status { have: i32, ready: i32 } => "{have} pods are active, {ready} of them ready",
    }
}

// === impl Sets ===

impl<V: Replicated> Reconciler for Sets<V> {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(set) = cx.main(&self.sets, key).await? else { return Ok(Action::Done) };
        let selector = usable(set.selector(), set.template().labels())
            .map_err(|problem| Error::terminal(format!("{} {key} is left alone: {problem}", V::RESOURCE.kind)))?;
        let pods = claimed(cx, &self.pods, &*set, &selector, pod::is_active).await?;
        let active = &pods.own;
        let terminating = pods.others.iter().filter(|pod| pod::is_terminating(pod)).count();
        let now = cx.clock.now();
        let outcome = match plan(&*set, active, || self.related(&set), self.options, now) {
            Plan::Nothing => Ok(()),
            Plan::Create { count } => create(cx, &*set, &pods, count).await,
            Plan::Delete { pods } => {
                self.metrics.count(active, &pods, now);
                delete(cx, &*set, active.len(), pods).await
            }
        };
        let failure = outcome.as_ref().err().map(WriteError::message);
        let status = status::status(&*set, active, terminating, failure.as_deref(), self.options, now);
        let why = Why::Status { have: status.replicas, ready: status.ready_replicas };
        let write = cx.writer.on_behalf_of(set.meta());
        // A conflict is left to the next pass: the change triggers it.
        write.put_status_if_changed::<V, _>(set.meta(), &set.status(), &status, &why).await.ok_if_gone()?;
        outcome?;
        Ok(status::next_check(&*set, &status, active, now).map_or(Action::Done, Action::After))
    }
}

impl<V: Replicated> Sets<V> {
    /// Returns all pods of the ReplicaSets of the same Deployment.
    fn related(&self, set: &V) -> Vec<Arc<PodView>> {
        let Some(owner) = set.meta().controller() else { return Vec::new() };
        let siblings = self.siblings.cached_by_uid(&owner.uid);
        siblings.iter().flat_map(|set| self.pods.cached(set.meta())).collect()
    }
}

async fn create<V: Replicated>(cx: &Context, set: &V, pods: &Claimed<PodView>, count: usize) -> Result<(), WriteError> {
    let write = cx.writer.on_behalf_of(set.meta());
    let prefix = pod::name_prefix(&set.meta().name);
    let template = set.template();
    let pod = template.new_pod(PodName::Prefix(&prefix), &set.meta().namespace, &owner_ref(set));
    let body = |name: &str| template.pod_body(&pod.under(PodName::Chosen { name, prefix: &prefix }));
    let why = Why::TooFew { have: pods.own.len(), want: wanted(set) };
    // A pod that came late may have failed by now: it does not count, and its name must not be used again.
    let is_seen = |name: &str| pods.own.iter().chain(&pods.others).any(|pod| pod.meta().name == *name);
    let naming = Naming { prefix: &prefix, purpose: "", is_seen: &is_seen };
    let (_, failure) = write.slow_start(count, |_| write.create_named(PODS, naming, &body, &why)).await;
    // Nothing can be created in a terminating namespace.
    failure.map_or(Ok(()), Err).ok_if_terminating()
}

async fn delete(cx: &Context, set: &impl Replicated, have: usize, pods: Vec<Arc<PodView>>) -> Result<(), WriteError> {
    let write = cx.writer.on_behalf_of(set.meta());
    let why = Why::TooMany { have, want: wanted(set) };
    let deletes = pods.iter().map(|pod| write.delete(PODS, pod.meta(), Propagation::Background, &why));
    let outcomes = futures::future::join_all(deletes).await;
    // Deleted or replaced meanwhile: nothing is left to do.
    outcomes.into_iter().try_for_each(|outcome| outcome.ok_if_gone().ok_if_replaced())
}
