//! The shell: observe → claim → plan → write → status.

use std::sync::Arc;

use serde_json::json;
use steersman_base::{Istr, Meta, ObjectKey, OwnerRef, Resource, Selector, Uid};
use steersman_informer::{Index, Lister, Scope};
use steersman_model::apps::{ReplicaSetStatus, ReplicaSetView};
use steersman_model::core::PodView;
use steersman_model::{Kind, PodName, View, status_body};
use steersman_runtime::{Action, Context, Error, Freshness, Patch, Propagation, Reconciler, WriteError, live, reasons};

use super::claim::{Claim, claim};
use super::map::{self, OwnerKey};
use super::plan::{Plan, plan, wanted};
use super::status;
use crate::pod;

const PODS: &Resource = &PodView::RESOURCE;
const SETS: &Resource = &ReplicaSetView::RESOURCE;

/// The controller's shell: what it reads from.
pub(super) struct ReplicaSets {
    pub(super) client: kube::Client,
    pub(super) sets: Lister<ReplicaSetView>,
    pub(super) by_deployment: Index<Uid, ReplicaSetView>,
    pub(super) pods_by_owner: Index<OwnerKey, PodView>,
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
        /// A pod without owner matches the selector.
        Adopt { pod: Istr } => "orphan {pod} matches the selector",
        /// A pod of ours does not match the selector any more.
        Release { pod: Istr } => "{pod} does not match the selector any more",
        /// The status is not what is seen.
        Status { have: i32, ready: i32 } => "{have} pods are active, {ready} of them ready",
    }
}

/// What the pass has found.
struct Seen {
    active: Vec<Arc<PodView>>,
    terminating: usize,
}

// === impl ReplicaSets ===

impl Reconciler for ReplicaSets {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(set) = self.sets.get(key) else { return Ok(Action::Done) };
        let Some(selector) = map::selector(&set) else {
            return Err(Error::terminal(format!("the selector of {key} is invalid")));
        };
        let seen = self.observe(cx, &set, &selector).await?;
        let now = cx.clock.now();
        let outcome = match plan(&set, &seen.active, || self.related(&set), now) {
            Plan::Nothing => Ok(()),
            Plan::Create { count } => create(cx, &set, seen.active.len(), count).await,
            Plan::Delete { pods } => delete(cx, &set, seen.active.len(), pods).await,
        };
        let failure = outcome.as_ref().err().map(WriteError::message);
        let status = status::status(&set, &seen.active, seen.terminating, failure.as_deref(), now);
        let next_check = status::next_check(&set, &status, &seen.active, now);
        put_status(cx, &set, status).await?;
        outcome?;
        Ok(next_check.map_or(Action::Done, Action::After))
    }
}

impl ReplicaSets {
    /// The pods that are the set's own, after those that should be are adopted and those that should not are let go.
    async fn observe(&self, cx: &Context, set: &ReplicaSetView, selector: &Selector) -> Result<Seen, Error> {
        let mut seen = Seen { active: Vec::new(), terminating: 0 };
        let mut checked = false;
        for pod in self.pods(cx, set).await? {
            let decision = claim(set.meta(), selector, pod.meta());
            if pod::is_terminating(&pod) {
                seen.terminating += usize::from(decision == Claim::Keep);
                continue;
            }
            if !pod::is_active(&pod) {
                continue;
            }
            match decision {
                Claim::Ignore => {}
                Claim::Keep => seen.active.push(pod),
                Claim::Release => release(cx, set, pod.meta()).await?,
                Claim::Adopt => {
                    if !checked {
                        self.check_still_wanted(set).await?;
                        checked = true;
                    }
                    adopt(cx, set, pod.meta()).await?;
                    seen.active.push(pod);
                }
            }
        }
        Ok(seen)
    }

    /// The pods that are ours, or nobody's.
    async fn pods(&self, cx: &Context, set: &ReplicaSetView) -> Result<Vec<Arc<PodView>>, Error> {
        if cx.freshness == Freshness::ReadLive {
            // Whose else a pod is, is decided as for any other.
            return Ok(live::list(&self.client, Scope::namespace(&set.meta().namespace)).await?);
        }
        let mut pods = self.pods_by_owner.get(&OwnerKey::Controller(set.meta().uid.clone()));
        pods.extend(self.pods_by_owner.get(&OwnerKey::OrphanIn(set.meta().namespace.clone())));
        Ok(pods)
    }

    /// The cache may show a set that is gone, or another of its name: before the first adoption, the server is asked.
    async fn check_still_wanted(&self, set: &ReplicaSetView) -> Result<(), Error> {
        let key = set.meta().key();
        let live = live::get_meta(&self.client, SETS, &key).await?;
        match live {
            Some(live) if live.uid == set.meta().uid && !live.is_terminating() => Ok(()),
            Some(live) if live.uid == set.meta().uid => {
                Err(Error::message(format!("{key} was deleted just now: it adopts no pods")))
            }
            _ => Err(Error::message(format!("{key} is gone, or another one: it adopts no pods"))),
        }
    }

    /// All pods of the ReplicaSets of the same Deployment.
    fn related(&self, set: &ReplicaSetView) -> Vec<Arc<PodView>> {
        let Some(owner) = set.meta().controller() else { return Vec::new() };
        let siblings = self.by_deployment.get(&owner.uid);
        siblings.iter().flat_map(|set| self.pods_by_owner.get(&OwnerKey::Controller(set.meta().uid.clone()))).collect()
    }
}

fn owner_ref(set: &ReplicaSetView) -> OwnerRef {
    OwnerRef::controller_of("apps/v1", "ReplicaSet", set.meta())
}

async fn create(cx: &Context, set: &ReplicaSetView, have: usize, count: usize) -> Result<(), WriteError> {
    let write = cx.writer.on_behalf_of(set.meta());
    let prefix = pod::name_prefix(&set.meta().name);
    let template = &set.spec.template;
    let body = template.pod_body(&template.new_pod(PodName::Prefix(&prefix), &set.meta().namespace, &owner_ref(set)));
    let why = Why::TooFew { have, want: wanted(set) };
    let (_, failure) = write.slow_start(count, |_| write.create(PODS, body.clone(), &why)).await;
    match failure {
        // Every creation will fail until it is gone, and then there is nothing to create in.
        None | Some(WriteError::NamespaceTerminating) => Ok(()),
        Some(error) => Err(error),
    }
}

async fn delete(cx: &Context, set: &ReplicaSetView, have: usize, pods: Vec<Arc<PodView>>) -> Result<(), WriteError> {
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

async fn adopt(cx: &Context, set: &ReplicaSetView, pod: &Meta) -> Result<(), Error> {
    let patch = json!({ "metadata": { "ownerReferences": [owner_ref(set)], "uid": pod.uid } });
    let why = Why::Adopt { pod: pod.name.clone() };
    cx.writer.on_behalf_of(set.meta()).patch(PODS, &pod.key(), Patch::Strategic(&patch), &why).await?;
    Ok(())
}

async fn release(cx: &Context, set: &ReplicaSetView, pod: &Meta) -> Result<(), Error> {
    let drop_us = json!({ "$patch": "delete", "uid": set.meta().uid });
    let patch = json!({ "metadata": { "ownerReferences": [drop_us], "uid": pod.uid } });
    let why = Why::Release { pod: pod.name.clone() };
    match cx.writer.on_behalf_of(set.meta()).patch(PODS, &pod.key(), Patch::Strategic(&patch), &why).await {
        Ok(_) | Err(WriteError::NotFound) => Ok(()),
        // It has no owners any more, or is another pod of that name: released either way.
        Err(WriteError::Rejected(status)) if status.reason == "Invalid" => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Writes the status if it is not what it should be. A conflict is left to the next pass: it comes with the change.
async fn put_status(cx: &Context, set: &ReplicaSetView, status: ReplicaSetStatus) -> Result<(), Error> {
    if status == set.status {
        return Ok(());
    }
    let why = Why::Status { have: status.replicas, ready: status.ready_replicas };
    let body = status_body::<ReplicaSetView>(set.meta(), &status);
    match cx.writer.on_behalf_of(set.meta()).put_status(SETS, &set.meta().key(), body, &why).await {
        Ok(_) | Err(WriteError::NotFound) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
