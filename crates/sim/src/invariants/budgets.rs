//! Budgets: no more evictions are granted than pods can be spared.

use super::availability::count;
use super::replicas::stays;
use super::{Case, DISRUPTION, Findings, Rest, Verdict};
use crate::world::{Budget, Object};

const BUDGETS: &str = "poddisruptionbudgets.policy";
/// How long an eviction that was granted is remembered, in seconds.
const REMEMBERED_SECONDS: i64 = 120;

/// The budget before and after its controller changed it.
fn written<'a>(case: &Case<'a>) -> Option<(&'a Object, &'a Budget, &'a Budget)> {
    let (before, after) = case.updated().filter(|_| case.is(BUDGETS) && case.by(&[DISRUPTION]))?;
    Some((after, before.budget()?, after.budget()?))
}

/// "Number of pod disruptions that are currently allowed." "minimum desired number of healthy pods"
/// (PodDisruptionBudgetStatus, disruptionsAllowed and desiredHealthy)
///
/// Asked when the disruption controller allows evictions: so many healthy pods are there beyond those that are desired, and
/// evictions that were granted do not count. Judged against the store; staleness excuses pods that were healthy at some time
/// by what was shown.
pub(super) fn no_eviction_is_granted_beyond_the_budget(case: &Case<'_>) -> Verdict {
    let Some((after, _, is)) = written(case) else { return Verdict::NotMine };
    if is.status.allowed == 0 {
        return Verdict::NotMine;
    }
    let is_granted = |pod: &Object| is.status.disrupted.iter().any(|(name, _)| *name == pod.key.name);
    let counts = |pod: &Object| is.counts(pod) && !is_granted(pod);
    let needed = is.status.desired.saturating_add(is.status.allowed);
    let here = || case.world.content(&after.key.namespace).filter(|object| object.pod().is_some());
    let healthy = count(here().filter(|pod| counts(pod)).count());
    let is_desired =
        is.available_min.is_none_or(|min| is.status.desired == min) || after.generation != is.status.observed;
    let window = case.window();
    let as_shown = || {
        let histories = case.world.all_histories("pods");
        let here = histories.filter(|history| {
            history.last().is_some_and(|_| {
                window.of("pods", history).ever(|pod| pod.key.namespace == after.key.namespace && counts(pod))
            })
        });
        count(here.count()) >= needed
    };
    if !is_desired {
        return Verdict::Violated(format!(
            "{after} desires {} healthy pods, not {:?}",
            is.status.desired, is.available_min
        ));
    }
    Verdict::judge(healthy >= needed, as_shown, || {
        format!(
            "{after} allows {} evictions: {healthy} pods are healthy, {} are desired",
            is.status.allowed, is.status.desired
        )
    })
}

/// "DisruptedPods contains information about pods whose eviction was processed by the API server eviction subresource
/// handler but has not yet been observed by the PodDisruptionBudget controller." (PodDisruptionBudgetStatus, disruptedPods)
///
/// Asked when the disruption controller writes a budget: an eviction that was granted less than two minutes before stays in the
/// list while its pod is there and not terminating. Judged against the store; staleness excuses pods that were terminating, or
/// were not there, at some time by what was shown.
pub(super) fn granted_evictions_are_not_forgotten(case: &Case<'_>) -> Verdict {
    let Some((after, was, is)) = written(case) else { return Verdict::NotMine };
    let oldest = case.change.at.plus_seconds(case.options.clock_skew_seconds - REMEMBERED_SECONDS);
    let is_kept = |name: &steersman_base::Istr| is.status.disrupted.iter().any(|(kept, _)| kept == name);
    let recent = was.status.disrupted.iter().filter(|(_, since)| since.is_some_and(|since| since > oldest));
    let window = case.window();
    let mut verdict = if was.status.disrupted.is_empty() { Verdict::NotMine } else { Verdict::Holds };
    for (name, _) in recent.filter(|(name, _)| !is_kept(name)) {
        let key = steersman_base::ObjectKey { namespace: after.key.namespace.clone(), name: name.clone() };
        let stays = |pod: &Object| {
            !pod.is_terminating() && is.selector.as_ref().is_some_and(|selector| selector.matches(&pod.labels))
        };
        if !case.world.get("pods", &key).is_some_and(|pod| stays(pod)) {
            continue;
        }
        if window.of_key("pods", &key).is_some_and(|versions| versions.always(stays)) {
            return Verdict::Violated(format!("{after} forgets that the eviction of {name} was granted"));
        }
        verdict = Verdict::Stale;
    }
    verdict
}

/// "current number of healthy pods" (PodDisruptionBudgetStatus, currentHealthy)
///
/// At rest: the number is that of the pods, what is beyond the desired number may be evicted, and the present generation was
/// observed. A budget whose pods cannot be counted allows nothing.
pub(super) fn budgets_are_true_at_rest(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(DISRUPTION) {
        return;
    }
    for object in rest.world.all(BUDGETS).filter(|object| !object.is_terminating() && stays(rest, object)) {
        let Some(budget) = object.budget() else { continue };
        let status = &budget.status;
        if status.conditions.iter().any(|condition| condition.reason == "SyncFailed") {
            found.expect(status.allowed == 0, || {
                format!("{object} cannot count its pods and allows {}", status.allowed)
            });
            continue;
        }
        let pods = rest.world.content(&object.key.namespace).filter(|pod| pod.pod().is_some());
        let healthy = count(pods.filter(|pod| budget.counts(pod)).count());
        let spare = if status.expected > 0 { (healthy - status.desired).max(0) } else { 0 };
        let is_true = status.healthy == healthy && status.allowed == spare && status.observed == object.generation;
        found.expect(is_true, || {
            format!(
                "{object} says {} healthy, {} desired, {} allowed, generation {}; {healthy} are healthy, {spare} to spare, generation {}",
                status.healthy, status.desired, status.allowed, status.observed, object.generation
            )
        });
    }
}
