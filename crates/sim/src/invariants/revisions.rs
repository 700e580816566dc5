//! Revisions of Deployments, and their history.

use steersman_base::ObjectKey;

use super::{Case, DEPLOYMENT, Findings, Rest, Verdict};
use crate::world::{Object, World};

/// "Each time the Deployment's Pod template (`.spec.template`) is changed, the revision number is incremented."
/// (website: Well-Known Labels, Annotations and Taints, deployment.kubernetes.io/revision)
///
/// Asked when the Deployment controller changes a ReplicaSet: its revision never gets lower. Judged against the object
/// alone.
pub(super) fn revisions_only_grow(case: &Case<'_>) -> Verdict {
    let Some((before, after)) = case.updated().filter(|_| case.by(&[DEPLOYMENT])) else { return Verdict::NotMine };
    let Some((was, is)) = before.set().zip(after.set()) else { return Verdict::NotMine };
    let Some(was) = was.revision else { return Verdict::NotMine };
    Verdict::at_store(is.revision.is_some_and(|is| is >= was), || {
        format!("{after} has revision {:?} after {was}", is.revision)
    })
}

/// "More specifically, setting this field to zero means that all old ReplicaSets with 0 replicas will be cleaned up."
/// (website: Deployments, Revision History Limit)
///
/// Asked when the Deployment controller deletes a ReplicaSet: it asks for no pods and has none, and its template is not
/// the present one. Judged against the store; staleness excuses what was so at some time by what was shown.
pub(super) fn no_needed_replica_set_is_forgotten(case: &Case<'_>) -> Verdict {
    let Some(set) = case.deleted().filter(|_| case.by(&[DEPLOYMENT])) else { return Verdict::NotMine };
    let Some(spec) = set.set() else { return Verdict::NotMine };
    let Some(owner) = set.controller() else { return Verdict::Violated(format!("{set} is deleted, and is nobody's")) };
    let is_idle = |set: &Object| set.set().is_some_and(|set| set.replicas == 0 && set.status.replicas == 0);
    let key = ObjectKey { namespace: set.key.namespace.clone(), name: owner.name.clone() };
    let is_old = |object: &Object| object.deployment().is_some_and(|deployment| deployment.template != spec.template);
    let has_pods = case.world.controlled("pods", &set.uid).any(|pod| pod.is_active_pod());
    let deployment = case.world.get("deployments.apps", &key).filter(|object| object.uid == owner.uid);
    let at_store = is_idle(set) && !has_pods && deployment.is_none_or(|deployment| is_old(deployment));
    let window = case.window();
    let as_shown = || {
        let was_idle = window.of_key("replicasets.apps", &set.key).is_some_and(|versions| versions.ever(is_idle));
        let was_old = window.of_key("deployments.apps", &key).is_some_and(|versions| versions.ever(is_old));
        was_idle && was_old
    };
    Verdict::judge(at_store, as_shown, || {
        let current = if deployment.is_some_and(|deployment| is_old(deployment)) { "an old" } else { "the present" };
        format!(
            "{set} is deleted: it asks for {} pods, says it has {}, and has {current} template of Deployment {}",
            spec.replicas, spec.status.replicas, owner.name
        )
    })
}

/// The ReplicaSets of a Deployment: the one of the present template (of several, the oldest), and the others.
pub(super) fn split<'a>(world: &'a World, deployment: &Object) -> (Option<&'a Object>, Vec<&'a Object>) {
    let template = deployment.deployment().map(|deployment| deployment.template);
    let mut sets: Vec<&Object> = world.controlled("replicasets.apps", &deployment.uid).map(|set| &**set).collect();
    sets.sort_by(|left, right| left.created.cmp(&right.created).then_with(|| left.key.cmp(&right.key)));
    let new = sets.iter().position(|set| set.set().map(|set| set.template) == template);
    let new = new.map(|place| sets.remove(place));
    (new, sets)
}

/// "The number of old ReplicaSets to retain to allow rollback." (DeploymentSpec, revisionHistoryLimit)
///
/// At rest, for Deployments whose roll-out is through.
pub(super) fn history_is_kept_to_its_limit(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(DEPLOYMENT) {
        return;
    }
    for deployment in rest.world.all("deployments.apps").filter(|object| !object.is_terminating()) {
        let Some(spec) = deployment.deployment() else { continue };
        let Some(limit) = spec.history.and_then(|limit| usize::try_from(limit).ok()) else { continue };
        let status = &spec.status;
        let is_through =
            [status.replicas, status.updated, status.available].iter().all(|count| *count == spec.replicas);
        if !is_through || spec.paused || status.observed < deployment.generation {
            continue;
        }
        let (_, old) = split(rest.world, deployment);
        let kept = old.iter().filter(|set| !set.is_terminating()).count();
        found.expect(kept <= limit, || format!("{deployment} keeps {kept} old ReplicaSets, and should keep {limit}"));
    }
}

/// The ReplicaSet of the present template gets a higher revision than every old one, and the Deployment gets the same.
/// Follows `getNewReplicaSet` in `sync.go` of Kubernetes 1.37.
///
/// At rest, for Deployments that are not paused: the ReplicaSet of the present template has the highest revision, and
/// the Deployment has the same one.
pub(super) fn the_new_replica_set_has_the_highest_revision(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(DEPLOYMENT) {
        return;
    }
    for deployment in rest.world.all("deployments.apps").filter(|object| !object.is_terminating()) {
        let Some(spec) = deployment.deployment().filter(|spec| !spec.paused && spec.selector.is_some()) else {
            continue;
        };
        let (Some(new), old) = split(rest.world, deployment) else { continue };
        let revision = |set: &Object| set.set().and_then(|set| set.revision);
        let highest = old.iter().filter_map(|set| revision(set)).max();
        // A revision that is not a number was changed by others, and is kept.
        let Some(is) = revision(new) else { continue };
        found.expect(Some(is) > highest && Some(is) == spec.revision, || {
            format!(
                "{new} of {deployment} (revision {:?}) has revision {is}; an old one has {highest:?}",
                spec.revision
            )
        });
    }
}
