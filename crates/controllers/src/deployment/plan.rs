//! Pure: a Deployment and its ReplicaSets → the writes of a pass. The decision ladder.

use std::sync::Arc;

use steersman_base::StringMap;
use steersman_model::View;
use steersman_model::apps::{DeploymentView, ReplicaSetView};
use steersman_model::core::PodView;

use super::rollback::{self, Rollback};
use super::rolling::{self, Limits, Size};
use super::scale::{self, Resize};
use super::sets::{Sets, wanted};
use super::status::{Estimate, is_complete};
use super::{history, recreate, template};

/// The action of a pass.
#[derive(Debug)]
pub(super) enum Plan {
    /// Change the Deployment's own template.
    Rollback(Rollback),
    /// Bring the ReplicaSets closer to the desired state.
    Work(Work),
}

/// The actions on the ReplicaSets, in this order; the status is written last.
#[derive(Debug)]
pub(super) struct Work {
    /// The ReplicaSet to create.
    pub(super) create: Option<Box<ReplicaSetView>>,
    /// The ReplicaSets to change.
    pub(super) change: Vec<Change>,
    /// The ReplicaSets to delete.
    pub(super) delete: Vec<Arc<ReplicaSetView>>,
    /// The numbers that the status reports.
    pub(super) estimate: Estimate,
}

/// A ReplicaSet with its desired size and annotations.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) set: Arc<ReplicaSetView>,
    pub(super) replicas: i32,
    pub(super) annotations: StringMap,
    pub(super) min_ready_seconds: i32,
}

/// The observed state.
pub(super) struct Observed<'a> {
    pub(super) deployment: &'a DeploymentView,
    pub(super) sets: &'a Sets,
    /// Pods of old ReplicaSets; needed for the strategy `Recreate`.
    pub(super) old_pods: &'a [Arc<PodView>],
}

/// Decides what to do.
pub(super) fn plan(seen: &Observed<'_>) -> Plan {
    let deployment = seen.deployment;
    let sets = seen.sets;
    if deployment.meta().is_terminating() {
        return Plan::Work(Work::nothing(Estimate::Nothing));
    }
    let rollback = rollback::asked_for(deployment.meta());
    if deployment.spec.paused {
        let delete = if rollback.is_none() { history::forgotten(deployment, sets) } else { Vec::new() };
        return Plan::Work(Work { delete, ..scaled(deployment, sets) });
    }
    if let Some(revision) = rollback {
        // The ReplicaSet of the current template comes first, with its revision: the others are compared with it.
        let first = prepared(deployment, sets);
        if first.is_nothing() {
            return Plan::Rollback(rollback::decide(deployment, sets, revision));
        }
        return Plan::Work(first);
    }
    // With `Recreate`, the size is set when the ReplicaSet is scaled up again; waiting for proportions would never end.
    if !rolling::is_rolling(&deployment.spec) {
        return Plan::Work(recreated(seen));
    }
    if scale::is_scaled(rolling::desired(&deployment.spec), sets) {
        return Plan::Work(scaled(deployment, sets));
    }
    Plan::Work(rolled(deployment, sets))
}

/// The new ReplicaSet exists with the right annotations; no ReplicaSet is scaled.
fn prepared(deployment: &DeploymentView, sets: &Sets) -> Work {
    let mut work = Work::nothing(Estimate::Nothing);
    match &sets.new {
        None => work.create = Some(Box::new(new_set(deployment, sets))),
        Some(new) => work.change.extend(synced(deployment, sets, new).if_needed()),
    }
    work
}

/// Scales the ReplicaSets to the Deployment's number of replicas; no rollout starts or continues.
fn scaled(deployment: &DeploymentView, sets: &Sets) -> Work {
    let limits = Limits::of(&deployment.spec);
    let mut resizes = scale::resize(deployment, sets);
    let mut work = Work::nothing(Estimate::Nothing);
    if let Some(new) = &sets.new {
        let change = synced(deployment, sets, new);
        let resized = resizes.iter().position(|resize| Arc::ptr_eq(&resize.set, new));
        let change = match resized {
            Some(at) => change.sized(resizes.remove(at).to, limits),
            None => change,
        };
        work.change.extend(change.if_needed());
    }
    let resized = |Resize { set, to }| Change::of(&set).sized(to, limits).if_needed();
    work.change.extend(resizes.into_iter().filter_map(resized));
    work
}

/// One step of a rolling update: scale up, else scale down, then clean up the history.
fn rolled(deployment: &DeploymentView, sets: &Sets) -> Work {
    let limits = Limits::of(&deployment.spec);
    let mut work = Work::nothing(Estimate::Progress);
    let new = match &sets.new {
        None => {
            let made = new_set(deployment, sets);
            let size = Size::of(&made);
            work.create = Some(Box::new(made));
            size
        }
        Some(new) => {
            let to = rolling::new_size(limits, wanted(new), sets.sum(wanted));
            let mut change = synced(deployment, sets, new);
            let resized = to != wanted(new);
            if resized {
                change = change.sized(to, limits);
            }
            work.change.extend(change.if_needed());
            if resized {
                return work;
            }
            Size::of(new)
        }
    };
    let old: Vec<_> = sets.active_old().collect();
    let sizes: Vec<_> = old.iter().map(|set| Size::of(set)).collect();
    let shrunk = old.iter().zip(rolling::old_sizes(limits, new, &sizes)).filter(|(set, to)| wanted(set) != *to);
    let before = work.change.len();
    work.change.extend(shrunk.filter_map(|(set, to)| Change::of(set).sized(to, limits).if_needed()));
    if work.change.len() == before {
        work.delete = forgotten_if_through(deployment, sets);
    }
    work
}

/// One step of a recreation: no new pods before all old ones are gone.
fn recreated(seen: &Observed<'_>) -> Work {
    let deployment = seen.deployment;
    let sets = seen.sets;
    let limits = Limits::of(&deployment.spec);
    let mut work = Work::nothing(Estimate::Progress);
    let new = sets.new.as_ref().map(|new| synced(deployment, sets, new));
    let gone: Vec<_> = sets.active_old().filter_map(|set| Change::of(set).sized(0, limits).if_needed()).collect();
    if !gone.is_empty() || recreate::old_pods_run(sets, seen.old_pods) {
        work.change = new.and_then(Change::if_needed).into_iter().chain(gone).collect();
        return work;
    }
    match new {
        None => work.create = Some(Box::new(new_set(deployment, sets))),
        Some(change) if change.replicas != limits.desired => {
            work.change.extend(change.sized(limits.desired, limits).if_needed());
        }
        Some(change) => work.change.extend(change.if_needed()),
    }
    work.delete = forgotten_if_through(deployment, sets);
    work
}

/// Old ReplicaSets are deleted only when the rollout is complete: until then, a rollback is possible.
fn forgotten_if_through(deployment: &DeploymentView, sets: &Sets) -> Vec<Arc<ReplicaSetView>> {
    let is_through = is_complete(deployment, &deployment.status) && sets.are_observed();
    if is_through { history::forgotten(deployment, sets) } else { Vec::new() }
}

/// Returns the ReplicaSet of the Deployment's template, with as many pods as it may have at once.
fn new_set(deployment: &DeploymentView, sets: &Sets) -> ReplicaSetView {
    let limits = Limits::of(&deployment.spec);
    let replicas = if rolling::is_rolling(&deployment.spec) {
        rolling::new_size(limits, 0, sets.sum(wanted))
    } else {
        limits.desired
    };
    template::new_set(deployment, history::first_annotations(deployment, sets), replicas)
}

/// Returns the new ReplicaSet with the revision and annotations that it should have.
fn synced(deployment: &DeploymentView, sets: &Sets, new: &Arc<ReplicaSetView>) -> Change {
    let annotations = history::annotations_of_new(deployment, sets, new);
    Change { annotations, min_ready_seconds: deployment.spec.min_ready_seconds, ..Change::of(new) }
}

// === impl Work ===

impl Work {
    fn nothing(estimate: Estimate) -> Self {
        Self { create: None, change: Vec::new(), delete: Vec::new(), estimate }
    }

    fn is_nothing(&self) -> bool {
        self.create.is_none() && self.change.is_empty() && self.delete.is_empty()
    }
}

// === impl Change ===

impl Change {
    /// Returns the unchanged ReplicaSet.
    fn of(set: &Arc<ReplicaSetView>) -> Self {
        Self {
            replicas: wanted(set),
            annotations: set.meta().annotations.clone(),
            min_ready_seconds: set.spec.min_ready_seconds,
            set: Arc::clone(set),
        }
    }

    /// Sets the number of pods, and records the Deployment's current size.
    fn sized(self, replicas: i32, limits: Limits) -> Self {
        let annotations = history::annotations_when_sized(&self.annotations, limits);
        Self { replicas, annotations, ..self }
    }

    fn if_needed(self) -> Option<Self> {
        let set = &self.set;
        let differs = self.replicas != wanted(set)
            || self.annotations != set.meta().annotations
            || self.min_ready_seconds != set.spec.min_ready_seconds;
        differs.then_some(self)
    }

    /// Returns the ReplicaSet to write.
    pub(super) fn applied(&self) -> ReplicaSetView {
        let mut set = ReplicaSetView::clone(&self.set);
        set.spec.replicas = Some(self.replicas);
        set.spec.min_ready_seconds = self.min_ready_seconds;
        set.metadata.annotations = self.annotations.clone();
        set
    }
}
