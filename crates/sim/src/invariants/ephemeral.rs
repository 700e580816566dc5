//! Volumes of single pods: their claims.

use steersman_base::{Istr, ObjectKey};

use super::replicas::stays;
use super::storage::CLAIMS;
use super::{Case, EPHEMERAL, Findings, Rest, Verdict};
use crate::world::Object;

/// "The pod in which this EphemeralVolumeSource is embedded will be the owner of the PVC, i.e. the PVC will be deleted together with
/// the pod." (EphemeralVolumeSource, volumeClaimTemplate)
///
/// Asked when the ephemeral volume controller creates a claim: a pod controls it that is there and stays. Judged against the store;
/// staleness excuses a pod that did at some time by what was shown.
pub(super) fn claims_of_pods_are_made_for_pods_that_stay(case: &Case<'_>) -> Verdict {
    let Some(made) = case.created().filter(|_| case.is(CLAIMS) && case.by(&[EPHEMERAL])) else {
        return Verdict::NotMine;
    };
    let Some(owner) = made.controller().filter(|owner| owner.kind == "Pod") else {
        return Verdict::Violated(format!("{made} is created, and belongs to no pod"));
    };
    let key = ObjectKey { namespace: made.key.namespace.clone(), name: owner.name.clone() };
    let stays = |pod: &Object| pod.uid == owner.uid && !pod.is_terminating();
    let at_store = case.world.get("pods", &key).is_some_and(|pod| stays(pod));
    let window = case.window();
    let as_shown = || window.of_key("pods", &key).is_some_and(|pods| pods.ever(stays));
    Verdict::judge(at_store, as_shown, || {
        format!("{made} is created for pod {}, which is gone or terminating", owner.name)
    })
}

/// "Will be used to create a stand-alone PVC to provision the volume." (EphemeralVolumeSource, volumeClaimTemplate)
///
/// At rest: each volume of a pod that has a template has its claim, and it is the pod's.
pub(super) fn every_pod_has_its_volumes(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(EPHEMERAL) {
        return;
    }
    for object in rest.world.all("pods").filter(|pod| !pod.is_terminating() && stays(rest, pod)) {
        let Some(pod) = object.pod() else { continue };
        for claim in &pod.own_claims {
            let key = |name: &Istr| ObjectKey { namespace: object.key.namespace.clone(), name: name.clone() };
            let made = rest.world.get(CLAIMS, &key(claim));
            let is_its = made.is_some_and(|made| made.is_controlled_by(&object.uid));
            found.expect(is_its, || {
                let is = if made.is_some() { "is another's" } else { "is not there" };
                format!("{object} has a volume of its own, and its claim {claim} {is}")
            });
        }
    }
}
