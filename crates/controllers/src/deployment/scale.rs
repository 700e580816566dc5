//! Pure: the sizes of the ReplicaSets when the Deployment itself is scaled, or is paused.
//!
//! 1. An annotation distinguishes scaling from a rollout: the number of replicas that a ReplicaSet was last scaled for.
//! 2. During a rollout every ReplicaSet grows or shrinks in proportion, so that scaling never speeds up a rollout that
//!    may be failing. The rounding remainder goes to the largest.
//! 3. The remainder removes no needed available pod while an unavailable one is kept. (Upstream only rounds.)
//!
//! Follows `sync.go` and `deployment_util.go` of Kubernetes 1.37.1.

use std::sync::Arc;

use steersman_base::names::annotations;
use steersman_model::View;
use steersman_model::apps::{DeploymentView, ReplicaSetView};

use super::rolling::{self, Limits, Size};
use super::sets::{Sets, by_age, wanted};

/// A ReplicaSet and the number of pods it should want.
#[derive(Clone, Debug)]
pub(super) struct Resize {
    pub(super) set: Arc<ReplicaSetView>,
    pub(super) to: i32,
}

/// Whether the Deployment's number of replicas has changed since its ReplicaSets were scaled.
pub(super) fn is_scaled(desired: i32, sets: &Sets) -> bool {
    let active = sets.all().filter(|set| wanted(set) > 0);
    active.filter_map(|set| noted(set, annotations::DEPLOYMENT_DESIRED_REPLICAS)).any(|sized_for| sized_for != desired)
}

/// Returns the number of pods each ReplicaSet should want. Every returned ReplicaSet gets the desired-replicas
/// annotation, even if its number is unchanged.
pub(super) fn resize(deployment: &DeploymentView, sets: &Sets) -> Vec<Resize> {
    let limits = Limits::of(&deployment.spec);
    if let Some(only) = active_or_latest(sets) {
        let sized_for = noted(only, annotations::DEPLOYMENT_DESIRED_REPLICAS);
        let is_right = wanted(only) == limits.desired && sized_for.is_none_or(|sized_for| sized_for == limits.desired);
        // A changed surge alone is recorded with the next change of size.
        return if is_right { Vec::new() } else { vec![Resize { set: Arc::clone(only), to: limits.desired }] };
    }
    if sets.new.as_deref().is_some_and(|new| is_saturated(limits.desired, new)) {
        return sets.active_old().map(|set| Resize { set: Arc::clone(set), to: 0 }).collect();
    }
    if !rolling::is_rolling(&deployment.spec) {
        return Vec::new();
    }
    proportional(limits, deployment.status.replicas, sets)
}

/// Returns the only ReplicaSet that wants pods, or the newest if none does; `None` if several do.
fn active_or_latest(sets: &Sets) -> Option<&Arc<ReplicaSetView>> {
    let mut active = sets.all().filter(|set| wanted(set) > 0);
    match (active.next(), active.next()) {
        (None, _) => sets.new.as_ref().or(sets.old.last()),
        (only, None) => only,
        _ => None,
    }
}

/// Whether the new ReplicaSet has all pods of the Deployment, by both statuses, and none of them is about to be
/// deleted.
fn is_saturated(desired: i32, new: &ReplicaSetView) -> bool {
    wanted(new) == desired
        && noted(new, annotations::DEPLOYMENT_DESIRED_REPLICAS) == Some(desired)
        && Size::of(new).remaining() == desired
}

fn proportional(limits: Limits, replicas_seen: i32, sets: &Sets) -> Vec<Resize> {
    let mut active: Vec<_> = sets.all().filter(|set| wanted(set) > 0).cloned().collect();
    let total = active.iter().fold(0, |sum: i32, set| sum.saturating_add(wanted(set)));
    let allowed = if limits.desired > 0 { limits.total_max() } else { 0 };
    let to_add = allowed.saturating_sub(total);
    // Among equal sizes, the newer grows first, and the older shrinks first.
    active.sort_by(|left, right| {
        let by_age = by_age(left, right);
        let by_age = if to_add > 0 { by_age.reverse() } else { by_age };
        wanted(right).cmp(&wanted(left)).then(by_age)
    });
    let mut left = to_add;
    let mut sizes = Vec::with_capacity(active.len());
    for set in &active {
        let share = share(limits, replicas_seen, set);
        let share = if to_add > 0 { share.min(left) } else { share.max(left) };
        let share = if left == 0 { 0 } else { share };
        sizes.push(wanted(set).saturating_add(share));
        left -= share;
    }
    if let Some(largest) = sizes.first_mut() {
        *largest = largest.saturating_add(left).max(0);
    }
    let held: Vec<_> = active.iter().map(|set| Size::of(set).reported()).collect();
    keep_available(limits.available_min(), &held, &mut sizes);
    active.into_iter().zip(sizes).map(|(set, to)| Resize { set, to }).collect()
}

/// Moves pods between ReplicaSets so that `least` available ones remain, if there are as many. `held` is the number of
/// available pods of each.
fn keep_available(least: i32, held: &[i32], sizes: &mut [i32]) {
    let sum = |counts: &mut dyn Iterator<Item = i32>| counts.fold(0, i32::saturating_add);
    let have = sum(&mut held.iter().copied());
    let remain = sum(&mut held.iter().zip(&*sizes).map(|(held, size)| *held.min(size)));
    let mut missing = least.min(have).saturating_sub(remain).max(0);
    // The largest comes first: the remainder was taken from it.
    for to in 0..sizes.len() {
        for from in (0..sizes.len()).rev() {
            let moved = missing.min(held[to] - sizes[to]).min(sizes[from] - held[from]).max(0);
            sizes[to] += moved;
            sizes[from] -= moved;
            missing -= moved;
        }
    }
}

/// Returns by how much a ReplicaSet grows or shrinks to keep its share of the Deployment.
fn share(limits: Limits, replicas_seen: i32, set: &ReplicaSetView) -> i32 {
    if limits.desired == 0 {
        return -wanted(set);
    }
    let noted = noted(set, annotations::DEPLOYMENT_MAX_REPLICAS).filter(|noted| *noted != 0);
    // Without the annotation, the size in the Deployment's status is used.
    let before = noted.unwrap_or(replicas_seen);
    if before == 0 {
        return 0;
    }
    let size = f64::from(wanted(set)) * f64::from(limits.total_max()) / f64::from(before);
    // A cast of a number that is out of range saturates.
    (size.round() as i32).saturating_sub(wanted(set))
}

/// Returns a number from an annotation of a ReplicaSet; `None` if it is absent or not a plain number.
fn noted(set: &ReplicaSetView, annotation: &str) -> Option<i32> {
    let text = set.meta().annotations.get(annotation)?;
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}
