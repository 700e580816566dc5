//! No more pods than may be.

use super::availability::count;
use super::{Case, DEPLOYMENT, REPLICA_SET, REPLICATION, Verdict};
use crate::world::{Deployment, Object};

/// "The maximum number of pods that can be scheduled above the desired number of pods." (Deployment, maxSurge)
///
/// Asked when the Deployment controller makes a ReplicaSet, or asks one for more pods: what all its ReplicaSets ask for
/// must be at most `replicas + maxSurge`. Judged against the store; staleness excuses what was right for the Deployment
/// and the other ReplicaSets as shown, but for what the controller wrote itself. While a user's change of scale is
/// spread over several ReplicaSets, one may grow before another shrinks.
pub(super) fn replica_sets_ask_for_no_more_than_the_surge(case: &Case<'_>) -> Verdict {
    if !case.is("replicasets.apps") || !case.by(&[DEPLOYMENT]) {
        return Verdict::NotMine;
    }
    let Some((after, is)) = case.step.after.as_ref().and_then(|after| Some((after, after.set()?))) else {
        return Verdict::NotMine;
    };
    let before = case.step.before.as_ref().and_then(|before| before.set()).map_or(0, |set| set.replicas);
    let Some(owner) = after.controller().filter(|_| is.replicas > before) else { return Verdict::NotMine };
    let replicas = |set: &Object| set.set().map_or(0, |set| set.replicas);
    let total: i32 = case.world.controlled("replicasets.apps", &owner.uid).map(|set| replicas(set)).sum();
    let deployment = case.world.by_uid(&owner.uid);
    let at_most = deployment.and_then(|object| object.deployment()).map(Deployment::total_max);
    let at_store = at_most.is_some_and(|at_most| total <= at_most);
    let sized_for = |set: &Object| set.set().and_then(|set| set.sized_for);
    let is_scaled = case.updated().is_some_and(|(before, after)| sized_for(before) != sized_for(after));
    if is_scaled && !at_store {
        return Verdict::Excused;
    }
    let window = case.window();
    let as_shown = || {
        let key = steersman_base::ObjectKey { namespace: after.key.namespace.clone(), name: owner.name.clone() };
        let versions = window.of_key("deployments.apps", &key);
        let most = versions.and_then(|versions| {
            let mine = versions.objects().flatten().filter(|object| object.uid == owner.uid);
            mine.filter_map(|object| object.deployment().map(Deployment::total_max)).max()
        });
        let others = case.world.histories("replicasets.apps", &owner.uid);
        let others = others.filter(|history| history.now().is_none_or(|now| now.uid != after.uid));
        let fewest = others.map(|history| {
            let of = |object: Option<&std::sync::Arc<Object>>| {
                object.filter(|object| object.is_controlled_by(&owner.uid)).map_or(0, |object| replicas(object))
            };
            window.of("replicasets.apps", history).objects().map(of).min().unwrap_or(0)
        });
        let total_shown = fewest.sum::<i32>() + is.replicas;
        most.is_some_and(|most| total_shown <= most)
    };
    Verdict::judge(at_store, as_shown, || match at_most {
        Some(at_most) => format!(
            "{after} is asked for {} instead of {before} pods: {total} in all for Deployment {}, at most {at_most} may be",
            is.replicas, owner.name
        ),
        None => format!(
            "{after} is asked for {} instead of {before} pods for Deployment {}, which is gone",
            is.replicas, owner.name
        ),
    })
}

/// "Replicas is the number of desired pods." (ReplicaSetSpec, replicas)
///
/// Asked when the ReplicaSet or ReplicationController controller creates a pod: there must be no more active ones than
/// `spec.replicas` with it. Judged against the store; staleness excuses what was right for the number and the pods as
/// shown, but for pods that it created itself.
pub(super) fn no_more_pods_than_wanted_are_created(case: &Case<'_>) -> Verdict {
    let Some((pod, owner)) = created_pod(case) else { return Verdict::NotMine };
    let set = case.world.by_uid(&owner.uid).and_then(|set| set.set().filter(|_| !set.is_terminating()));
    let have = count(case.world.controlled("pods", &owner.uid).filter(|pod| pod.is_active_pod()).count());
    let at_store = set.is_some_and(|set| have <= set.replicas);
    Verdict::judge(
        at_store,
        || is_needed_as_shown(case),
        || match set {
            Some(set) => format!(
                "{pod} is created: {have} active pods of {} {}, {} are wanted",
                owner.kind, owner.name, set.replicas
            ),
            None => format!("{pod} is created for {} {}, which is gone or terminating", owner.kind, owner.name),
        },
    )
}

/// The pod that a controller of pods created with this write, and its owner.
pub(super) fn created_pod<'a>(case: &Case<'a>) -> Option<(&'a std::sync::Arc<Object>, &'a crate::world::Owner)> {
    if !case.is("pods") || !case.by(&[REPLICA_SET, REPLICATION]) {
        return None;
    }
    let pod = case.created()?;
    Some((pod, pod.controller()?))
}

/// Whether the pod that was created is needed by what was shown: with it there are no more than were ever wanted in the
/// window. Pods count that were there all the time, and those that the controller created itself.
pub(super) fn is_needed_as_shown(case: &Case<'_>) -> bool {
    let Some((pod, owner)) = created_pod(case) else { return false };
    let window = case.window();
    let key = steersman_base::ObjectKey { namespace: pod.key.namespace.clone(), name: owner.name.clone() };
    let Some(versions) = window.of_key(super::ownership::resource_of(&owner.kind), &key) else { return false };
    let mine = versions.objects().flatten().filter(|object| object.uid == owner.uid && !object.is_terminating());
    let Some(wanted) = mine.filter_map(|object| object.set()).map(|set| set.replicas).max() else { return false };
    let counts = |pod: &Object| pod.is_active_pod() && pod.is_controlled_by(&owner.uid);
    let histories = case.world.histories("pods", &owner.uid);
    let certain = histories.filter(|history| window.of("pods", history).always(counts)).count();
    count(certain) <= wanted
}
