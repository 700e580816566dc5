//! Claims of devices: pods that run keep theirs, and what nobody uses is free.

use std::sync::Arc;

use steersman_base::{ObjectKey, Uid};

use super::replicas::stays;
use super::{Case, DEVICE_TAINT_EVICTION, Findings, RESOURCE_CLAIM, Rest, Verdict};
use crate::world::{Body, Object, Phase};

const CLAIMS: &str = "resourceclaims.resource.k8s.io";
const RULES: &str = "devicetaintrules.resource.k8s.io";

/// Whether a pod may still run: it has not ended, and if it is terminating, it is on a node.
fn may_run(pod: &Object) -> bool {
    pod.pod().is_some_and(|it| it.phase != Phase::Ended && !(pod.is_terminating() && it.node.is_empty()))
}

/// The pod with a uid, if it may run by the store, and whether it always could by what was shown.
fn running<'a>(case: &Case<'a>, pod: &Uid) -> Option<(&'a Arc<Object>, bool)> {
    let found = case.world.by_uid(pod).filter(|found| may_run(found))?;
    let is_it = |version: &Object| version.uid == *pod && may_run(version);
    let always = case.window().of_key("pods", &found.key).is_some_and(|versions| versions.always(is_it));
    Some((found, always))
}

/// "ReservedFor indicates which entities are currently allowed to use the claim. A Pod which references a ResourceClaim which is not
/// reserved for that Pod will not be started." (ResourceClaimStatus, reservedFor)
///
/// Asked when the resource claim controller takes a pod out of the list, or deletes the claim of a pod: that pod is gone, or will
/// not run again. Judged against the store; staleness excuses pods that were not so at some time by what was shown.
pub(super) fn pods_that_may_run_keep_their_devices(case: &Case<'_>) -> Verdict {
    let Some(before) = case.step.before.as_ref().filter(|_| case.is(CLAIMS) && case.by(&[RESOURCE_CLAIM])) else {
        return Verdict::NotMine;
    };
    let Some(was) = before.device_claim() else { return Verdict::NotMine };
    let after = case.step.after.as_ref();
    let kept = after.and_then(|after| after.device_claim());
    let is_kept = |pod: &&Uid| kept.is_some_and(|kept| kept.reserved.contains(pod));
    let mut lost: Vec<&Uid> = was.reserved.iter().filter(|pod| !is_kept(pod)).collect();
    if case.deleted().is_some() {
        lost.extend(before.controller().map(|owner| &owner.uid));
    }
    let mut verdict = if lost.is_empty() { Verdict::NotMine } else { Verdict::Holds };
    for (pod, always) in lost.into_iter().filter_map(|pod| running(case, pod)) {
        if always {
            return Verdict::Violated(format!("{before} is taken from {pod}, which may run"));
        }
        verdict = Verdict::Stale;
    }
    verdict
}

/// "Allocation is set once the claim has been allocated successfully." (ResourceClaimStatus, allocation)
///
/// Asked when the resource claim controller takes an allocation back: the claim is reserved for nobody, as the same write
/// leaves it.
pub(super) fn no_claim_in_use_loses_its_devices(case: &Case<'_>) -> Verdict {
    let Some((before, after)) = case.updated().filter(|_| case.is(CLAIMS) && case.by(&[RESOURCE_CLAIM])) else {
        return Verdict::NotMine;
    };
    let (Some(was), Some(is)) = (before.device_claim(), after.device_claim()) else { return Verdict::NotMine };
    if !was.is_allocated || is.is_allocated {
        return Verdict::NotMine;
    }
    Verdict::at_store(is.reserved.is_empty(), || {
        format!("{after} loses its devices, and is reserved for {:?}", is.reserved)
    })
}

/// "Evict any already-running pods that do not tolerate the device taint." (DeviceTaintEffectNoExecute)
///
/// Asked when the device taint eviction controller deletes a pod: it has claims of devices, and there is a rule that ends pods.
/// Judged against the store; staleness excuses a rule that was there at some time by what was shown.
pub(super) fn only_pods_with_tainted_devices_are_evicted(case: &Case<'_>) -> Verdict {
    let Some(deleted) = case.deleted().filter(|_| case.is("pods") && case.by(&[DEVICE_TAINT_EVICTION])) else {
        return Verdict::NotMine;
    };
    let has_claims = case.change.before.as_ref().is_some_and(|pod| pod["spec"]["resourceClaims"].is_array());
    if !has_claims {
        return Verdict::Violated(format!("{deleted} is deleted, and has no devices"));
    }
    let ends_pods = |rule: &Object| matches!(rule.body, Body::DeviceTaint { ends_pods: true });
    let at_store = case.world.all(RULES).any(|rule| ends_pods(rule));
    let window = case.window();
    let as_shown = || case.world.all_histories(RULES).any(|history| window.all_of(RULES, history).ever(ends_pods));
    Verdict::judge(at_store, as_shown, || format!("{deleted} is deleted, and no rule ends the users of its devices"))
}

/// "ReservedFor indicates which entities are currently allowed to use the claim." (ResourceClaimStatus, reservedFor)
///
/// At rest: each pod in the list is there and may run, what is reserved for nobody is not allocated, and the claim of a pod
/// that will not run again is deleted.
pub(super) fn devices_belong_to_pods_at_rest(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(RESOURCE_CLAIM) {
        return;
    }
    let pod_of = |uid: &Uid| rest.world.by_uid(uid).filter(|pod| may_run(pod));
    for object in rest.world.all(CLAIMS).filter(|object| !object.is_terminating() && stays(rest, object)) {
        let Some(claim) = object.device_claim() else { continue };
        for pod in &claim.reserved {
            found.expect(pod_of(pod).is_some(), || format!("{object} is reserved for {pod}, which will not run"));
        }
        let is_free = !claim.is_allocated || !claim.reserved.is_empty();
        found.expect(is_free, || format!("{object} is allocated, and reserved for nobody"));
        if let Some(owner) = object.controller() {
            found.expect(pod_of(&owner.uid).is_some(), || format!("{object} is left, and its pod will not run"));
        }
    }
}

/// "The template will be used to create a new ResourceClaim, which will be bound to this pod." (PodResourceClaim,
/// resourceClaimTemplateName)
///
/// At rest: each claim that the status of a pod names, which may run, is there and is that of the pod; and a pod that names a
/// template has one.
pub(super) fn every_pod_has_its_claims(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(RESOURCE_CLAIM) {
        return;
    }
    for object in rest.world.all("pods").filter(|pod| may_run(pod) && !pod.is_terminating() && stays(rest, pod)) {
        let Some(pod) = object.pod().filter(|pod| pod.claims_by_template > 0) else { continue };
        let key = |name| ObjectKey { namespace: object.key.namespace.clone(), name };
        let is_its = |name: &steersman_base::Istr| {
            let claim = rest.world.get(CLAIMS, &key(name.clone()));
            claim.is_some_and(|claim| claim.is_controlled_by(&object.uid))
        };
        let are = pod.device_claims.iter().filter(|name| is_its(name)).count();
        found.expect(are == pod.claims_by_template, || {
            format!("{object} has {are} of {} claims of devices", pod.claims_by_template)
        });
    }
}
