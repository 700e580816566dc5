//! At rest, the state matches the specs.

use std::sync::Arc;

use steersman_base::{ObjectKey, condition};

use super::availability::count;
use super::revisions::split;
use super::{DEPLOYMENT, Findings, REPLICA_SET, REPLICATION, Rest};
use crate::world::{Object, Phase, Set};

/// ReplicaSets and ReplicationControllers that have a controller.
fn sets<'a>(rest: &Rest<'a>) -> impl Iterator<Item = (&'a Arc<Object>, &'a Set)> {
    let rows = [(REPLICA_SET, "replicasets.apps"), (REPLICATION, "replicationcontrollers")];
    let runs = rows.map(|(controller, resource)| (rest.options.runs(controller), resource));
    let world = rest.world;
    let kept = runs.into_iter().filter(|(runs, _)| *runs).flat_map(move |(_, resource)| world.all(resource));
    let kept = kept.filter(|set| !set.is_terminating()).filter_map(|object| Some((object, object.set()?)));
    kept.filter(|(_, set)| set.selector.is_some())
}

/// Whether the namespace is there to stay.
pub(super) fn stays(rest: &Rest<'_>, object: &Object) -> bool {
    let namespace = rest.world.get("namespaces", &ObjectKey::cluster(&object.key.namespace));
    // Where namespaces are not recorded, they stay.
    namespace.is_none_or(|namespace| !namespace.is_terminating())
}

/// "A ReplicaSet's purpose is to maintain a stable set of replica Pods running at any given time." (website:
/// ReplicaSet)
///
/// At rest: each has exactly as many active pods as it asks for. Excused are those that say `ReplicaFailure` (a quota,
/// a webhook), and those in namespaces that go.
pub(super) fn every_set_has_its_replicas(rest: &Rest<'_>, found: &mut Findings) {
    for (object, set) in sets(rest) {
        let have = count(rest.world.controlled("pods", &object.uid).filter(|pod| pod.is_active_pod()).count());
        let is_refused = have < set.replicas && condition::is_true(&set.status.conditions, "ReplicaFailure");
        if have != set.replicas && (is_refused || !stays(rest, object)) {
            found.excuse();
            continue;
        }
        found.expect(have == set.replicas, || format!("{object} asks for {} pods and has {have}", set.replicas));
    }
}

/// "Replicas is the most recently observed number of non-terminating pods." (ReplicaSetStatus, replicas)
///
/// At rest: the counts are those of the pods, and the present generation was observed.
pub(super) fn statuses_of_sets_are_true_at_rest(rest: &Rest<'_>, found: &mut Findings) {
    let now = rest.world.now();
    for (object, set) in sets(rest).filter(|(object, _)| stays(rest, object)) {
        let pods = || rest.world.controlled("pods", &object.uid);
        let active = count(pods().filter(|pod| pod.is_active_pod()).count());
        let ready = count(pods().filter(|pod| pod.is_ready_pod()).count());
        let available = count(pods().filter(|pod| pod.is_available_pod(set.min_ready, now)).count());
        let is_leaving = |pod: &Object| pod.is_terminating() && pod.pod().is_some_and(|pod| pod.phase != Phase::Ended);
        let terminating = count(pods().filter(|pod| is_leaving(pod)).count());
        let status = &set.status;
        let is_true = (status.replicas, status.ready, status.available) == (active, ready, available)
            && status.observed == object.generation
            && status.terminating.is_none_or(|told| told == terminating);
        found.expect(is_true, || {
            format!(
                "{object} says {} pods, {} ready, {} available, {:?} terminating, generation {}; there are {active}, {ready}, \
                 {available}, {terminating}, generation {}",
                status.replicas, status.ready, status.available, status.terminating, status.observed, object.generation
            )
        });
    }
}

/// "Eventually, the new ReplicaSet is scaled to `.spec.replicas` and all old ReplicaSets is scaled to 0." (website:
/// Deployments, Rollover)
///
/// At rest: the ReplicaSet of the present template asks for all replicas, and the others for none. A paused Deployment
/// is not rolled out. Where a pod is not available, or cannot be made, the roll-out may have to wait.
pub(super) fn deployments_are_rolled_out(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(DEPLOYMENT) {
        return;
    }
    for object in rest.world.all("deployments.apps").filter(|object| !object.is_terminating()) {
        let Some(deployment) = object.deployment().filter(|deployment| deployment.selector.is_some()) else { continue };
        let (new, old) = split(rest.world, object);
        let asks = |set: &Object| set.set().map_or(0, |set| set.replicas);
        let new_asks = new.map(asks);
        let old_ask = old.iter().map(|set| asks(set)).sum::<i32>();
        let is_through = new_asks == Some(deployment.replicas) && old_ask == 0;
        if !is_through && (deployment.paused || !stays(rest, object) || !can_go_on(rest, object, deployment.min_ready))
        {
            found.excuse();
            continue;
        }
        found.expect(is_through, || {
            format!(
                "{object} wants {} pods of its template; its new ReplicaSet asks for {new_asks:?}, the old ones for {old_ask}",
                deployment.replicas
            )
        });
    }
}

/// Whether every pod of a Deployment is available, and none is missing.
fn can_go_on(rest: &Rest<'_>, deployment: &Object, min_ready: i64) -> bool {
    rest.world.controlled("replicasets.apps", &deployment.uid).all(|set| {
        let wanted = set.set().map_or(0, |set| set.replicas);
        let pods: Vec<_> = rest.world.controlled("pods", &set.uid).filter(|pod| pod.is_active_pod()).collect();
        let available = pods.iter().filter(|pod| pod.is_available_pod(min_ready, rest.world.now())).count();
        count(available) == wanted && pods.len() == available && !set.is_terminating()
    })
}

/// "Total number of non-terminating pods targeted by this deployment (their labels match the selector)."
/// (DeploymentStatus, replicas)
///
/// At rest: the counts are those of the pods, and the present generation was observed.
pub(super) fn statuses_of_deployments_are_true_at_rest(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(DEPLOYMENT) {
        return;
    }
    for object in rest.world.all("deployments.apps").filter(|object| !object.is_terminating() && stays(rest, object)) {
        let Some(deployment) = object.deployment().filter(|deployment| deployment.selector.is_some()) else { continue };
        let (new, _) = split(rest.world, object);
        let of = |set: &Object, counts: fn(&Object) -> bool| {
            count(rest.world.controlled("pods", &set.uid).filter(|pod| counts(pod)).count())
        };
        let sum = |counts: fn(&Object) -> bool| {
            rest.world.controlled("replicasets.apps", &object.uid).map(|set| of(set, counts)).sum::<i32>()
        };
        let active = sum(Object::is_active_pod);
        let ready = sum(Object::is_ready_pod);
        let updated = new.map_or(0, |set| of(set, Object::is_active_pod));
        let status = &deployment.status;
        let is_true = (status.replicas, status.ready, status.updated) == (active, ready, updated)
            && status.observed == object.generation;
        found.expect(is_true, || {
            format!(
                "{object} says {} pods, {} ready, {} updated, generation {}; there are {active}, {ready}, {updated}, generation {}",
                status.replicas, status.ready, status.updated, status.observed, object.generation
            )
        });
    }
}
