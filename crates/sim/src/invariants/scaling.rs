//! Autoscalers: their bounds, their policies, and what they come to.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use steersman_base::{ObjectKey, Quantity, Selector};

use super::availability::count;
use super::replicas::stays;
use super::{AUTOSCALER, Case, Findings, Rest, Verdict};
use crate::world::{Autoscaler, Metric, Object};

pub(super) const AUTOSCALERS: &str = "horizontalpodautoscalers.autoscaling";
/// The ConfigMap whose entries are external metrics in a world.
const METRICS: &str = "simulated-metrics";
/// Without policies of its own, an autoscaler at most doubles the pods, or makes four of fewer.
const FACTOR: i32 = 2;
const MINIMUM: i32 = 4;
/// For how long two autoscalers must have had the same pods before both know it, in seconds: some periods of 15 s, and retries.
const KNOWN_AFTER_SECONDS: i64 = 150;
/// The deviation from the target that autoscalers ignore, in percent, and a pod's worth of rounding.
const TOLERANCE_PERCENT: i64 = 10;

/// The object that an autoscaler scales, before and after, with its numbers of pods.
fn scaled<'a>(case: &Case<'a>) -> Option<(&'a Arc<Object>, i32, i32)> {
    let (before, after) = case.updated().filter(|_| case.by(&[AUTOSCALER]))?;
    let was = replicas(before)?;
    let is = replicas(after)?;
    (was != is).then_some((after, was, is))
}

pub(super) fn replicas(object: &Object) -> Option<i32> {
    let deployment = || object.deployment().map(|deployment| deployment.replicas);
    let stateful_set = || object.stateful_set().map(|set| i32::try_from(set.replicas).unwrap_or(i32::MAX));
    deployment().or_else(stateful_set)
}

/// Whether `holds` of an autoscaler of the object: at the store, or at some time by what was shown.
fn judge(
    case: &Case<'_>,
    target: &Object,
    holds: impl Fn(&Object, &Autoscaler) -> bool,
    text: impl FnOnce() -> String,
) -> Verdict {
    let is_one = |object: &Object| {
        object.autoscaler().is_some_and(|scaler| scaler.scales(&target.resource, &target.key) && holds(object, scaler))
    };
    let at_store = case.world.all(AUTOSCALERS).any(|object| is_one(object));
    let window = case.window();
    let as_shown = || {
        let mut histories = case.world.all_histories(AUTOSCALERS);
        histories.any(|history| window.all_of(AUTOSCALERS, history).ever(is_one))
    };
    Verdict::judge(at_store, as_shown, text)
}

/// "maxReplicas is the upper limit for the number of replicas to which the autoscaler can scale up." "minReplicas is the
/// lower limit for the number of replicas to which the autoscaler can scale down." (HorizontalPodAutoscalerSpec: maxReplicas,
/// minReplicas)
///
/// Asked when the autoscaler changes a number of pods: it is within the bounds of one that scales the object. Judged against the
/// store; staleness excuses bounds that were so at some time by what was shown.
pub(super) fn autoscalers_stay_within_their_bounds(case: &Case<'_>) -> Verdict {
    let Some((target, was, is)) = scaled(case) else { return Verdict::NotMine };
    let within = |_: &Object, scaler: &Autoscaler| (scaler.min..=scaler.max).contains(&is);
    judge(case, target, within, || format!("{target} is scaled from {was} to {is}, and no autoscaler of it may do so"))
}

/// "scaleUp is scaling policy for scaling Up. If not set, the default value is the higher of: * increase no more than 4 pods per
/// 60 seconds * double the number of pods per 60 seconds No stabilization is used." (HorizontalPodAutoscalerBehavior, scaleUp)
/// Without any behaviour, `scaleUpLimitFactor` and `scaleUpLimitMinimum` of `horizontal.go` of Kubernetes 1.37 limit each step.
///
/// Asked when the autoscaler adds pods: not more than the policies of one that scales the object allow, what the same manager
/// added in the period included. An autoscaler counts its own changes alone, so that others that had the object in the period may
/// have added as much as theirs allow. Judged against the store; staleness excuses policies that were so at some time by what was
/// shown.
pub(super) fn pods_are_added_as_fast_as_policies_allow(case: &Case<'_>) -> Verdict {
    let Some((target, was, is)) = scaled(case).filter(|(_, was, is)| is > was) else { return Verdict::NotMine };
    let allowed = |object: &Object, scaler: &Autoscaler| match scaler.adds {
        // Back into the bounds in one step.
        _ if was < scaler.min && is == scaler.min => true,
        None => is <= was.saturating_mul(FACTOR).max(MINIMUM),
        Some((pods, seconds)) => {
            let net = case.memory.scaling.net(target, case.change, seconds);
            others_add(case, target, object, seconds).is_none_or(|others| is <= was - net + pods + others)
        }
    };
    judge(case, target, allowed, || format!("{target} is scaled from {was} to {is}, faster than any policy allows"))
}

/// Returns how many pods the other autoscalers that had the object in a period may have added to it; `None` if one had no policy
/// at some time: then nobody has counted.
fn others_add(case: &Case<'_>, target: &Object, scaler: &Object, seconds: i64) -> Option<i32> {
    let since = case.change.at.plus_seconds(-seconds);
    let mut others = BTreeMap::new();
    for history in case.world.all_histories(AUTOSCALERS) {
        for object in case.world.since_time(history, since).objects().flatten() {
            let of_target = |other: &&Autoscaler| other.scales(&target.resource, &target.key);
            let Some(other) = object.autoscaler().filter(of_target) else { continue };
            let (pods, _) = other.adds?;
            if object.uid != scaler.uid {
                let most = others.entry(&object.uid).or_insert(0);
                *most = pods.max(*most);
            }
        }
    }
    Some(others.values().sum())
}

/// "HPA controller skips scaling if the pods are selected by several autoscalers" follows `AmbiguousSelector` in `horizontal.go` of
/// Kubernetes 1.37: "the HPA controller found that pods by selector … are controlled by multiple HPAs".
///
/// Asked when the autoscaler changes a number of pods to one that is nobody's bound: no two autoscalers have had the object, with a
/// number of pods that is within the bounds of both, for so long that both know it. Judged against the store alone.
pub(super) fn pods_of_two_autoscalers_are_scaled_by_neither(case: &Case<'_>) -> Verdict {
    let Some((target, was, is)) = scaled(case) else { return Verdict::NotMine };
    let known = case.change.at.plus_seconds(-KNOWN_AFTER_SECONDS);
    let is_one =
        |object: &Object| object.autoscaler().is_some_and(|scaler| scaler.scales(&target.resource, &target.key));
    let of_target = |history: &&crate::world::History| case.world.since_time(history, known).always(is_one);
    let scalers: Vec<_> = case.world.all_histories(AUTOSCALERS).filter(of_target).filter_map(|it| it.now()).collect();
    let is_bound = |object: &&Arc<Object>| object.autoscaler().is_some_and(|it| it.min == is || it.max == is);
    let has_led = case.options.lease.as_ref().is_none_or(|lease| {
        let history = case.world.history("leases.coordination.k8s.io", lease);
        let mine = case.change.by.manager().and_then(|manager| case.memory.identities.get(&manager));
        history.is_some_and(|history| {
            case.world.since_time(history, known).always(|lease| super::leadership::is_held_by(lease, mine))
        })
    });
    let selector = target.selector();
    let is_old_pod = |pod: &&Arc<Object>| {
        pod.pod().is_some()
            && pod.created.is_some_and(|created| created < known)
            && selector.is_some_and(|selector| selector.matches(&pod.labels))
    };
    // Whoever finds the number out of its bounds does not look at the pods.
    let is_within = |object: &Object| {
        replicas(object).is_some_and(|have| {
            let mut bounds = scalers.iter().filter_map(|scaler| scaler.autoscaler());
            have > 0 && bounds.all(|bounds| (bounds.min..=bounds.max).contains(&have))
        })
    };
    let was_within = || {
        let history = case.world.history(&target.resource, &target.key);
        let before = history.map(|history| case.world.since_time(history, known));
        before.is_some_and(|before| before.but_last().always(is_within))
    };
    if scalers.len() < 2
        || !has_led
        || !was_within()
        || !case.world.content(&target.key.namespace).any(|pod| is_old_pod(&pod))
    {
        return Verdict::Holds;
    }
    Verdict::at_store(scalers.iter().any(is_bound), || {
        format!("{target} is scaled from {was} to {is}, and {} autoscalers have its pods", scalers.len())
    })
}

/// "desiredReplicas = ceil[currentReplicas * ( currentMetricValue / desiredMetricValue )]" (website: Horizontal Pod Autoscaling)
///
/// At rest: a target has as many pods as the metric of its autoscaler asks for, within the bounds and the tolerance. One whose
/// pods are not all ready is excused, and so is one that a user scaled to zero, and one whose pods another autoscaler has, too.
pub(super) fn replicas_are_what_the_load_asks_for(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(AUTOSCALER) {
        return;
    }
    for object in rest.world.all(AUTOSCALERS).filter(|object| !object.is_terminating() && stays(rest, object)) {
        let Some(scaler) = object.autoscaler() else { continue };
        let target = rest.world.get(scaler.target.0, &scaler.target.1).filter(|target| !target.is_terminating());
        let Some((target, have)) = target.and_then(|target| Some((target, replicas(target)?))) else { continue };
        let wanted = if is_ambiguous(rest, object, target) { None } else { wanted(rest, scaler, target, have) };
        let Some(wanted) = wanted else {
            found.excuse();
            continue;
        };
        found.expect(wanted, || {
            let Autoscaler { min, max, metric, .. } = scaler;
            format!("{object} ({min} to {max}, by {metric:?}) leaves {target} at {have} pods")
        });
    }
}

/// Whether another autoscaler has some of the pods of a target: then neither scales.
fn is_ambiguous(rest: &Rest<'_>, scaler: &Object, target: &Object) -> bool {
    let Some(selector) = target.selector() else { return false };
    let others = rest.world.all(AUTOSCALERS).filter(|other| {
        other.uid != scaler.uid && other.key.namespace == scaler.key.namespace && !other.is_terminating()
    });
    let mut selectors = others.filter_map(|other| {
        let (resource, key) = &other.autoscaler()?.target;
        rest.world.get(resource, key)?.selector()
    });
    let has_both = |other: &Selector| {
        let mut pods = rest.world.content(&scaler.key.namespace).filter(|object| object.pod().is_some());
        pods.any(|pod| selector.matches(&pod.labels) && other.matches(&pod.labels))
    };
    selectors.any(has_both)
}

/// Whether a number of pods is the one that the metric asks for; none if nobody can tell.
fn wanted(rest: &Rest<'_>, scaler: &Autoscaler, target: &Object, have: i32) -> Option<bool> {
    // Somebody else scaled it to zero, or the autoscaler itself did, without a metric to return by.
    if have == 0 {
        return None;
    }
    let per_mille = match &scaler.metric {
        Metric::External(name, per_pod) => {
            let value = external(rest, &target.key.namespace, name)?;
            value * 1000 / (per_pod * i64::from(have)).max(1)
        }
        Metric::Load(per_pod) => {
            let selector = target.selector()?;
            let pods = rest.world.content(&target.key.namespace);
            let pods: Vec<_> = pods.filter(|pod| pod.is_active_pod() && selector.matches(&pod.labels)).collect();
            if count(pods.len()) != have || !pods.iter().all(|pod| pod.is_ready_pod()) {
                return None;
            }
            let used: i64 = pods.iter().map(|pod| load(rest, &pod.key)).sum();
            used * 1000 / (per_pod * i64::from(have)).max(1)
        }
        Metric::Other => return None,
    };
    let is_near = (per_mille - 1000).abs() <= TOLERANCE_PERCENT * 10;
    // The exact number, rounded up.
    let exact = i32::try_from((per_mille * i64::from(have) + 999) / 1000).unwrap_or(i32::MAX);
    Some(match have {
        _ if is_near => (scaler.min..=scaler.max).contains(&have),
        _ => have == exact.clamp(scaler.min, scaler.max) || have == (exact - 1).clamp(scaler.min, scaler.max),
    })
}

/// The value of an external metric, in thousandths.
fn external(rest: &Rest<'_>, namespace: &str, name: &str) -> Option<i64> {
    let map = rest.world.raw("configmaps", &ObjectKey::new(namespace, METRICS))?;
    let text = map["data"][name].as_str()?;
    let value = text.split("value:").nth(1)?.trim_end_matches(['}', ']']);
    Some(value.trim().parse::<i64>().ok()? * 1000)
}

/// The CPU of a pod, in thousandths.
fn load(rest: &Rest<'_>, pod: &ObjectKey) -> i64 {
    /// What a pod uses that does not say it.
    const UNSAID: i64 = 10;
    let said = |pod: &Value| {
        let text = pod["metadata"]["annotations"]["nodes.steersman.dev/cpu-usage"].as_str()?.to_owned();
        Some(text.parse::<Quantity>().ok()?.milli_value())
    };
    rest.world.raw("pods", pod).and_then(|pod| said(pod)).unwrap_or(UNSAID)
}
