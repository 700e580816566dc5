//! Quotas: what is counted is there.

use steersman_base::ObjectKey;

use super::replicas::stays;
use super::{Case, Findings, QUOTA, Rest, Verdict};
use crate::plan::BYSTANDER;
use crate::world::{Object, Phase, Quota, World};

const QUOTAS: &str = "resourcequotas";
/// What quotas count here, by its name in a quota: each the resource of that name.
const COUNTED: [&str; 3] = ["pods", "configmaps", "persistentvolumeclaims"];

/// Whether a quota counts an object of a counted resource. A pod that has ended does not count, and one that is terminating until
/// its grace period is over.
fn counts(object: &Object) -> bool {
    object.pod().is_none_or(|pod| pod.phase != Phase::Ended)
}

/// Whether a quota must count it. What managers may be unable to read need not be counted.
fn must_count(object: &Object) -> bool {
    counts(object) && !(object.pod().is_some() && object.is_terminating()) && object.key.name != *BYSTANDER
}

/// How many objects of a resource a quota must count, and how many it may count.
fn here(world: &World, namespace: &str, resource: &str) -> (i64, i64) {
    let here = world.content(namespace).filter(|object| object.resource == *resource);
    here.fold((0, 0), |(least, most), object| (least + i64::from(must_count(object)), most + i64::from(counts(object))))
}

/// "Hard is the set of enforced hard limits for each named resource." "Used is the current observed total usage of the resource in
/// the namespace." (ResourceQuotaStatus, hard and used)
///
/// Asked when the quota controller writes a quota: the limits are those of its spec, and each number is that of the objects that
/// are there. Judged against the store; staleness excuses numbers that lie between the objects that were there all the time and
/// those that were there at some time by what was shown.
pub(super) fn a_quota_counts_what_is_there(case: &Case<'_>) -> Verdict {
    let Some((_, after)) = case.updated().filter(|_| case.is(QUOTAS) && case.by(&[QUOTA])) else {
        return Verdict::NotMine;
    };
    let Some(quota) = after.quota() else { return Verdict::NotMine };
    let namespace = &after.key.namespace;
    let wrong = COUNTED.into_iter().find_map(|name| {
        let used = quota.used(name)?;
        let (least, most) = here(case.world, namespace, name);
        (!(least..=most).contains(&used)).then_some((name, used, most))
    });
    let window = case.window();
    let as_shown = || {
        let limits = |version: &Object| version.quota().is_some_and(|version| version.hard == quota.status_hard);
        let is_known = window.of_key(QUOTAS, &after.key).is_some_and(|versions| versions.ever(limits));
        is_known && COUNTED.into_iter().all(|name| is_between(case, &after.key, quota, name))
    };
    Verdict::judge(wrong.is_none() && quota.hard == quota.status_hard, as_shown, || match wrong {
        Some((name, used, are)) => format!("{after} counts {used} {name}, and there are {are}"),
        None => format!("{after} has the limits {:?}, and its status says {:?}", quota.hard, quota.status_hard),
    })
}

/// Whether a number is one that can have been counted by what was shown.
fn is_between(case: &Case<'_>, key: &ObjectKey, quota: &Quota, name: &str) -> bool {
    let Some(used) = quota.used(name) else { return true };
    let window = case.window();
    let is_here = |object: &Object| object.key.namespace == key.namespace;
    let mut least = 0;
    let mut most = 0;
    for history in case.world.all_histories(name) {
        least += i64::from(window.of(name, history).always(|object| is_here(object) && must_count(object)));
        most += i64::from(window.of(name, history).ever(|object| is_here(object) && counts(object)));
    }
    (least..=most).contains(&used)
}

/// "Used is the current observed total usage of the resource in the namespace." (ResourceQuotaStatus, used)
///
/// At rest: the limits are those of the spec, and the numbers those of the objects.
pub(super) fn quotas_are_true_at_rest(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(QUOTA) {
        return;
    }
    for object in rest.world.all(QUOTAS).filter(|object| !object.is_terminating() && stays(rest, object)) {
        let Some(quota) = object.quota() else { continue };
        found.expect(quota.hard == quota.status_hard, || {
            format!("{object} has the limits {:?}, and its status says {:?}", quota.hard, quota.status_hard)
        });
        for name in COUNTED.into_iter().filter(|name| quota.hard.contains_key(*name)) {
            let (least, most) = here(rest.world, &object.key.namespace, name);
            let used = quota.used(name);
            found.expect(used.is_some_and(|used| (least..=most).contains(&used)), || {
                format!("{object} counts {used:?} {name}, and there are {most}")
            });
        }
    }
}
