//! Pods that people rely on are not taken away.

use super::{Case, DEPLOYMENT, REPLICA_SET, REPLICATION, Verdict};
use crate::world::{Deployment, Object, Phase, Since};

/// "The maximum number of pods that can be unavailable during the update." (Deployment, maxUnavailable)
///
/// Asked when the Deployment controller asks a ReplicaSet for fewer pods. What a ReplicaSet is sure to keep are as many
/// of its available pods as it is asked for; all together must be at least `replicas - maxUnavailable`, or as many as
/// before. Judged against the store; staleness excuses what was right by the ReplicaSets' statuses as shown, a
/// condemned pod never counting as available. A user who scales the Deployment in the middle of a roll-out gets all
/// ReplicaSets scaled in proportion, the available ones included.
pub(super) fn rolling_updates_keep_their_available_pods(case: &Case<'_>) -> Verdict {
    if !case.by(&[DEPLOYMENT]) {
        return Verdict::NotMine;
    }
    let Some((before, after)) = case.updated() else { return Verdict::NotMine };
    let Some((was, is)) = before.set().zip(after.set()).filter(|(was, is)| is.replicas < was.replicas) else {
        return Verdict::NotMine;
    };
    let Some(owner) = after.controller() else { return Verdict::NotMine };
    let Some(deployment) = case.world.by_uid(&owner.uid) else { return Verdict::Holds };
    let Some(spec) = deployment.deployment().filter(|spec| spec.rolling && !deployment.is_terminating()) else {
        return Verdict::NotMine;
    };
    let now = case.change.at;
    let others = case.world.controlled("replicasets.apps", &owner.uid).filter(|set| set.uid != after.uid);
    let others: i32 = others.map(|set| set.set().map_or(0, |spec| spec.replicas.min(available(case, set)))).sum();
    let here = available(case, after);
    let kept = others + here.min(is.replicas);
    let floor = spec.available_min();
    let takes_none = here.min(is.replicas) == here.min(was.replicas);
    if takes_none || kept >= floor {
        return Verdict::Holds;
    }
    let is_scaled = was.sized_for != is.sized_for;
    let has_others = case
        .world
        .controlled("replicasets.apps", &owner.uid)
        .any(|set| set.uid != after.uid && set.set().is_some_and(|spec| spec.replicas > 0));
    if is_scaled && has_others {
        return Verdict::Excused;
    }
    let floor_shown = lowest_floor(case, deployment, floor);
    // The write was refused unless it was decided on the ReplicaSet as it was before.
    let here_shown = was.status.available;
    let kept_shown = others_shown(case, after, &owner.uid) + here_shown.min(is.replicas);
    let takes_none_shown = here_shown.min(is.replicas) == here_shown.min(was.replicas);
    if takes_none_shown || kept_shown >= floor_shown {
        return Verdict::Stale;
    }
    Verdict::Violated(format!(
        "{after} is asked for {} instead of {} pods: {kept} available ones of {deployment} are sure to stay, at least {floor} \
         must (replicas {}, maxUnavailable {}); by what was shown {kept_shown} of {floor_shown}, at {now}",
        is.replicas, was.replicas, spec.replicas, spec.unavailable
    ))
}

/// How many pods of a ReplicaSet are available.
fn available(case: &Case<'_>, set: &Object) -> i32 {
    let min_ready = set.set().map_or(0, |spec| spec.min_ready);
    let pods = case.world.controlled("pods", &set.uid);
    count(pods.filter(|pod| pod.is_available_pod(min_ready, case.change.at)).count())
}

/// The lowest floor that the manager may have known.
fn lowest_floor(case: &Case<'_>, deployment: &Object, floor: i32) -> i32 {
    let Some(versions) = case.window().of_key("deployments.apps", &deployment.key) else { return floor };
    let of = |spec: &Deployment| if spec.rolling { spec.available_min() } else { 0 };
    versions.objects().map(|object| object.and_then(|object| object.deployment()).map_or(0, of)).min().unwrap_or(floor)
}

/// What the other ReplicaSets are sure to keep, at best, by their statuses as shown.
fn others_shown(case: &Case<'_>, set: &Object, deployment: &steersman_base::Uid) -> i32 {
    let best = |versions: Since<'_>| {
        let kept = |object: &std::sync::Arc<Object>| {
            let spec = object.set().filter(|_| object.is_controlled_by(deployment))?;
            Some(spec.replicas.min(spec.status.available))
        };
        versions.objects().filter_map(|object| kept(object?)).max().unwrap_or(0)
    };
    let window = case.window();
    let histories = case.world.histories("replicasets.apps", deployment);
    let others = histories.filter(|history| history.now().is_none_or(|now| now.uid != set.uid));
    others.map(|history| best(window.of("replicasets.apps", history))).sum()
}

/// "A ReplicaSet ensures that a specified number of pod replicas are running at any given time." (website: ReplicaSet)
///
/// Asked when the ReplicaSet or ReplicationController controller deletes an active pod: as many as `spec.replicas` must
/// be left. Judged against the store; staleness excuses what was right for the number and the pods as shown, but for
/// pods that it has deleted itself. Pods that users delete, or nodes end, are not its doing.
pub(super) fn scaling_down_stops_at_the_wanted_number(case: &Case<'_>) -> Verdict {
    if !case.is("pods") || !case.by(&[REPLICA_SET, REPLICATION]) {
        return Verdict::NotMine;
    }
    let Some(pod) = case.deleted().filter(|pod| pod.is_active_pod()) else { return Verdict::NotMine };
    let Some(owner) = pod.controller() else {
        return Verdict::Violated(format!("{pod} is deleted, and nobody controls it"));
    };
    let resource = super::ownership::resource_of(&owner.kind);
    let set = case.world.by_uid(&owner.uid);
    let wanted = set.and_then(|set| set.set().filter(|_| !set.is_terminating())).map(|set| set.replicas);
    let left = count(case.world.controlled("pods", &owner.uid).filter(|pod| pod.is_active_pod()).count());
    let at_store = wanted.is_some_and(|wanted| left >= wanted);
    let window = case.window();
    let as_shown = || {
        let key = steersman_base::ObjectKey { namespace: pod.key.namespace.clone(), name: owner.name.clone() };
        let versions = window.of_key(resource, &key);
        let fewest = versions.and_then(|versions| {
            let of_owner = |object: &std::sync::Arc<Object>| {
                object.set().filter(|_| object.uid == owner.uid && !object.is_terminating()).map(|set| set.replicas)
            };
            versions.objects().flatten().filter_map(of_owner).min()
        });
        let others = case.world.histories("pods", &owner.uid);
        let others = others.filter(|history| history.last().is_none_or(|last| last.revision != case.change.revision));
        let may_have = others
            .filter(|history| {
                window.of("pods", history).ever(|pod| pod.is_active_pod() && pod.is_controlled_by(&owner.uid))
            })
            .count();
        fewest.is_some_and(|fewest| count(may_have) >= fewest)
    };
    Verdict::judge(at_store, as_shown, || match wanted {
        Some(wanted) => format!(
            "{pod} is deleted: {left} active pods are left of {} {}, {wanted} are wanted",
            owner.kind, owner.name
        ),
        None => format!(
            "{pod} is deleted for {} {}, which is gone or terminating: that is the garbage collector's",
            owner.kind, owner.name
        ),
    })
}

/// "All existing Pods are killed before new ones are created when `.spec.strategy.type==Recreate`." (website:
/// Deployments)
///
/// Asked when the Deployment controller makes the ReplicaSet of the present template, or asks it for more pods. Judged
/// against the store; staleness excuses pods that were not there, or had ended, by what was shown. A paused Deployment
/// is only scaled.
pub(super) fn recreation_waits_for_the_end_of_old_pods(case: &Case<'_>) -> Verdict {
    if !case.is("replicasets.apps") || !case.by(&[DEPLOYMENT]) {
        return Verdict::NotMine;
    }
    let Some((after, is)) = case.step.after.as_ref().and_then(|after| Some((after, after.set()?))) else {
        return Verdict::NotMine;
    };
    let before = case.step.before.as_ref().and_then(|before| before.set()).map_or(0, |set| set.replicas);
    let Some(owner) = after.controller().filter(|_| is.replicas > before) else { return Verdict::NotMine };
    let Some(deployment) = case.world.by_uid(&owner.uid) else { return Verdict::NotMine };
    let versions = case.window().of_key("deployments.apps", &deployment.key);
    let recreates = |spec: &Deployment| !spec.rolling && !spec.paused && spec.template == is.template;
    if !versions.is_some_and(|versions| versions.always(|object| object.deployment().is_some_and(recreates))) {
        return Verdict::NotMine;
    }
    let window = case.window();
    let sets = case.world.controlled("replicasets.apps", &owner.uid).filter(|set| set.uid != after.uid);
    let mut stale = false;
    for set in sets {
        let runs =
            |pod: &Object| pod.is_controlled_by(&set.uid) && pod.pod().is_some_and(|pod| pod.phase != Phase::Ended);
        for history in case.world.histories("pods", &set.uid) {
            if !history.now().is_some_and(|pod| runs(pod)) {
                continue;
            }
            if window.of("pods", history).always(runs) {
                let pod = history.now().map_or_else(String::new, ToString::to_string);
                return Verdict::Violated(format!(
                    "{after} is asked for {} instead of {before} pods, while {pod} of {set} has not ended, and {deployment} is \
                     recreated",
                    is.replicas
                ));
            }
            stale = true;
        }
    }
    if stale { Verdict::Stale } else { Verdict::Holds }
}

/// A number of pods as the API counts them.
pub(super) fn count(pods: usize) -> i32 {
    i32::try_from(pods).unwrap_or(i32::MAX)
}
