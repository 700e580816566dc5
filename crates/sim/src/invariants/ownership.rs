//! Ownership.

use std::sync::Arc;

use steersman_base::ObjectKey;

use super::{Case, DAEMON_SET, DEPLOYMENT, Findings, JOB, REPLICA_SET, REPLICATION, Rest, STATEFUL_SET, Verdict};
use crate::world::Object;

/// The resource of an owner of pods or ReplicaSets.
pub(super) fn resource_of(kind: &str) -> &'static str {
    match kind {
        "ReplicaSet" => "replicasets.apps",
        "ReplicationController" => "replicationcontrollers",
        "Deployment" => "deployments.apps",
        "StatefulSet" => "statefulsets.apps",
        "DaemonSet" => "daemonsets.apps",
        "Job" => "jobs.batch",
        _ => "",
    }
}

/// Controllers that take objects by their labels.
const CLAIMERS: [&str; 6] = [DEPLOYMENT, REPLICA_SET, REPLICATION, STATEFUL_SET, DAEMON_SET, JOB];

/// "There cannot be more than one managing controller." (ObjectMeta, ownerReferences)
///
/// Checked after every write of any author, against the object alone.
pub(super) fn at_most_one_owner_controls(case: &Case<'_>) -> Verdict {
    let Some(after) = case.step.after.as_ref().filter(|after| !after.owners.is_empty()) else {
        return Verdict::NotMine;
    };
    let controllers = after.owners.iter().filter(|owner| owner.controller).count();
    Verdict::at_store(controllers <= 1, || format!("{after} has {controllers} controllers"))
}

/// "If there is a Pod that has no OwnerReference or the OwnerReference is not a Controller and it matches a
/// ReplicaSet's selector, it will be immediately acquired by said ReplicaSet." (website: ReplicaSet)
///
/// Asked when one of the controllers makes itself the controller of an object: the object had none, matches and is not
/// terminating; the owner is there and is not terminating. Judged against the store; staleness excuses what was so at
/// some time by what was shown.
pub(super) fn adoption_is_of_matching_orphans_by_living_owners(case: &Case<'_>) -> Verdict {
    let Some((before, after)) = case.updated().filter(|_| case.by(&CLAIMERS)) else { return Verdict::NotMine };
    let Some(owner) = after.controller().filter(|owner| !before.is_controlled_by(&owner.uid)) else {
        return Verdict::NotMine;
    };
    // Claims get the owners with which they go.
    if case.is("persistentvolumeclaims") {
        return Verdict::NotMine;
    }
    if let Some(other) = before.controller() {
        return Verdict::Violated(format!(
            "{after} is taken by {} {} from {} {}",
            owner.kind, owner.name, other.kind, other.name
        ));
    }
    let resource = resource_of(&owner.kind);
    let key = ObjectKey { namespace: after.key.namespace.clone(), name: owner.name.clone() };
    let may_take = |object: &Object| object.uid == owner.uid && !object.is_terminating() && object.selector().is_some();
    let fits =
        |object: &Object, taken: &Object| object.selector().is_some_and(|selector| selector.matches(&taken.labels));
    let now = case.world.get(resource, &key);
    let at_store = now.is_some_and(|object| may_take(object) && fits(object, before)) && !before.is_terminating();
    let window = case.window();
    let as_shown = || {
        let Some(owners) = window.of_key(resource, &key) else { return false };
        let Some(objects) = window.of_key(&after.resource, &after.key) else { return false };
        let fits_some =
            |taken: &Object| !taken.is_terminating() && owners.ever(|object| may_take(object) && fits(object, taken));
        objects.ever(fits_some)
    };
    Verdict::judge(at_store, as_shown, || {
        let what = match now {
            None => "is gone".to_owned(),
            Some(object) if object.uid != owner.uid => "is another one by now".to_owned(),
            Some(object) if object.is_terminating() => "is terminating".to_owned(),
            Some(_) if before.is_terminating() => "may not take what is terminating".to_owned(),
            Some(_) => "does not select it".to_owned(),
        };
        format!("{after} is adopted by {} {}, which {what}", owner.kind, owner.name)
    })
}

/// "You can remove Pods from a ReplicaSet by changing their labels." (website: ReplicaSet) Only what the selector no
/// longer matches is released: follows `controller_ref_manager.go` of Kubernetes 1.37.
///
/// Asked when one of the controllers takes its reference off an object: it does not match the selector. Judged against
/// the store; staleness excuses labels and selectors that did not match at some time by what was shown.
pub(super) fn what_matches_is_not_released(case: &Case<'_>) -> Verdict {
    let Some((before, after)) = case.updated().filter(|_| case.by(&CLAIMERS)) else { return Verdict::NotMine };
    let Some(owner) = before.controller().filter(|owner| !after.is_controlled_by(&owner.uid)) else {
        return Verdict::NotMine;
    };
    if case.is("persistentvolumeclaims") {
        return Verdict::NotMine;
    }
    let resource = resource_of(&owner.kind);
    let key = ObjectKey { namespace: before.key.namespace.clone(), name: owner.name.clone() };
    let matches =
        |object: &Object, taken: &Object| object.selector().is_none_or(|selector| selector.matches(&taken.labels));
    let now = case.world.get(resource, &key).filter(|object| object.uid == owner.uid);
    let at_store = now.is_some_and(|object| !matches(object, before));
    let window = case.window();
    let as_shown = || {
        let Some(owners) = window.of_key(resource, &key) else { return false };
        let Some(objects) = window.of_key(&before.resource, &before.key) else { return false };
        objects.ever(|taken| owners.ever(|object| object.uid == owner.uid && !matches(object, taken)))
    };
    Verdict::judge(at_store, as_shown, || {
        format!("{before} is released by {} {}, and matches it", owner.kind, owner.name)
    })
}

/// "All Pods acquired by a ReplicaSet have their owning ReplicaSet's identifying information within their
/// ownerReferences field." (website: ReplicaSet)
///
/// Asked when one of the controllers creates a pod or a ReplicaSet: an owner controls it that is there, and that
/// selects it. Judged against the store; staleness excuses an owner that was there at some time by what was shown.
pub(super) fn what_is_created_belongs_to_its_creator(case: &Case<'_>) -> Verdict {
    let Some(made) = case.created().filter(|_| case.by(&CLAIMERS)) else { return Verdict::NotMine };
    if !case.is("pods") && !case.is("replicasets.apps") {
        return Verdict::NotMine;
    }
    let Some(owner) = made.controller() else {
        return Verdict::Violated(format!("{made} is created without an owner"));
    };
    let resource = resource_of(&owner.kind);
    let key = ObjectKey { namespace: made.key.namespace.clone(), name: owner.name.clone() };
    let selects = |object: &Object| {
        object.uid == owner.uid && object.selector().is_some_and(|selector| selector.matches(&made.labels))
    };
    let at_store = case.world.get(resource, &key).is_some_and(|object| selects(object));
    let window = case.window();
    let as_shown = || window.of_key(resource, &key).is_some_and(|owners| owners.ever(selects));
    Verdict::judge(at_store, as_shown, || {
        format!("{made} is created for {} {}, which is gone, or does not select it", owner.kind, owner.name)
    })
}

/// Whether the owner adopts such pods: a StatefulSet those that have the names of its pods; a Job that has finished none.
fn is_adoptable(owner: &Object, pod: &Object) -> bool {
    let number = || pod.key.name.strip_prefix(&*owner.key.name)?.strip_prefix('-')?.parse::<i64>().ok();
    match (owner.stateful_set(), owner.job()) {
        (Some(_), _) => number().is_some(),
        (_, Some(job)) => !job.is_finished(),
        _ => true,
    }
}

/// Owners that claim objects, with the resource of what they claim.
fn claims<'a>(rest: &Rest<'a>) -> Vec<(&'static str, &'a Arc<Object>)> {
    let rows = [
        (DEPLOYMENT, "deployments.apps", "replicasets.apps"),
        (REPLICA_SET, "replicasets.apps", "pods"),
        (REPLICATION, "replicationcontrollers", "pods"),
        (STATEFUL_SET, "statefulsets.apps", "pods"),
        (DAEMON_SET, "daemonsets.apps", "pods"),
        (JOB, "jobs.batch", "pods"),
    ];
    let rows = rows.into_iter().filter(|(controller, ..)| rest.options.runs(controller));
    rows.flat_map(|(_, owners, claimed)| rest.world.all(owners).map(move |owner| (claimed, owner))).collect()
}

/// "If there is a Pod that has no OwnerReference or the OwnerReference is not a Controller and it matches a
/// ReplicaSet's selector, it will be immediately acquired by said ReplicaSet." (website: ReplicaSet)
///
/// At rest: every active pod and every ReplicaSet that matches an owner in its namespace has one.
pub(super) fn orphans_that_match_are_adopted(rest: &Rest<'_>, found: &mut Findings) {
    for (resource, owner) in claims(rest).into_iter().filter(|(_, owner)| !owner.is_terminating()) {
        let Some(selector) = owner.selector() else { continue };
        for object in rest.world.content(&owner.key.namespace).filter(|object| object.resource == *resource) {
            let counts = object.pod().is_none() || object.is_active_pod() && is_adoptable(owner, object);
            if object.controller().is_none() && counts && !object.is_terminating() && selector.matches(&object.labels) {
                found.expect(false, || format!("{object} matches {owner} and is nobody's"));
            } else {
                found.count.checked += 1;
            }
        }
    }
}

/// "You can remove Pods from a ReplicaSet by changing their labels." (website: ReplicaSet)
///
/// At rest: no active pod, and no ReplicaSet, is controlled by an owner that does not select it.
pub(super) fn what_does_not_match_is_released(rest: &Rest<'_>, found: &mut Findings) {
    for (resource, owner) in claims(rest).into_iter().filter(|(_, owner)| !owner.is_terminating()) {
        let Some(selector) = owner.selector() else { continue };
        for object in rest.world.controlled(resource, &owner.uid) {
            let counts = object.pod().is_none() || object.is_active_pod();
            found.expect(!counts || selector.matches(&object.labels), || {
                format!("{object} is held by {owner} and does not match it")
            });
        }
    }
}
