//! Pure: the status of a Deployment: the sum of its ReplicaSets' statuses, and the conditions.

use steersman_base::condition;
use steersman_base::{Condition, ConditionStatus, Time};
use steersman_model::apps::{DeploymentStatus, DeploymentView};

use super::Options;
use super::progress::{self, AVAILABLE, PROGRESSING, REPLICA_FAILURE};
use super::rolling::{Limits, desired};
use super::sets::{Sets, wanted};

/// The new ReplicaSet, for the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum New<'a> {
    /// It does not exist yet.
    None,
    /// It existed before this pass.
    Found { name: &'a str },
    /// It was created in this pass, and wants this many pods.
    Made { name: &'a str, wanted: i32 },
}

/// Whether the progress of the rollout is checked: not while the Deployment is paused, scaled or terminating.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Estimate {
    Progress,
    Nothing,
}

/// Returns the status that the Deployment should have.
pub(super) fn status(
    deployment: &DeploymentView,
    sets: &Sets,
    new: New<'_>,
    estimate: Estimate,
    options: Options,
    now: Time,
) -> DeploymentStatus {
    let before = conditions_before(deployment, new, now);
    let mut status = counts(deployment, sets, new);
    if options.terminating_replicas {
        status.terminating_replicas = terminating(sets);
    }
    let mut conditions = before.clone();
    let availability = availability(deployment, status.available_replicas);
    progress::set(&mut conditions, availability, now);
    if estimate == Estimate::Progress {
        let current = condition::find(&before, PROGRESSING);
        let seen = progress::Seen { status: &status, observed: sets.are_observed() };
        progress::estimate(deployment, current, seen, new.name(), &mut conditions, now);
        match failure(sets) {
            Some(failure) => progress::set_as_it_is(&mut conditions, failure),
            None => drop(condition::remove(&mut conditions, REPLICA_FAILURE)),
        }
    }
    status.conditions = conditions.into();
    status
}

/// Returns the conditions, with what this pass knows of pause, resumption and the new ReplicaSet.
fn conditions_before(deployment: &DeploymentView, new: New<'_>, now: Time) -> Vec<Condition> {
    let mut conditions = deployment.status.conditions.to_vec();
    if !progress::has_deadline(&deployment.spec) {
        return conditions;
    }
    if let Some(condition) = progress::pause(deployment) {
        progress::set(&mut conditions, condition, now);
    }
    match new {
        New::Made { name, .. } => progress::set(&mut conditions, progress::created(name), now),
        // A deadline was added: it counts from now.
        New::Found { name } if condition::find(&conditions, PROGRESSING).is_none() => {
            progress::set(&mut conditions, progress::found(name), now);
        }
        New::Found { .. } | New::None => {}
    }
    conditions
}

fn counts(deployment: &DeploymentView, sets: &Sets, new: New<'_>) -> DeploymentStatus {
    let available = sets.sum(|set| set.status.available_replicas);
    let made = if let New::Made { wanted, .. } = new { wanted } else { 0 };
    let total = sets.sum(wanted).saturating_add(made);
    DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: sets.sum(|set| set.status.replicas),
        updated_replicas: sets.new.as_ref().map_or(0, |set| set.status.replicas),
        ready_replicas: sets.sum(|set| set.status.ready_replicas),
        available_replicas: available,
        // During a scale-down more pods are available than wanted.
        unavailable_replicas: total.saturating_sub(available).max(0),
        conditions: Box::default(),
        collision_count: deployment.status.collision_count,
        terminating_replicas: None,
    }
}

/// Returns the number of terminating pods; `None` if the status of a ReplicaSet does not report it.
fn terminating(sets: &Sets) -> Option<i32> {
    sets.all().try_fold(0_i32, |sum, set| match set.status.terminating_replicas {
        Some(count) => Some(sum.saturating_add(count)),
        // Its controller has not observed it yet, so it has no pods.
        None if set.status.observed_generation == 0 => Some(sum),
        None => None,
    })
}

fn availability(deployment: &DeploymentView, available: i32) -> Condition {
    if available >= Limits::of(&deployment.spec).available_min() {
        Condition::new(AVAILABLE, ConditionStatus::True)
            .because("MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        Condition::new(AVAILABLE, ConditionStatus::False)
            .because("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    }
}

/// Returns why pods cannot be created or deleted: the new ReplicaSet's condition takes precedence over the old ones'.
fn failure(sets: &Sets) -> Option<Condition> {
    let mut says =
        sets.new.iter().chain(&sets.old).filter_map(|set| condition::find(&set.status.conditions, REPLICA_FAILURE));
    let failure = says.next()?.clone();
    Some(Condition { last_update_time: failure.last_transition_time, ..failure })
}

/// Whether all pods are of the new template and available, and the status is about the Deployment's current spec.
pub(super) fn is_complete(deployment: &DeploymentView, status: &DeploymentStatus) -> bool {
    let desired = desired(&deployment.spec);
    status.updated_replicas == desired
        && status.replicas == desired
        && status.available_replicas == desired
        && status.observed_generation >= deployment.metadata.generation
}

// === impl New ===

impl<'a> New<'a> {
    pub(super) fn name(self) -> Option<&'a str> {
        match self {
            Self::None => None,
            Self::Found { name } | Self::Made { name, .. } => Some(name),
        }
    }
}
