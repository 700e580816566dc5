//! Pure: revisions. Which revision the new ReplicaSet has, which ones it had before, and which old ReplicaSets are
//! deleted.
//!
//! 1. The new ReplicaSet has the highest revision; after a rollback it gets a new one and records those it had, in an
//!    annotation of at most [`HISTORY_CHARS_MAX`] characters.
//! 2. Annotations of the Deployment are copied to the new ReplicaSet, so that `kubectl rollout history` can show the
//!    cause.
//! 3. Of old ReplicaSets with no pods wanted and none left, `revisionHistoryLimit` are kept: those with the highest
//!    revisions.
//!
//! Follows `deployment_util.go` and `sync.go` of Kubernetes 1.37.1.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_base::names::annotations;
use steersman_base::{Istr, Meta, StringMap};
use steersman_model::View;
use steersman_model::apps::{DeploymentView, ReplicaSetView};

use super::rolling::Limits;
use super::sets::{Sets, by_age, is_observed, wanted};

/// The maximum length of the list of earlier revisions: upstream's figure, some hundred revisions.
const HISTORY_CHARS_MAX: usize = 2000;

/// Annotations that concern one object only, and are never copied.
const NEVER_COPIED: [&str; 6] = [
    annotations::LAST_APPLIED_CONFIGURATION,
    annotations::DEPLOYMENT_REVISION,
    annotations::DEPLOYMENT_REVISION_HISTORY,
    annotations::DEPLOYMENT_DESIRED_REPLICAS,
    annotations::DEPLOYMENT_MAX_REPLICAS,
    annotations::DEPLOYMENT_ROLLBACK_TO,
];

/// Annotations being built.
type Map = BTreeMap<Istr, Istr>;

/// Returns the revision of an object: zero if it has none, `None` if it is not a number.
pub(super) fn revision(meta: &Meta) -> Option<i64> {
    meta.annotations.get(annotations::DEPLOYMENT_REVISION).map_or(Some(0), |text| text.parse().ok())
}

/// Returns the lowest revision that the new ReplicaSet may have.
pub(super) fn next_revision(sets: &Sets) -> i64 {
    let highest = sets.old.iter().filter_map(|set| revision(set.meta())).max();
    highest.unwrap_or(0).max(0).saturating_add(1)
}

/// Returns the revision before the newest one; zero if there is none.
pub(super) fn last_revision(sets: &Sets) -> i64 {
    let mut revisions: Vec<_> = sets.all().filter_map(|set| revision(set.meta())).collect();
    revisions.sort_unstable();
    revisions.into_iter().rev().nth(1).unwrap_or(0).max(0)
}

/// Returns the annotations of a ReplicaSet that is to be created.
pub(super) fn first_annotations(deployment: &DeploymentView, sets: &Sets) -> StringMap {
    let mut map = copied(deployment.meta(), Map::new());
    put(&mut map, annotations::DEPLOYMENT_REVISION, &next_revision(sets).to_string());
    sized_for(&mut map, Limits::of(&deployment.spec));
    map.into_iter().collect()
}

/// Returns the annotations that the new ReplicaSet should have.
///
/// If a revision is not a number, it was changed by others, and nothing is changed.
pub(super) fn annotations_of_new(deployment: &DeploymentView, sets: &Sets, new: &ReplicaSetView) -> StringMap {
    let held = &new.meta().annotations;
    // An empty text is as good as none here: the ReplicaSet would never get a revision.
    let is_empty = held.get(annotations::DEPLOYMENT_REVISION).is_some_and(|text| text.is_empty());
    let before = if is_empty { Some(0) } else { revision(new.meta()) };
    let Some(before) = before else { return held.clone() };
    let mut map = copied(deployment.meta(), map_of(held));
    let next = next_revision(sets);
    if before < next {
        if let Some(text) = held.get(annotations::DEPLOYMENT_REVISION).filter(|text| !text.is_empty()) {
            remember(&mut map, text);
        }
        put(&mut map, annotations::DEPLOYMENT_REVISION, &next.to_string());
    }
    map.into_iter().collect()
}

/// Returns the annotations with the Deployment's current size as the size that the ReplicaSet was scaled for.
pub(super) fn annotations_when_sized(held: &StringMap, limits: Limits) -> StringMap {
    let mut map = map_of(held);
    sized_for(&mut map, limits);
    map.into_iter().collect()
}

/// Returns the annotations of a Deployment that is rolled back to a ReplicaSet: those that were copied from it before.
pub(super) fn annotations_rolled_back(deployment: &Meta, to: &Meta) -> StringMap {
    let pairs = |map: &StringMap, of: &dyn Fn(&str) -> bool| -> Vec<(Istr, Istr)> {
        map.iter().filter(|(key, _)| of(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    let kept = pairs(&deployment.annotations, &|key| NEVER_COPIED.contains(&key));
    kept.into_iter().chain(pairs(&to.annotations, &|key| !NEVER_COPIED.contains(&key))).collect()
}

/// Returns the annotations with another revision.
pub(super) fn with_revision(held: &StringMap, revision: &str) -> StringMap {
    let mut map = map_of(held);
    put(&mut map, annotations::DEPLOYMENT_REVISION, revision);
    map.into_iter().collect()
}

/// Returns the old ReplicaSets to delete, lowest revision first.
pub(super) fn forgotten(deployment: &DeploymentView, sets: &Sets) -> Vec<Arc<ReplicaSetView>> {
    let Some(limit) = deployment.spec.revision_history_limit.filter(|limit| *limit != i32::MAX) else {
        return Vec::new();
    };
    let mut old: Vec<_> = sets.old.iter().filter(|set| !set.meta().is_terminating()).cloned().collect();
    let surplus = old.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
    old.sort_by(|left, right| by_revision(left, right));
    old.truncate(surplus);
    let is_idle = |set: &Arc<ReplicaSetView>| wanted(set) == 0 && set.status.replicas == 0 && is_observed(set);
    old.retain(is_idle);
    old
}

fn by_revision(left: &ReplicaSetView, right: &ReplicaSetView) -> Ordering {
    // A revision that is not a number sorts first, so that the order is total.
    revision(left.meta()).cmp(&revision(right.meta())).then_with(|| by_age(left, right))
}

fn map_of(held: &StringMap) -> Map {
    held.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn copied(from: &Meta, mut onto: Map) -> Map {
    let copied = from.annotations.iter().filter(|(key, _)| !NEVER_COPIED.contains(&key.as_str()));
    onto.extend(copied.map(|(key, value)| (key.clone(), value.clone())));
    onto
}

fn put(map: &mut Map, annotation: &str, value: &str) {
    map.insert(Istr::interned(annotation), Istr::new(value));
}

fn sized_for(map: &mut Map, limits: Limits) {
    put(map, annotations::DEPLOYMENT_DESIRED_REPLICAS, &limits.desired.to_string());
    put(map, annotations::DEPLOYMENT_MAX_REPLICAS, &limits.total_max().to_string());
}

/// Appends a revision to the recorded ones; the oldest are dropped if the list gets too long.
fn remember(map: &mut Map, revision: &str) {
    let held = map.get(annotations::DEPLOYMENT_REVISION_HISTORY).cloned().unwrap_or_default();
    let mut earlier: Vec<&str> = held.split(',').filter(|text| !text.is_empty()).collect();
    earlier.push(revision);
    let length = |list: &[&str]| list.iter().map(|text| text.len() + 1).sum::<usize>() - 1;
    while earlier.len() > 1 && length(&earlier) > HISTORY_CHARS_MAX {
        earlier.remove(0);
    }
    put(map, annotations::DEPLOYMENT_REVISION_HISTORY, &earlier.join(","));
}
