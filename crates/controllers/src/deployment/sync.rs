//! The shell: observe → claim → plan → write → status.

use std::sync::Arc;

use steersman_base::{Meta, ObjectKey, Resource, Selector, StringMap, names::annotations};
use steersman_informer::Lister;
use steersman_model::apps::{DeploymentStatus, DeploymentView, ReplicaSetView};
use steersman_model::core::PodView;
use steersman_model::{Kind, View};
use steersman_runtime::__internal::Children;
use steersman_runtime::events::About;
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Propagation, Reconciler, WriteError, reasons};

use super::plan::{Change, Observed, Plan, Work, plan};
use super::rollback::{self, Rollback};
use super::sets::{Sets, wanted};
use super::status::{self, Estimate, New};
use super::{FAILED_CREATE, Options, history, progress, rolling, template};
use crate::claim::{Selecting, claimed, usable};

const DEPLOYMENTS: &Resource = &DeploymentView::RESOURCE;
const SETS: &Resource = &ReplicaSetView::RESOURCE;

/// The controller's shell: the caches that it reads from.
pub(super) struct Deployments {
    pub(super) deployments: Lister<DeploymentView>,
    pub(super) sets: Lister<ReplicaSetView>,
    pub(super) sets_of: Children<ReplicaSetView>,
    pub(super) pods_of: Children<PodView>,
    pub(super) options: Options,
}

reasons! {
    /// Why the Deployment controller writes.
    pub enum Why {
        /// There is no ReplicaSet of this template.
        NewTemplate { replicas: i32 } => "no ReplicaSet has this template; there is room for {replicas} pods of it"
            event "ScalingReplicaSet" |set| "Scaled up replica set {set} from 0 to {replicas}",
        /// There is no ReplicaSet of this template, and no room for its pods.
        NewTemplateNoRoom => "no ReplicaSet has this template; there is no room for pods of it yet",
        /// A ReplicaSet may have more pods.
        ScaleUp { from: i32, to: i32 } => "there is room for {to} pods of it; it wants {from}"
            event "ScalingReplicaSet" |set| "Scaled up replica set {set} from {from} to {to}",
        /// A ReplicaSet should have fewer pods.
        ScaleDown { from: i32, to: i32 } => "{to} pods of it are enough for now; it wants {from}"
            event "ScalingReplicaSet" |set| "Scaled down replica set {set} from {from} to {to}",
        /// A ReplicaSet has wrong annotations.
        Annotate { revision: String } => "it should have the Deployment's annotations, and revision {revision}",
        /// A ReplicaSet is beyond the revision history limit.
        Forget { limit: i32 } => "{limit} old ReplicaSets are kept, and it is older",
        /// The name of the new ReplicaSet is taken by another owner.
        Collision { count: i32 } => "the name of the new ReplicaSet is taken, for the {count}th time",
        /// The new ReplicaSet cannot be created.
        CreateFailed => "the new ReplicaSet cannot be made",
        /// A rollback to an earlier template was requested.
        RollBack { revision: i64 } => "somebody asked for revision {revision}"
            event "DeploymentRollback" |deployment| "Rolled back deployment \"{deployment}\" to revision {revision}",
        /// A rollback was requested that changes nothing.
        NoRollBack => "somebody asked for an earlier revision, and there is nothing to change",
        /// The selector matches every pod.
        SelectsAll => "it selects every pod there is, and is left alone",
        /// The status is out of date.
        Status { replicas: i32, updated: i32, available: i32 } =>
            "{replicas} pods are there, {updated} of the present template, {available} available",
    }
}

/// Why a pass ends early.
enum Halt {
    /// The state has changed meanwhile, or the cache is about to show a change: reconcile again.
    LookAgain,
    Write(WriteError),
    Error(Error),
}

// === impl Deployments ===

impl Reconciler for Deployments {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(deployment) = cx.main(&self.deployments, key).await? else { return Ok(Action::Done) };
        match self.pass(cx, &deployment).await {
            Ok(action) => Ok(action),
            Err(Halt::LookAgain | Halt::Write(WriteError::Conflict | WriteError::NotFound)) => Ok(Action::Again),
            // Nothing can be created in a terminating namespace.
            Err(Halt::Write(WriteError::NamespaceTerminating)) => Ok(Action::Done),
            Err(Halt::Write(error)) => Err(error.into()),
            Err(Halt::Error(error)) => Err(error),
        }
    }
}

impl Deployments {
    async fn pass(&self, cx: &Context, deployment: &DeploymentView) -> Result<Action, Halt> {
        let key = deployment.meta().key();
        let selector = deployment.selector();
        if selector.as_ref().is_some_and(Selector::is_everything) {
            return selects_all(cx, deployment).await;
        }
        let selector = usable(selector, deployment.spec.template.labels())
            .map_err(|problem| Error::terminal(format!("Deployment {key} is left alone: {problem}")))?;
        let strategy = &*deployment.spec.strategy.type_;
        if !matches!(strategy, "" | "RollingUpdate" | "Recreate") {
            return Err(Error::terminal(format!("unexpected deployment strategy type of {key}: {strategy}")).into());
        }
        let mine = claimed(cx, &self.sets_of, deployment, &selector, |_| true).await?;
        if mine.has_adopted {
            // The event of this write triggers the pass that decides.
            return Ok(Action::Done);
        }
        let sets = Sets::find(&deployment.spec.template, mine.own);
        let old_pods = self.old_pods(cx, deployment, &sets).await?;
        match plan(&Observed { deployment, sets: &sets, old_pods: &old_pods }) {
            Plan::Rollback(rollback) => roll_back(cx, deployment, &rollback).await,
            Plan::Work(work) => self.work(cx, deployment, &sets, work).await,
        }
    }

    /// Returns the pods of the old ReplicaSets, if the strategy is `Recreate`.
    async fn old_pods(
        &self,
        cx: &Context,
        deployment: &DeploymentView,
        sets: &Sets,
    ) -> Result<Vec<Arc<PodView>>, Error> {
        if rolling::is_rolling(&deployment.spec) || sets.old.is_empty() {
            return Ok(Vec::new());
        }
        let old: Vec<&Meta> = sets.old.iter().map(|set| set.meta()).collect();
        Ok(self.pods_of.of_any(cx, &deployment.meta().namespace, &old).await?)
    }

    /// Makes the writes in order, the status last.
    async fn work(&self, cx: &Context, deployment: &DeploymentView, sets: &Sets, work: Work) -> Result<Action, Halt> {
        let now = cx.clock.now();
        if let Some(set) = &work.create {
            self.create(cx, deployment, set).await?;
        }
        for changed in &work.change {
            change(cx, deployment, changed).await?;
        }
        for set in &work.delete {
            forget(cx, deployment, set.meta()).await?;
        }
        let new = match (&work.create, &sets.new) {
            (Some(made), _) => New::Made { name: &made.meta().name, wanted: wanted(made) },
            (None, Some(found)) => New::Found { name: &found.meta().name },
            (None, None) => New::None,
        };
        let status = status::status(deployment, sets, new, work.estimate, self.options, now);
        let next_check = match work.estimate {
            Estimate::Progress => progress::next_check(deployment, &status, now),
            Estimate::Nothing => None,
        };
        put_status(cx, deployment, with_revision(deployment, sets, &work), status).await?;
        Ok(next_check.map_or(Action::Done, Action::After))
    }

    async fn create(&self, cx: &Context, deployment: &DeploymentView, set: &ReplicaSetView) -> Result<(), Halt> {
        let why = match wanted(set) {
            0 => Why::NewTemplateNoRoom,
            replicas => Why::NewTemplate { replicas },
        };
        let body = serde_json::to_vec(set).map_err(Error::from)?;
        let Err(error) = cx.writer.on_behalf_of(deployment.meta()).create(SETS, body, &why).await else {
            return Ok(());
        };
        match &error {
            WriteError::AlreadyExists => Err(self.name_is_taken(cx, deployment, &set.meta().key()).await),
            // The create may have succeeded: then nothing failed, and no failure is reported.
            WriteError::Unknown(_) if self.is_made(cx, deployment, &set.meta().key()).await? => Err(Halt::LookAgain),
            WriteError::Rejected(_) | WriteError::Unknown(_) => {
                let text =
                    format!("Failed to create new replica set {:?}: {}", set.meta().name.as_str(), error.message());
                cx.events.warning(&About::new(DEPLOYMENTS, deployment.meta()), FAILED_CREATE, text.as_str());
                if progress::has_deadline(&deployment.spec) {
                    report_failure(cx, deployment, &text).await?;
                }
                Err(error.into())
            }
            _ => Err(error.into()),
        }
    }

    /// Whether the ReplicaSet exists on the server.
    async fn is_made(&self, cx: &Context, deployment: &DeploymentView, key: &ObjectKey) -> Result<bool, Halt> {
        let found = cx.live.get::<ReplicaSetView>(key).await.map_err(Error::from)?;
        Ok(found.is_some_and(|found| template::is_the_wanted_one(deployment, &found)))
    }

    /// Handles a ReplicaSet with the name of the new one: it is the new one and the cache is stale, or it is another
    /// one, and the next attempt uses another name.
    async fn name_is_taken(&self, cx: &Context, deployment: &DeploymentView, key: &ObjectKey) -> Halt {
        let found = match cx.get(&self.sets, key).await {
            Ok(Some(found)) => found,
            Ok(None) => return Error::message(format!("{key} exists already, and is not seen yet")).into(),
            Err(error) => return Error::from(error).into(),
        };
        if template::is_the_wanted_one(deployment, &found) {
            return Halt::LookAgain;
        }
        let count = deployment.status.collision_count.unwrap_or(0).saturating_add(1);
        let status = DeploymentStatus { collision_count: Some(count), ..deployment.status.clone() };
        let write = cx.writer.on_behalf_of(deployment.meta());
        match write.put_status_of::<DeploymentView>(deployment.meta(), &status, &Why::Collision { count }).await {
            Ok(_) => Halt::LookAgain,
            Err(error) => error.into(),
        }
    }
}

/// Writes a ReplicaSet with its desired size and annotations.
async fn change(cx: &Context, deployment: &DeploymentView, change: &Change) -> Result<(), Halt> {
    let from = wanted(&change.set);
    let to = change.replicas;
    let revision =
        || change.annotations.get(annotations::DEPLOYMENT_REVISION).map(ToString::to_string).unwrap_or_default();
    let why = match to.cmp(&from) {
        std::cmp::Ordering::Greater => Why::ScaleUp { from, to },
        std::cmp::Ordering::Less => Why::ScaleDown { from, to },
        std::cmp::Ordering::Equal => Why::Annotate { revision: revision() },
    };
    let body = serde_json::to_vec(&change.applied()).map_err(Error::from)?;
    cx.writer.on_behalf_of(deployment.meta()).put(SETS, &change.set.meta().key(), body, &why).await?;
    Ok(())
}

async fn forget(cx: &Context, deployment: &DeploymentView, set: &Meta) -> Result<(), Halt> {
    let why = Why::Forget { limit: deployment.spec.revision_history_limit.unwrap_or_default() };
    let deleted = cx.writer.on_behalf_of(deployment.meta()).delete(SETS, set, Propagation::Background, &why).await;
    // Deleted or replaced meanwhile: nothing is left to do.
    Ok(deleted.ok_if_gone().ok_if_replaced()?)
}

/// Reports in a condition that the new ReplicaSet cannot be created. The rest of the status is kept.
async fn report_failure(cx: &Context, deployment: &DeploymentView, text: &str) -> Result<(), Halt> {
    let mut conditions = deployment.status.conditions.to_vec();
    progress::set(&mut conditions, progress::not_created(text), cx.clock.now());
    let status = DeploymentStatus { conditions: conditions.into(), ..deployment.status.clone() };
    let meta = deployment.meta();
    let write = cx.writer.on_behalf_of(meta);
    write.put_status_if_changed::<DeploymentView, _>(meta, &deployment.status, &status, &Why::CreateFailed).await?;
    Ok(())
}

/// Returns the Deployment's annotations, with the revision that its new ReplicaSet has after this pass.
fn with_revision(deployment: &DeploymentView, sets: &Sets, work: &Work) -> StringMap {
    let of_new = |change: &&Change| sets.new.as_ref().is_some_and(|new| Arc::ptr_eq(new, &change.set));
    let changed = || work.change.iter().find(of_new).map(|change| &change.annotations);
    let made = work.create.as_ref().map(|set| &set.meta().annotations);
    let new = made.or_else(changed).or_else(|| sets.new.as_ref().map(|set| &set.meta().annotations));
    let held = &deployment.meta().annotations;
    match new.and_then(|annotations| annotations.get(annotations::DEPLOYMENT_REVISION)) {
        Some(revision) => history::with_revision(held, revision),
        None => held.clone(),
    }
}

/// Writes status and revision if they are out of date.
async fn put_status(
    cx: &Context,
    deployment: &DeploymentView,
    annotations: StringMap,
    status: DeploymentStatus,
) -> Result<(), Halt> {
    if status == deployment.status && annotations == deployment.meta().annotations {
        return Ok(());
    }
    let why = Why::Status {
        replicas: status.replicas,
        updated: status.updated_replicas,
        available: status.available_replicas,
    };
    let meta = Meta { annotations, ..deployment.meta().clone() };
    let write = cx.writer.on_behalf_of(deployment.meta());
    Ok(write.put_status_of::<DeploymentView>(&meta, &status, &why).await.ok_if_gone()?)
}

/// Reports a Deployment that selects every pod, and does nothing else with it.
async fn selects_all(cx: &Context, deployment: &DeploymentView) -> Result<Action, Halt> {
    let text = "This deployment is selecting all pods. A non-empty selector is required.";
    cx.events.warning(&About::new(DEPLOYMENTS, deployment.meta()), "SelectingAll", text);
    let generation = deployment.meta().generation;
    let held = &deployment.status;
    if held.observed_generation < generation {
        let status = DeploymentStatus { observed_generation: generation, ..held.clone() };
        let write = cx.writer.on_behalf_of(deployment.meta());
        write.put_status_of::<DeploymentView>(deployment.meta(), &status, &Why::SelectsAll).await?;
    }
    Ok(Action::Done)
}

/// Removes the rollback request from the Deployment, and sets the earlier template if there is one.
async fn roll_back(cx: &Context, deployment: &DeploymentView, rollback: &Rollback) -> Result<Action, Halt> {
    let why = match rollback {
        Rollback::To { revision, .. } => Why::RollBack { revision: *revision },
        Rollback::NotFound(_) | Rollback::Unchanged => Why::NoRollBack,
    };
    let body = serde_json::to_vec(&rollback::rolled_back(deployment, rollback)).map_err(Error::from)?;
    let meta = deployment.meta();
    cx.writer.on_behalf_of(meta).put(DEPLOYMENTS, &meta.key(), body, &why).await?;
    let about = About::new(DEPLOYMENTS, meta);
    match rollback {
        Rollback::To { .. } => {}
        Rollback::NotFound(text) => cx.events.warning(&about, "DeploymentRollbackRevisionNotFound", *text),
        Rollback::Unchanged => {
            let text = format!(
                "The rollback revision contains the same template as current deployment {:?}",
                meta.name.as_str()
            );
            cx.events.warning(&about, "DeploymentRollbackTemplateUnchanged", text);
        }
    }
    Ok(Action::Done)
}

// === impl Halt ===

impl From<WriteError> for Halt {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}
